#include "compiler/passes/instantiate.h"

#include "ir/dim.h"
#include "ir/dim_binding.h"
#include "ir/tensor/function.h"

// Attributes of a copy: the name of what it was made of, and the extents of its symbols, in the order in which they
// appear.
static const char attr_of[] = "instance_of";
static const char attr_extents[] = "instance_extents";

typedef struct instantiation {
    berth_module *module;
    berth_graph *graph;           // of main
    berth_dim_bindings bindings;  // of the call at hand
    BERTH_VEC(berth_func_id) copies;
} instantiation;

// The verifier has seen that symbols which stand twice have one extent.
static void bind_value(instantiation *in, const berth_buf_info *buf, berth_value_id value) {
    if (value == BERTH_NONE) return;
    const berth_type *type = berth_type_get(in->module, in->graph->values.data[value].type);
    if (type->kind != BERTH_TYPE_TENSOR || type->rank != buf->rank) return;
    for (int d = 0; d < buf->rank; ++d)
        if (type->dims[d] >= 0) (void)berth_dim_bind(&in->bindings, buf->dims[d], type->dims[d]);
}

// Arguments are what is read, results what is written; or all of them are arguments.
static void bind_call(instantiation *in, const berth_tfn *fn, const berth_op *op) {
    bool all = op->output_count == 0 && op->input_count == fn->param_count;
    uint32_t operand = 0, result = 0;
    in->bindings = (berth_dim_bindings){.module = in->module, .arena = in->module->arena};
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        const berth_buf_info *buf = &fn->bufs.data[i];
        if (all || buf->role != BERTH_ROLE_OUT)
            bind_value(in, buf, operand < op->input_count ? op->inputs[operand] : BERTH_NONE);
        else
            bind_value(in, buf, result < op->output_count ? op->outputs[result] : BERTH_NONE);
        if (all || buf->role != BERTH_ROLE_OUT)
            operand++;
        else
            result++;
    }
}

static bool all_known(instantiation *in, const berth_tfn *fn) {
    for (uint32_t i = 0; i < fn->param_count; ++i)
        for (int d = 0; d < fn->bufs.data[i].rank; ++d)
            if (berth_dim_is_symbol(berth_dim_substitute(in->module, fn->bufs.data[i].dims[d],
                                                         berth_dim_bound, &in->bindings)))
                return false;
    return true;
}

static bool is_instance(const instantiation *in, berth_func_id copy, berth_str_id name) {
    const berth_attrs *attrs = &berth_module_function(in->module, copy)->attrs;
    const berth_attr *of = berth_attrs_find(in->module, attrs, attr_of);
    uint32_t count = 0;
    const int64_t *extents = berth_attrs_ints(in->module, attrs, attr_extents, &count);
    if (!of || of->kind != BERTH_ATTR_STRING || of->s != name || !extents ||
        count != in->bindings.list.count)
        return false;
    for (uint32_t i = 0; i < count; ++i)
        if (extents[i] != in->bindings.list.data[i].extent) return false;
    return true;
}

static berth_func_id find_instance(const instantiation *in, berth_func_id callee) {
    berth_str_id name = berth_module_function(in->module, callee)->name;
    for (uint32_t i = 0; i < in->copies.count; ++i)
        if (is_instance(in, in->copies.data[i], name)) return in->copies.data[i];
    return BERTH_NONE;
}

// Copies that the module has of an earlier run.
static void find_copies(instantiation *in) {
    for (berth_func_id i = 0; i < in->module->functions.count; ++i)
        if (!in->module->functions.data[i].removed && berth_tfn_get(in->module, i) &&
            berth_attrs_find(in->module, &in->module->functions.data[i].attrs, attr_of))
            berth_vec_push(in->module->arena, &in->copies, i);
}

// "relu_5", "gemm_64_128".
static berth_func_id add_instance(instantiation *in, berth_func_id callee) {
    berth_module *module = in->module;
    const char *of = berth_module_str(module, berth_module_function(module, callee)->name);
    int64_t *extents = berth_arena_new_array(module->arena, int64_t, in->bindings.list.count + 1);
    berth_strbuf name = berth_strbuf_make(module->arena);
    berth_strbuf_add(&name, of);
    for (uint32_t i = 0; i < in->bindings.list.count; ++i) {
        extents[i] = in->bindings.list.data[i].extent;
        berth_strbuf_addf(&name, "_%lld", (long long)extents[i]);
    }
    berth_func_id copy = berth_tfn_clone(module, callee, berth_strbuf_text(&name));
    berth_tfn_fix_symbols(berth_tfn_get(module, copy), berth_dim_bound, &in->bindings);
    berth_attrs *attrs = &berth_module_function(module, copy)->attrs;
    berth_attrs_set_string(module, attrs, attr_of, of);
    berth_attrs_set_ints(module, attrs, attr_extents, extents, in->bindings.list.count);
    berth_vec_push(module->arena, &in->copies, copy);
    return copy;
}

static void instantiate_call(instantiation *in, berth_op_id id) {
    const berth_op *op = &in->graph->ops.data[id];
    const berth_attr *callee =
        op->kind == BERTH_OP_CALL ? berth_attrs_find(in->module, &op->attrs, "callee") : NULL;
    if (!callee || callee->kind != BERTH_ATTR_FUNCTION) return;
    const berth_tfn *fn = berth_tfn_get(in->module, callee->function);
    if (!fn || !berth_tfn_is_polymorphic(fn)) return;
    bind_call(in, fn, op);
    if (!all_known(in, fn)) return;
    berth_func_id copy = find_instance(in, callee->function);
    if (copy == BERTH_NONE) copy = add_instance(in, callee->function);
    berth_attrs_set(in->module, &in->graph->ops.data[id].attrs, "callee",
                    (berth_attr){.kind = BERTH_ATTR_FUNCTION, .function = copy});
}

void berth_pass_instantiate(berth_module *module, berth_func_id main) {
    instantiation in = {.module = module, .graph = berth_graph_get(module, main)};
    const berth_region *root = &in.graph->regions.data[0];
    find_copies(&in);
    for (uint32_t i = 0; i < root->ops.count; ++i) instantiate_call(&in, root->ops.data[i]);
}
