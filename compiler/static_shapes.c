// Whether all shapes are known, as this version needs them to be; what to say where they are not.
#include <string.h>

#include "base/str.h"
#include "compiler/passes/check.h"
#include "compiler/pipeline.h"

// Tuples, functions and storage have no shape; the pass that cannot lower them refuses them by
// name.
static bool has_known_shape(const berth_module *module, berth_type_id id) {
    const berth_type *type = berth_type_get(module, id);
    return type->kind > BERTH_TYPE_TENSOR || berth_type_is_static(type);
}

// ---- inputs -------------------------------------------------------------------------------------

enum { shown = 32 };

typedef struct missing {
    const berth_module *module;
    berth_strbuf inputs;  // with their types
    berth_remedy remedies[shown];
    size_t count;  // of those, and of what would not fit
} missing;

static void add_remedy(missing *m, berth_remedy_kind kind, const char *name) {
    size_t known = m->count < shown ? m->count : (size_t)shown;
    for (size_t i = 0; i < known; ++i)
        if (m->remedies[i].kind == kind && strcmp(m->remedies[i].name, name) == 0) return;
    if (m->count < shown) m->remedies[m->count] = (berth_remedy){kind, name};
    m->count++;
}

// Only the input itself says its rank, or an extent without a name.
static void add_input(missing *m, const berth_value *value) {
    const berth_type *type = berth_type_get(m->module, value->type);
    const char *name = berth_module_str(m->module, value->name);
    bool open = type->rank < 0;
    berth_strbuf_addf(&m->inputs, "%s\"%s\" ", m->inputs.length ? ", " : "", name);
    berth_type_print(m->module, value->type, &m->inputs);
    for (int d = 0; d < type->rank; ++d) {
        if (type->dims[d] == BERTH_DIM_UNKNOWN)
            open = true;
        else if (berth_dim_is_symbol(type->dims[d]))
            add_remedy(m, BERTH_REMEDY_DIMENSION,
                       berth_module_str(m->module, berth_dim_symbol_name(type->dims[d])));
    }
    if (open) add_remedy(m, BERTH_REMEDY_INPUT, name);
}

static berth_status missing_dims(const berth_module *module, const berth_graph *graph) {
    const berth_region *root = &graph->regions.data[0];
    missing m = {.module = module};
    m.inputs = berth_strbuf_make(module->arena);
    for (uint32_t i = 0; i < root->params.count; ++i) {
        const berth_value *value = &graph->values.data[root->params.data[i]];
        if (!has_known_shape(module, value->type)) add_input(&m, value);
    }
    berth_status status = berth_status_make(
        BERTH_UNSUPPORTED,
        "dimensions of the inputs are not known: %s; give the inputs, or their extents",
        berth_strbuf_text(&m.inputs));
    return berth_status_with_remedies(status, m.remedies,
                                      m.count < shown ? m.count : (size_t)shown);
}

// ---- operations ---------------------------------------------------------------------------------

static berth_status unknown_result(const berth_module *module, const berth_op *op, uint32_t output,
                                   berth_type_id type) {
    berth_strbuf text = berth_strbuf_make(module->arena);
    const char *where = berth_loc_describe(module, op->loc, module->arena);
    if (berth_op_is_of_sequences(op->kind))
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "%s is of sequences or optional values, which executor vm handles",
                                 where);
    berth_type_print(module, type, &text);
    return berth_status_make(BERTH_UNSUPPORTED,
                             "output %u of %s has the type %s: shapes that depend on the values of "
                             "inputs need executor vm",
                             output, where, berth_strbuf_text(&text));
}

// Control flow can be planned where all shapes are known, also those inside (fuse refuses it then).
static berth_status check_control_flow(const berth_module *module, const berth_graph *graph,
                                       const berth_op *first) {
    for (uint32_t r = 0; r < graph->regions.count; ++r) {
        const berth_region *region = &graph->regions.data[r];
        for (uint32_t i = 0; i < region->ops.count; ++i) {
            const berth_op *op = &graph->ops.data[region->ops.data[i]];
            for (uint32_t j = 0; j < op->output_count; ++j)
                if (!has_known_shape(module, graph->values.data[op->outputs[j]].type))
                    return berth_refuse_control_flow(module, first);
        }
    }
    return BERTH_OK;
}

berth_status berth_pipeline__check_static(const berth_module *module, berth_func_id main) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i)
        if (!has_known_shape(module, graph->values.data[root->params.data[i]].type))
            return missing_dims(module, graph);
    for (uint32_t i = 0; i < root->ops.count; ++i)
        if (graph->ops.data[root->ops.data[i]].region_count > 0)
            return check_control_flow(module, graph, &graph->ops.data[root->ops.data[i]]);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        for (uint32_t j = 0; j < op->output_count; ++j) {
            berth_type_id type = graph->values.data[op->outputs[j]].type;
            if (!has_known_shape(module, type) || berth_op_is_of_sequences(op->kind))
                return unknown_result(module, op, j, type);
        }
    }
    return BERTH_OK;
}
