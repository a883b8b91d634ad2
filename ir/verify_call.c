#include "ir/verify_call.h"

#include "ir/dim.h"
#include "ir/dim_binding.h"
#include "ir/external.h"
#include "ir/tensor/function.h"

// Types of a callee: parameters, then results.
typedef struct signature {
    BERTH_VEC(berth_type) types;
    uint32_t params;
    bool known;
} signature;

typedef struct matcher {
    const berth_module *module;
    berth_arena *arena;
    const char *callee;
    berth_dim_bindings bindings;
} matcher;

static void add_type(signature *s, berth_arena *arena, berth_type type, bool param) {
    berth_vec_push(arena, &s->types, type);
    s->params += param;
}

static berth_type type_of_buffer(const berth_buf_info *buf) {
    berth_type type = {
        .kind = BERTH_TYPE_TENSOR, .dtype = buf->dtype, .rank = buf->rank, .layout = buf->layout};
    for (int d = 0; d < buf->rank; ++d) type.dims[d] = buf->dims[d];
    return type;
}

// Parameters of a tensor function that are read come as arguments, those written as results; or all
// of them as arguments (destination passing), and the call has no results.
static void of_tensor_function(const berth_tfn *fn, const berth_op *call, signature *s,
                               berth_arena *arena) {
    s->known = true;
    if (call->output_count == 0 && call->input_count == fn->param_count) {
        for (uint32_t i = 0; i < fn->param_count; ++i)
            add_type(s, arena, type_of_buffer(&fn->bufs.data[i]), true);
        return;
    }
    for (uint32_t i = 0; i < fn->param_count; ++i) {
        berth_buf_role role = fn->bufs.data[i].role;
        if (role == BERTH_ROLE_INOUT) s->known = false;  // an argument, and perhaps a result
        if (role == BERTH_ROLE_IN) add_type(s, arena, type_of_buffer(&fn->bufs.data[i]), true);
    }
    for (uint32_t i = 0; i < fn->param_count; ++i)
        if (fn->bufs.data[i].role == BERTH_ROLE_OUT)
            add_type(s, arena, type_of_buffer(&fn->bufs.data[i]), false);
}

static void of_callee(const berth_module *module, berth_func_id callee, const berth_op *call,
                      signature *s, berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, callee);
    const berth_tfn *fn = berth_tfn_get(module, callee);
    const berth_external *external = berth_external_get(module, callee);
    if (graph) {
        const berth_region *root = &graph->regions.data[0];
        for (uint32_t i = 0; i < root->params.count + root->results.count; ++i) {
            bool param = i < root->params.count;
            berth_value_id value =
                param ? root->params.data[i] : root->results.data[i - root->params.count];
            berth_type_id id = value == BERTH_NONE ? 0 : graph->values.data[value].type;
            add_type(s, arena, *berth_type_get(module, id), param);
        }
        s->known = true;
    } else if (fn) {
        of_tensor_function(fn, call, s, arena);
    } else if (external) {
        const berth_type *type = berth_type_get(module, external->type);
        for (uint32_t i = 0; i < type->field_count; ++i)
            add_type(s, arena, *berth_type_get(module, type->fields[i]), i < type->param_count);
        s->known = type->kind == BERTH_TYPE_FUNCTION;
    }
}

static bool same_extent(matcher *m, int64_t wanted, int64_t given) {
    int64_t extent = 0;
    if (wanted == BERTH_DIM_UNKNOWN || berth_dim_is_symbol(given)) return true;
    if (!berth_dim_is_symbol(wanted)) return wanted == given;
    if (berth_dim_is_expression(m->module, wanted))
        return !berth_dim_evaluate(m->module, wanted, berth_dim_bound, &m->bindings, m->arena,
                                   &extent) ||
               extent == given;
    return berth_dim_bind(&m->bindings, wanted, given);
}

static bool fits(matcher *m, const berth_type *wanted, const berth_type *given) {
    if (wanted->kind == BERTH_TYPE_UNKNOWN || given->kind == BERTH_TYPE_UNKNOWN) return true;
    if (wanted->kind != given->kind) return false;
    if (wanted->kind != BERTH_TYPE_TENSOR) return true;
    if (wanted->dtype && given->dtype && wanted->dtype != given->dtype) return false;
    if (wanted->rank < 0 || given->rank < 0) return true;
    if (wanted->rank != given->rank || wanted->layout != given->layout) return false;
    for (int d = 0; d < wanted->rank; ++d)
        if (!same_extent(m, wanted->dims[d], given->dims[d])) return false;
    return true;
}

static void print_type(const matcher *m, const berth_type *type, berth_strbuf *text) {
    if (type->kind != BERTH_TYPE_TENSOR) {
        berth_strbuf_add(text, type->kind == BERTH_TYPE_TUPLE ? "a tuple" : "no tensor");
        return;
    }
    berth_strbuf_add(text, berth_dtype_name(type->dtype));
    berth_shape_print(m->module, type->rank, type->dims, type->layout, text);
}

static const char *misfit(const matcher *m, const char *what, uint32_t index,
                          const berth_type *wanted, const berth_type *given) {
    berth_strbuf text = berth_strbuf_make(m->arena);
    berth_strbuf_addf(&text, "%s %u of @%s is ", what, index, m->callee);
    print_type(m, wanted, &text);
    berth_strbuf_add(&text, ", not ");
    print_type(m, given, &text);
    if (m->bindings.list.count)
        berth_strbuf_add(&text, " (each symbol stands for one extent in a call)");
    return berth_strbuf_text(&text);
}

const char *berth_verify__call(const berth_module *module, const berth_graph *graph,
                               const berth_op *call, berth_arena *arena) {
    const berth_attr *attr = berth_attrs_find(module, &call->attrs, "callee");
    const berth_function *function = berth_module_function(module, attr->function);
    signature s = {.params = 0};
    matcher m = {.module = module,
                 .arena = arena,
                 .callee = berth_module_str(module, function->name),
                 .bindings = {.module = module, .arena = arena}};
    of_callee(module, attr->function, call, &s, arena);
    if (!s.known) return NULL;
    uint32_t results = s.types.count - s.params;
    if (s.params != call->input_count || results != call->output_count)
        return berth_arena_printf(arena, "@%s takes %u arguments and has %u results, not %u and %u",
                                  m.callee, s.params, results, call->input_count,
                                  call->output_count);
    for (uint32_t i = 0; i < s.types.count; ++i) {
        bool param = i < s.params;
        berth_value_id value = param ? call->inputs[i] : call->outputs[i - s.params];
        if (value == BERTH_NONE) continue;
        const berth_type *given = berth_type_get(module, graph->values.data[value].type);
        if (!fits(&m, &s.types.data[i], given))
            return misfit(&m, param ? "argument" : "result", param ? i : i - s.params,
                          &s.types.data[i], given);
    }
    return NULL;
}
