// What constant folding (passes/fold.h) evaluates, and what it leaves to be computed.
#include <stdio.h>
#include <string.h>

#include "compiler/passes/fold.h"
#include "ir/text.h"
#include "tests/check.h"

static berth_status fold(void *user) {
    berth_module *module = user;
    return berth_pass_fold(module, berth_module_find_function(module, "main"), NULL);
}

// Operations left of main of a module with this body.
static uint32_t left_of(const char *body, berth_op_kind kind) {
    char text[1024];
    snprintf(text, sizeof(text), "module \"m\"\ngraph @main(%s}\n", body);
    berth_arena *arena;
    berth_module *module;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_module_parse(arena, text, strlen(text), "test.txt", &module));
    assert_ok(berth_arena_try(arena, fold, module));
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    const berth_region *whole = &graph->regions.data[0];
    uint32_t count = 0;
    for (uint32_t i = 0; i < whole->ops.count; ++i)
        count += graph->ops.data[whole->ops.data[i]].kind == kind;
    berth_arena_destroy(arena);
    return count;
}

// The mask of a decoder with this many tokens, and what reads it.
static uint32_t left_of_mask(int tokens, const char *reader, berth_op_kind kind) {
    char body[900];
    snprintf(body, sizeof(body),
             "%%x: f32[%d,%d]) {\n"
             "  %%zero = constant() {value = i64[] (0)}\n"
             "  %%one = constant() {value = i64[] (1)}\n"
             "  %%n = constant() {value = i64[] (%d)}\n"
             "  %%column = constant() {value = i64[2] (-1, 1)}\n"
             "  %%at = range(%%zero, %%n, %%one)\n"
             "  %%rows = reshape(%%at, %%column)\n"
             "  %%mask = less_or_equal(%%at, %%rows)\n"
             "  %s\n",
             tokens, tokens, tokens, reader);
    return left_of(body, kind);
}

// 1,000 tokens: 1 MB is evaluated. 2,000: 4 MB, 128 times the operands, is computed where it is used; but evaluated
// where a shape depends on it.
Test(fold, a_result_far_larger_than_its_operands_stays_computed) {
    static const char select[] =
        "%zeros = sub(%x, %x)\n  %y = where(%mask, %x, %zeros)\n  return %y";
    static const char positions[] = "%y = non_zero(%mask)\n  return %y";
    cr_expect_eq(left_of_mask(1000, select, BERTH_OP_LESS_OR_EQUAL), 0);
    cr_expect_eq(left_of_mask(2000, select, BERTH_OP_LESS_OR_EQUAL), 1);
    cr_expect_eq(left_of_mask(2000, select, BERTH_OP_RANGE), 0);
    cr_expect_eq(left_of_mask(2000, positions, BERTH_OP_LESS_OR_EQUAL), 0);
    cr_expect_eq(left_of_mask(2000, positions, BERTH_OP_NON_ZERO), 0);
}

// 4 MB of one value: weights are evaluated, directly or over other operations, to be packed for their kernels; what is added is
// computed where it is used.
Test(fold, weights_are_evaluated_however_they_are_made) {
    static const char *const readers[] = {
        "%y = matmul(%x, %w)", "%v = neg(%w)\n  %y = matmul(%x, %v)", "%y = add(%x, %w)",
        "%y = matmul(%w, %x)", "%v = add(%x, %w)\n  %y = matmul(%x, %v)"};
    static const uint32_t left[] = {0, 0, 1, 1, 1};
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); ++i) {
        char body[400];
        snprintf(body, sizeof(body),
                 "%%x: f32[1024,1024]) {\n"
                 "  %%one = constant() {value = f32[] (1)}\n"
                 "  %%shape = constant() {value = i64[2] (1024, 1024)}\n"
                 "  %%w = expand(%%one, %%shape)\n"
                 "  %s\n  return %%y\n",
                 readers[i]);
        cr_expect_eq(left_of(body, BERTH_OP_EXPAND), left[i], "%s", readers[i]);
    }
}
