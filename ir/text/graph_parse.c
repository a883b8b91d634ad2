// Reading graph functions. Results without a type are inferred when the whole module is read.
#include <string.h>

#include "ir/graph/graph.h"
#include "ir/infer.h"
#include "ir/text/hooks.h"
#include "ir/text/parser.h"

// The values that an operation and those in its regions define: they stand in a row.
typedef struct value_range {
    uint32_t first, end;
} value_range;

typedef struct graph_parser {
    berth_text_parser *p;
    berth_func_id function;
    berth_graph *graph;
    berth_text_symbols symbols;
    BERTH_VEC(bool) typed;           // per value: its type was written
    BERTH_VEC(value_range) defined;  // per operation
    bool inferred;                   // or under way
    uint32_t next;                   // operation whose callee is looked at next
} graph_parser;

typedef struct token_list {
    BERTH_VEC(berth_token) items;
} token_list;

typedef struct value_list {
    BERTH_VEC(berth_value_id) items;
} value_list;

static void set_typed(graph_parser *g, berth_value_id value, bool typed) {
    while (g->typed.count <= value) berth_vec_push(g->p->scratch, &g->typed, true);
    g->typed.data[value] = typed;
}

// "%a, %b"; for operands "_" is one left out.
static berth_status parse_uses(graph_parser *g, bool operands, value_list *out) {
    berth_text_parser *p = g->p;
    do {
        berth_value_id value = BERTH_NONE;
        if (!operands || !berth_text_accept(p, "_")) {
            if (p->token.kind != BERTH_TOKEN_LABEL)
                return berth_text_expected(p, operands ? "a value or '_'" : "a value");
            BERTH_TRY(berth_text_lookup(p, &g->symbols, &p->token, &value));
            berth_text_next(p);
        }
        berth_vec_push(p->scratch, &out->items, value);
    } while (berth_text_accept(p, ","));
    return BERTH_OK;
}

// "f32[2]", "?" or "_" (to be inferred), then "on DEVICE".
static berth_status parse_value_type(graph_parser *g, berth_value_id value) {
    berth_type_id type = 0;
    berth_device_id device = 0;
    bool typed = !berth_text_accept(g->p, "_");
    if (typed) BERTH_TRY(berth_text_parse_type(g->p, &type));
    BERTH_TRY(berth_text_parse_on_device(g->p, &device));
    g->graph->values.data[value].type = type;
    g->graph->values.data[value].device = device;
    set_typed(g, value, typed);
    return BERTH_OK;
}

static berth_status parse_params(graph_parser *g, berth_region_id region) {
    berth_text_parser *p = g->p;
    BERTH_TRY(berth_text_expect(p, "("));
    for (bool first = true; !berth_text_accept(p, ")"); first = false) {
        if (!first) BERTH_TRY(berth_text_expect(p, ","));
        const char *name = NULL;
        berth_token label = p->token;
        if (label.kind != BERTH_TOKEN_LABEL) return berth_text_expected(p, "a parameter (%name)");
        BERTH_TRY(berth_text_label_name(p, &label, &name));
        berth_value_id value =
            berth_graph_add_region_param(p->module, g->function, region, name, 0);
        BERTH_TRY(berth_text_define(p, &g->symbols, &label, value));
        berth_text_next(p);
        if (berth_text_accept(p, ":"))
            BERTH_TRY(parse_value_type(g, value));
        else if (region == 0)
            return berth_text_expected(p, "':' and a type");
        else
            set_typed(g, value, false);
    }
    return BERTH_OK;
}

static berth_status parse_region(graph_parser *g, berth_region_id region);

static berth_status parse_regions(graph_parser *g, berth_op_id op) {
    berth_text_parser *p = g->p;
    while (berth_text_is(p, "(") || berth_text_is(p, "{") || berth_text_is(p, "else")) {
        (void)berth_text_accept(p, "else");
        berth_region_id region = berth_graph_add_region(p->module, g->function, op);
        if (berth_text_is(p, "(")) BERTH_TRY(parse_params(g, region));
        BERTH_TRY(berth_text_expect(p, "{"));
        BERTH_TRY(berth_text_enter(p));
        BERTH_TRY(parse_region(g, region));
        berth_text_leave(p);
        BERTH_TRY(berth_text_expect(p, "}"));
    }
    return BERTH_OK;
}

static berth_status define_results(graph_parser *g, const token_list *labels, berth_op_id op) {
    for (uint32_t i = 0; i < labels->items.count; ++i) {
        const char *name = NULL;
        berth_value_id value = g->graph->ops.data[op].outputs[i];
        BERTH_TRY(berth_text_label_name(g->p, &labels->items.data[i], &name));
        g->graph->values.data[value].name = berth_module_intern(g->p->module, name);
        BERTH_TRY(berth_text_define(g->p, &g->symbols, &labels->items.data[i], value));
        set_typed(g, value, false);
    }
    return BERTH_OK;
}

static berth_status parse_result_types(graph_parser *g, berth_op_id op) {
    uint32_t count = g->graph->ops.data[op].output_count;
    if (!berth_text_accept(g->p, ":")) return BERTH_OK;
    for (uint32_t i = 0; i < count; ++i) {
        if (i) BERTH_TRY(berth_text_expect(g->p, ","));
        BERTH_TRY(parse_value_type(g, g->graph->ops.data[op].outputs[i]));
    }
    return BERTH_OK;
}

// "conv", or "call @f" (short for the attribute callee).
static berth_status parse_kind(berth_text_parser *p, berth_op_kind *out_kind, berth_attrs *attrs) {
    const char *name = NULL;
    if (p->token.kind != BERTH_TOKEN_WORD) return berth_text_expected(p, "an operation");
    BERTH_TRY(berth_text_token_text(p, &p->token, &name));
    if (!berth_op_kind_from_name(name, out_kind)) return berth_text_expected(p, "an operation");
    berth_text_next(p);
    if (p->token.kind != BERTH_TOKEN_GLOBAL) return BERTH_OK;
    berth_attr callee = {.kind = BERTH_ATTR_FUNCTION};
    BERTH_TRY(berth_text_parse_function_ref(p, &callee.function));
    berth_attrs_set(p->module, attrs, "callee", callee);
    return BERTH_OK;
}

static berth_status check_count(berth_text_parser *p, const berth_token *at, berth_op_kind kind,
                                const char *what, uint32_t count, int least, int most) {
    if ((int64_t)count >= least && (most < 0 || (int64_t)count <= most)) return BERTH_OK;
    const char *name = berth_op_facts_get(kind)->name;
    if (least == most)
        return berth_text_error(p, at, "expected %d %s of %s, found %u", least, what, name, count);
    if (most < 0)
        return berth_text_error(p, at, "expected at least %d %s of %s, found %u", least, what, name,
                                count);
    return berth_text_error(p, at, "expected %d to %d %s of %s, found %u", least, most, what, name,
                            count);
}

static berth_status parse_op(graph_parser *g, berth_region_id region) {
    berth_text_parser *p = g->p;
    berth_token start = p->token;
    token_list labels = {{0}};
    value_list inputs = {{0}};
    berth_op_kind kind = BERTH_OP_CONSTANT;
    berth_attrs attrs = {{0}};
    BERTH_TRY(berth_limit_item(&p->watch));
    if (p->token.kind == BERTH_TOKEN_LABEL) {
        do {
            if (p->token.kind != BERTH_TOKEN_LABEL) return berth_text_expected(p, "a result");
            berth_vec_push(p->scratch, &labels.items, p->token);
            berth_text_next(p);
        } while (berth_text_accept(p, ","));
        BERTH_TRY(berth_text_expect(p, "="));
    }
    BERTH_TRY(parse_kind(p, &kind, &attrs));
    BERTH_TRY(berth_text_expect(p, "("));
    if (!berth_text_is(p, ")")) BERTH_TRY(parse_uses(g, true, &inputs));
    BERTH_TRY(berth_text_expect(p, ")"));
    const berth_op_facts *facts = berth_op_facts_get(kind);
    BERTH_TRY(check_count(p, &start, kind, "operands", inputs.items.count, facts->min_inputs,
                          facts->max_inputs));
    BERTH_TRY(check_count(p, &start, kind, "results", labels.items.count, facts->min_outputs,
                          facts->max_outputs));
    BERTH_TRY(berth_text_parse_attrs(p, &attrs));
    berth_device_id device = 0;
    BERTH_TRY(berth_text_parse_on_device(p, &device));
    uint32_t first = g->graph->values.count;
    berth_op_id op = berth_graph_add_op(p->module, g->function, region, kind, inputs.items.data,
                                        inputs.items.count, labels.items.count, 0);
    g->graph->ops.data[op].attrs = attrs;
    g->graph->ops.data[op].device = device;
    BERTH_TRY(define_results(g, &labels, op));
    BERTH_TRY(parse_result_types(g, op));
    berth_loc_id loc = 0;
    BERTH_TRY(berth_text_parse_loc(p, &start, &loc));
    g->graph->ops.data[op].loc = loc;
    BERTH_TRY(parse_regions(g, op));
    while (g->defined.count <= op) berth_vec_push(p->scratch, &g->defined, (value_range){0, 0});
    g->defined.data[op] = (value_range){first, g->graph->values.count};
    return BERTH_OK;
}

static berth_status parse_region(graph_parser *g, berth_region_id region) {
    value_list results = {{0}};
    while (!berth_text_is(g->p, "return")) {
        if (g->p->token.kind != BERTH_TOKEN_LABEL && g->p->token.kind != BERTH_TOKEN_WORD)
            return berth_text_expected(g->p, "an operation or 'return'");
        BERTH_TRY(parse_op(g, region));
    }
    berth_text_next(g->p);
    if (!berth_text_is(g->p, "}")) BERTH_TRY(parse_uses(g, false, &results));
    berth_graph_set_region_results(g->p->module, g->function, region, results.items.data,
                                   results.items.count);
    return BERTH_OK;
}

// ---- inference ----------------------------------------------------------------------------------

static bool needs_types(const graph_parser *g, const berth_op *op) {
    for (uint32_t i = 0; i < op->output_count; ++i)
        if (!g->typed.data[op->outputs[i]]) return true;
    for (uint32_t i = 0; i < op->region_count; ++i) {
        const berth_region *region = &g->graph->regions.data[op->regions[i]];
        for (uint32_t j = 0; j < region->params.count; ++j)
            if (!g->typed.data[region->params.data[j]]) return true;
    }
    return false;
}

// Operations in order; inference of an operation sees to its regions, too, and may overwrite types
// that were written, which come back afterwards.
static berth_status infer_region(graph_parser *g, berth_region_id id, berth_type_id *written) {
    for (uint32_t i = 0; i < g->graph->regions.data[id].ops.count; ++i) {
        berth_op_id op_id = g->graph->regions.data[id].ops.data[i];
        const berth_op *op = &g->graph->ops.data[op_id];
        for (uint32_t j = 0; j < op->region_count && !needs_types(g, op); ++j)
            BERTH_TRY(infer_region(g, op->regions[j], written));
        if (!needs_types(g, op)) continue;
        BERTH_TRY(berth_infer_op(g->p->module, g->function, op_id));
        value_range range = g->defined.data[op_id];
        for (uint32_t v = range.first; v < range.end; ++v)
            if (g->typed.data[v]) g->graph->values.data[v].type = written[v];
    }
    return BERTH_OK;
}

static berth_status infer_alone(graph_parser *g) {
    berth_type_id *written = berth_arena_new_array(g->p->scratch, berth_type_id, g->typed.count);
    for (uint32_t i = 0; i < g->typed.count; ++i) written[i] = g->graph->values.data[i].type;
    return infer_region(g, 0, written);
}

static bool all_typed(const graph_parser *g) {
    for (uint32_t i = 0; i < g->typed.count; ++i)
        if (!g->typed.data[i]) return false;
    return true;
}

// The next function that this one calls and whose types are not known.
static graph_parser *next_callee(graph_parser *g, graph_parser *const *parsers) {
    while (g->next < g->graph->ops.count) {
        const berth_op *op = &g->graph->ops.data[g->next++];
        const berth_attr *callee = berth_attrs_find(g->p->module, &op->attrs, "callee");
        if (!callee || callee->kind != BERTH_ATTR_FUNCTION) continue;
        graph_parser *other = parsers[callee->function];
        if (other && !other->inferred && !all_typed(other)) return other;
    }
    return NULL;
}

static berth_status infer_function(berth_text_parser *p, void *user);

// Callees first: the types of a call are those of its callee. A stack: chains of calls may be long.
static berth_status infer_with_callees(berth_text_parser *p, graph_parser *from,
                                       graph_parser *const *parsers) {
    struct {
        BERTH_VEC(graph_parser *) items;
    } stack = {{0}};
    from->inferred = true;
    berth_vec_push(p->scratch, &stack.items, from);
    while (stack.items.count) {
        graph_parser *top = stack.items.data[stack.items.count - 1];
        graph_parser *callee = next_callee(top, parsers);
        if (callee) {
            callee->inferred = true;
            berth_vec_push(p->scratch, &stack.items, callee);
            continue;
        }
        stack.items.count--;
        BERTH_TRY(infer_alone(top));
    }
    return BERTH_OK;
}

// Called for each function; the first call sees to all.
static berth_status infer_function(berth_text_parser *p, void *user) {
    if (((graph_parser *)user)->inferred) return BERTH_OK;
    graph_parser **parsers =
        berth_arena_new_array(p->scratch, graph_parser *, p->module->functions.count + 1);
    for (uint32_t i = 0; i < p->after.count; ++i)
        if (p->after.data[i].run == infer_function)
            parsers[((graph_parser *)p->after.data[i].user)->function] = p->after.data[i].user;
    for (uint32_t i = 0; i < p->module->functions.count; ++i) {
        if (!parsers[i] || parsers[i]->inferred) continue;
        if (!all_typed(parsers[i])) BERTH_TRY(infer_with_callees(p, parsers[i], parsers));
        parsers[i]->inferred = true;
    }
    return BERTH_OK;
}

// ---- hooks --------------------------------------------------------------------------------------

berth_status berth_text__parse_graph_signature(berth_text_parser *p, berth_func_id function) {
    graph_parser *g = berth_arena_new(p->scratch, graph_parser);
    g->p = p;
    g->function = function;
    g->graph = berth_graph_new_body(p->module);
    berth_module_function(p->module, function)->body = g->graph;
    p->user = g;
    return parse_params(g, 0);
}

berth_status berth_text__parse_graph_body(berth_text_parser *p, berth_func_id function) {
    graph_parser *g = p->user;
    (void)function;
    berth_vec_push(p->scratch, &p->after, (struct berth_text_after){infer_function, g});
    return parse_region(g, 0);
}
