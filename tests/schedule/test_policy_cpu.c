// Scheduled functions compute what their plain definition computes: under the interpreter and
// compiled.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

#define TOLERANCE 2e-5

// Scheduled for this machine, and for registers of 4, 8 and 16 floats (the C compiler makes what
// this machine has of them).
static const char *const targets[] = {"cpu", "cpu -vector_bits=128", "cpu -vector_bits=256",
                                      "cpu -vector_bits=512"};

enum { target_count = sizeof(targets) / sizeof(targets[0]) };

static void check_case(bench_case *c, const char *target_text, const char *what) {
    const berth_target *target = support_target(c->arena, target_text);
    support_fill(c, 7);
    berth_buf y = c->fn->param_count - 1;
    berth_status status = support_interpret(c);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    float *plain = c->buffers[y];
    status = support_run_compiled(c, target, true);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    double difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < TOLERANCE, "%s: plain C differs by %g", what, difference);
    status = berth_schedule_apply(c->fn, target);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    status = support_interpret(c);
    cr_assert(!status, "%s: scheduled: %s", what, berth_status_message(status));
    difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < TOLERANCE, "%s: scheduled differs by %g", what, difference);
    status = support_run_compiled(c, target, true);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < TOLERANCE, "%s: scheduled C differs by %g", what, difference);
}

// Forms that many sizes share: rows in smaller and smaller tiles after whole ones, with none and some of each.
static void check_any_size(bench_case *c, const char *target_text, const char *what) {
    c->fn->any_size = true;
    check_case(c, target_text, what);
}

static const int64_t matmuls[][3] = {{1, 1, 1},    {1, 40, 100}, {6, 16, 16},   {7, 33, 48},
                                     {20, 10, 17}, {29, 64, 32}, {3, 5, 40},    {9, 12, 24},
                                     {5, 7, 31},   {15, 9, 143}, {17, 1024, 72}};

enum { matmul_count = sizeof(matmuls) / sizeof(matmuls[0]) };

ParameterizedTestParameters(policy_cpu, matmul) {
    static int indices[2 * matmul_count];
    for (int i = 0; i < 2 * matmul_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, 2 * matmul_count);
}

ParameterizedTest(int *index, policy_cpu, matmul) {
    const int64_t *s = matmuls[*index / 2];
    for (int t = 0; t < target_count; ++t) {
        bench_case c = support_case_create();
        support_build_matmul(&c, s[0], s[1], s[2], *index % 2 ? "Ba16b" : "");
        char what[96];
        snprintf(what, sizeof(what), "matmul %ldx%ldx%ld %d for %s", s[0], s[1], s[2], *index % 2,
                 targets[t]);
        check_case(&c, targets[t], what);
        support_case_destroy(&c);
    }
}

// Sizes share a form where only numbers in it differ: as many statements and expressions.
static uint32_t count_statements(bench_case *c, const char *target) {
    cr_assert_null(berth_schedule_apply(c->fn, support_target(c->arena, target)));
    const uint32_t *map = berth_tfn_compact(c->fn);
    cr_assert_not_null(map);
    berth_strbuf text = berth_strbuf_make(c->arena);
    berth_tfn_print(c->fn, &text);
    uint32_t count = 0;
    // Not lines: long numbers break them.
    for (size_t i = 0; i < text.length; ++i) count += text.data[i] == '=' || text.data[i] == '{';
    return count;
}

static uint32_t statements_of_matmul_of(const char *target, int64_t rows, bool any_size,
                                        bool keeps_rows) {
    bench_case c = support_case_create();
    support_build_matmul(&c, rows, 40, 64, "Ba16b");
    c.fn->any_size = any_size;
    for (uint32_t v = 0; v < c.fn->vars.count; ++v) c.fn->vars.data[v].keeps_extent = keeps_rows;
    const uint32_t count = count_statements(&c, target);
    support_case_destroy(&c);
    return count;
}

// The function's rows, its outermost loop, are so many of three sizes; what else it has is the same for all.
static void know_sizes(berth_tfn *fn, const int64_t rows[3]) {
    fn->any_size = true;
    fn->size_count = 3;
    for (uint32_t v = 0; v < fn->vars.count; ++v) fn->vars.data[v].keeps_extent = true;
    for (berth_stmt id = 1; id < fn->stmts.count; ++id) {
        const berth_stmt_node *loop = &fn->stmts.data[id];
        if (loop->kind != BERTH_STMT_FOR ||
            berth_tfn_expr(fn, loop->value)->i != fn->bufs.data[0].dims[0])
            continue;
        fn->vars.data[loop->var].keeps_extent = false;
        fn->vars.data[loop->var].extents = rows;
    }
}

static uint32_t statements_of_matmul(const char *target, int64_t rows, bool any_size) {
    return statements_of_matmul_of(target, rows, any_size, false);
}

// What a loop is printed as: "parallel %p in 288", or another kind.
static bool is_parallel(const char *text, int64_t extent) {
    char end[32];
    const size_t length = (size_t)snprintf(end, sizeof(end), " in %lld {", (long long)extent);
    for (const char *at = strstr(text, "parallel "); at; at = strstr(at + 1, "parallel ")) {
        const char *line_end = strchr(at, '\n');
        if (line_end && line_end - at > (ptrdiff_t)length &&
            strncmp(line_end - length, end, length) == 0)
            return true;
    }
    return false;
}

// Channels in blocks by a number for each, as between a network's layers: a group does a row of pixels, not one
// of them, whatever their count; and where that is more than a chunk, a pixel is a group of its own.
Test(policy_cpu, groups_for_many_sizes_are_rows) {
    static const int64_t pixels[] = {60, 288, 500, 5000};
    for (size_t i = 0; i < sizeof(pixels) / sizeof(pixels[0]); ++i) {
        char text[512];
        snprintf(
            text, sizeof(text),
            "module \"m\"\n"
            "tensor @scale(%%x: f32[7,%lld,16] in, %%s: f32[7,16] in, %%y: f32[7,%lld,16] out) {\n"
            "  for %%c in 7 {\n    for %%p in %lld {\n      for %%l in 16 {\n"
            "        %%y[%%c, %%p, %%l] = %%x[%%c, %%p, %%l] * %%s[%%c, %%l]\n"
            "      }\n    }\n  }\n}\n",
            (long long)pixels[i], (long long)pixels[i], (long long)pixels[i]);
        bench_case c = support_case_parse(text);
        c.fn->any_size = true;
        cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, targets[0])));
        berth_strbuf printed = berth_strbuf_make(c.arena);
        berth_tfn_print(c.fn, &printed);
        const char *loops = berth_strbuf_text(&printed);
        cr_expect(is_parallel(loops, 7), "%s", loops);
        cr_expect_eq(is_parallel(loops, pixels[i]), pixels[i] == 5000, "%s", loops);
        support_case_destroy(&c);
    }
}

Test(policy_cpu, many_sizes_share_a_form) {
    static const int64_t rows[] = {19, 29, 47, 101, 1003};  // no whole number of tiles
    // 32 registers, and 16, where a tile has fewer rows.
    static const char *const machines[] = {
        "cpu -arch=x86_64 -vector_bits=512 -features=avx2,fma,avx512f,avx512bw,avx512dq,avx512vl",
        "cpu -arch=x86_64 -vector_bits=256 -features=avx2,fma",
        "cpu -arch=x86_64 -vector_bits=512 -features=avx2,fma"};
    for (int m = 0; m < 3; ++m) {
        uint32_t count = statements_of_matmul(machines[m], rows[0], true);
        for (size_t i = 1; i < sizeof(rows) / sizeof(rows[0]); ++i)
            cr_expect_eq(statements_of_matmul(machines[m], rows[i], true), count, "%d rows, %s",
                         (int)rows[i], machines[m]);
        cr_expect_neq(statements_of_matmul(machines[m], 19, false),
                      statements_of_matmul(machines[m], 30, false), "%s", machines[m]);
    }
}

// Seven rows after tiles of eight are in tiles of four, two and one: a tile reads all weights.
Test(policy_cpu, a_rest_of_unknown_sizes_is_few_tiles) {
    static const char machine[] =
        "cpu -arch=x86_64 -vector_bits=512 -features=avx2,fma,avx512f,avx512bw,avx512dq,avx512vl";
    bench_case c = support_case_create();
    support_build_matmul(&c, 31, 41, 64, "Ba16b");
    c.fn->any_size = true;
    cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, machine)));
    berth_strbuf printed = berth_strbuf_make(c.arena);
    berth_tfn_print(c.fn, &printed);
    const char *loops = berth_strbuf_text(&printed);
    cr_expect_not_null(strstr(loops, " in 41 {"), "%s", loops);
    cr_expect_null(strstr(loops, " in 7 {"), "%s", loops);
    cr_expect_null(strstr(loops, " in 3 {"), "%s", loops);
    support_case_destroy(&c);
}

// Rows whose number is the same for all sizes are in the tiles of one size: 27 in two of 14 and 13.
Test(policy_cpu, what_keeps_its_extent_is_tiled_as_for_one_size) {
    static const char machine[] =
        "cpu -arch=x86_64 -vector_bits=512 -features=avx2,fma,avx512f,avx512bw,avx512dq,avx512vl";
    for (int64_t rows = 27; rows < 30; ++rows) {
        const uint32_t one = statements_of_matmul(machine, rows, false);
        cr_expect_eq(statements_of_matmul_of(machine, rows, true, true), one, "%d rows", (int)rows);
        if (rows % 14)
            cr_expect_neq(statements_of_matmul(machine, rows, true), one, "%d rows", (int)rows);
    }
}

// The same of one of three sizes that are known.
static uint32_t statements_of_known(const char *target, const int64_t rows[3], int which) {
    bench_case c = support_case_create();
    support_build_matmul(&c, rows[which], 40, 64, "Ba16b");
    know_sizes(c.fn, rows);
    const uint32_t count = count_statements(&c, target);
    support_case_destroy(&c);
    return count;
}

// Tiles of 14 rows are the largest beside two vectors of columns. Where they leave nothing over, there is no code for a
// rest; where they do, all sizes have the same.
Test(policy_cpu, sizes_that_are_known) {
    static const char machine[] =
        "cpu -arch=x86_64 -vector_bits=512 -features=avx2,fma,avx512f,avx512bw,avx512dq,avx512vl";
    static const int64_t whole[] = {28, 42, 70}, over[] = {28, 42, 71}, odd[] = {23, 31, 45};
    for (int i = 0; i < 3; ++i) {
        cr_expect_eq(statements_of_known(machine, whole, i), statements_of_known(machine, whole, 0),
                     "%d rows", (int)whole[i]);
        cr_expect_lt(statements_of_known(machine, whole, i), statements_of_known(machine, over, i),
                     "%d rows", (int)over[i]);
        cr_expect_eq(statements_of_known(machine, odd, i), statements_of_known(machine, odd, 0),
                     "%d rows", (int)odd[i]);
    }
    cr_expect_neq(statements_of_known(machine, odd, 0),
                  statements_of_matmul(machine, odd[0], false));
}

// Whole tiles, tiles of the rest and single rows together are all rows.
Test(policy_cpu, known_sizes_are_computed_whole) {
    static const int64_t sizes[][3] = {
        {72, 80, 88}, {23, 31, 45}, {9, 10, 11}, {28, 42, 70}, {4, 17, 90}};
    for (int t = 0; t < target_count; ++t)
        for (int s = 0; s < 5; ++s)
            for (int which = 0; which < 3; ++which) {
                bench_case c = support_case_create();
                support_build_matmul(&c, sizes[s][which], 24, 40, which == 1 ? "" : "Ba16b");
                know_sizes(c.fn, sizes[s]);
                char what[96];
                snprintf(what, sizeof(what), "%d rows, known, for %s", (int)sizes[s][which],
                         targets[t]);
                check_case(&c, targets[t], what);
                support_case_destroy(&c);
            }
}

ParameterizedTestParameters(policy_cpu, any_size) {
    static int indices[10];
    for (int i = 0; i < 10; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, 10);
}

ParameterizedTest(int *index, policy_cpu, any_size) {
    static const int64_t rows[] = {8, 9, 11, 14, 16, 18, 23, 27, 31, 200};
    for (int t = 0; t < target_count; ++t)
        for (int packed = 0; packed < 2; ++packed) {
            bench_case c = support_case_create();
            support_build_matmul(&c, rows[*index], 40, packed ? 64 : 37, packed ? "Ba16b" : "");
            char what[96];
            snprintf(what, sizeof(what), "any size, %ld rows, %d, for %s", rows[*index], packed,
                     targets[t]);
            check_any_size(&c, targets[t], what);
            support_case_destroy(&c);
        }
}

static const conv_shape convs[] = {
    {16, 32, 4, 14, 3, 3, 1, "aBcd8b", "ABcd8b16a", "aBcd8b", false},
    {16, 24, 3, 9, 3, 3, 2, "aBcd8b", "ABcd8b16a", "aBcd8b", false},
    {8, 16, 5, 5, 1, 1, 1, "aBcd8b", "ABcd8b16a", "aBcd8b", false},
    {3, 16, 4, 11, 7, 7, 2, "", "Abcd16a", "aBcd8b", false},
    {24, 24, 6, 10, 3, 3, 1, "aBcd8b", "Abcd8a", "aBcd8b", true},
    {3, 5, 4, 6, 3, 3, 1, "", "", "", false},
    {16, 48, 4, 14, 3, 3, 1, "aBcd16b", "ABcd16b16a", "aBcd16b", false},
    {32, 24, 3, 9, 3, 3, 2, "aBcd16b", "ABcd16b16a", "aBcd8b", false},
    {24, 32, 5, 5, 1, 1, 1, "aBcd8b", "ABcd8b16a", "aBcd16b", false},
    {3, 32, 4, 11, 7, 7, 2, "", "Abcd16a", "aBcd16b", false},
    {32, 32, 6, 10, 3, 3, 1, "aBcd16b", "Abcd16a", "aBcd16b", true},
};

enum { conv_count = sizeof(convs) / sizeof(convs[0]) };

ParameterizedTestParameters(policy_cpu, conv) {
    static int indices[conv_count];
    for (int i = 0; i < conv_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, conv_count);
}

ParameterizedTest(int *index, policy_cpu, conv) {
    for (int t = 0; t < target_count; ++t) {
        bench_case c = support_case_create();
        support_build_conv(&c, &convs[*index]);
        char what[96];
        snprintf(what, sizeof(what), "conv %d for %s", *index, targets[t]);
        check_case(&c, targets[t], what);
        support_case_destroy(&c);
        c = support_case_create();
        support_build_conv(&c, &convs[*index]);
        check_any_size(&c, targets[t], what);
        support_case_destroy(&c);
    }
}

// Lanes of the vectors that a scheduled function stores.
static int widest_store(const berth_tfn *fn) {
    int lanes = 1;
    for (uint32_t s = 1; s < fn->stmts.count; ++s) {
        const berth_stmt_node *node = &fn->stmts.data[s];
        if (node->kind != BERTH_STMT_STORE || fn->bufs.data[node->buf].role != BERTH_ROLE_OUT)
            continue;
        const berth_expr_node *value = &fn->exprs.data[node->value];
        if (fn->bufs.data[node->buf].scope == BERTH_SCOPE_PARAM && value->lanes > lanes)
            lanes = value->lanes;
    }
    return lanes;
}

// The widest vectors that a scheduled function sums in.
static int widest_sum(const berth_tfn *fn) {
    int lanes = 1;
    for (uint32_t s = 1; s < fn->stmts.count; ++s) {
        const berth_stmt_node *node = &fn->stmts.data[s];
        if (node->kind == BERTH_STMT_ALLOC && fn->bufs.data[node->buf].lanes > lanes)
            lanes = fn->bufs.data[node->buf].lanes;
    }
    return lanes;
}

// Weights in blocks of 16 fill registers of 16, though results lie in blocks of 8; stores stay
// within these.
Test(policy_cpu, sums_fill_registers_over_blocks_of_halves) {
    static const int joined[] = {0, 1, 7};
    for (size_t i = 0; i < sizeof(joined) / sizeof(joined[0]); ++i) {
        bench_case c = support_case_create();
        support_build_conv(&c, &convs[joined[i]]);
        cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, "cpu -vector_bits=512")));
        cr_expect_eq(widest_sum(c.fn), 16, "conv %d: %d lanes", joined[i], widest_sum(c.fn));
        cr_expect_eq(widest_store(c.fn), 8, "conv %d: %d lanes", joined[i], widest_store(c.fn));
        support_case_destroy(&c);
    }
}

// Vectors are as wide as the target's registers, or half of them where the channels are in blocks
// of 8.
Test(policy_cpu, lanes_are_those_of_the_target) {
    static const struct {
        const char *target;
        int conv, lanes;
    } rows[] = {{"cpu -vector_bits=512", 6, 16},  {"cpu -vector_bits=512", 0, 8},
                {"cpu -vector_bits=512", 10, 16}, {"cpu -vector_bits=256", 6, 8},
                {"cpu -vector_bits=256", 0, 8},   {"cpu -vector_bits=128", 0, 4}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        bench_case c = support_case_create();
        support_build_conv(&c, &convs[rows[i].conv]);
        berth_status status = berth_schedule_apply(c.fn, support_target(c.arena, rows[i].target));
        cr_assert_null(status);
        cr_expect_eq(widest_store(c.fn), rows[i].lanes, "%s, conv %d: %d lanes", rows[i].target,
                     rows[i].conv, widest_store(c.fn));
        support_case_destroy(&c);
    }
}
