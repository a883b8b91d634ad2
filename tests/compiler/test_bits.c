// Weights of few bits stay so where kernels unpack them, and are the floats that they stand for elsewhere.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "tests/check.h"

static const char text[] = "module \"m\"\n"
                           "graph @main(%x: f32[1,4]) {\n"
                           "  %b = constant() {value = u8[2,1] (33, 254)}\n"
                           "  %s = constant() {value = f32[1,1] (0.5)}\n"
                           "  %y = matmul_bits(%x, %b, %s) {bits = 4, block_size = 4}\n"
                           "  return %y\n}\n";

static const berth_op *find(const berth_module *module, berth_op_kind kind) {
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    for (uint32_t i = 0; i < graph->regions.data[0].ops.count; ++i) {
        const berth_op *op = &graph->ops.data[graph->regions.data[0].ops.data[i]];
        if (op->kind == kind) return op;
    }
    return NULL;
}

// `source` after the pass `last`.
static berth_module *compiled(const char *source, const char *target_text, const char *last,
                              berth_arena *arena) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_module_parse(arena, source, strlen(source), "test", &module));
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    berth_compile_options options = {.target = target, .stop_after = last, .verify = true};
    assert_ok(berth_compile(module, &options, &result));
    return module;
}

static berth_module *laid_out(const char *target_text, berth_arena *arena) {
    return compiled(text, target_text, "layout", arena);
}

Test(bits, processor_cores_keep_the_bytes_of_the_model) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_module *module = laid_out("cpu", arena);
    const berth_op *op = find(module, BERTH_OP_MATMUL_BITS);
    cr_assert_not_null(op);
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    const berth_tensor *bytes = berth_graph_constant_of(module, graph, op->inputs[1]);
    cr_assert_not_null(bytes);
    cr_expect_eq(berth_tensor_element_count(bytes), 2);
    cr_expect_null(find(module, BERTH_OP_MATMUL));
    berth_arena_destroy(arena);
}

Test(bits, gpus_have_the_floats_that_they_stand_for) {
    static const double expected[4] = {-3.5, -3, 3, 3.5};  // 1, 2, 14, 15; less 8, by 0.5
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_module *module = laid_out("opencl -subgroup_size=32 -host=cpu", arena);
    const berth_op *op = find(module, BERTH_OP_MATMUL);
    cr_assert_not_null(op);
    cr_expect_null(find(module, BERTH_OP_MATMUL_BITS));
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    const berth_tensor *weights = berth_graph_constant_of(module, graph, op->inputs[1]);
    cr_assert_not_null(weights);
    for (int64_t i = 0; i < 4; ++i)
        cr_expect_float_eq(berth_tensor_get_f64(weights, i), expected[i], 0);
    berth_arena_destroy(arena);
}

// 40 terms are two blocks of 16 and a half: sums of one loop nest all the same, which alone become register tiles.
Test(bits, sums_that_end_inside_a_block_are_tiles) {
    static const char source[] = "module \"m\"\n"
                                 "graph @main(%x: f32[8,40], %b: u8[24,64], %s: f32[3,64]) {\n"
                                 "  %y = matmul_bits(%x, %b, %s) {bits = 4, block_size = 16}\n"
                                 "  return %y\n}\n";
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_module *module = compiled(source, "cpu -vector_bits=256", "schedule", arena);
    berth_strbuf printed = berth_strbuf_make(arena);
    berth_module_print(module, &printed);
    cr_expect_not_null(strstr(printed.data, "form=register_tile"), "%s", printed.data);
    berth_arena_destroy(arena);
}
