// A mask chooses between what was computed and a constant, fused behind a product: kernels as the
// system's compiler makes them for this machine's widest vectors (compiler/codegen/c_select.c).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/check.h"

enum { most_text = 1024, most_values = 4 };

static void write_model(char *text, const char *mask, int rows, int columns) {
    snprintf(text, most_text,
             "module \"m\"\n"
             "graph @main(%%a: f32[2,3,%d,5], %%b: f32[2,3,5,%d], %%c: f32[3,%d,%d], %%m: "
             "bool[%s%d,%d]) {\n"
             "  %%p = matmul(%%a, %%b)\n  %%s = add(%%p, %%c)\n"
             "  %%low = constant() {value = f32[] (-3)}\n  %%y = where(%%m, %%s, %%low)\n"
             "  %%d = add(%%c, %%c)\n  %%z = where(%%m, %%d, %%low)\n"
             "  return %%y, %%z\n}\n",
             rows, columns, rows, columns, mask, rows, columns);
}

static void fill(berth_tensor *tensor, uint64_t seed) {
    berth_tensor_fill_random(tensor, seed);
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count && tensor->dtype == BERTH_DTYPE_BOOL; ++i)
        berth_tensor_set_i64(tensor, i, (i * 7 + i / 5) % 5 > 2);
}

static uint32_t session_outputs(const berth_session *session) {
    return berth_session_program(session)->output_count;
}

static void compare(const berth_session *session, const berth_tensor *wanted, const char *text) {
    for (uint32_t o = 0; o < session_outputs(session); ++o) {
        const berth_tensor *got = berth_session_output(session, o);
        int64_t count = berth_tensor_element_count(&wanted[o]);
        for (int64_t i = 0; i < count; ++i)
            cr_assert_float_eq(berth_tensor_get_f64(got, i), berth_tensor_get_f64(&wanted[o], i),
                               1e-4, "result %u, element %d of\n%s", o, (int)i, text);
    }
}

static void run(const char *text) {
    berth_arena *arena = NULL;
    berth_module *module = NULL, *reference = NULL;
    berth_multi_target *target = NULL;
    berth_session *session = NULL;
    berth_machine_facts facts;
    berth_compile_result result;
    berth_tensor inputs[most_values], wanted[most_values];
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_module_parse(arena, text, strlen(text), "text", &module));
    assert_ok(berth_module_parse(arena, text, strlen(text), "text", &reference));
    assert_ok(berth_machine_facts_host(arena, &facts));
    assert_ok(
        berth_target_parse(arena, "cpu", &(berth_target_options){.machine = &facts}, &target));
    berth_compile_options options = {.target = target, .cache_folder = getenv("BERTH_CACHE_DIR")};
    assert_ok(berth_compile(module, &options, &result));
    assert_ok(berth_session_open(berth_allocator_system(), result.program, NULL, &session));
    uint32_t count = result.program->input_count;
    for (uint32_t i = 0; i < count; ++i) {
        inputs[i] = *berth_session_input(session, i);
        fill(&inputs[i], i + 1);
    }
    assert_ok(berth_eval_function(reference, berth_module_find_function(reference, "main"), inputs,
                                  count, wanted, result.program->output_count, arena));
    assert_ok(berth_session_run(session, -1));
    compare(session, wanted, text);
    berth_session_close(session);
    berth_arena_destroy(arena);
}

Test(select, masks_of_bytes_over_floats) {
    static const int shapes[][2] = {{4, 8}, {4, 16}, {2, 8}, {3, 17}, {8, 4}};
    static const char *const masks[] = {"", "2,1,"};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i)
        for (size_t m = 0; m < 2; ++m) {
            char text[most_text];
            write_model(text, masks[m], shapes[i][0], shapes[i][1]);
            run(text);
        }
}

// Which part an element comes from is a condition, too, where more is computed in the same loops: short ones inside, which
// a compiler unrolls, and one over rows, which it puts into vectors.
Test(select, parts_of_a_concatenation) {
    static const char *const parts[] = {"%a, %b", "%d, %d, %d", "%a, %d, %a, %b"};
    static const int columns[] = {2, 3, 6, 8};
    for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); ++p)
        for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); ++c) {
            char text[most_text];
            snprintf(text, sizeof(text),
                     "module \"m\"\ngraph @main(%%a: f32[1,6,1,%d], %%b: f32[1,6,1,%d]) {\n"
                     "  %%scale = constant() {value = f32[] (0.03125)}\n"
                     "  %%zero = constant() {value = u8[] (128)}\n"
                     "  %%i = quantize_linear(%%a, %%scale, %%zero)\n"
                     "  %%d = dequantize_linear(%%i, %%scale, %%zero)\n"
                     "  %%all = concat(%s) {axis = 1}\n"
                     "  %%q = quantize_linear(%%all, %%scale, %%zero)\n"
                     "  %%y = dequantize_linear(%%q, %%scale, %%zero)\n"
                     "  return %%y\n}\n",
                     columns[c], columns[c], parts[p]);
            run(text);
        }
}

// Rows of a few elements that a condition guards together: a compiler loads all registers of a turn with one mask.
Test(select, short_rows_with_borders) {
    static const char *const dtypes[] = {"f32", "f64", "i64", "i16", "u8"};
    static const char *const pads[] = {"0, 1, 0, 0, 2, 1", "0, 1, 0, 0, 9, 0", "0, 2, 0, 0, 30, 0",
                                       "0, 3, 0, 0, 0, 1"};
    static const int columns[] = {2, 3, 4};
    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); ++d)
        for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); ++c) {
            char text[most_text];
            int length = snprintf(text, sizeof(text),
                                  "module \"m\"\ngraph @main(%%a: %s[7,8,%d], %%b: %s[7,5,%d]) {\n",
                                  dtypes[d], columns[c], dtypes[d], columns[c]);
            for (int p = 0; p < 4; ++p)
                length += snprintf(text + length, sizeof(text) - (size_t)length,
                                   "  %%p%d = constant() {value = i64[6] (%s)}\n"
                                   "  %%y%d = pad(%%%c, %%p%d)\n",
                                   p, pads[p], p, p == 1 ? 'b' : 'a', p);
            snprintf(text + length, sizeof(text) - (size_t)length,
                     "  return %%y0, %%y1, %%y2, %%y3\n}\n");
            run(text);
        }
}
