#include "compiler/passes/fourier.h"

#include <string.h>

#include "compiler/lower/fourier.h"

#define MOST_TABLE_BYTES (32 << 20)

static berth_dtype table_type(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_F64 ? dtype : BERTH_DTYPE_F32;
}

static double bytes_of(const int64_t *dims, int rank) {
    double count = 1;
    for (int d = 0; d < rank; ++d) count *= (double)dims[d];
    return count * (double)sizeof(float);
}

static double table_bytes(const berth_fourier *f) {
    double bytes = 0;
    for (int stage = 0; stage < f->stages; ++stage) {
        int64_t dims[5];
        bytes += bytes_of(dims, berth_fourier_table_dims(f, (uint32_t)stage, dims));
    }
    return bytes;
}

static berth_tensor table_of(berth_module *module, const berth_fourier *f, uint32_t index,
                             berth_dtype dtype) {
    int64_t dims[5];
    int rank = berth_fourier_table_dims(f, index, dims);
    berth_tensor table = berth_tensor_create(module->arena, table_type(dtype), rank, dims);
    int64_t count = berth_tensor_element_count(&table);
    const double *exact = berth_fourier_table(f, index, module->arena);
    for (int64_t i = 0; i < count; ++i) berth_tensor_set_f64(&table, i, exact[i]);
    return table;
}

berth_status berth_add_fourier_tables(berth_rewriter *r, berth_op_id id) {
    berth_graph *graph = berth_graph_get(r->module, r->function);
    const berth_op op = graph->ops.data[id];
    const berth_type *x = berth_type_get(r->module, graph->values.data[op.inputs[0]].type);
    berth_fourier f;
    if (!berth_type_is_static(x) || !berth_dtype_is_float(x->dtype) ||
        !berth_fourier_describe(r->module, graph, &op, &f) || op.input_count > f.first_table)
        return BERTH_OK;
    berth_dtype dtype = x->dtype;
    berth_fourier_convolve(dtype, &f);
    // A convolution is worth it even if the tables of its stages are computed as they are used.
    bool staged = table_bytes(&f) <= MOST_TABLE_BYTES;
    if (!staged && !f.convolution) return BERTH_OK;
    berth_value_id inputs[4 + BERTH_FOURIER_MAX_TABLES];
    uint32_t count = 0;
    for (; count < f.first_table; ++count)
        inputs[count] = count < op.input_count ? op.inputs[count] : BERTH_NONE;
    for (uint32_t i = 0; i < berth_fourier_table_count(&f); ++i) {
        if (i < (uint32_t)f.stages && !staged) {
            inputs[count++] = BERTH_NONE;
            continue;
        }
        berth_tensor table = table_of(r->module, &f, i, dtype);
        inputs[count++] = berth_rewriter_insert_constant(r, id, &table, op.loc);
    }
    berth_value_id result = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(r, id, op.kind, inputs, count, &op.attrs, op.loc, &result));
    berth_rewriter_replace(r, op.outputs[0], result);
    return BERTH_OK;
}
