// Models whose shapes or control flow only the run knows, through the public API.
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"

// Doubles x n times; gives x itself, too, and a constant.
static const char doubling[] = "module \"m\"\n"
                               "graph @main(%x: f32[N], %n: i64[]) {\n"
                               "  %y = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[N]) {\n"
                               "    %d = add(%c, %c)\n    return %go, %d\n  }\n"
                               "  %k = constant() {value = i64[2] (7, 9)}\n"
                               "  return %y, %x, %k\n}\n";

static berth_compiler *make_compiler(void) {
    berth_compiler *compiler = NULL;
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    return compiler;
}

static berth_dynamic *load(const char *text) {
    char path[] = "/tmp/berth-dynamic-XXXXXX";
    berth_dynamic *dynamic = NULL;
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    berth_compiler *compiler = make_compiler();
    assert_ok(berth_compiler_load_dynamic_file(compiler, path, 1, &dynamic));
    berth_compiler_destroy(compiler);
    unlink(path);
    return dynamic;
}

static berth_dynamic *load_doubling(void) {
    return load(doubling);
}

static berth_results *run(berth_dynamic *dynamic, float *x, int64_t length, int64_t times) {
    const berth_tensor inputs[2] = {{BERTH_DTYPE_F32, 1, {length}, x},
                                    {BERTH_DTYPE_I64, 0, {0}, &times}};
    berth_results *results = NULL;
    assert_ok(berth_dynamic_run(dynamic, inputs, 2, &results));
    return results;
}

Test(dynamic, loops_and_shapes) {
    berth_dynamic *dynamic = load_doubling();
    cr_assert_eq(berth_dynamic_input_count(dynamic), 2);
    cr_assert_eq(berth_dynamic_output_count(dynamic), 3);
    cr_assert_str_eq(berth_dynamic_input_name(dynamic, 0), "x");
    cr_assert_null(berth_dynamic_input_name(dynamic, 2));
    float x[5] = {1, 2, 3, 4, 5};
    for (int64_t length = 1; length <= 5; length += 2)
        for (int64_t times = 0; times < 3; ++times) {
            berth_results *results = run(dynamic, x, length, times);
            const berth_tensor *y = berth_results_item(results, 0, 0);
            cr_assert_eq(y->dims[0], length);
            for (int64_t i = 0; i < length; ++i)
                cr_assert_eq(((float *)y->data)[i], x[i] * (float)(1 << times));
            berth_results_free(results);
        }
    berth_dynamic_destroy(dynamic);
}

typedef struct heard {
    uint32_t count, step_count;
    int64_t end_ns;
} heard;

static void hear(void *user, const berth_piece_facts *piece) {
    heard *h = user;
    cr_assert_geq(piece->start_ns, h->end_ns, "one after another");
    h->end_ns = piece->start_ns + piece->duration_ns;
    cr_assert_not_null(piece->name);
    cr_assert_not_null(piece->session);
    cr_assert_not_null(strstr(piece->target, "cpu"));
    for (uint32_t i = 0; i < berth_session_step_count(piece->session); ++i, ++h->step_count) {
        berth_step_facts step;
        assert_ok(berth_session_get_step(piece->session, i, &step, sizeof(step)));
        cr_assert_gt(step.duration_ns, 0);
        cr_assert_leq(step.start_ns + step.duration_ns, piece->duration_ns);
    }
    h->count++;
}

Test(dynamic, pieces_are_told_as_they_run) {
    berth_dynamic *dynamic = load_doubling();
    float x[2] = {1, 2};
    heard h = {0};
    berth_dynamic_listen(dynamic, hear, &h);
    berth_results_free(run(dynamic, x, 2, 4));
    cr_assert_eq(h.count, 4, "a round each");
    cr_assert_geq(h.step_count, 4);
    berth_dynamic_listen(dynamic, NULL, NULL);
    berth_results_free(run(dynamic, x, 2, 4));
    cr_assert_eq(h.count, 4);
    berth_dynamic_destroy(dynamic);
}

// A decoder's mask: one longer than the cache. Any other length is refused, also where the operations would take it
// (they broadcast a single element).
Test(dynamic, dimensions_that_follow_from_others_are_checked) {
    berth_dynamic *dynamic = load("module \"m\"\n"
                                  "graph @main(%past: f32[N], %new: f32[1], %mask: f32[N+1]) {\n"
                                  "  %all = concat(%past, %new) {axis = 0}\n"
                                  "  %y = add(%all, %mask)\n  return %y\n}\n");
    float past[4] = {1, 2, 3, 4}, one = 5, mask[5] = {10, 20, 30, 40, 50};
    for (int64_t length = 4; length >= 1; --length)
        for (int64_t given = 1; given <= 5; ++given) {
            const berth_tensor inputs[3] = {{BERTH_DTYPE_F32, 1, {length}, past},
                                            {BERTH_DTYPE_F32, 1, {1}, &one},
                                            {BERTH_DTYPE_F32, 1, {given}, mask}};
            berth_results *results = NULL;
            berth_status status = berth_dynamic_run(dynamic, inputs, 3, &results);
            if (given != length + 1) {
                char wanted[100];
                snprintf(wanted, sizeof(wanted),
                         "input \"mask\": dimension 0 is %d, but N+1 makes it %d", (int)given,
                         (int)length + 1);
                assert_fails(status, BERTH_INCOMPATIBLE, wanted);
                continue;
            }
            assert_ok(status);
            const berth_tensor *y = berth_results_item(results, 0, 0);
            cr_assert_eq(((float *)y->data)[length], one + mask[length]);
            berth_results_free(results);
        }
    berth_dynamic_destroy(dynamic);
}

// Results are the caller's, whatever they came from.
Test(dynamic, results_outlive_the_model_and_the_inputs) {
    berth_dynamic *dynamic = load_doubling();
    float *x = malloc(3 * sizeof(*x));
    for (int i = 0; i < 3; ++i) x[i] = (float)i + 1;
    berth_results *results = run(dynamic, x, 3, 0);
    free(x);
    berth_dynamic_destroy(dynamic);
    cr_assert_eq(((float *)berth_results_item(results, 0, 0)->data)[2], 3);
    cr_assert_eq(((float *)berth_results_item(results, 1, 0)->data)[1], 2);
    cr_assert_eq(((int64_t *)berth_results_item(results, 2, 0)->data)[1], 9);
    cr_assert_eq(berth_results_item_count(results, 1), 1);
    cr_assert_eq(berth_results_item_count(results, 3), 0);
    cr_assert_not(berth_results_is_sequence(results, 0));
    cr_assert_null(berth_results_item(results, 0, 1));
    berth_results_free(results);
}

// Values lie in memory that is kept: a run like the one before asks the system for none. Results hold theirs
// until they are freed.
Test(dynamic, memory_of_values_is_kept_and_counted) {
    enum { length = 100000 };
    static float x[length];
    berth_dynamic *dynamic = load_doubling();
    berth_dynamic_memory first, second, last;
    berth_results *results = run(dynamic, x, length, 6);
    assert_ok(berth_dynamic_get_memory(dynamic, &first, sizeof(first)));
    // The last value, the copy of x, and the constant are the results' now. Of the values that the loop
    // carried, two were there at a time.
    cr_assert_geq(first.live_bytes, 2 * sizeof(x));
    cr_assert_lt(first.live_bytes, 3 * sizeof(x));
    cr_assert_geq(first.live_count, 3);
    cr_assert_lt(first.most_live_bytes, 4 * sizeof(x));
    berth_results_free(results);
    assert_ok(berth_dynamic_get_memory(dynamic, &second, sizeof(second)));
    cr_assert_eq(second.live_bytes, 0);
    cr_assert_eq(second.live_count, 0);
    for (int i = 0; i < 20; ++i) berth_results_free(run(dynamic, x, length, 6));
    assert_ok(berth_dynamic_get_memory(dynamic, &last, sizeof(last)));
    cr_assert_eq(last.system_count, first.system_count, "no more memory was asked for");
    cr_assert_eq(last.reserved_bytes, second.reserved_bytes);
    cr_assert_eq(last.allocation_count, 21 * first.allocation_count);
    cr_assert_eq(last.limit_bytes, 0);
    assert_fails(berth_dynamic_get_memory(dynamic, &last, 4), BERTH_INVALID_ARGUMENT, "not 4");
    berth_dynamic_destroy(dynamic);
}

Test(dynamic, memory_of_values_has_a_limit) {
    enum { length = 500000 };
    static float x[length];
    berth_dynamic *dynamic = load_doubling();
    int64_t times = 2;
    const berth_tensor inputs[2] = {{BERTH_DTYPE_F32, 1, {length}, x},
                                    {BERTH_DTYPE_I64, 0, {0}, &times}};
    berth_results *results = NULL;
    berth_dynamic_limit_memory(dynamic, 3 << 20);  // a value and a half
    assert_fails(berth_dynamic_run(dynamic, inputs, 2, &results), BERTH_OUT_OF_MEMORY,
                 "limit of 3145728 bytes");
    cr_assert_null(results);
    berth_results_free(run(dynamic, x, 1000, 2));  // less fits
    berth_dynamic_limit_memory(dynamic, 0);
    berth_results_free(run(dynamic, x, length, 2));
    berth_dynamic_destroy(dynamic);
}

Test(dynamic, what_goes_wrong_is_said) {
    berth_dynamic *dynamic = load_doubling();
    berth_results *results = NULL;
    float x[4] = {1, 2, 3, 4};
    int64_t times = 1;
    berth_tensor inputs[2] = {{BERTH_DTYPE_F32, 2, {2, 2}, x}, {BERTH_DTYPE_I64, 0, {0}, &times}};
    assert_fails(berth_dynamic_run(dynamic, inputs, 1, &results), BERTH_INVALID_ARGUMENT,
                 "1 inputs were given");
    assert_fails(berth_dynamic_run(dynamic, inputs, 2, &results), BERTH_INCOMPATIBLE,
                 "input \"x\" is f32[2,2], but must be f32[N]");
    cr_assert_null(results);
    inputs[0].rank = 1;
    berth_dynamic_cancel(dynamic);
    assert_fails(berth_dynamic_run(dynamic, inputs, 2, &results), BERTH_CANCELLED, "cancelled");
    assert_ok(berth_dynamic_run(dynamic, inputs, 2, &results));
    cr_assert_eq(((float *)berth_results_item(results, 0, 0)->data)[1], 4);
    berth_results_free(results);
    berth_dynamic_destroy(dynamic);
}

// The model's batch stays open: the same picture any number of times gives the same scores.
Test(dynamic, a_model_in_memory_takes_any_batch) {
    enum { pixels = 64, classes = 10, header_bytes = 128, most = 3, drawn_digit = 2 };
    static float images[most * pixels];
    FILE *file = fopen("examples/digits/test_images.npy", "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, header_bytes, SEEK_SET), 0);
    cr_assert_eq(fread(images, sizeof(float), pixels, file), pixels);
    fclose(file);
    for (int i = 1; i < most; ++i) memcpy(images + i * pixels, images, pixels * sizeof(float));
    file = fopen("examples/digits/digits.onnx", "rb");
    cr_assert_not_null(file);
    static char model[1 << 20];
    size_t size = fread(model, 1, sizeof(model), file);
    cr_assert(size > 0 && size < sizeof(model));
    fclose(file);
    berth_compiler *compiler = make_compiler();
    berth_dynamic *dynamic = NULL;
    assert_ok(berth_compiler_load_dynamic_memory(compiler, model, size, NULL, 1, &dynamic));
    memset(model, 0, sizeof(model));  // it was copied
    berth_compiler_destroy(compiler);
    for (int64_t batch = 1; batch <= most; ++batch) {
        const berth_tensor input = {BERTH_DTYPE_F32, 4, {batch, 1, 8, 8}, images};
        berth_results *results = NULL;
        assert_ok(berth_dynamic_run(dynamic, &input, 1, &results));
        const berth_tensor *scores = berth_results_item(results, 0, 0);
        cr_assert_eq(scores->dims[0], batch);
        for (int64_t b = 0; b < batch; ++b) {
            const float *row = (const float *)scores->data + b * classes;
            for (int i = 0; i < classes; ++i) cr_assert_leq(row[i], row[drawn_digit]);
        }
        berth_results_free(results);
    }
    berth_dynamic_destroy(dynamic);
}

// ---- programs -----------------------------------------------------------------------------------

static void write_text(char *path, const char *text) {
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
}

static berth_program *build_doubling(void) {
    char path[] = "/tmp/berth-dynamic-XXXXXX";
    berth_program *program = NULL;
    berth_compiler *compiler = make_compiler();
    write_text(path, doubling);
    assert_ok(berth_compiler_set(compiler, "executor", "vm"));
    assert_ok(berth_compiler_add_specialisation(compiler, "N=3,N=5"));
    assert_ok(berth_compiler_compile_file(compiler, path, &program));
    berth_compiler_destroy(compiler);
    unlink(path);
    return program;
}

// Compiled for two lengths, written, opened again: it doubles as often as it is told.
Test(dynamic, a_program_of_byte_code_runs_from_its_file) {
    char path[] = "/tmp/berth-dynamic-XXXXXX";
    berth_program *built = build_doubling(), *program = NULL;
    write_text(path, "");
    assert_ok(berth_program_save(built, path));
    berth_program_release(built);
    assert_ok(berth_program_open(path, &program));
    unlink(path);
    berth_program_facts facts;
    assert_ok(berth_program_get_facts(program, &facts, sizeof(facts)));
    cr_assert_str_eq(facts.executor, "vm");
    cr_assert_gt(facts.kernel_count, 0);
    cr_assert_eq(berth_program_input_count(program), 2);
    cr_assert_str_eq(berth_program_input(program, 0)->name, "x");
    cr_assert_eq(berth_program_input(program, 0)->type.dims[0], -1);
    cr_assert_null(berth_program_input(program, 2));
    berth_session *session = NULL;
    assert_fails(berth_session_create(program, NULL, &session), BERTH_UNSUPPORTED,
                 "berth_program_load_dynamic");
    berth_dynamic *dynamic = NULL;
    assert_ok(berth_program_load_dynamic(program, 1, &dynamic));
    berth_program_release(program);  // the model has it
    cr_assert_str_eq(berth_dynamic_output_name(dynamic, 0), berth_dynamic_output_name(dynamic, 0));
    float x[5] = {1, 2, 3, 4, 5};
    for (int64_t length = 3; length <= 5; length += 2)
        for (int64_t times = 0; times < 4; ++times) {
            berth_results *results = run(dynamic, x, length, times);
            const berth_tensor *y = berth_results_item(results, 0, 0);
            cr_assert_eq(y->dims[0], length);
            for (int64_t i = 0; i < length; ++i)
                cr_assert_eq(((float *)y->data)[i], x[i] * (float)(1 << times));
            berth_results_free(results);
        }
    int64_t times = 1;
    const berth_tensor inputs[2] = {{BERTH_DTYPE_F32, 1, {4}, x},
                                    {BERTH_DTYPE_I64, 0, {0}, &times}};
    berth_results *results = NULL;
    assert_fails(berth_dynamic_run(dynamic, inputs, 2, &results), BERTH_UNSUPPORTED,
                 "no code for f32[4]; it has some for f32[3]; f32[5]");
    berth_dynamic_cancel(dynamic);
    assert_fails(berth_dynamic_run(dynamic, inputs, 2, &results), BERTH_CANCELLED, "cancelled");
    berth_dynamic_destroy(dynamic);
}

Test(dynamic, a_static_program_has_sessions) {
    char path[] = "/tmp/berth-dynamic-XXXXXX";
    berth_program *program = NULL;
    berth_dynamic *dynamic = NULL;
    berth_compiler *compiler = make_compiler();
    write_text(path, "module \"m\"\ngraph @main(%x: f32[4]) {\n  %y = neg(%x)\n  return %y\n}\n");
    assert_ok(berth_compiler_compile_file(compiler, path, &program));
    berth_compiler_destroy(compiler);
    unlink(path);
    assert_fails(berth_program_load_dynamic(program, 1, &dynamic), BERTH_INVALID_ARGUMENT,
                 "executor \"graph\", not \"vm\"");
    cr_assert_null(dynamic);
    berth_program_release(program);
}
