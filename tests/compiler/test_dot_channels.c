// Integer convolutions of channels that fill no block, and products whose sums are no whole dot products, are dot products,
// too: the layout pass pads the inputs to whole dot products and the outputs to whole vectors. (tests/toolkit/operators.def has what they compute.)
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/text.h"
#include "tests/check.h"

#define DOTS                                                                                       \
    "cpu -arch=x86_64 -vector_bits=512 -features=avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni"

// A module in text with its schedules for a target.
static const char *scheduled_text(berth_arena *arena, const char *text, const char *target_text) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_module_parse(arena, text, strlen(text), "test", &module));
    assert_ok(berth_target_parse(arena, target_text, NULL, &target));
    berth_compile_options options = {.target = target, .stop_after = "schedule", .verify = true};
    assert_ok(berth_compile(module, &options, &result));
    berth_strbuf printed = berth_strbuf_make(arena);
    berth_module_print(module, &printed);
    return printed.data;
}

// The same of `body` on `%x: x_type` and the constant %w: i8[w_dims] of `count` elements.
static const char *scheduled(berth_arena *arena, const char *x_type, const char *w_dims, int count,
                             const char *body) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_addf(&text,
                      "module \"m\"\n"
                      "graph @main(%%x: %s) {\n"
                      "  %%z = constant() {value = u8[] (7)}\n"
                      "  %%w = constant() {value = i8[%s] (1",
                      x_type, w_dims);
    for (int i = 1; i < count; ++i) berth_strbuf_addf(&text, ", %d", i % 255 - 127);
    berth_strbuf_addf(&text, ")}\n  %%y = %s\n  return %%y\n}\n", body);
    return scheduled_text(arena, text.data, DOTS);
}

Test(dot_channels, any_number_of_channels_is_multiplied_by_dot_products) {
    static const int cases[][2] = {{32, 48}, {19, 27}, {33, 16}, {16, 9}, {3, 5}, {6, 40}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        const int *n = cases[i];
        const char *text =
            scheduled(arena, berth_arena_printf(arena, "u8[1,%d,7,6]", n[0]),
                      berth_arena_printf(arena, "%d,%d,3,3", n[1], n[0]), n[0] * n[1] * 9,
                      "conv_integer(%x, %w, %z) {pads = [1, 1, 1, 1]}");
        cr_expect(strstr(text, "intrinsic=dot_u8i8_x"), "%d to %d channels", n[0], n[1]);
        berth_arena_destroy(arena);
    }
}

// What is added to every channel is as long as blocks are, so that results of the last block are stored in vectors.
Test(dot_channels, constants_of_channels_fill_blocks) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    const char *text = scheduled(arena, "u8[1,8,7,6]", "27,8,3,3", 27 * 8 * 9,
                                 "conv_integer(%x, %w, %z) {pads = [1, 1, 1, 1]}");
    cr_expect(strstr(text, "i32[1,27,1,1]{aBcd16b} in"), "%s", text);
    cr_expect_null(strstr(text, "simd %lane"), "%s", text);
    berth_strbuf graph = berth_strbuf_make(arena);
    berth_strbuf_addf(&graph, "module \"m\"\n"
                              "graph @main(%%x: f32[1,8,7,6]) {\n"
                              "  %%w = constant() {value = f32[27,8,3,3] (1.0");
    for (int i = 1; i < 27 * 8 * 9; ++i) berth_strbuf_addf(&graph, ", %d.0", i % 7);
    berth_strbuf_addf(&graph, ")}\n  %%c = constant() {value = f32[27,1,1] (0.5");
    for (int i = 1; i < 27; ++i) berth_strbuf_addf(&graph, ", %d.0", i);
    berth_strbuf_addf(&graph, ")}\n  %%y = conv(%%x, %%w, _)\n  %%r = relu(%%y)\n"
                              "  %%s = mul(%%r, %%c)\n  return %%s\n}\n");
    text = scheduled_text(arena, graph.data, DOTS);
    cr_expect(strstr(text, "f32[27,1,1]{Abc16a} in"), "%s", text);
    cr_expect_null(strstr(text, "simd %lane"), "%s", text);
    berth_arena_destroy(arena);
}

Test(dot_channels, sums_of_any_length_are_multiplied_by_dot_products) {
    for (int depth = 76; depth < 80; ++depth) {
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        const char *text = scheduled(arena, berth_arena_printf(arena, "u8[3,9,%d]", depth),
                                     berth_arena_printf(arena, "%d,45", depth), depth * 45,
                                     "matmul_integer(%x, %w, %z)");
        cr_expect(strstr(text, "intrinsic=dot_u8i8_x"), "%d terms", depth);
        berth_arena_destroy(arena);
    }
}

// Weights that the run has are as constant ones: whole dot products, and whole tiles of a matrix unit where rows are
// enough for it.
Test(dot_channels, weights_of_the_run_in_sums_of_any_length) {
    static const char *const targets[] = {DOTS, DOTS ",amx-tile,amx-int8"};
    static const char *const wanted[] = {"intrinsic=dot_u8i8_x16", "intrinsic=tile_u8i8"};
    for (int i = 0; i < 8; ++i) {
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        int depth = 76 + i / 2;
        const char *text =
            berth_arena_printf(arena,
                               "module \"m\"\ngraph @main(%%x: u8[40,%d], %%w: i8[%d,45]) {\n"
                               "  %%y = matmul_integer(%%x, %%w)\n  return %%y\n}\n",
                               depth, depth);
        cr_expect(strstr(scheduled_text(arena, text, targets[i % 2]), wanted[i % 2]),
                  "%d terms: no %s", depth, wanted[i % 2]);
        berth_arena_destroy(arena);
    }
}

Test(dot_channels, sums_of_any_length_fill_tiles_of_a_matrix_unit) {
    for (int depth = 76; depth < 80; ++depth) {
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        berth_strbuf text = berth_strbuf_make(arena);
        berth_strbuf_addf(&text,
                          "module \"m\"\ngraph @main(%%x: u8[40,%d]) {\n"
                          "  %%w = constant() {value = i8[%d,45] (1",
                          depth, depth);
        for (int i = 1; i < depth * 45; ++i) berth_strbuf_addf(&text, ", %d", i % 255 - 127);
        berth_strbuf_addf(&text, ")}\n  %%y = matmul_integer(%%x, %%w)\n  return %%y\n}\n");
        const char *printed = scheduled_text(arena, text.data, DOTS ",amx-tile,amx-int8");
        cr_expect(strstr(printed, "intrinsic=tile_u8i8"), "%d terms", depth);
        berth_arena_destroy(arena);
    }
}
