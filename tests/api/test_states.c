// Programs that keep state from run to run, through the public API.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

enum { heads = 2, width = 3, row_elements = heads * width, most_rows = 8 };

// A cache of rows for two heads, what is computed from all of it, and a sum that is replaced.
static const char bounds[] = "{bounds = \"past=0..7\"}";
static const char decoder[] =
    "module \"m\"\n"
    "graph @main(%%past: f32[2,past,3], %%row: f32[2,1,3], %%sum: f32[2,1,3]) %s {\n"
    "  %%present = concat(%%past, %%row) {axis = 1}\n"
    "  %%across = transpose(%%present) {perm = [0, 2, 1]}\n"
    "  %%scores = matmul(%%row, %%across)\n"
    "  %%y = matmul(%%scores, %%present)\n"
    "  %%next = add(%%sum, %%row)\n"
    "  return %%y, %%present, %%next\n}\n";
enum { input_past, input_row, input_sum, input_count };
enum { output_y, output_present, output_next };

static berth_compiler *make_compiler(void) {
    berth_compiler *compiler = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    assert_ok(berth_compiler_set(compiler, "executor", "vm"));
    return compiler;
}

static berth_status compile(berth_compiler *compiler, bool bounded, berth_program **out_program) {
    char path[] = "/tmp/berth-states-XXXXXX", text[sizeof(decoder) + sizeof(bounds)];
    int length = snprintf(text, sizeof(text), decoder, bounded ? bounds : "");
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, text, (size_t)length), (ssize_t)length);
    close(file);
    berth_status status = berth_compiler_compile_file(compiler, path, out_program);
    unlink(path);
    return status;
}

static berth_program *make_program(void) {
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    assert_ok(berth_compiler_add_state(compiler, "pa*st=pre*sent"));  // the * is nothing in both
    assert_ok(berth_compiler_add_state(compiler, "sum=next"));
    assert_ok(compile(compiler, true, &program));
    berth_compiler_destroy(compiler);
    return program;
}

static berth_dynamic *load(berth_program *program, bool keeps) {
    berth_dynamic *dynamic = NULL;
    assert_ok(berth_program_load_dynamic(program, 1, &dynamic));
    if (keeps) assert_ok(berth_dynamic_keep_states(dynamic));
    return dynamic;
}

// Rows are small integers, so that sums are exact in any order.
static float element(int row, int head, int i) {
    return (float)((row * 5 + head * 3 + i * 2) % 7 - 3);
}

static void fill_row(int row, float out[row_elements]) {
    for (int h = 0; h < heads; ++h)
        for (int i = 0; i < width; ++i) out[h * width + i] = element(row, h, i);
}

// y of the row `last` with rows first .. last in the cache, by its definition.
static float expected_y(int first, int last, int head, int i) {
    float y = 0;
    for (int r = first; r <= last; ++r) {
        float score = 0;
        for (int k = 0; k < width; ++k) score += element(last, head, k) * element(r, head, k);
        y += score * element(r, head, i);
    }
    return y;
}

static berth_status run_row(berth_dynamic *dynamic, int row, const berth_tensor *past,
                            berth_results **out_results) {
    float data[row_elements];
    fill_row(row, data);
    berth_tensor inputs[input_count] = {{0}};
    if (past) inputs[input_past] = *past;
    inputs[input_row] = (berth_tensor){BERTH_DTYPE_F32, 3, {heads, 1, width}, data};
    return berth_dynamic_run(dynamic, inputs, input_count, out_results);
}

static void check_y(const berth_results *results, int first, int last) {
    const berth_tensor *y = berth_results_item(results, output_y, 0);
    cr_assert_not_null(y);
    for (int h = 0; h < heads; ++h)
        for (int i = 0; i < width; ++i)
            cr_assert_eq(((float *)y->data)[h * width + i], expected_y(first, last, h, i),
                         "rows %d..%d, head %d, %d", first, last, h, i);
}

static void add_row(berth_dynamic *dynamic, int first, int row) {
    berth_results *results = NULL;
    assert_ok(run_row(dynamic, row, NULL, &results));
    check_y(results, first, row);
    cr_assert_eq(berth_results_item_count(results, output_present), 0, "state is no result");
    cr_assert_eq(berth_dynamic_copied_bytes(dynamic), 0, "at row %d", row);
    berth_results_free(results);
}

// The cache has rows first .. last, and nothing else.
static void check_state(const berth_dynamic *dynamic, int first, int last) {
    berth_results *state = NULL;
    assert_ok(berth_dynamic_get_state(dynamic, input_past, &state));
    const berth_tensor *rows = berth_results_item(state, 0, 0);
    const int count = last - first + 1;
    cr_assert_not_null(rows);
    cr_assert_eq(rows->dims[1], count);
    for (int h = 0; h < heads; ++h)
        for (int r = 0; r < count; ++r)
            for (int i = 0; i < width; ++i)
                cr_assert_eq(((float *)rows->data)[(h * count + r) * width + i],
                             element(first + r, h, i));
    berth_results_free(state);
}

Test(states, a_cache_grows_where_it_is) {
    berth_program *program = make_program();
    berth_dynamic *dynamic = load(program, true);
    cr_assert_eq(berth_dynamic_state_output(dynamic, input_past), output_present);
    cr_assert_eq(berth_dynamic_state_output(dynamic, input_row), UINT32_MAX);
    cr_assert_eq(berth_dynamic_state_output(dynamic, input_sum), output_next);
    for (int row = 0; row < most_rows; ++row) {
        add_row(dynamic, 0, row);
        check_state(dynamic, 0, row);
    }
    berth_results *sum = NULL;
    assert_ok(berth_dynamic_get_state(dynamic, input_sum, &sum));
    for (int i = 0; i < width; ++i) {
        float wanted = 0;
        for (int row = 0; row < most_rows; ++row) wanted += element(row, 1, i);
        cr_assert_eq(((float *)berth_results_item(sum, 0, 0)->data)[width + i], wanted);
    }
    berth_results_free(sum);
    berth_dynamic_destroy(dynamic);
    berth_program_release(program);
}

Test(states, more_than_there_is_room_for_is_an_error_and_changes_nothing) {
    berth_program *program = make_program();
    berth_dynamic *dynamic = load(program, true);
    berth_results *results = NULL;
    for (int row = 0; row < most_rows; ++row) add_row(dynamic, 0, row);
    assert_fails(run_row(dynamic, most_rows, NULL, &results), BERTH_INCOMPATIBLE, "bounds 0..7");
    cr_assert_null(results);
    check_state(dynamic, 0, most_rows - 1);
    berth_dynamic_destroy(dynamic);
    berth_program_release(program);
}

Test(states, begin_anew_or_with_what_is_given) {
    berth_program *program = make_program();
    berth_dynamic *dynamic = load(program, true);
    berth_results *results = NULL;
    for (int row = 0; row < 5; ++row) add_row(dynamic, 0, row);
    berth_dynamic_reset_states(dynamic);
    assert_ok(berth_dynamic_get_state(dynamic, input_past, &results));
    cr_assert_eq(berth_results_item_count(results, 0), 0);
    berth_results_free(results);
    for (int row = 2; row < 5; ++row) add_row(dynamic, 2, row);
    check_state(dynamic, 2, 4);

    // Two rows of the caller's, which go on after them; what is given is copied, once.
    float given[heads * 2 * width];
    for (int h = 0; h < heads; ++h)
        for (int r = 0; r < 2; ++r)
            for (int i = 0; i < width; ++i) given[(h * 2 + r) * width + i] = element(3 + r, h, i);
    const berth_tensor past = {BERTH_DTYPE_F32, 3, {heads, 2, width}, given};
    assert_ok(run_row(dynamic, 5, &past, &results));
    check_y(results, 3, 5);
    cr_assert_eq(berth_dynamic_copied_bytes(dynamic), sizeof(given));
    berth_results_free(results);
    memset(given, 0, sizeof(given));
    add_row(dynamic, 3, 6);
    check_state(dynamic, 3, 6);
    berth_dynamic_destroy(dynamic);
    berth_program_release(program);
}

Test(states, each_model_has_its_own) {
    berth_program *program = make_program();
    berth_dynamic *one = load(program, true), *other = load(program, true);
    for (int row = 0; row < 4; ++row) {
        add_row(one, 0, row);
        add_row(other, 1, row + 1);
    }
    check_state(one, 0, 3);
    check_state(other, 1, 4);
    berth_dynamic_destroy(one);
    berth_dynamic_destroy(other);
    berth_program_release(program);
}

// The same program without: all of it goes in and comes out, dense.
Test(states, are_kept_only_when_that_is_asked_for) {
    berth_program *program = make_program();
    berth_dynamic *dynamic = load(program, false);
    berth_results *results = NULL;
    assert_fails(run_row(dynamic, 0, NULL, &results), BERTH_INVALID_ARGUMENT, "past");
    float past[heads * most_rows * width], row_data[row_elements], sum[row_elements] = {0};
    for (int row = 0; row < most_rows; ++row) {
        fill_row(row, row_data);
        const berth_tensor inputs[] = {{BERTH_DTYPE_F32, 3, {heads, row, width}, row ? past : NULL},
                                       {BERTH_DTYPE_F32, 3, {heads, 1, width}, row_data},
                                       {BERTH_DTYPE_F32, 3, {heads, 1, width}, sum}};
        assert_ok(berth_dynamic_run(dynamic, inputs, input_count, &results));
        check_y(results, 0, row);
        const berth_tensor *present = berth_results_item(results, output_present, 0);
        cr_assert_eq(present->dims[1], row + 1);
        for (int h = 0; h < heads; ++h)
            for (int r = 0; r <= row; ++r)
                for (int i = 0; i < width; ++i)
                    cr_assert_eq(((float *)present->data)[(h * (row + 1) + r) * width + i],
                                 element(r, h, i));
        memcpy(past, present->data, sizeof(float) * heads * (size_t)(row + 1) * width);
        berth_results_free(results);
    }
    berth_dynamic_destroy(dynamic);
    berth_program_release(program);
}

Test(states, what_cannot_be_state_is_refused) {
    static const struct {
        const char *state;
        bool bounded;
        berth_code code;
        const char *says;
    } cases[] = {
        {"present=past", true, BERTH_NOT_FOUND, "no such input"},
        {"past=missing", true, BERTH_NOT_FOUND, "no output for input \"past\""},
        {"past", true, BERTH_INVALID_ARGUMENT, "INPUT=OUTPUT"},
        {"sum=present", true, BERTH_INVALID_ARGUMENT, "has not the shape"},
        {"past=present", false, BERTH_INVALID_ARGUMENT, "how far dimension"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_compiler *compiler = make_compiler();
        berth_program *program = NULL;
        assert_ok(berth_compiler_add_state(compiler, cases[i].state));
        assert_fails(compile(compiler, cases[i].bounded, &program), cases[i].code, cases[i].says);
        berth_compiler_destroy(compiler);
    }
    // Twice.
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    assert_ok(berth_compiler_add_state(compiler, "row=next"));
    assert_ok(berth_compiler_add_state(compiler, "sum=next"));
    assert_fails(compile(compiler, true, &program), BERTH_INVALID_ARGUMENT, "another state");
    berth_compiler_destroy(compiler);
}

Test(states, of_a_program_without_any_are_refused) {
    berth_compiler *compiler = make_compiler();
    berth_program *program = NULL;
    berth_dynamic *dynamic = NULL;
    assert_ok(compile(compiler, true, &program));
    dynamic = load(program, false);
    assert_fails(berth_dynamic_keep_states(dynamic), BERTH_INVALID_ARGUMENT, "without states");
    berth_dynamic_destroy(dynamic);
    berth_program_release(program);
    berth_compiler_destroy(compiler);
}
