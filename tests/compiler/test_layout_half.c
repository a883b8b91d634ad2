// Operations on f16 that processor cores compute as f32: their operands are f32, constants too, and what they
// compute is what the graph computed before, rounded once.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/eval.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "tests/check.h"

typedef struct wide_case {
    const char *operation;  // on %x, %w and the constant %b
    berth_op_kind kind;
    berth_dtype dtype;  // that it has in the end
    uint32_t casts;     // operands that are no constants, and the result
} wide_case;

static const wide_case cases[] = {
    {"conv(%x, %w, %b) {pads = [1, 1, 1, 1]}", BERTH_OP_CONV, BERTH_DTYPE_F32, 3},
    {"conv_transpose(%x, %w) {strides = [2, 2]}", BERTH_OP_CONV_TRANSPOSE, BERTH_DTYPE_F32, 3},
    {"max_pool(%x) {kernel_shape = [2, 2], strides = [2, 2]}", BERTH_OP_MAX_POOL, BERTH_DTYPE_F32,
     2},
    {"average_pool(%x) {kernel_shape = [3, 3]}", BERTH_OP_AVERAGE_POOL, BERTH_DTYPE_F32, 2},
    {"global_average_pool(%x)", BERTH_OP_GLOBAL_AVERAGE_POOL, BERTH_DTYPE_F32, 2},
    {"relu(%x)", BERTH_OP_RELU, BERTH_DTYPE_F16, 0},  // reads and writes halves as it is
};

static berth_module *parsed(berth_arena *arena, const wide_case *c) {
    char text[512];
    berth_module *module = NULL;
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "graph @main(%%x: f16[1,4,6,7], %%w: f16[4,4,3,3]) {\n"
             "  %%b = constant() {value = f16[4] (0.5, -0.25, 0, 2)}\n"
             "  %%y = %s\n  return %%y\n}\n",
             c->operation);
    assert_ok(berth_module_parse(arena, text, strlen(text), "test", &module));
    return module;
}

static berth_tensor result_of(berth_module *module, const berth_tensor *inputs,
                              berth_arena *arena) {
    berth_tensor y;
    assert_ok(berth_eval_function(module, berth_module_find_function(module, "main"), inputs, 2, &y,
                                  1, arena));
    return y;
}

static void expect_form(berth_module *module, const wide_case *c) {
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    uint32_t casts = 0, found = 0;
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[i];
        if (op->region == BERTH_NONE) continue;
        casts += op->kind == BERTH_OP_CAST;
        if (op->kind != c->kind) continue;
        found++;
        for (uint32_t k = 0; k < op->input_count; ++k)
            cr_expect_eq(berth_type_get(module, graph->values.data[op->inputs[k]].type)->dtype,
                         c->dtype, "%s: operand %u", c->operation, k);
    }
    cr_expect_eq(found, 1, "%s", c->operation);
    cr_expect_eq(casts, c->casts, "%s: %u casts", c->operation, casts);
}

Test(layout_half, computes_in_f32) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const wide_case *c = &cases[i];
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        berth_module *plain = parsed(arena, c), *module = parsed(arena, c);
        berth_tensor inputs[2] = {
            berth_tensor_create(arena, BERTH_DTYPE_F16, 4, (int64_t[]){1, 4, 6, 7}),
            berth_tensor_create(arena, BERTH_DTYPE_F16, 4, (int64_t[]){4, 4, 3, 3})};
        for (int k = 0; k < 2; ++k) berth_tensor_fill_random(&inputs[k], 3 + (uint64_t)k);
        berth_multi_target *target = NULL;
        assert_ok(berth_target_parse(arena, "cpu -vector_bits=256", NULL, &target));
        berth_compile_options options = {.target = target, .stop_after = "layout", .verify = true};
        berth_compile_result result;
        assert_ok(berth_compile(module, &options, &result));
        expect_form(module, c);
        berth_tensor wanted = result_of(plain, inputs, arena),
                     got = result_of(module, inputs, arena);
        cr_assert(berth_tensor_same_shape(&wanted, &got));
        for (int64_t k = 0; k < berth_tensor_element_count(&wanted); ++k) {
            double a = berth_tensor_get_f64(&got, k), b = berth_tensor_get_f64(&wanted, k);
            cr_assert(fabs(a - b) <= 0x1p-10 * fmax(fabs(b), 0.1), "%s: [%lld] is %g, not %g",
                      c->operation, (long long)k, a, b);
        }
        berth_arena_destroy(arena);
    }
}
