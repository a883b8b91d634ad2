// Text and JSON that nest without end are refused with their place; what nests less is read.
#include <string.h>

#include "base/str.h"
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
