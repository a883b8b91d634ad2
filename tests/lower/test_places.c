// Places of extremes: along a line whose elements lie beside each other no loop asks what the elements before have left, so
// that both of its loops can be vectors.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/tensor/function.h"
#include "ir/text.h"
#include "tests/check.h"

static uint32_t conditions_of(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    uint32_t n = 0;
    if (!id) return 0;
    if (node->kind == BERTH_STMT_IF) return 1;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        n += conditions_of(fn, fn->lists.data[node->first + i]);
    return node->kind == BERTH_STMT_FOR ? conditions_of(fn, node->body) : n;
}

// Conditional statements of the lowered function.
static uint32_t conditions(const char *op, const char *type, int axis) {
    char text[512];
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    snprintf(text, sizeof(text),
             "module \"m\"\ngraph @main(%%x: %s) {\n  %%y = %s(%%x) {axis = %d}\n  return %%y\n}\n",
             type, op, axis);
    assert_ok(berth_module_parse(arena, text, strlen(text), "places", &module));
    assert_ok(berth_target_parse(arena, "cpu -vector_bits=256", NULL, &target));
    const berth_compile_options options = {.target = target, .stop_after = "lower", .verify = true};
    berth_compile_result result;
    assert_ok(berth_compile(module, &options, &result));
    uint32_t n = 0, functions = 0;
    for (berth_func_id id = 0; id < module->functions.count; ++id) {
        const berth_tfn *fn = berth_tfn_get(module, id);
        if (!fn) continue;
        functions++;
        n += conditions_of(fn, fn->body);
    }
    cr_assert_eq(functions, 1);
    berth_arena_destroy(arena);
    return n;
}

Test(places, lines_of_elements_ask_nothing) {
    static const char *const types[] = {"f32[4,100]", "f16[4,100]", "i32[4,100]", "i64[4,100]",
                                        "u8[4,100]"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        cr_expect_eq(conditions("arg_max", types[i], 1), 0, "%s", types[i]);
        cr_expect_eq(conditions("arg_min", types[i], -1), 0, "%s", types[i]);
    }
    cr_expect_eq(conditions("arg_max", "f64[4,100]", 1), 1, "C compilers make no vectors of it");
}
