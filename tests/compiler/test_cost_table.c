// Fits, tables and files of measured costs.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compiler/cost/applies.h"
#include "compiler/cost/table.h"
#include "tests/check.h"

static berth_arena *make_arena(void) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    return arena;
}

static berth_target *cpu(berth_arena *arena, const char *text) {
    berth_multi_target *target = NULL;
    assert_ok(berth_target_parse(arena, text, NULL, &target));
    return target->devices[0].target;
}

// Points of a known line, of which one was disturbed: the line comes back.
Test(cost_fit, finds_the_line_beside_an_outlier) {
    berth_cost_point points[12];
    for (int i = 0; i < 12; ++i) {
        double flops = 1e5 * (1 << i), bytes = 1e4 * ((i * 7) % 12 + 1);
        points[i] = (berth_cost_point){flops, bytes, 2000 + flops / 50 + bytes / 10};
    }
    points[5].ns *= 8;
    berth_cost_line line = berth_cost_fit(points, 12);
    cr_expect_float_eq(line.ns, 2000, 100);
    cr_expect_float_eq(line.ns_per_flop, 0.02, 0.001);
    cr_expect_float_eq(line.ns_per_byte, 0.1, 0.005);
}

// A line that would need a negative rate has none: times that fall with bytes.
Test(cost_fit, has_no_negative_coefficient) {
    berth_cost_point points[6];
    for (int i = 0; i < 6; ++i)
        points[i] = (berth_cost_point){0, 1000.0 * (i + 1), 9000 - 1000 * i};
    berth_cost_line line = berth_cost_fit(points, 6);
    cr_expect_eq(line.ns_per_byte, 0);
    cr_expect(line.ns >= 4000 && line.ns <= 9000, "%g", line.ns);
    line = berth_cost_fit(points, 0);
    cr_expect_eq(berth_cost_line_ns(&line, 1e9, 1e9), 0);
}

static void add(berth_cost_table *table, const berth_target *target, const char *kind,
                const char *work, double flops, double bytes, double ns, uint64_t runs) {
    berth_cost_record record = {.target =
                                    berth_target_culled(berth_cost_table_arena(table), target),
                                .kind = kind,
                                .work = work,
                                .flops = flops,
                                .bytes = bytes,
                                .ns = ns,
                                .runs = runs};
    berth_cost_table_add(table, &record);
}

Test(cost_table, measured_then_interpolated_then_nothing) {
    berth_arena *arena = make_arena();
    berth_cost_table *table = berth_cost_table_create(arena);
    const berth_target *two = cpu(arena, "cpu -cores=2"), *four = cpu(arena, "cpu -cores=4");
    for (int i = 1; i <= 8; ++i) {
        double flops = 1e6 * i * i, bytes = 1e5 * i;
        add(table, two, "conv", berth_arena_printf(arena, "conv %d", i), flops, bytes,
            1000 + flops / 100, 10);
    }
    berth_cost_device *device = berth_cost_table_device(table, two);
    berth_cost_figure figure;
    berth_work known = {.key = "conv 3", .kind = "conv", .flops = 9e6, .bytes = 3e5};
    cr_expect_float_eq(berth_cost_device_ns(device, &known, &figure), 91000, 1e-6);
    cr_expect_eq(figure, BERTH_COST_MEASURED);
    berth_work similar = {.key = "another", .kind = "conv", .flops = 3e7, .bytes = 5.5e5};
    double ns = berth_cost_device_ns(device, &similar, &figure);
    cr_expect_eq(figure, BERTH_COST_INTERPOLATED);
    cr_expect(fabs(ns / 301000 - 1) < 0.05, "%g", ns);
    // Of a class without measurements: from all there is of the device.
    similar.kind = "pool";
    cr_expect_gt(berth_cost_device_ns(device, &similar, &figure), 0);
    cr_expect_eq(figure, BERTH_COST_INTERPOLATED);
    cr_expect_lt(berth_cost_device_ns(berth_cost_table_device(table, four), &known, &figure), 0);
    berth_arena_destroy(arena);
}

// What a timing model says is of equal work only; what was measured takes its place, in any order, also
// where older files have it.
Test(cost_table, modelled_until_measured) {
    berth_arena *arena = make_arena();
    berth_cost_table *table = berth_cost_table_create(arena);
    const berth_target *target = cpu(arena, "vta,cpu");
    const char *culled = berth_target_culled(arena, target);
    berth_cost_record record = {.target = culled,
                                .kind = "conv",
                                .work = "w",
                                .flops = 10,
                                .bytes = 10,
                                .ns = 500,
                                .runs = 1,
                                .modelled = true};
    berth_cost_table_add(table, &record);
    record.ns = 600;  // a later model: no mean
    berth_cost_table_add(table, &record);
    cr_assert_eq(berth_cost_table_count(table), 1);
    berth_cost_device *device = berth_cost_table_device(table, target);
    berth_cost_figure figure;
    berth_work work = {.key = "w", .kind = "conv", .flops = 10, .bytes = 10};
    cr_expect_float_eq(berth_cost_device_known_ns(device, &work, &figure), 600, 1e-9);
    cr_expect_eq(figure, BERTH_COST_MODELLED);
    cr_expect_not(berth_cost_device_is_measured(device));
    work.key = "another";
    cr_expect_lt(berth_cost_device_known_ns(device, &work, &figure), 0);
    cr_expect_lt(berth_cost_device_ns(device, &work, &figure), 0);
    berth_cost_table *older = berth_cost_table_create(arena);
    add(older, target, "conv", "w", 10, 10, 900, 7);
    berth_cost_table *fresh = berth_cost_table_create(arena);
    berth_cost_table_add(fresh, &record);
    berth_cost_table_add_missing(fresh, older);
    berth_cost_table_add(fresh, &record);
    cr_assert_eq(berth_cost_table_count(fresh), 1);
    cr_expect_float_eq(berth_cost_table_at(fresh, 0)->ns, 900, 1e-9);
    cr_expect_not(berth_cost_table_at(fresh, 0)->modelled);
    berth_arena_destroy(arena);
}

// Devices that are nothing but their attributes have a clock among them.
Test(cost_table, keys_of_accelerators_have_their_clock) {
    berth_arena *arena = make_arena();
    const char *slow = berth_target_culled(arena, cpu(arena, "vta -clock_hz=100000000,cpu"));
    cr_expect_str_neq(slow, berth_target_culled(arena, cpu(arena, "vta -clock_hz=333000000,cpu")));
    cr_expect_str_eq(berth_target_culled(arena, cpu(arena, "cpu -cores=2 -clock_hz=100000000")),
                     berth_target_culled(arena, cpu(arena, "cpu -cores=2 -clock_hz=333000000")));
    berth_arena_destroy(arena);
}

// Figures that only predict are no part of a key; constraints are.
Test(cost_table, keys_are_constraints) {
    berth_arena *arena = make_arena();
    const char *plain = berth_target_culled(arena, cpu(arena, "cpu -cores=2"));
    const char *figures = berth_target_culled(
        arena, cpu(arena, "cpu -cores=2 -dispatch_ns=5 -memory_bandwidth_bytes_per_s=1e9 "
                          "-power_watts=9 -resource=host -memory_capacity_bytes=1000000"));
    cr_expect_str_eq(plain, figures);
    cr_expect_str_neq(plain, berth_target_culled(arena, cpu(arena, "cpu -cores=3")));
    berth_arena_destroy(arena);
}

Test(cost_table, merges_by_runs_and_counts_a_record_once) {
    berth_arena *arena = make_arena();
    berth_cost_table *table = berth_cost_table_create(arena);
    const berth_target *target = cpu(arena, "cpu");
    add(table, target, "conv", "w", 1, 1, 100, 10);
    add(table, target, "conv", "w", 1, 1, 100, 10);  // the same record again
    cr_assert_eq(berth_cost_table_count(table), 1);
    cr_expect_eq(berth_cost_table_at(table, 0)->runs, 10);
    add(table, target, "conv", "w", 1, 1, 400, 30);
    cr_expect_float_eq(berth_cost_table_at(table, 0)->ns, 325, 1e-9);  // (100 * 10 + 400 * 30) / 40
    cr_expect_eq(berth_cost_table_at(table, 0)->runs, 40);
    berth_arena_destroy(arena);
}

Test(cost_table, copies_follow_their_line) {
    berth_arena *arena = make_arena();
    berth_cost_table *table = berth_cost_table_create(arena);
    const berth_target *a = cpu(arena, "cpu -cores=1"), *b = cpu(arena, "cpu -cores=2");
    for (int i = 0; i < 6; ++i) {
        double bytes = 1000.0 * (1 << (2 * i));
        berth_cost_record record = {.target = berth_target_culled(arena, b),
                                    .from = berth_target_culled(arena, a),
                                    .kind = "",
                                    .work = "",
                                    .bytes = bytes,
                                    .ns = 5000 + bytes / 4,
                                    .runs = 5};
        berth_cost_table_add(table, &record);
    }
    double ns = 0;
    cr_assert(berth_cost_table_copy(table, a, b, 2e5, &ns));
    cr_expect(fabs(ns / 55000 - 1) < 0.05, "%g", ns);
    cr_expect_not(berth_cost_table_copy(table, b, a, 2e5, &ns));
    berth_arena_destroy(arena);
}

static char *temporary_file(const char *text) {
    static char path[] = "/tmp/berth-costs-XXXXXX";
    strcpy(path, "/tmp/berth-costs-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

// A target as a version without the newer attributes wrote it (these are of the first that calibrated).
#define OLD_TARGET                                                                                 \
    "{\"arch\": \"x86_64\", \"cores\": 2, \"features\": [\"avx2\", \"fma\"], \"kind\": \"cpu\", "  \
    "\"l1_bytes\": 32768, \"l2_bytes\": 262144, \"threads\": 2, \"vector_bits\": 256}"
#define LATER_TARGET "{\"arch\": \"x86_64\", \"horns\": 2, \"kind\": \"cpu\"}"

static char *versions_file(void) {
    static const char rest[] = ", \"class\": \"add\", \"work\": \"w\", \"flops\": 1, \"bytes\": 1, "
                               "\"ns\": 5, \"runs\": 2}\n";
    char text[1024];
    snprintf(text, sizeof(text), "{\"target\": " OLD_TARGET "%s{\"target\": " LATER_TARGET "%s",
             rest, rest);
    return temporary_file(text);
}

// Calibration files outlive versions: a record of an older one is of the device whose new attributes are
// what they are by default, and one that this version cannot read is kept and is nobody's.
Test(cost_table, files_of_other_versions_apply) {
    berth_arena *arena = make_arena();
    berth_cost_table *table = berth_cost_table_create(arena);
    char *path = versions_file();
    assert_ok(berth_cost_table_read(table, path));
    cr_assert_eq(berth_cost_table_count(table), 2);
    cr_expect_str_eq(berth_cost_table_at(table, 1)->target, LATER_TARGET);
    const berth_target *same = cpu(arena, "cpu -arch=x86_64 -cores=2 -features=avx2,fma");
    const berth_target *other =
        cpu(arena, "cpu -arch=x86_64 -cores=2 -features=avx2,fma -tile_rows=9");
    cr_expect(berth_cost_device_is_measured(berth_cost_table_device(table, same)));
    cr_expect_not(berth_cost_device_is_measured(berth_cost_table_device(table, other)));
    assert_ok(berth_cost_table_write(table, path));
    berth_cost_table *again = berth_cost_table_create(arena);
    assert_ok(berth_cost_table_read(again, path));
    cr_expect_eq(berth_cost_table_count(again), 2);
    cr_expect_str_eq(berth_cost_table_at(again, 0)->target, berth_target_culled(arena, same));
    unlink(path);
    berth_arena_destroy(arena);
}

static void keep_message(void *user, berth_log_level level, const char *message) {
    (void)level;
    snprintf(user, 1024, "%s", message);
}

// Who plans for a device that nobody measured is told, with what the nearest one differs in.
Test(cost_table, says_which_devices_have_no_records) {
    static const struct {
        const char *target, *said;
    } rows[] = {
        {"cpu -arch=x86_64 -cores=2 -features=avx2,fma", "costs: 2 of F"},
        {"cpu -arch=x86_64 -cores=1 -threads=2 -features=avx2,fma",
         "costs: 2 of F; none is of cpu:0 (the nearest device: cores: 2, not 1)"},
        {"cuda", "costs: 2 of F; none is of cuda:0 (nor of any other cuda)"},
    };
    berth_arena *arena = make_arena();
    berth_cost_table *table = berth_cost_table_create(arena);
    char *path = versions_file(), said[1024];
    assert_ok(berth_cost_table_read(table, path));
    unlink(path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_multi_target *target = NULL;
        assert_ok(berth_target_parse(arena, rows[i].target, NULL, &target));
        assert_ok(berth_cost_table_say(table, "F", target, (berth_log){keep_message, said}));
        cr_expect_str_eq(said, rows[i].said);
    }
    berth_arena_destroy(arena);
}

Test(cost_table, files_come_back_as_they_were) {
    berth_arena *arena = make_arena();
    berth_cost_table *table = berth_cost_table_create(arena),
                     *again = berth_cost_table_create(arena);
    const berth_target *target = cpu(arena, "cpu -cores=2");
    add(table, target, "conv", "conv{a=1}(f32[1,\"2\"])", 3.5, 7, 0.1, 12);
    add(table, target, "add", "add", 0, 1e9, 1234567.25, 1);
    char *path = temporary_file("");
    assert_ok(berth_cost_table_write(table, path));
    assert_ok(berth_cost_table_read(again, path));
    unlink(path);
    cr_assert_eq(berth_cost_table_count(again), 2);
    berth_cost_figure figure;
    berth_work work = {.key = "add", .kind = "add"};
    cr_expect_eq(berth_cost_device_ns(berth_cost_table_device(again, target), &work, &figure),
                 1234567.25);
    cr_expect_eq(figure, BERTH_COST_MEASURED);
    berth_arena_destroy(arena);
}

static const struct {
    const char *text, *message;
} wrong[] = {
    {"{\"target\": {\"kind\": \"cpu\"}\n", "no JSON"},
    {"\n[1]\n", ":2: no JSON object"},
    {"{}", "\"target\""},
    {"{\"target\": 3}", "\"target\""},
    {"{\"target\": {\"kind\": \"cpu\"}, \"bytes\": 1, \"ns\": 1, \"runs\": 1}", "neither"},
    {"{\"target\": {\"kind\": \"cpu\"}, \"from\": 1}", "\"from\""},
    {"{\"target\": {\"kind\": \"cpu\"}, \"class\": \"a\", \"work\": \"b\", \"flops\": -1}",
     "\"flops\""},
    {"{\"target\": {\"kind\": \"cpu\"}, \"from\": {\"kind\": \"cpu\"}, \"bytes\": 1, \"ns\": 0, "
     "\"runs\": 1}",
     "\"ns\""},
    {"{\"target\": {\"kind\": \"cpu\"}, \"from\": {\"kind\": \"cpu\"}, \"bytes\": 1, \"ns\": 5, "
     "\"runs\": 1e30}",
     "\"runs\""},
};

Test(cost_table, wrong_lines_are_named) {
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        berth_arena *arena = make_arena();
        char *path = temporary_file(wrong[i].text);
        berth_status status = berth_cost_table_read(berth_cost_table_create(arena), path);
        unlink(path);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%s", wrong[i].text);
        cr_expect_not_null(strstr(berth_status_message(status), wrong[i].message), "%s: %s",
                           wrong[i].text, berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
}
