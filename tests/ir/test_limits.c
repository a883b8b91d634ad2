// Text and JSON that nest without end are refused with their place; what nests less is read.
#include <string.h>

#include "base/str.h"
#include "ir/graph/graph.h"
#include "ir/json.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "tests/check.h"

// A tensor function that stores a sum of `terms` terms: each nests the ones before it.
static const char *sum_of(berth_arena *arena, int terms) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(
        &text, "module \"m\"\ntensor @f(%x: f32[1] in, %y: f32[1] out) {\n  parallel %i in 1 {\n"
               "    %y[%i] = %x[%i]");
    for (int i = 1; i < terms; ++i) berth_strbuf_add(&text, " + %x[%i]");
    berth_strbuf_add(&text, "\n  }\n}\n");
    return berth_strbuf_text(&text);
}

static berth_status parse(berth_arena *arena, int terms, berth_module **out) {
    const char *text = sum_of(arena, terms);
    return berth_module_parse(arena, text, strlen(text), "sum.txt", out);
}

Test(limits, expressions_nest_to_a_bound) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    const char *json = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(parse(arena, 1500, &module));
    assert_ok(berth_module_verify(module));
    assert_ok(berth_module_to_json_text(arena, module, 0, &json));
    assert_ok(berth_module_from_json_text(arena, json, strlen(json), "sum.json", NULL, &module));
    assert_fails(parse(arena, 100000, &module), BERTH_INVALID_ARGUMENT, "sum.txt:");
    assert_fails(parse(arena, 100000, &module), BERTH_INVALID_ARGUMENT,
                 "expressions nest more than 2000 deep");
    berth_arena_destroy(arena);
}

// `levels` of text around `middle`; "#" in it is the number of the level, from 0 outermost.
static void add_level(berth_strbuf *text, const char *part, int level) {
    for (; *part; ++part) {
        if (*part == '#')
            berth_strbuf_addf(text, "%d", level);
        else
            berth_strbuf_addf(text, "%c", *part);
    }
}

typedef struct nest {
    const char *before, *open, *middle, *close, *after;
} nest;

static const char *nested(berth_arena *arena, const nest *n, int levels) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, n->before);
    for (int i = 0; i < levels; ++i) add_level(&text, n->open, i);
    berth_strbuf_add(&text, n->middle);
    for (int i = levels; i-- > 0;) add_level(&text, n->close, i);
    berth_strbuf_add(&text, n->after);
    return berth_strbuf_text(&text);
}

static const nest nests[] = {
    // Types are left to inference: an if is of the type of what its branches return.
    {"module \"m\"\ngraph @main(%p: bool[], %x: f32[3,5]) {\n", "%r# = if(%p) {\n",
     "%v = neg(%x)\n", "return %x } else { %e# = neg(%x) return %e# }\n", "return %x }\n"},
    // Two statements on every level.
    {"module \"m\"\ntensor @f(%x: f32[1] in, %y: f32[1] out) {\n",
     "for %i# in 1 {\n%y[0] = %x[0]\n", "%y[0] = %x[0] + 1.0\n", "}\n", "}\n"},
    {"module \"m\"\ngraph @main(%x: ", "(i64[], ", "f32[1]", ")", ") { return %x }\n"},
};
enum { nest_count = sizeof(nests) / sizeof(nests[0]), within_limit = 490, beyond_limit = 510 };

// What the text form reads is read from JSON too, and is the same then.
Test(limits, nesting_is_the_same_in_text_and_json) {
    for (int i = 0; i < nest_count; ++i) {
        berth_arena *arena = NULL;
        berth_module *module = NULL, *again = NULL;
        const char *json = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        const char *text = nested(arena, &nests[i], within_limit);
        assert_ok(berth_module_parse(arena, text, strlen(text), "deep.txt", &module));
        assert_ok(berth_module_verify(module));
        assert_ok(berth_module_to_json_text(arena, module, 0, &json));
        assert_ok(berth_module_from_json_text(arena, json, strlen(json), "deep", NULL, &again));
        berth_strbuf printed[2] = {berth_strbuf_make(arena), berth_strbuf_make(arena)};
        assert_ok(berth_module_to_text(module, NULL, &printed[0]));
        assert_ok(berth_module_to_text(again, NULL, &printed[1]));
        cr_expect_str_eq(berth_strbuf_text(&printed[0]), berth_strbuf_text(&printed[1]));
        berth_arena_destroy(arena);
    }
}

Test(limits, nesting_ends_at_a_bound) {
    for (int i = 0; i < nest_count; ++i) {
        berth_arena *arena = NULL;
        berth_module *module = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        const char *text = nested(arena, &nests[i], beyond_limit);
        assert_fails(berth_module_parse(arena, text, strlen(text), "deep.txt", &module),
                     BERTH_INVALID_ARGUMENT, "more than 500 levels deep");
        berth_arena_destroy(arena);
    }
}

// The end of the JSON object that begins at `at`, which holds no braces in strings.
static const char *object_end(const char *at) {
    int open = 0;
    do {
        open += *at == '{';
        open -= *at == '}';
        at++;
    } while (open);
    return at;
}

// Sequences in sequences, which no text has.
Test(limits, json_that_nests_further_is_refused) {
    static const nest deep = {"", "{\"kind\": \"seq\", \"items\": [", "{\"kind\": \"barrier\"}",
                              "]}", ""};
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    const char *json = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const char *text = nested(arena, &nests[1], 0);
    assert_ok(berth_module_parse(arena, text, strlen(text), "base.txt", &module));
    assert_ok(berth_module_to_json_text(arena, module, 0, &json));
    const char *body = strstr(strstr(json, "\"body\"") + 1, "\"body\"");  // of the function's body
    body = strchr(body, '{');
    text = berth_arena_printf(arena, "%.*s%s%s", (int)(body - json), json,
                              nested(arena, &deep, 600), object_end(body));
    assert_fails(berth_module_from_json_text(arena, text, strlen(text), "deep", NULL, &module),
                 BERTH_INVALID_ARGUMENT, "statements nest more than 500 levels deep");
    berth_arena_destroy(arena);
}

// Types inside: all of them are those of %x.
Test(limits, types_are_inferred_at_every_level) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const char *text = nested(arena, &nests[0], within_limit);
    assert_ok(berth_module_parse(arena, text, strlen(text), "deep.txt", &module));
    const berth_graph *graph = berth_graph_get(module, 0);
    berth_type_id wanted = graph->values.data[1].type;
    cr_assert_eq(graph->values.count, 2 + 1 + 2 * within_limit);
    for (uint32_t v = 1; v < graph->values.count; ++v)
        cr_expect_eq(graph->values.data[v].type, wanted, "value %u", v);
    berth_arena_destroy(arena);
}

// Types of loops are looked for in rounds, of nested ones as often as that multiplies to: as long as
// it is not too often.
Test(limits, rounds_of_nested_loops_are_bounded) {
    static const nest deep = {
        "module \"m\"\ngraph @main(%n: i64[], %c: bool[], %x: f32[1]) {\n",
        "%r# = loop(%n, %c, %x) (%i#, %d#, %v#) {\n", "%w = concat(%x, %x) {axis = 0}\n",
        "%g# = concat(%v#, %x) {axis = 0} return %c, %g# }\n", "return %x }\n"};
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const char *text = nested(arena, &deep, 4);
    assert_ok(berth_module_parse(arena, text, strlen(text), "loops.txt", &module));
    text = nested(arena, &deep, 40);
    assert_fails(berth_module_parse(arena, text, strlen(text), "loops.txt", &module),
                 BERTH_UNSUPPORTED, "types of nested loops take too many rounds");
    berth_arena_destroy(arena);
}

// Callees are typed before their callers, without recursion: chains of calls may be long.
Test(limits, chains_of_calls_may_be_long) {
    enum { length = 3000 };
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add(&text, "module \"m\"\n");
    for (int i = 0; i < length; ++i)
        berth_strbuf_addf(&text, "graph @f%d(%%x: f32[7]) { %%y = call @f%d(%%x) return %%y }\n", i,
                          i + 1);
    berth_strbuf_addf(&text, "graph @f%d(%%x: f32[7]) { %%y = neg(%%x) return %%y }\n", length);
    assert_ok(
        berth_module_parse(arena, berth_strbuf_text(&text), text.length, "calls.txt", &module));
    const berth_graph *first = berth_graph_get(module, 0);
    cr_expect_eq(first->values.data[1].type, first->values.data[0].type);
    berth_arena_destroy(arena);
}

// The operations of `text`, or its levels, are one more than the limit, in both forms.
Test(limits, given_ones_hold_in_text_and_json) {
    static const char text[] =
        "module \"m\"\ngraph @main(%p: bool[], %x: f32[3,5]) {\n%a = neg(%x)\n%r = if(%p) {\n"
        "%b = if(%p) { %v = neg(%x) return %v } else { return %x }\nreturn %b } else { return %x "
        "}\n"
        "return %r }\n";
    static const struct {
        berth_limits limits;
        const char *message;  // NULL = it is read
    } cases[] = {{{.items = 4, .depth = 2, .bytes = 4096}, NULL},
                 {{.items = 3}, "more than 3 operations"},
                 {{.depth = 1}, "more than 1 levels deep"},
                 {{.bytes = 100}, "the limit is bytes=100"}};
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    const char *json = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_module_parse(arena, text, sizeof(text) - 1, "t", &module));
    assert_ok(berth_module_to_json_text(arena, module, 0, &json));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const berth_dialect_registry registry = {.limits = &cases[i].limits};
        berth_status found[2] = {
            berth_module_parse_with(arena, text, sizeof(text) - 1, "t", &registry, &module),
            berth_module_from_json_text(arena, json, strlen(json), "j", &registry, &module)};
        for (int form = 0; form < 2; ++form) {
            if (cases[i].message)
                cr_expect(found[form] &&
                              strstr(berth_status_message(found[form]), cases[i].message),
                          "%zu: %s", i, berth_status_message(found[form]));
            else
                cr_expect_null(found[form], "%s", berth_status_message(found[form]));
            berth_status_free(found[form]);
        }
    }
    berth_arena_destroy(arena);
}
