#include "ir/equal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/external.h"
#include "ir/graph/graph.h"
#include "target/virtual_device.h"

bool berth_equal_differ(berth_equal *e, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (!e->why) e->why = berth_arena_printf(e->scratch, "%s: %s", e->place, text);
    return false;
}

bool berth_equal_str(const berth_equal *e, berth_str_id a, berth_str_id b) {
    return strcmp(berth_module_str(e->a, a), berth_module_str(e->b, b)) == 0;
}

static bool equal_dims(const berth_equal *e, int rank, const int64_t *a, const int64_t *b) {
    for (int i = 0; i < rank; ++i) {
        if (berth_dim_is_symbol(a[i]) != berth_dim_is_symbol(b[i])) return false;
        if (berth_dim_is_symbol(a[i])
                ? !berth_equal_str(e, berth_dim_symbol_name(a[i]), berth_dim_symbol_name(b[i]))
                : a[i] != b[i])
            return false;
    }
    return true;
}

bool berth_equal_types(const berth_equal *e, berth_type_id a_id, berth_type_id b_id) {
    const berth_type *a = berth_type_get(e->a, a_id);
    const berth_type *b = berth_type_get(e->b, b_id);
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
        a->field_count != b->field_count || a->param_count != b->param_count ||
        !berth_equal_str(e, a->layout, b->layout) || !equal_dims(e, a->rank, a->dims, b->dims))
        return false;
    for (uint32_t i = 0; i < a->field_count; ++i)
        if (!berth_equal_types(e, a->fields[i], b->fields[i])) return false;
    return true;
}

bool berth_equal_devices(const berth_equal *e, berth_device_id a, berth_device_id b) {
    return berth_virtual_device_equal(berth_virtual_device_get(e->a->devices, a),
                                      berth_virtual_device_get(e->b->devices, b));
}

bool berth_equal_locs(const berth_equal *e, berth_loc_id a_id, berth_loc_id b_id) {
    const berth_loc *a = berth_loc_get(e->a, a_id);
    const berth_loc *b = berth_loc_get(e->b, b_id);
    bool known = a_id < e->a->locs.count;
    if (known && a_id && e->met_locs[a_id] == b_id) return true;
    if ((a_id == 0) != (b_id == 0) || a->line != b->line || a->column != b->column ||
        a->part_count != b->part_count || !berth_equal_str(e, a->file, b->file) ||
        !berth_equal_str(e, a->node, b->node) || !berth_equal_str(e, a->op_type, b->op_type))
        return false;
    for (uint32_t i = 0; i < a->part_count; ++i)  // parts come before what they are parts of
        if (a->parts[i] < a_id && b->parts[i] < b_id &&
            !berth_equal_locs(e, a->parts[i], b->parts[i]))
            return false;
    if (known) e->met_locs[a_id] = b_id;
    return true;
}

// ---- attributes ---------------------------------------------------------------------------------

static bool equal_floats(double a, double b) {
    return (a != a && b != b) || memcmp(&a, &b, sizeof(a)) == 0;
}

static bool equal_tensors(const berth_tensor *a, const berth_tensor *b) {
    if (a->dtype != b->dtype || !berth_tensor_same_shape(a, b)) return false;
    size_t size = berth_tensor_size_bytes(a);
    if (a->dtype == BERTH_DTYPE_STRING) {
        int64_t count = berth_tensor_element_count(a);
        for (int64_t i = 0; i < count; ++i)
            if (!berth_string_equal(berth_tensor_strings(a)[i], berth_tensor_strings(b)[i]))
                return false;
        return true;
    }
    return size == 0 || memcmp(a->data, b->data, size) == 0;
}

static bool equal_lists(const berth_equal *e, const berth_attr *a, const berth_attr *b) {
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; ++i) {
        bool same = a->kind == BERTH_ATTR_INTS ? a->ints[i] == b->ints[i]
                    : a->kind == BERTH_ATTR_FLOATS
                        ? equal_floats(a->floats[i], b->floats[i])
                        : berth_equal_str(e, a->strings[i], b->strings[i]);
        if (!same) return false;
    }
    return true;
}

bool berth_equal_functions(const berth_equal *e, berth_func_id a, berth_func_id b) {
    const berth_function *x = berth_module_function(e->a, a);
    const berth_function *y = berth_module_function(e->b, b);
    bool x_none = !x || x->removed;
    bool y_none = !y || y->removed;
    return x_none || y_none ? x_none == y_none : berth_equal_str(e, x->name, y->name);
}

static bool equal_opaque(berth_equal *e, const berth_attr *a, const berth_attr *b) {
    if (strcmp(a->opaque.ops->kind, b->opaque.ops->kind) != 0) return false;
    if (a->opaque.value == b->opaque.value) return true;
    if (!a->opaque.ops->serialise || !b->opaque.ops->serialise) return false;
    berth_strbuf x = berth_strbuf_make(e->scratch);
    berth_strbuf y = berth_strbuf_make(e->scratch);
    berth_status status = a->opaque.ops->serialise(a->opaque.value, &x);
    if (!status) status = b->opaque.ops->serialise(b->opaque.value, &y);
    if (status && e->status)
        berth_status_free(status);
    else if (status)
        e->status = status;
    return x.length == y.length &&
           memcmp(berth_strbuf_text(&x), berth_strbuf_text(&y), x.length) == 0;
}

static bool equal_values(berth_equal *e, const berth_attr *a, const berth_attr *b) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case BERTH_ATTR_INT: return a->i == b->i;
    case BERTH_ATTR_FLOAT: return equal_floats(a->f, b->f);
    case BERTH_ATTR_STRING: return berth_equal_str(e, a->s, b->s);
    case BERTH_ATTR_INTS:
    case BERTH_ATTR_FLOATS:
    case BERTH_ATTR_STRINGS: return equal_lists(e, a, b);
    case BERTH_ATTR_DTYPE: return a->dtype == b->dtype;
    case BERTH_ATTR_TENSOR: return equal_tensors(a->tensor, b->tensor);
    case BERTH_ATTR_FUNCTION: return berth_equal_functions(e, a->function, b->function);
    case BERTH_ATTR_DEVICE: return berth_equal_devices(e, a->device, b->device);
    case BERTH_ATTR_TYPE: return berth_equal_types(e, a->type, b->type);
    case BERTH_ATTR_OPAQUE: return equal_opaque(e, a, b);
    }
    return false;
}

bool berth_equal_attrs(berth_equal *e, const berth_attrs *a, const berth_attrs *b,
                       const char *what) {
    if (a->items.count != b->items.count)
        return berth_equal_differ(e, "%s: %u and %u attributes", what, a->items.count,
                                  b->items.count);
    for (uint32_t i = 0; i < a->items.count; ++i) {
        const berth_attr *x = &a->items.data[i];
        const berth_attr *y = &b->items.data[i];
        const char *name = berth_module_str(e->a, x->name);
        if (!berth_equal_str(e, x->name, y->name))
            return berth_equal_differ(e, "%s: attributes %s and %s", what, name,
                                      berth_module_str(e->b, y->name));
        if (!equal_values(e, x, y)) return berth_equal_differ(e, "%s: attribute %s", what, name);
    }
    return true;
}

// ---- graph functions ----------------------------------------------------------------------------

typedef struct graphs {
    berth_equal *e;
    const berth_graph *a;
    const berth_graph *b;
    berth_value_id *to_b;  // per value of a; BERTH_NONE = not met so far
} graphs;

static bool define(graphs *g, berth_value_id a, berth_value_id b) {
    const berth_value *x = &g->a->values.data[a];
    const berth_value *y = &g->b->values.data[b];
    const char *name = berth_module_str(g->e->a, x->name);
    g->to_b[a] = b;
    if (!berth_equal_str(g->e, x->name, y->name))
        return berth_equal_differ(g->e, "values \"%s\" and \"%s\"", name,
                                  berth_module_str(g->e->b, y->name));
    if (!berth_equal_types(g->e, x->type, y->type))
        return berth_equal_differ(g->e, "type of value %u \"%s\"", a, name);
    if (!berth_equal_devices(g->e, x->device, y->device))
        return berth_equal_differ(g->e, "device of value %u \"%s\"", a, name);
    return true;
}

static bool same_uses(graphs *g, const berth_value_id *a, const berth_value_id *b, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        bool none = a[i] == BERTH_NONE || b[i] == BERTH_NONE;
        if (none ? a[i] != b[i] : a[i] >= g->a->values.count || g->to_b[a[i]] != b[i]) return false;
    }
    return true;
}

static bool equal_regions(graphs *g, berth_region_id a, berth_region_id b);

static bool equal_ops(graphs *g, berth_op_id a, berth_op_id b) {
    const berth_op *x = &g->a->ops.data[a];
    const berth_op *y = &g->b->ops.data[b];
    const char *name = berth_op_facts_get(x->kind)->name;
    if (x->kind != y->kind)
        return berth_equal_differ(g->e, "operations %u %s and %u %s", a, name, b,
                                  berth_op_facts_get(y->kind)->name);
    const char *what = berth_arena_printf(g->e->scratch, "operation %u %s", a, name);
    if (x->input_count != y->input_count || x->output_count != y->output_count ||
        x->region_count != y->region_count)
        return berth_equal_differ(g->e, "%s: numbers of operands, results or regions", what);
    if (!same_uses(g, x->inputs, y->inputs, x->input_count))
        return berth_equal_differ(g->e, "%s: operands", what);
    if (!berth_equal_devices(g->e, x->device, y->device))
        return berth_equal_differ(g->e, "%s: device", what);
    if (!berth_equal_locs(g->e, x->loc, y->loc))
        return berth_equal_differ(g->e, "%s: location", what);
    if (!berth_equal_attrs(g->e, &x->attrs, &y->attrs, what)) return false;
    for (uint32_t i = 0; i < x->output_count; ++i)
        if (!define(g, x->outputs[i], y->outputs[i])) return false;
    for (uint32_t i = 0; i < x->region_count; ++i)
        if (!equal_regions(g, x->regions[i], y->regions[i])) return false;
    return true;
}

static bool equal_regions(graphs *g, berth_region_id a, berth_region_id b) {
    const berth_region *x = &g->a->regions.data[a];
    const berth_region *y = &g->b->regions.data[b];
    if (x->params.count != y->params.count || x->ops.count != y->ops.count ||
        x->results.count != y->results.count)
        return berth_equal_differ(g->e, "numbers of parameters, operations or results of region %u",
                                  a);
    for (uint32_t i = 0; i < x->params.count; ++i)
        if (!define(g, x->params.data[i], y->params.data[i])) return false;
    for (uint32_t i = 0; i < x->ops.count; ++i)
        if (!equal_ops(g, x->ops.data[i], y->ops.data[i])) return false;
    return same_uses(g, x->results.data, y->results.data, x->results.count) ||
           berth_equal_differ(g->e, "results of region %u", a);
}

bool berth_equal__graphs(berth_equal *e, berth_func_id a, berth_func_id b) {
    graphs g = {.e = e, .a = berth_graph_get(e->a, a), .b = berth_graph_get(e->b, b)};
    g.to_b = berth_arena_new_array(e->scratch, berth_value_id, g.a->values.count);
    memset(g.to_b, 0xff, g.a->values.count * sizeof(*g.to_b));
    return equal_regions(&g, 0, 0);
}

// ---- external functions -------------------------------------------------------------------------

bool berth_equal__externals(berth_equal *e, berth_func_id a, berth_func_id b) {
    const berth_external *x = berth_external_get(e->a, a);
    const berth_external *y = berth_external_get(e->b, b);
    if (!berth_equal_types(e, x->type, y->type)) return berth_equal_differ(e, "type");
    if (!berth_equal_str(e, x->language, y->language)) return berth_equal_differ(e, "language");
    if (!berth_equal_str(e, x->symbol, y->symbol)) return berth_equal_differ(e, "symbol");
    if (!berth_equal_str(e, x->file, y->file)) return berth_equal_differ(e, "file");
    bool same = x->is_text == y->is_text && x->code_size_bytes == y->code_size_bytes &&
                (x->code_size_bytes == 0 || memcmp(x->code, y->code, x->code_size_bytes) == 0);
    return same || berth_equal_differ(e, "code");
}

// ---- modules ------------------------------------------------------------------------------------

static bool equal_function(berth_equal *e, berth_func_id a, berth_func_id b) {
    const berth_function *x = berth_module_function(e->a, a);
    const berth_function *y = berth_module_function(e->b, b);
    const char *name = berth_module_str(e->a, x->name);
    e->place = berth_arena_printf(e->scratch, "@%s", name);
    if (!berth_equal_str(e, x->name, y->name))
        return berth_equal_differ(e, "the other is @%s", berth_module_str(e->b, y->name));
    if (strcmp(x->dialect->name, y->dialect->name) != 0) return berth_equal_differ(e, "dialects");
    if (!berth_equal_locs(e, x->loc, y->loc)) return berth_equal_differ(e, "location");
    if (!berth_equal_attrs(e, &x->attrs, &y->attrs, "function")) return false;
    if (x->dialect->equal) return x->dialect->equal(e, a, b);
    return x->body == y->body || berth_equal_differ(e, "the dialect cannot compare bodies");
}

static uint32_t next_function(const berth_module *module, uint32_t at) {
    while (at < module->functions.count && module->functions.data[at].removed) at++;
    return at;
}

static bool equal_modules(berth_equal *e) {
    e->place = "module";
    if (!berth_equal_str(e, e->a->name, e->b->name)) return berth_equal_differ(e, "names");
    if (!berth_equal_attrs(e, &e->a->attrs, &e->b->attrs, "module")) return false;
    uint32_t a = next_function(e->a, 0);
    uint32_t b = next_function(e->b, 0);
    while (a < e->a->functions.count && b < e->b->functions.count) {
        if (!equal_function(e, a, b)) return false;
        a = next_function(e->a, a + 1);
        b = next_function(e->b, b + 1);
    }
    e->place = "module";
    return (a == e->a->functions.count && b == e->b->functions.count) ||
           berth_equal_differ(e, "numbers of functions");
}

typedef struct request {
    const berth_module *a;
    const berth_module *b;
    bool equal;
    const char *why;
} request;

static berth_status compare(void *user) {
    request *r = user;
    berth_arena *scratch = berth_arena_create_child(r->a->arena);
    berth_equal e = {.a = r->a,
                     .b = r->b,
                     .scratch = scratch,
                     .met_locs = berth_arena_new_array(scratch, berth_loc_id, r->a->locs.count)};
    r->equal = equal_modules(&e);
    r->why = e.why ? berth_arena_strdup(r->a->arena, e.why) : "";
    berth_arena_destroy(scratch);
    return e.status;
}

berth_status berth_module_equal(const berth_module *a, const berth_module *b, bool *out_equal,
                                const char **out_why) {
    request r = {.a = a, .b = b};
    *out_equal = false;
    if (out_why) *out_why = "";
    BERTH_TRY(berth_arena_try(a->arena, compare, &r));
    *out_equal = r.equal;
    if (out_why) *out_why = r.why;
    return BERTH_OK;
}
