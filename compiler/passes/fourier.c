#include "compiler/passes/fourier.h"

#include <string.h>

#include "compiler/lower/fourier.h"

#define MOST_TABLE_BYTES (32 << 20)

static berth_dtype table_type(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_F64 ? dtype : BERTH_DTYPE_F32;
}

static double table_bytes(const berth_fourier *f) {
    double bytes = 0;
    for (int stage = 0; stage < f->stages; ++stage) {
        int64_t dims[5];
        double count = 1;
        berth_fourier_table_dims(f, stage, dims);
        for (int d = 0; d < 5; ++d) count *= (double)dims[d];
        bytes += count * (double)sizeof(float);
    }
    return bytes;
}

static berth_tensor table_of(berth_module *module, const berth_fourier *f, int stage,
                             berth_dtype dtype) {
    int64_t dims[5];
    berth_fourier_table_dims(f, stage, dims);
    berth_tensor table = berth_tensor_create(module->arena, table_type(dtype), 5, dims);
    int64_t count = berth_tensor_element_count(&table);
    double *exact = berth_arena_new_array(module->arena, double, (size_t)count);
    berth_fourier_table(f, stage, exact);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_f64(&table, i, exact[i]);
    return table;
}

berth_status berth_add_fourier_tables(berth_rewriter *r, berth_op_id id) {
    berth_graph *graph = berth_graph_get(r->module, r->function);
    const berth_op op = graph->ops.data[id];
    const berth_type *x = berth_type_get(r->module, graph->values.data[op.inputs[0]].type);
    berth_fourier f;
    if (!berth_type_is_static(x) || !berth_dtype_is_float(x->dtype) ||
        !berth_fourier_describe(r->module, graph, &op, &f) || op.input_count > f.first_table ||
        table_bytes(&f) > MOST_TABLE_BYTES)
        return BERTH_OK;
    berth_dtype dtype = x->dtype;
    berth_value_id inputs[4 + BERTH_FOURIER_MAX_STAGES];
    uint32_t count = 0;
    for (; count < f.first_table; ++count)
        inputs[count] = count < op.input_count ? op.inputs[count] : BERTH_NONE;
    for (int stage = 0; stage < f.stages; ++stage) {
        berth_tensor table = table_of(r->module, &f, stage, dtype);
        inputs[count++] = berth_rewriter_insert_constant(r, id, &table, op.loc);
    }
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, op.kind, inputs, count, &op.attrs, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}
