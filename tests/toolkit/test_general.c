// A session that makes a program for many shapes once shapes change: which bounds it chooses, when the program serves,
// and that its results are right.
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"
#include "toolkit/vm_bounds.h"
#include "toolkit/vm_session.h"

// ---- bounds -------------------------------------------------------------------------------------

enum { most_axes = 4, most_rows = 5 };

typedef struct shapes {
    uint32_t count, axes;
    int64_t rows[most_rows][most_axes];
    int64_t most[most_axes];
} shapes;

static berth_vm_bounds choose(const shapes *seen, berth_arena *arena) {
    static const int64_t least[most_axes] = {0};
    const int64_t *rows[most_rows];
    for (uint32_t i = 0; i < seen->count; ++i) rows[i] = seen->rows[i];
    const berth_vm_bounds_seen what = {rows, seen->count, seen->axes, least, seen->most, 128};
    return berth_vm_bounds_choose(&what, arena);
}

// All shapes that are made lie within the bounds, are different, and those that were seen are among them.
static void expect_shapes(const shapes *seen, const berth_vm_bounds *bounds) {
    int64_t row[most_axes], before[most_axes] = {0};
    uint32_t found = 0;
    for (uint64_t n = 0; n < bounds->shape_count; ++n) {
        berth_vm_bounds_shape(bounds, n, row);
        cr_expect(berth_vm_bounds_hold(bounds, row));
        cr_expect(n == 0 || memcmp(row, before, seen->axes * sizeof(*row)) != 0);
        memcpy(before, row, sizeof(row));
        for (uint32_t i = 0; i < seen->count; ++i)
            found += memcmp(row, seen->rows[i], seen->axes * sizeof(*row)) == 0;
    }
    cr_expect_eq(found, seen->count, "%u of %u", found, seen->count);
}

static bool holds(const berth_vm_bounds *bounds, int64_t a, int64_t b) {
    const int64_t row[2] = {a, b};
    return berth_vm_bounds_hold(bounds, row);
}

Test(vm_bounds, chosen_from_what_was_seen) {
    static const struct {
        shapes seen;
        uint64_t count;
        int64_t inside[2], outside[3][2];
    } cases[] = {
        // Steps of 8, 18 to 40 of them: 16 to 64.
        {{3, 2, {{48, 320}, {48, 200}, {48, 144}}, {0}},
         49,
         {48, 512},
         {{48, 321}, {48, 520}, {47, 320}}},
        // Two extents are multiples of their divisor.
        {{2, 2, {{1, 64}, {1, 96}}, {0}}, 3, {1, 128}, {{1, 80}, {1, 32}, {2, 64}}},
        // Axes that go together, the second two for each of the first, and one.
        {{3, 2, {{1, 3}, {2, 5}, {4, 9}}, {0}}, 4, {3, 7}, {{3, 8}, {5, 11}, {0, 1}}},
        // By themselves: 4 to 8 and 4 to 8 steps of 32.
        {{3, 2, {{160, 224}, {128, 160}, {256, 128}}, {0}},
         25,
         {256, 256},
         {{288, 128}, {160, 96}, {144, 128}}},
        // The model allows no more than 300.
        {{3, 2, {{48, 160}, {48, 200}, {48, 144}}, {0, 210}},
         11,
         {48, 208},
         {{48, 216}, {48, 120}, {48, 145}}},
        // Powers of two would be too many, 61 to 180 are not.
        {{3, 2, {{1, 61}, {1, 180}, {1, 90}}, {0}}, 120, {1, 100}, {{1, 60}, {1, 181}, {2, 100}}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_allocator_system(), &arena));
        const berth_vm_bounds bounds = choose(&cases[i].seen, arena);
        cr_expect_eq(bounds.shape_count, cases[i].count, "case %zu: %lu", i,
                     (unsigned long)bounds.shape_count);
        expect_shapes(&cases[i].seen, &bounds);
        cr_expect(holds(&bounds, cases[i].inside[0], cases[i].inside[1]), "case %zu", i);
        for (int k = 0; k < 3; ++k)
            cr_expect_not(holds(&bounds, cases[i].outside[k][0], cases[i].outside[k][1]),
                          "case %zu: %d", i, k);
        berth_arena_destroy(arena);
    }
}

Test(vm_bounds, too_many_shapes) {
    static const shapes seen = {3, 2, {{1, 61}, {1, 1000}, {1, 90}}, {0}};
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    cr_expect_eq(choose(&seen, arena).shape_count, 0u);
    berth_arena_destroy(arena);
}

// ---- sessions -----------------------------------------------------------------------------------

static const char rows_model[] =
    "module \"m\"\n"
    "graph @main(%x: f32[N,24]) {\n"
    "  %t = transpose(%x) {perm = [1, 0]}\n  %p = matmul(%x, %t)\n  %q = softmax(%p) {axis = 1}\n"
    "  %y = matmul(%q, %x)\n  %z = tanh(%y)\n  return %z\n}\n";
// How many rows there are depends on the data.
static const char data_model[] = "module \"m\"\n"
                                 "graph @main(%x: f32[N,24]) {\n"
                                 "  %n = non_zero(%x)\n  %t = transpose(%n) {perm = [1, 0]}\n  %y "
                                 "= exp(%x)\n  return %t, %y\n}\n";

static berth_vm_session *open_session(const char *text, bool general) {
    char path[] = "/tmp/berth-general-XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    const berth_model_options options = {
        .target = "cpu",
        .makes_general_program = general,
        .compile = {.cache_folder = getenv("BERTH_CACHE_DIR"), .search_path = getenv("PATH")}};
    berth_vm_session *session = NULL;
    assert_ok(berth_vm_session_open(path, &options, 1, &session));
    unlink(path);
    return session;
}

static float number_at(int64_t i) {
    return (float)(i * 37 % 101) * 0.01F - 0.5F;
}

// The last result of rows x 24 numbers; room for as many.
static void run_rows(berth_vm_session *session, int64_t rows, float *result) {
    float *x = calloc((size_t)rows * 24, sizeof(*x));
    for (int64_t i = 0; i < rows * 24; ++i) x[i] = number_at(i);
    const berth_tensor tensor = {BERTH_DTYPE_F32, 2, {rows, 24}, x};
    const uint32_t count = berth_vm_session_program(session)->output_count;
    berth_vm_value *given = NULL, *got[2] = {NULL};
    assert_ok(berth_vm_value_borrow(berth_allocator_system(), &tensor, &given));
    assert_ok(berth_vm_session_run(session, &given, got));
    const berth_tensor *last = &got[count - 1]->tensor;
    cr_assert(last->dims[0] == rows && last->dims[1] == 24);
    memcpy(result, last->data, (size_t)rows * 24 * sizeof(*result));
    for (uint32_t i = 0; i < count; ++i) berth_vm_value_release(got[i]);
    berth_vm_value_release(given);
    free(x);
}

static berth_vm_report report_of(const berth_vm_session *session) {
    berth_vm_report report;
    berth_vm_session_get_report(session, &report);
    return report;
}

enum { most_numbers = 80 * 24 };

// tanh(softmax(x x^T) x), row i and column j, in double.
static double wanted_at(int64_t rows, int64_t i, int64_t j) {
    double sum = 0, weighted = 0;
    for (int64_t k = 0; k < rows; ++k) {
        double product = 0;
        for (int64_t c = 0; c < 24; ++c)
            product += (double)number_at(i * 24 + c) * (double)number_at(k * 24 + c);
        sum += exp(product);
        weighted += exp(product) * (double)number_at(k * 24 + j);
    }
    return tanh(weighted / sum);
}

static void expect_right(berth_vm_session *session, int64_t rows) {
    float got[most_numbers];
    run_rows(session, rows, got);
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < 24; ++j) {
            const double wanted = wanted_at(rows, i, j), found = (double)got[i * 24 + j];
            cr_assert(fabs(found - wanted) < 2e-6, "%ld rows: %g, not %g", (long)rows, found,
                      wanted);
        }
}

// After three shapes, 12, 18 and 30 rows, one program serves 12 to 48 in steps of 6, without a compiler.
Test(vm_general, serves_shapes_that_did_not_come) {
    static const int64_t first[] = {12, 18, 30}, inside[] = {24, 36, 42, 48, 24};
    float got[most_numbers], before_it[18 * 24];
    berth_vm_session *session = open_session(rows_model, true);
    for (int i = 0; i < 3; ++i) run_rows(session, first[i], got);
    run_rows(session, 18, before_it);
    berth_vm_session_wait(session);
    const berth_vm_report before = report_of(session);
    cr_assert_eq(before.general.run_count, 0u);
    for (int i = 0; i < 5; ++i) expect_right(session, inside[i]);
    const berth_vm_report after = report_of(session);
    cr_expect_null(after.general.refusal, "%s", after.general.refusal);
    cr_expect_eq(after.general.program_count, 1u);
    cr_expect_eq(after.general.run_count, 5u);
    cr_expect_eq(after.compiled_count, before.compiled_count);
    cr_expect_gt(after.held_bytes, after.general.held_bytes);
    // What was compiled for itself stays so, and its results the same to the bit.
    run_rows(session, 18, got);
    cr_expect_eq(memcmp(got, before_it, sizeof(before_it)), 0);
    cr_expect_eq(report_of(session).general.run_count, 5u);
    berth_vm_session_close(session);
}

// A shape outside of the bounds is compiled for itself, and the next program has it within.
Test(vm_general, bounds_grow) {
    static const int64_t first[] = {4, 6, 8, 20};
    float got[most_numbers];
    berth_vm_session *session = open_session(rows_model, true);
    for (int i = 0; i < 4; ++i) {
        run_rows(session, first[i], got);
        berth_vm_session_wait(session);
    }
    const uint32_t compiled = report_of(session).compiled_count;
    expect_right(session, 32);
    const berth_vm_report report = report_of(session);
    cr_expect_eq(report.general.program_count, 2u);
    cr_expect_eq(report.general.run_count, 1u);
    cr_expect_eq(report.compiled_count, compiled);
    berth_vm_session_close(session);
}

static void expect_refused(berth_vm_session *session, const char *why) {
    float got[most_numbers];
    for (int64_t rows = 2; rows < 8; ++rows) {
        run_rows(session, rows, got);
        berth_vm_session_wait(session);
    }
    const berth_vm_report report = report_of(session);
    cr_assert_not_null(report.general.refusal);
    cr_expect(strstr(report.general.refusal, why), "%s", report.general.refusal);
    cr_expect_eq(report.general.run_count, 0u);
    cr_expect_eq(report.general.held_bytes, 0u);
    berth_vm_session_close(session);
}

Test(vm_general, what_data_decides_is_compiled_for_each_shape) {
    expect_refused(open_session(data_model, true), "non_zero");
}

Test(vm_general, more_than_may_be_kept_is_given_up) {
    berth_vm_session *session = open_session(rows_model, true);
    berth_vm_session_set_limits(session, 0, 1000);
    expect_refused(session, "more memory than is kept");
}

// A session that is closed while its program is made waits for no more than a shape of it.
Test(vm_general, closed_while_it_is_made) {
    float got[most_numbers];
    berth_vm_session *session = open_session(rows_model, true);
    for (int64_t rows = 20; rows < 23; ++rows) run_rows(session, rows, got);
    berth_vm_session_close(session);
}

static void *run_many(void *user) {
    const int64_t begin = *(const int64_t *)user;
    float got[most_numbers];
    berth_vm_session *session = open_session(rows_model, true);
    for (int64_t rows = begin; rows < begin + 12; ++rows) run_rows(session, rows, got);
    berth_vm_session_wait(session);
    for (int64_t rows = begin + 11; rows >= begin; --rows) expect_right(session, rows);
    berth_vm_session_close(session);
    return NULL;
}

// Each has a program of its own.
Test(vm_general, sessions_of_one_model_on_several_threads) {
    static int64_t begins[3] = {5, 9, 30};
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i)
        cr_assert_eq(pthread_create(&threads[i], NULL, run_many, &begins[i]), 0);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
}
