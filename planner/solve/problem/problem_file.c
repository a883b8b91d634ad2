#include "planner/solve/problem/problem_file.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

enum { KIND_ACC, KIND_CPU, KIND_COUNT };
#define FILE_LIMIT_BYTES ((size_t)1 << 28)

typedef struct parser {
    berth_arena *arena;
    berth_arena *scratch;  // made by the body
    const char *name;      // of the file
    const char *text;
    size_t length;
    const char *list;  // "nodes" or "edges", and which: the position in messages
    size_t at;
    berth_interner *ids;      // a node's index is its id's number less one: "" is number 0
    berth_interner *classes;  // of colours
    uint32_t *class_group;    // [node_count + 1] by the number of the colour; BERTH_PLACE_NONE
    berth_place_problem *problem;
    uint32_t *assignment;        // an answer's
    const berth_limits *limits;  // NULL = the format\'s own
    berth_limit_watch watch;     // of nodes and edges
} parser;

#define fail(p_, code_, field_, ...)                                                               \
    fail_status((p_), berth_status_make((code_), __VA_ARGS__), (field_))

// "NAME: nodes[3].size: what".
static berth_status fail_status(const parser *p, berth_status status, const char *field) {
    if (p->list)
        return berth_status_prefix(status, "%s: %s[%zu]%s%s", p->name, p->list, p->at,
                                   *field ? "." : "", field);
    return *field ? berth_status_prefix(status, "%s: %s", p->name, field)
                  : berth_status_prefix(status, "%s", p->name);
}

static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "text";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: return "null";
    default: return "a number";
    }
}

// ------------------------------------------------------------------------------------------------
// fields

static berth_status get(const parser *p, const json_t *object, const char *field,
                        json_t **out_value) {
    *out_value = json_object_get(object, field);
    if (!*out_value) return fail(p, BERTH_INVALID_ARGUMENT, field, "missing");
    return BERTH_OK;
}

static berth_status get_figure(const parser *p, const json_t *object, const char *field,
                               double limit, double *out) {
    json_t *value = NULL;
    BERTH_TRY(get(p, object, field, &value));
    if (!json_is_number(value))
        return fail(p, BERTH_INVALID_ARGUMENT, field, "expected a number, not %s",
                    type_name(value));
    *out = json_number_value(value);
    if (!(*out >= 0)) return fail(p, BERTH_INVALID_ARGUMENT, field, "%g is negative", *out);
    if (*out > limit) return fail(p, BERTH_OUT_OF_RANGE, field, "%g is more than %g", *out, limit);
    return BERTH_OK;
}

static berth_status get_count(const parser *p, const json_t *object, const char *field,
                              uint32_t *out) {
    json_t *value = NULL;
    BERTH_TRY(get(p, object, field, &value));
    double number = json_number_value(value);
    if (!json_is_number(value) || number != floor(number) || number < 0)
        return fail(p, BERTH_INVALID_ARGUMENT, field, "expected a whole number from 0");
    if (number > BERTH_PLACE_DEVICE_LIMIT)
        return fail(p, BERTH_OUT_OF_RANGE, field, "%g devices; the limit is %u", number,
                    BERTH_PLACE_DEVICE_LIMIT);
    *out = (uint32_t)number;
    return BERTH_OK;
}

static berth_status get_flag(const parser *p, const json_t *object, const char *field,
                             bool fallback, bool *out) {
    const json_t *value = json_object_get(object, field);
    *out = fallback;
    if (!value) return BERTH_OK;
    bool number =
        json_is_number(value) && (json_number_value(value) == 0 || json_number_value(value) == 1);
    if (!json_is_boolean(value) && !number)
        return fail(p, BERTH_INVALID_ARGUMENT, field, "expected true, false, 0 or 1");
    *out = json_is_true(value) || (number && json_number_value(value) == 1);
    return BERTH_OK;
}

static berth_status get_id(const parser *p, const json_t *object, const char *field,
                           char out_text[24]) {
    json_t *value = NULL;
    BERTH_TRY(get(p, object, field, &value));
    if (!json_is_integer(value))
        return fail(p, BERTH_INVALID_ARGUMENT, field, "expected a whole number, not %s",
                    json_is_real(value) ? "a fraction" : type_name(value));
    snprintf(out_text, 24, "%lld", (long long)json_integer_value(value));
    return BERTH_OK;
}

// An array of objects.
static berth_status get_list(const parser *p, const json_t *object, const char *field,
                             json_t **out_list) {
    BERTH_TRY(get(p, object, field, out_list));
    if (!json_is_array(*out_list))
        return fail(p, BERTH_INVALID_ARGUMENT, field, "expected an array, not %s",
                    type_name(*out_list));
    for (size_t i = 0; i < json_array_size(*out_list); ++i)
        if (!json_is_object(json_array_get(*out_list, i)))
            return fail(p, BERTH_INVALID_ARGUMENT, field, "[%zu]: expected an object, not %s", i,
                        type_name(json_array_get(*out_list, i)));
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// nodes

// Nodes of a colour share a group; a node without a colour has its own.
static berth_status read_colour(parser *p, const json_t *node, uint32_t v) {
    berth_place_problem *problem = p->problem;
    const json_t *colour = json_object_get(node, "colorClass");
    if (!colour || json_is_null(colour)) {
        problem->group[v] = problem->group_count++;
        return BERTH_OK;
    }
    char number[24];
    uint32_t id = 0;
    if (json_is_integer(colour)) {
        snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(colour));
        id = berth_intern(p->classes, number);
    } else if (json_is_string(colour)) {
        id = berth_intern(p->classes,
                          berth_arena_printf(p->scratch, "=%s", json_string_value(colour)));
    } else {
        return fail(p, BERTH_INVALID_ARGUMENT, "colorClass",
                    "expected a whole number or text, not %s",
                    json_is_real(colour) ? "a fraction" : type_name(colour));
    }
    if (p->class_group[id] == BERTH_PLACE_NONE) p->class_group[id] = problem->group_count++;
    problem->group[v] = p->class_group[id];
    return BERTH_OK;
}

static berth_status read_node(parser *p, const json_t *node, uint32_t v) {
    berth_place_problem *problem = p->problem;
    char id[24];
    BERTH_TRY(get_id(p, node, "id", id));
    uint32_t number = berth_intern(p->ids, id);
    if (number <= v)
        return fail(p, BERTH_INVALID_ARGUMENT, "id", "%s is already the id of nodes[%u]", id,
                    number - 1);
    problem->node_names[v] = berth_arena_strdup(p->arena, id);
    double *time = &problem->time[(size_t)v * KIND_COUNT];
    bool supported = true;
    BERTH_TRY(get_flag(p, node, "supportedOnFpga", true, &supported));
    BERTH_TRY(get_flag(p, node, "isBackwardNode", false, &problem->backward[v]));
    BERTH_TRY(get_figure(p, node, "cpuLatency", BERTH_PLACE_FIGURE_LIMIT, &time[KIND_CPU]));
    time[KIND_ACC] = INFINITY;
    if (supported)
        BERTH_TRY(get_figure(p, node, "fpgaLatency", BERTH_PLACE_FIGURE_LIMIT, &time[KIND_ACC]));
    BERTH_TRY(get_figure(p, node, "size", BERTH_PLACE_FIGURE_LIMIT, &problem->size_bytes[v]));
    return read_colour(p, node, v);
}

static berth_status read_nodes(parser *p, const json_t *nodes) {
    BERTH_TRY(berth_limit_items(&p->watch, json_array_size(nodes)));
    if (json_array_size(nodes) > BERTH_PLACE_NODE_LIMIT)
        return fail(p, BERTH_OUT_OF_RANGE, "nodes", "%zu nodes; the limit is %u",
                    json_array_size(nodes), BERTH_PLACE_NODE_LIMIT);
    berth_place_problem *problem = p->problem;
    uint32_t n = (uint32_t)json_array_size(nodes);
    problem->node_count = n;
    problem->node_names = berth_arena_new_array(p->arena, const char *, n);
    problem->time = berth_arena_new_array(p->arena, double, (size_t)n *KIND_COUNT);
    problem->transfer = berth_arena_new_array(p->arena, double, (size_t)n *KIND_COUNT);
    problem->size_bytes = berth_arena_new_array(p->arena, double, n);
    problem->group = berth_arena_new_array(p->arena, uint32_t, n);
    problem->backward = berth_arena_new_array(p->arena, bool, n);
    p->class_group = berth_arena_new_array(p->scratch, uint32_t, (size_t)n + 1);
    memset(p->class_group, 0xff, ((size_t)n + 1) * sizeof(*p->class_group));
    p->list = "nodes";
    for (p->at = 0; p->at < n; ++p->at)
        BERTH_TRY(read_node(p, json_array_get(nodes, p->at), (uint32_t)p->at));
    p->list = NULL;
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// edges

static berth_status read_end(const parser *p, const json_t *edge, const char *field,
                             uint32_t *out_node) {
    char id[24];
    BERTH_TRY(get_id(p, edge, field, id));
    uint32_t number = berth_intern(p->ids, id);
    if (number > p->problem->node_count)
        return fail(p, BERTH_INVALID_ARGUMENT, field, "no node has the id %s", id);
    *out_node = number - 1;
    return BERTH_OK;
}

static berth_status read_edge(parser *p, const json_t *edge, bool *costed, uint32_t e) {
    berth_place_problem *problem = p->problem;
    BERTH_TRY(read_end(p, edge, "sourceId", &problem->edge_from[e]));
    BERTH_TRY(read_end(p, edge, "destId", &problem->edge_to[e]));
    uint32_t from = problem->edge_from[e];
    if (from == problem->edge_to[e])
        return fail(p, BERTH_INVALID_ARGUMENT, "destId", "node %s has an edge to itself",
                    problem->node_names[from]);
    double cost = 0;
    BERTH_TRY(get_figure(p, edge, "cost", BERTH_PLACE_FIGURE_LIMIT, &cost));
    double *transfer = &problem->transfer[(size_t)from * KIND_COUNT + KIND_ACC];
    if (costed[from] && fabs(cost - *transfer) > 1e-9 * fmax(cost, *transfer))
        return fail(p, BERTH_INVALID_ARGUMENT, "cost",
                    "%.17g differs from the %.17g of another edge from node %s; a node's output "
                    "costs the same on every edge",
                    cost, *transfer, problem->node_names[from]);
    if (!costed[from]) *transfer = cost;
    costed[from] = true;
    return BERTH_OK;
}

static berth_status read_edges(parser *p, const json_t *edges) {
    berth_place_problem *problem = p->problem;
    BERTH_TRY(berth_limit_items(&p->watch, json_array_size(edges)));
    if (json_array_size(edges) >= UINT32_MAX)
        return fail(p, BERTH_OUT_OF_RANGE, "edges", "%zu edges", json_array_size(edges));
    uint32_t count = (uint32_t)json_array_size(edges);
    problem->edge_count = count;
    problem->edge_from = berth_arena_new_array(p->arena, uint32_t, count);
    problem->edge_to = berth_arena_new_array(p->arena, uint32_t, count);
    bool *costed = berth_arena_new_array(p->scratch, bool, problem->node_count);
    p->list = "edges";
    for (p->at = 0; p->at < count; ++p->at)
        BERTH_TRY(read_edge(p, json_array_get(edges, p->at), costed, (uint32_t)p->at));
    p->list = NULL;
    return BERTH_OK;
}

// ------------------------------------------------------------------------------------------------
// the whole

static void drop_tree(void *tree) {
    json_decref(tree);
}

// The parser of JSON takes a zero byte for the end of the text.
static berth_status check_bytes(const parser *p) {
    const char *zero = p->length > 0 ? memchr(p->text, 0, p->length) : NULL;
    if (!zero) return BERTH_OK;
    uint32_t line = 1, column = 1;
    for (const char *at = p->text; at < zero; ++at) {
        column = *at == '\n' ? 1 : column + 1;
        line += *at == '\n';
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s:%u:%u: a zero byte in the text", p->name,
                             line, column);
}

// Braces and brackets outside of texts: deeper ones are refused before anything is made of them.
static berth_status check_depth(const parser *p) {
    enum { own_depth = 500 };
    const uint64_t most = berth_limits_depth(p->limits, own_depth);
    uint64_t depth = 0;
    bool inside = false;
    for (size_t i = 0; i < p->length; ++i) {
        const char at = p->text[i];
        if (inside && at == '\\') ++i;
        if (at == '"') inside = !inside;
        if (inside) continue;
        if ((at == '{' || at == '[') && ++depth > most)
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "%s: JSON nested more than %d deep, and the limit is depth=%d",
                                     p->name, (int)most, (int)most);
        if ((at == '}' || at == ']') && depth > 0) --depth;
    }
    return BERTH_OK;
}

static berth_status load(parser *p, json_t **out_root) {
    json_error_t error = {0};
    BERTH_TRY(berth_limits_check_bytes(p->limits, p->name, p->length, FILE_LIMIT_BYTES));
    BERTH_TRY(check_bytes(p));
    BERTH_TRY(check_depth(p));
    json_t *root = json_loadb(p->text, p->length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s:%d:%d: %s", p->name, error.line,
                                 error.column, error.text);
    berth_arena_defer(p->scratch, drop_tree, root);
    *out_root = root;
    if (!json_is_object(root))
        return fail(p, BERTH_INVALID_ARGUMENT, "", "expected an object, not %s", type_name(root));
    return BERTH_OK;
}

static berth_status parse_body(void *user) {
    parser *p = user;
    p->scratch = berth_arena_create_child(p->arena);
    json_t *root = NULL;
    json_t *nodes = NULL;
    json_t *edges = NULL;
    BERTH_TRY(load(p, &root));
    berth_place_problem *problem = berth_arena_new(p->arena, berth_place_problem);
    p->problem = problem;
    p->ids = berth_interner_create(p->scratch);
    p->classes = berth_interner_create(p->scratch);
    problem->one_subgraph = true;
    problem->kind_count = KIND_COUNT;
    problem->kinds = berth_arena_new_array(p->arena, berth_place_kind, KIND_COUNT);
    berth_place_kind *acc = &problem->kinds[KIND_ACC];
    berth_place_kind *cpu = &problem->kinds[KIND_CPU];
    acc->name = "acc";
    *cpu = (berth_place_kind){.name = "cpu", .capacity_bytes = INFINITY, .concurrent = true};
    BERTH_TRY(get_figure(p, root, "maxSizePerFPGA", INFINITY, &acc->capacity_bytes));
    BERTH_TRY(get_count(p, root, "maxFPGAs", &acc->device_count));
    BERTH_TRY(get_count(p, root, "maxCPUs", &cpu->device_count));
    if (acc->device_count + cpu->device_count > BERTH_PLACE_DEVICE_LIMIT)
        return fail(p, BERTH_OUT_OF_RANGE, "maxCPUs",
                    "with maxFPGAs these are %u devices; the limit is %u",
                    acc->device_count + cpu->device_count, BERTH_PLACE_DEVICE_LIMIT);
    BERTH_TRY(get_list(p, root, "nodes", &nodes));
    BERTH_TRY(get_list(p, root, "edges", &edges));
    BERTH_TRY(read_nodes(p, nodes));
    BERTH_TRY(read_edges(p, edges));
    return berth_status_prefix(berth_place_problem_finish(p->arena, problem), "%s", p->name);
}

berth_status berth_place_problem_parse(berth_arena *arena, const char *name, const char *text,
                                       size_t length, const berth_limits *limits,
                                       berth_place_problem **out_problem) {
    parser p = {.arena = arena,
                .name = name,
                .text = text,
                .length = length,
                .limits = limits,
                .watch = berth_limits_watch(limits, name, "nodes and edges", 0)};
    *out_problem = NULL;
    berth_status status = berth_arena_try(arena, parse_body, &p);
    berth_arena_destroy(p.scratch);
    if (!status) *out_problem = p.problem;
    return status;
}

typedef struct read_call {
    berth_arena *arena;
    const char *path;
    const berth_limits *limits;
    berth_arena *scratch;
    berth_place_problem **out_problem;
} read_call;

static berth_status read_body(void *user) {
    read_call *call = user;
    call->scratch = berth_arena_create_child(call->arena);
    char *text = NULL;
    size_t length = 0;
    const uint64_t given = call->limits ? call->limits->bytes : 0;
    const uint64_t most = given ? given : FILE_LIMIT_BYTES;
    BERTH_TRY(berth_file_read(call->scratch, call->path, most < SIZE_MAX / 2 ? most : SIZE_MAX / 2,
                              &text, &length));
    return berth_place_problem_parse(call->arena, call->path, text, length, call->limits,
                                     call->out_problem);
}

berth_status berth_place_problem_read(berth_arena *arena, const char *path,
                                      const berth_limits *limits,
                                      berth_place_problem **out_problem) {
    read_call call = {arena, path, limits, NULL, out_problem};
    *out_problem = NULL;
    berth_status status = berth_arena_try(arena, read_body, &call);
    berth_arena_destroy(call.scratch);
    return status;
}

// ------------------------------------------------------------------------------------------------
// answers

const char *berth_place_device_name(berth_arena *arena, const berth_place_problem *problem,
                                    uint32_t device) {
    uint32_t kind = problem->device_kind[device];
    return berth_arena_printf(arena, "%s%u", problem->kinds[kind].name,
                              device - berth_place_kind_first(problem, kind));
}

static berth_status read_device(const parser *p, const char *id, const json_t *value,
                                const char *const *names, uint32_t *out_device) {
    if (!json_is_string(value))
        return fail(p, BERTH_INVALID_ARGUMENT, id, "expected the name of a device, not %s",
                    type_name(value));
    for (uint32_t d = 0; d < p->problem->device_count; ++d)
        if (strcmp(names[d], json_string_value(value)) == 0) {
            *out_device = d;
            return BERTH_OK;
        }
    return fail(p, BERTH_INVALID_ARGUMENT, id, "there is no device \"%s\"",
                json_string_value(value));
}

static berth_status answer_body(void *user) {
    parser *p = user;
    p->scratch = berth_arena_create_child(p->arena);
    json_t *root = NULL;
    BERTH_TRY(load(p, &root));
    const json_t *inner = json_object_get(root, "assignment");
    if (!inner) inner = root;
    if (!json_is_object(inner))
        return fail(p, BERTH_INVALID_ARGUMENT, "assignment", "expected an object, not %s",
                    type_name(inner));
    const char **names = berth_arena_new_array(p->scratch, const char *, p->problem->device_count);
    for (uint32_t d = 0; d < p->problem->device_count; ++d)
        names[d] = berth_place_device_name(p->scratch, p->problem, d);
    p->assignment = berth_arena_new_array(p->arena, uint32_t, p->problem->node_count);
    for (uint32_t v = 0; v < p->problem->node_count; ++v) {
        const char *id = p->problem->node_names[v];
        const json_t *value = json_object_get(inner, id);
        if (!value) return fail(p, BERTH_INVALID_ARGUMENT, "assignment", "node %s is missing", id);
        BERTH_TRY(read_device(p, id, value, names, &p->assignment[v]));
    }
    return BERTH_OK;
}

berth_status berth_place_answer_parse(berth_arena *arena, const char *name, const char *text,
                                      size_t length, const berth_place_problem *problem,
                                      uint32_t **out_assignment) {
    berth_place_problem copy = *problem;
    parser p = {.arena = arena, .name = name, .text = text, .length = length, .problem = &copy};
    *out_assignment = NULL;
    berth_status status = berth_arena_try(arena, answer_body, &p);
    berth_arena_destroy(p.scratch);
    if (!status) *out_assignment = p.assignment;
    return status;
}
