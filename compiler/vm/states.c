// States: inputs whose value is an output of the run before.
#include <stdio.h>
#include <string.h>

#include "compiler/vm/states.h"
#include "ir/dim.h"
#include "ir/graph/op_params.h"

typedef struct declarer {
    berth_module *module;
    berth_func_id main;
    const char *const *names;  // of results
    const char *text;          // of the state that is declared
    int64_t *outputs;          // per input: 1 + its output, or 0
    int64_t grown,
        capacity;  // what `grown`, a dimension of an input, grows to at most; 0 = not known yet
} declarer;

static berth_graph *graph_of(const declarer *d) {
    return berth_graph_get(d->module, d->main);
}

// ---- names --------------------------------------------------------------------------------------

// What a '*' in `pattern` stands for in `name`: with none, nothing. False: the name is another.
static bool match(const char *pattern, size_t length, const char *name, const char **out_middle,
                  size_t *out_length) {
    const char *star = memchr(pattern, '*', length);
    const size_t before = star ? (size_t)(star - pattern) : length;
    const size_t after = star ? length - before - 1 : 0;
    const size_t all = strlen(name);
    if (all < before + after || (!star && all != length)) return false;
    if (memcmp(name, pattern, before) != 0 ||
        (star && memcmp(name + all - after, star + 1, after) != 0))
        return false;
    *out_middle = name + before;
    *out_length = all - before - after;
    return true;
}

// The result that `pattern` names with this in place of its '*'; UINT32_MAX: none.
static uint32_t find_result(const declarer *d, const char *pattern, const char *middle,
                            size_t middle_length) {
    const uint32_t count = graph_of(d)->regions.data[0].results.count;
    for (uint32_t i = 0; i < count; ++i) {
        const char *found = NULL;
        size_t length = 0;
        if (match(pattern, strlen(pattern), d->names[i], &found, &length) &&
            length == middle_length && memcmp(found, middle, length) == 0)
            return i;
    }
    return UINT32_MAX;
}

// ---- bounds -------------------------------------------------------------------------------------

// The most of a symbol, in "N=1..512,seq=1..128".
static int64_t most_of(void *user, const char *symbol) {
    const char *bounds = user;
    const size_t length = strlen(symbol);
    long long least = 0, most = 0;
    for (const char *at = bounds; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, symbol, length) == 0 && at[length] == '=' &&
            sscanf(at + length + 1, "%lld..%lld", &least, &most) == 2)
            return most;
    return BERTH_DIM_UNKNOWN;
}

// How long the dimension `from` of an input becomes, as `to`. Where inference lost that, as long as another
// state that begins with the same dimension.
static berth_status find_capacity(declarer *d, int64_t from, int64_t to, int64_t *out_capacity) {
    const char *bounds = berth_attrs_string(
        d->module, &berth_module_function(d->module, d->main)->attrs, "bounds", NULL);
    union {
        const char *text;
        void *user;
    } held = {.text = bounds};  // only read
    bool known = !berth_dim_is_symbol(to) && to >= 0;
    *out_capacity = to;
    if (!known && to != BERTH_DIM_UNKNOWN)
        known =
            berth_dim_evaluate(d->module, to, most_of, held.user, d->module->arena, out_capacity);
    if (!known && d->capacity && d->grown == from) {
        *out_capacity = d->capacity;
        return BERTH_OK;
    }
    if (known) {
        d->grown = from;
        d->capacity = *out_capacity;
        return BERTH_OK;
    }
    berth_strbuf text = berth_strbuf_make(d->module->arena);
    berth_dim_print(d->module, to == BERTH_DIM_UNKNOWN ? from : to, &text);
    return berth_status_make(
        BERTH_INVALID_ARGUMENT,
        "state \"%s\": how far dimension %s grows is not known: give bounds for "
        "it, and for what is appended",
        d->text, berth_strbuf_text(&text));
}

// ---- one state ----------------------------------------------------------------------------------

static bool sees_shape_only(const berth_op *op) {
    return op->kind == BERTH_OP_SHAPE_OF || op->kind == BERTH_OP_SIZE_OF;
}

// Whether operations of @main itself are all that reads the value: `append` for its data, and shapes; or,
// with `append` NULL, any that segments have.
static bool is_read_by(const declarer *d, berth_value_id value, const berth_op *append) {
    const berth_graph *graph = graph_of(d);
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        for (uint32_t k = 0; op->region != BERTH_NONE && k < op->input_count; ++k) {
            if (op->inputs[k] != value || (op == append && k == 0) || sees_shape_only(op)) continue;
            if (append || op->region != 0 || op->region_count ||
                berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE))
                return false;
        }
    }
    for (uint32_t r = 0; append && r < graph->regions.count; ++r)
        for (uint32_t k = 0; k < graph->regions.data[r].results.count; ++k)
            if (graph->regions.data[r].results.data[k] == value) return false;
    return true;
}

static bool is_once_a_result(const declarer *d, berth_value_id value) {
    const berth_region *root = &graph_of(d)->regions.data[0];
    uint32_t count = 0;
    for (uint32_t i = 0; i < root->results.count; ++i) count += root->results.data[i] == value;
    return count == 1;
}

// The result as the input with more after it, in place. False: it is something else.
static berth_status declare_growing(declarer *d, berth_value_id input, berth_value_id result,
                                    bool *out_done) {
    berth_graph *graph = graph_of(d);
    const berth_op_id id = graph->values.data[result].op;
    const berth_op *op = id == BERTH_NONE ? NULL : &graph->ops.data[id];
    *out_done = false;
    if (!op || op->kind != BERTH_OP_CONCAT || op->region != 0 || op->input_count != 2 ||
        op->inputs[0] != input || op->inputs[1] == input || !is_once_a_result(d, result) ||
        !is_read_by(d, input, op) || !is_read_by(d, result, NULL))
        return BERTH_OK;
    const berth_type type = *berth_type_get(d->module, graph->values.data[result].type);
    int axis = 0;
    int64_t capacity = 0;
    if (type.rank < 1) return BERTH_OK;
    BERTH_TRY(berth_axis_resolve(berth_attrs_int(d->module, &op->attrs, "axis", 0), type.rank,
                                 "axis", &axis));
    const berth_type *before = berth_type_get(d->module, graph->values.data[input].type);
    BERTH_TRY(find_capacity(d, before->dims[axis], type.dims[axis], &capacity));
    graph->ops.data[id].kind = BERTH_OP_APPEND;
    berth_attrs_set_int(d->module, &graph->ops.data[id].attrs, "capacity", capacity);
    *out_done = true;
    return BERTH_OK;
}

static bool has_one_shape(const declarer *d, berth_value_id a, berth_value_id b) {
    const berth_graph *graph = graph_of(d);
    const berth_type *x = berth_type_get(d->module, graph->values.data[a].type);
    const berth_type *y = berth_type_get(d->module, graph->values.data[b].type);
    bool same = x->kind == BERTH_TYPE_TENSOR && y->kind == BERTH_TYPE_TENSOR &&
                x->dtype == y->dtype && x->rank == y->rank && x->rank >= 0;
    for (int i = 0; i < x->rank && same; ++i)
        same = x->dims[i] == y->dims[i] && x->dims[i] != BERTH_DIM_UNKNOWN;
    return same;
}

static berth_status declare_one(declarer *d, uint32_t input, uint32_t output) {
    const berth_region *root = &graph_of(d)->regions.data[0];
    const berth_value_id from = root->params.data[input], to = root->results.data[output];
    bool done = false;
    for (uint32_t i = 0; i < root->params.count; ++i)
        if (d->outputs[i] == (int64_t)output + 1 || (i == input && d->outputs[i]))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "state \"%s\": its input or its output is of another state",
                                     d->text);
    BERTH_TRY(declare_growing(d, from, to, &done));
    if (!done && !has_one_shape(d, from, to))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "state \"%s\": output \"%s\" has not the shape of input \"%s\", and is not that input "
            "with "
            "more after it: one Concat of two operands, the input first, which nothing else reads",
            d->text, d->names[output],
            berth_module_str(d->module, graph_of(d)->values.data[from].name));
    d->outputs[input] = (int64_t)output + 1;
    return BERTH_OK;
}

static berth_status declare(declarer *d) {
    const char *equals = strchr(d->text, '=');
    bool any = false;
    if (!equals || equals == d->text || !equals[1])
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "state \"%s\" is not INPUT=OUTPUT, with a * in both or none",
                                 d->text);
    const uint32_t count = graph_of(d)->regions.data[0].params.count;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_graph *graph = graph_of(d);
        const char *name = berth_module_str(
            d->module, graph->values.data[graph->regions.data[0].params.data[i]].name);
        const char *middle = NULL;
        size_t length = 0;
        if (!match(d->text, (size_t)(equals - d->text), name, &middle, &length)) continue;
        const uint32_t output = find_result(d, equals + 1, middle, length);
        if (output == UINT32_MAX)
            return berth_status_make(BERTH_NOT_FOUND,
                                     "state \"%s\": there is no output for input \"%s\"", d->text,
                                     name);
        BERTH_TRY(declare_one(d, i, output));
        any = true;
    }
    if (any) return BERTH_OK;
    return berth_status_make(BERTH_NOT_FOUND, "state \"%s\": there is no such input", d->text);
}

berth_status vm_declare_states(berth_module *module, berth_func_id main, const char *const *names) {
    const char *all = berth_attrs_string(module, &berth_module_function(module, main)->attrs,
                                         BERTH_ATTR_STATES, NULL);
    if (!all) return BERTH_OK;
    const uint32_t count = berth_graph_get(module, main)->regions.data[0].params.count;
    declarer d = {.module = module, .main = main, .names = names};
    d.outputs = berth_arena_new_array(module->arena, int64_t, count + 1);
    for (const char *at = all; *at;) {
        const size_t length = strcspn(at, "\n");
        d.text = berth_arena_strndup(module->arena, at, length);
        BERTH_TRY(declare(&d));
        at += length + (at[length] == '\n');
    }
    berth_attrs_set_ints(module, &berth_module_function(module, main)->attrs,
                         BERTH_ATTR_STATE_OUTPUTS, d.outputs, count);
    return BERTH_OK;
}

typedef struct declaration {
    berth_module *module;
    const char *const *states;
    uint32_t count;
} declaration;

static berth_status add_attribute(void *user) {
    const declaration *job = user;
    berth_func_id main = berth_module_find_function(job->module, "main");
    if (main == BERTH_NONE)
        return berth_status_make(BERTH_NOT_FOUND, "the module has no function @main");
    berth_strbuf text = berth_strbuf_make(job->module->arena);
    for (uint32_t i = 0; i < job->count; ++i)
        berth_strbuf_addf(&text, "%s%s", i ? "\n" : "", job->states[i]);
    berth_attrs_set_string(job->module, &berth_module_function(job->module, main)->attrs,
                           BERTH_ATTR_STATES, berth_strbuf_text(&text));
    return BERTH_OK;
}

berth_status berth_vm_declare_states(berth_module *module, const char *const *states,
                                     uint32_t count) {
    declaration job = {module, states, count};
    return count ? berth_arena_try(module->arena, add_attribute, &job) : BERTH_OK;
}
