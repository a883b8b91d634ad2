// A session that makes a program for many shapes once shapes change: which bounds it chooses, when the program serves,
// and that its results are right.
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/toolchain/toolchain.h"
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
    const berth_vm_bounds_seen what = {rows,       seen->count, seen->axes, least,
                                       seen->most, 128,         1024,       0};
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
        // Two extents are multiples of their divisor: 2 and 3 of 32, so 1 to 8 of them.
        {{2, 2, {{1, 64}, {1, 96}}, {0}}, 8, {1, 256}, {{1, 80}, {1, 288}, {2, 64}}},
        // Axes that go together, the second two for each of the first, and one.
        {{3, 2, {{1, 3}, {2, 5}, {4, 9}}, {0}}, 8, {7, 15}, {{3, 8}, {9, 19}, {0, 1}}},
        // 16 to 32 steps of 8; half of the least are no more than 32 shapes, twice the most would be.
        {{3, 2, {{48, 136}, {48, 192}, {48, 128}}, {0}},
         25,
         {48, 64},
         {{48, 56}, {48, 264}, {47, 136}}},
        // Two by themselves: no further than 1 to 2 and 1 to 2 of 288.
        {{3, 2, {{2, 576}, {2, 288}, {1, 576}}, {0}}, 4, {1, 288}, {{3, 288}, {4, 576}, {1, 1152}}},
        // By themselves: 4 to 8 and 4 to 8 steps of 32.
        {{3, 2, {{160, 224}, {128, 160}, {256, 128}}, {0}},
         25,
         {256, 256},
         {{288, 128}, {160, 96}, {144, 128}}},
        // The model allows no more than 210: 8 to 26 steps.
        {{3, 2, {{48, 160}, {48, 200}, {48, 144}}, {0, 210}},
         19,
         {48, 64},
         {{48, 216}, {48, 56}, {48, 145}}},
        // Powers of two would be too many, 61 to 180 are not.
        {{3, 2, {{1, 61}, {1, 180}, {1, 90}}, {0}}, 120, {1, 100}, {{1, 60}, {1, 181}, {2, 100}}},
        // More than a few either way: from 32 to 1024, which are not too many.
        {{3, 2, {{1, 61}, {1, 1000}, {1, 90}}, {0}}, 993, {1, 1024}, {{1, 31}, {1, 1025}, {2, 61}}},
        // From one power to another were too many.
        {{3, 2, {{1, 61}, {1, 1080}, {1, 90}}, {0}},
         1020,
         {1, 1080},
         {{1, 60}, {1, 1081}, {2, 61}}},
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
    static const shapes seen = {3, 2, {{1, 61}, {1, 2000}, {1, 90}}, {0}};
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

static berth_vm_session *open_file(const char *path, const char *text,
                                   const berth_compile_options *compile,
                                   berth_general_program general) {
    const berth_model_options options = {
        .target = "cpu", .general_program = general, .compile = *compile};
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    berth_vm_session *session = NULL;
    assert_ok(berth_vm_session_open(path, &options, 1, &session));
    unlink(path);
    return session;
}

static berth_vm_session *open_session(const char *text) {
    const berth_compile_options compile = {.cache_folder = getenv("BERTH_CACHE_DIR"),
                                           .search_path = getenv("PATH")};
    char path[] = "/tmp/berth-general-XXXXXX";
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    return open_file(path, text, &compile, BERTH_GENERAL_MADE);
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

// After three shapes, 12, 18 and 30 rows, one program serves 6 to 96 in steps of 6, without a compiler.
Test(vm_general, serves_shapes_that_did_not_come) {
    static const int64_t first[] = {12, 18, 30}, inside[] = {24, 6, 42, 78, 24};
    float got[most_numbers], before_it[18 * 24];
    berth_vm_session *session = open_session(rows_model);
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
    berth_vm_session *session = open_session(rows_model);
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

// The same of one that comes while the first program is made, which is given up: no run is needed to begin the wider one.
Test(vm_general, bounds_grow_by_what_came_meanwhile) {
    static const int64_t first[] = {4, 6, 8, 34};
    float got[most_numbers];
    berth_vm_session *session = open_session(rows_model);
    for (int i = 0; i < 4; ++i) run_rows(session, first[i], got);
    berth_vm_session_wait(session);
    expect_right(session, 40);
    const berth_vm_report report = report_of(session);
    cr_expect_null(report.general.refusal, "%s", report.general.refusal);
    cr_expect_eq(report.general.run_count, 1u);
    berth_vm_session_close(session);
}

// A table of 40 rows, of which as many are taken as there are: more fit nothing. Twice what came are more, so what came is
// within, and nothing else.
static const char table_model[] =
    "module \"m\"\n"
    "graph @main(%x: f32[N,24]) {\n  %k = constant() {value = i64[2] (40, 24)}\n"
    "  %o = constant() {value = f32[1,1] (1)}\n  %t = expand(%o, %k)\n"
    "  %z = constant() {value = i64[2] (0, 0)}\n  %s = shape_of(%x)\n"
    "  %p = slice(%t, %z, %s)\n  %y = add(%x, %p)\n  return %y\n}\n";

Test(vm_general, bounds_end_where_the_model_does) {
    static const int64_t first[] = {12, 18, 30};
    float got[most_numbers];
    berth_vm_session *session = open_session(table_model);
    for (int i = 0; i < 3; ++i) run_rows(session, first[i], got);
    berth_vm_session_wait(session);
    run_rows(session, 12, got);
    berth_vm_session_wait(session);
    run_rows(session, 24, got);
    const berth_vm_report report = report_of(session);
    cr_expect_null(report.general.refusal, "%s", report.general.refusal);
    cr_expect_eq(report.general.run_count, 1u);
    cr_expect_eq(report.general.shape_count, 4u, "12 to 30 in steps of 6");
    cr_expect_eq(report.compiled_count, 3u);
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
    expect_refused(open_session(data_model), "non_zero");
}

Test(vm_general, more_than_may_be_kept_is_given_up) {
    berth_vm_session *session = open_session(rows_model);
    berth_vm_session_set_limits(session, 0, 1000);
    expect_refused(session, "more memory than is kept");
}

// A session that is closed while its program is made waits for no more than a shape of it.
Test(vm_general, closed_while_it_is_made) {
    float got[most_numbers];
    berth_vm_session *session = open_session(rows_model);
    for (int64_t rows = 20; rows < 23; ++rows) run_rows(session, rows, got);
    berth_vm_session_close(session);
}

static void *run_many(void *user) {
    const int64_t begin = *(const int64_t *)user;
    float got[most_numbers];
    berth_vm_session *session = open_session(rows_model);
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

// ---- programs that are kept ---------------------------------------------------------------------

// Sessions of one model with a folder of their own, one after another.
typedef struct kept_case {
    char folder[40], path[60], cache[60];
    berth_compile_options compile;
    berth_general_program general;
} kept_case;

static void open_case(kept_case *c) {
    *c = (kept_case){.folder = "/tmp/berth-general-XXXXXX", .general = BERTH_GENERAL_MADE};
    cr_assert_not_null(mkdtemp(c->folder));
    snprintf(c->path, sizeof(c->path), "%s/model.txt", c->folder);
    snprintf(c->cache, sizeof(c->cache), "%s/cache", c->folder);
    c->compile = (berth_compile_options){.cache_folder = c->cache, .search_path = getenv("PATH")};
}

static void close_case(const kept_case *c) {
    berth_cache_stats stats;
    assert_ok(berth_toolchain_cache_clear(c->cache, &stats));
    cr_expect_eq(rmdir(c->cache), 0);
    cr_expect_eq(rmdir(c->folder), 0);
}

// Runs each number of rows, and waits for programs after the last.
static berth_vm_report run_all(const kept_case *c, const char *text, const int64_t *rows,
                               int count) {
    float got[most_numbers];
    berth_vm_session *session = open_file(c->path, text, &c->compile, c->general);
    for (int i = 0; i < count; ++i) run_rows(session, rows[i], got);
    berth_vm_session_wait(session);
    run_rows(session, rows[count - 1], got);
    const berth_vm_report report = report_of(session);
    berth_vm_session_close(session);
    return report;
}

static void expect_served(berth_vm_report report, uint64_t runs) {
    cr_expect(report.general.was_kept);
    cr_expect_eq(report.general.run_count, runs);
    cr_expect_eq(report.compiled_count, 0u, "%u", report.compiled_count);
}

// Where the program is in its folder.
static void program_path(const kept_case *c, char *path, size_t size_bytes) {
    uint32_t found = 0;
    DIR *folder = opendir(c->cache);
    cr_assert_not_null(folder);
    for (const struct dirent *at = readdir(folder); at; at = readdir(folder)) {
        if (!strstr(at->d_name, ".program")) continue;
        snprintf(path, size_bytes, "%s/%.60s", c->cache, at->d_name);
        found++;
    }
    closedir(folder);
    cr_assert_eq(found, 1u);
}

// What one session made for 6 to 96 rows in steps of 6 serves the next one from its first run on, with the right results.
Test(vm_general, a_later_session_takes_the_program) {
    static const int64_t first[] = {12, 18, 30}, inside[] = {24, 12, 48};
    kept_case c;
    open_case(&c);
    run_all(&c, rows_model, first, 3);
    expect_served(run_all(&c, rows_model, inside, 3), 4);
    c.general = BERTH_GENERAL_TAKEN;
    berth_vm_session *session = open_file(c.path, rows_model, &c.compile, c.general);
    for (int64_t rows = 12; rows <= 48; rows += 6) expect_right(session, rows);
    expect_served(report_of(session), 7);
    berth_vm_session_close(session);
    close_case(&c);
}

static int processes_started;

static void count_process(void) {
    processes_started++;
}

// The machine is asked by a process of its own, once. A session that has its program asks when it is opened, so that no run
// waits for that. Another process makes the program, as this one would know the machine from then on.
Test(vm_general, no_run_of_a_kept_program_starts_a_process) {
    static const int64_t rows[] = {12, 18, 30};
    kept_case c;
    float got[most_numbers];
    int ended = 0;
    open_case(&c);
    const pid_t maker = fork();
    if (maker == 0) {
        run_all(&c, rows_model, rows, 3);
        _exit(0);
    }
    cr_assert_eq(waitpid(maker, &ended, 0), maker);
    cr_assert_eq(ended, 0);
    cr_assert_eq(pthread_atfork(count_process, NULL, NULL), 0);
    berth_vm_session *session = open_file(c.path, rows_model, &c.compile, BERTH_GENERAL_TAKEN);
    processes_started = 0;
    run_rows(session, 24, got);
    cr_expect_eq(processes_started, 0);
    expect_served(report_of(session), 1);
    berth_vm_session_close(session);
    close_case(&c);
}

// A shape outside of it is compiled for itself; the wider program has all that was within before, and takes its place.
Test(vm_general, a_kept_program_is_widened) {
    static const int64_t first[] = {4, 6, 8}, outside[] = {34}, both[] = {34, 24, 12};
    kept_case c;
    open_case(&c);
    run_all(&c, rows_model, first, 3);
    const berth_vm_report report = run_all(&c, rows_model, outside, 1);
    cr_expect_eq(report.compiled_count, 1u);
    cr_expect_eq(report.general.program_count, 2u, "one that was kept, one that is wider");
    expect_served(run_all(&c, rows_model, both, 3), 4);
    close_case(&c);
}

// Of another model, of other options, or changed on the disk: none of them is taken.
Test(vm_general, what_is_not_the_same_is_not_taken) {
    static const int64_t rows[] = {12, 18, 30};
    static const char other_model[] =
        "module \"m\"\n"
        "graph @main(%x: f32[N,24]) {\n  %y = exp(%x)\n  return %y\n}\n";
    kept_case c;
    char path[160];
    open_case(&c);
    run_all(&c, rows_model, rows, 3);
    cr_expect_not(run_all(&c, other_model, rows, 1).general.was_kept);
    c.compile.no_layouts = true;
    cr_expect_not(run_all(&c, rows_model, rows, 1).general.was_kept);
    c.compile.no_layouts = false;
    c.general = BERTH_GENERAL_NONE;
    cr_expect_not(run_all(&c, rows_model, rows, 1).general.was_kept);
    c.general = BERTH_GENERAL_TAKEN;
    program_path(&c, path, sizeof(path));
    expect_served(run_all(&c, rows_model, rows, 1), 2);
    FILE *file = fopen(path, "r+");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, 3000, SEEK_SET), 0);
    fputs("another", file);
    cr_assert_eq(fclose(file), 0);
    cr_expect_not(run_all(&c, rows_model, rows, 1).general.was_kept);
    cr_expect_neq(access(path, F_OK), 0, "what is damaged goes");
    close_case(&c);
}
