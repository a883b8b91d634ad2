// Lanes along the last loop of nests whose bodies have loops: under the interpreter they compute
// what the plain loops compute, borders included, and the inner loops work on vectors.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/schedule/support.h"

// Stores of vectors.
static int vectors_of(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    int count = 0;
    if (!id) return 0;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        count += vectors_of(fn, fn->lists.data[node->first + i]);
    if (node->kind == BERTH_STMT_IF) count += vectors_of(fn, node->other);
    if (node->kind == BERTH_STMT_IF || node->kind == BERTH_STMT_FOR)
        count += vectors_of(fn, node->body);
    return count + (node->kind == BERTH_STMT_STORE && fn->exprs.data[node->value].lanes > 1);
}

// The scheduled function against the plain one, by interpreter and compiled for this machine.
static int check(const char *text, int64_t outputs, const char *target) {
    bench_case c = support_case_parse(text);
    support_fill(&c, 5);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    float *plain = malloc((size_t)outputs * sizeof(*plain));
    cr_assert_not_null(plain);
    memcpy(plain, c.buffers[1], (size_t)outputs * sizeof(*plain));
    status = berth_schedule_apply(c.fn, support_target(c.arena, target));
    cr_assert(!status, "%s", berth_status_message(status));
    status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    double difference = support_difference(c.buffers[1], plain, outputs);
    cr_expect(difference < 1e-5, "%s differs by %g", text, difference);
    int vectors = vectors_of(c.fn, c.fn->body);
    support_case_destroy(&c);

    c = support_case_parse(text);
    support_fill(&c, 5);
    const berth_target *local = support_target(c.arena, "local");
    status = berth_schedule_apply(c.fn, local);
    cr_assert(!status, "%s", berth_status_message(status));
    status = support_run_compiled(&c, local, true);
    cr_assert(!status, "%s", berth_status_message(status));
    difference = support_difference(c.buffers[1], plain, outputs);
    cr_expect(difference < 1e-5, "%s, compiled, differs by %g", text, difference);
    support_case_destroy(&c);
    free(plain);
    return vectors;
}

// y[i, j] = exp(x[i, j]) / sum over i of exp(x[i, j]), its exponentials kept in a line.
static int softmax_along_first(int rows, int width) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[%d,%d] in, %%y: f32[%d,%d] out) {\n"
             "  parallel %%j in %d {\n"
             "    register %%sum: f32[]\n"
             "    %%sum[] = 0:f32\n"
             "    private %%line: f32[%d]\n"
             "    for %%i in %d {\n"
             "      %%line[%%i] = exp(%%x[%%i, %%j])\n"
             "      %%sum[] = %%sum[] + %%line[%%i]\n"
             "    }\n"
             "    for %%k in %d { %%y[%%k, %%j] = %%line[%%k] / %%sum[] }\n"
             "  }\n}\n",
             rows, width, rows, width, width, rows, rows, rows);
    return check(text, (int64_t)rows * width, "cpu -vector_bits=256");
}

Test(lines, softmax_along_another_axis) {
    cr_expect_gt(softmax_along_first(5, 8), 0);
    cr_expect_gt(softmax_along_first(3, 31), 0, "whole vectors, a half one, and three elements");
    cr_expect_gt(softmax_along_first(3, 4), 0, "a half vector is all there is");
    cr_expect_eq(softmax_along_first(3, 3), 0, "no vector");
}

// The sum of `taps` elements around each one of a row, zeros outside; of three rows.
static int window_of(int taps, int width) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[3,%d] in, %%y: f32[3,%d] out) {\n"
             "  parallel %%i in 3 { parallel %%j in %d {\n"
             "    register %%sum: f32[]\n"
             "    %%sum[] = 0:f32\n"
             "    for %%t in %d {\n"
             "      %%sum[] = %%sum[] + select(%%j + %%t + -%d >= 0 && %%j + %%t + -%d < %d, "
             "%%x[%%i, %%j + %%t + -%d], 0:f32)\n"
             "    }\n"
             "    %%y[%%i, %%j] = %%sum[]\n"
             "  } }\n}\n",
             width, width, width, taps, taps / 2, taps / 2, width, taps / 2);
    return check(text, (int64_t)3 * width, "cpu -vector_bits=256");
}

// What lies between the borders is in vectors: 40 - 2 * 3 = 34 = 4 * 8 + 2 of seven taps.
Test(lines, windows_with_borders) {
    cr_expect_gt(window_of(7, 40), 0);
    cr_expect_gt(window_of(3, 10), 0);
    cr_expect_eq(window_of(7, 9), 0, "three results lie between the borders");
}

// A window as a product whose weights are only known when it runs: where several rows of results
// read the same window, it is copied without its padding's questions, and the sums are vectors.
// A window of three over `width` results of four channels, by weights that are given at the run.
static void product_of_windows(char *text, size_t size, int width) {
    snprintf(text, size,
             "module \"m\"\n"
             "tensor @f(%%x: f32[4,%d] in, %%y: f32[6,%d] out, %%w: f32[6,4,3] in) {\n"
             "  parallel %%o in 6 { parallel %%j in %d {\n"
             "    register %%sum: f32[]\n"
             "    %%sum[] = 0:f32\n"
             "    for %%c in 4 { for %%t in 3 {\n"
             "      %%sum[] = fma(select(%%j + %%t + -1 >= 0 && %%j + %%t + -1 < %d, "
             "%%x[%%c, %%j + %%t + -1], 0:f32), %%w[%%o, %%c, %%t], %%sum[])\n"
             "    } }\n"
             "    %%y[%%o, %%j] = %%sum[]\n"
             "  } }\n}\n",
             width, width, width, width);
}

static int copies_of_windows(int width) {
    char text[1024];
    product_of_windows(text, sizeof(text), width);
    bench_case c = support_case_parse(text);
    berth_status status = berth_schedule_apply(c.fn, support_target(c.arena, "cpu"));
    cr_assert(!status, "%s", berth_status_message(status));
    int copies = 0;
    for (uint32_t b = 0; b < c.fn->bufs.count; ++b)
        copies += c.fn->bufs.data[b].scope == BERTH_SCOPE_WORKSPACE;
    support_case_destroy(&c);
    return copies;
}

// A copy is 4 * 3 rows of floats: 64 MiB / 48 bytes are 1,398,101 results.
Test(lines, products_of_windows) {
    char text[1024];
    product_of_windows(text, sizeof(text), 40);
    cr_expect_gt(check(text, (int64_t)6 * 40, "cpu -vector_bits=256"), 0);
    cr_expect_eq(copies_of_windows(40), 1);
    cr_expect_eq(copies_of_windows(1398101), 1);
    cr_expect_eq(copies_of_windows(1398102), 0, "larger than what a window may take");
}

// Rows divided by their sum along another axis, or `otherwise` where `condition` says so.
static int quotients(const char *condition) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[5,24] in, %%y: f32[5,24] out, %%n: i32[24] in) {\n"
             "  parallel %%j in 24 {\n"
             "    register %%sum: f32[]\n"
             "    %%sum[] = 0:f32\n"
             "    for %%i in 5 { %%sum[] = %%sum[] + abs(%%x[%%i, %%j]) }\n"
             "    for %%k in 5 { %%y[%%k, %%j] = select(%s, 0:f32, %%x[%%k, %%j] / %%sum[]) }\n"
             "  }\n}\n",
             condition);
    return check(text, (int64_t)5 * 24, "cpu -vector_bits=256");
}

// What a number decides guards no memory, so that both sides may be read; integers may say what there is.
Test(lines, choices_by_numbers) {
    cr_expect_gt(quotients("%sum[] == 0:f32"), 0);
    cr_expect_gt(quotients("is_inf(%sum[])"), 0);
    cr_expect_eq(quotients("%n[%j] > 3:i32"), 0);
}

// 35 channels in blocks of 16: the last block alone asks which of them are there, so that the other two are whole
// vectors. A block is summed twice, so that it is no tile of registers.
Test(lines, blocks_of_which_the_last_is_not_full) {
    static const char text[] =
        "module \"m\"\n"
        "tensor @f(%x: f32[5,4,35] in, %y: f32[4,48] out) {\n"
        "  parallel %g in 3 { parallel %j in 4 { parallel %c in 16 {\n"
        "    register %sum: f32[]\n"
        "    %sum[] = 0:f32\n"
        "    private %line: f32[5]\n"
        "    for %i in 5 {\n"
        "      %line[%i] = exp(select(%g * 16 + %c < 35, %x[%i, %j, %g * 16 + %c], 0.0))\n"
        "      %sum[] = %sum[] + %line[%i]\n"
        "    }\n"
        "    for %k in 5 { %sum[] = %sum[] + %line[%k] / 3.0 }\n"
        "    %y[%j, %g * 16 + %c] = %sum[]\n"
        "  } } }\n}\n";
    cr_expect_gt(check(text, 4 * 48, "cpu -vector_bits=256"), 0);
}

// Channels in blocks of 8 at places that elements of x give, with weights that these give, too.
static int at_places(int blocks) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[%d,9,8] in, %%y: f32[%d,4,8] out) {\n"
             "  parallel %%c in %d { parallel %%i in 4 { parallel %%l in 8 {\n"
             "    register %%sum: f32[]\n"
             "    %%sum[] = 0:f32\n"
             "    for %%s in 3 {\n"
             "      %%sum[] = fma(%%x[%%c, max(0, min(index(floor(abs(%%x[0, %%i, 0] * 4.0 + "
             "f32(%%s)))), 8)), %%l], max(0.0, 1.0 - abs(%%x[0, %%i, 1] * 0.5 - f32(%%s))), "
             "fma(%%x[%%c, max(0, min(index(ceil(abs(%%x[0, %%i, 2] * 3.0 - f32(%%s)))), 8)), "
             "%%l], %%x[0, %%i, 3] * 2.0, %%sum[]))\n"
             "    }\n"
             "    %%y[%%c, %%i, %%l] = select(%%x[0, %%i, 4] < 0.5, %%sum[], 0:f32)\n"
             "  } } }\n}\n",
             blocks, blocks, blocks);
    return check(text, (int64_t)blocks * 4 * 8, "cpu -vector_bits=256");
}

// A few blocks go through the places together, which are computed once for all of them: three stores of vectors for each.
Test(lines, blocks_share_places) {
    cr_expect_eq(at_places(1), 3);
    cr_expect_eq(at_places(4), 3 * 4);
    cr_expect_eq(at_places(6), 3 * 3, "two times three");
    cr_expect_eq(at_places(5), 3 * 3 + 3 * 2, "three, and two after them");
}

// Stores before and behind a loop inside the loop of the places, which share one of them.
static int around_a_loop(int blocks) {
    char text[1280];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[%d,9,8] in, %%y: f32[%d,4,8] out) {\n"
             "  parallel %%c in %d { parallel %%i in 4 { parallel %%l in 8 {\n"
             "    register %%sum: f32[]\n    register %%one: f32[]\n"
             "    %%sum[] = 0:f32\n"
             "    for %%s in 3 {\n"
             "      %%one[] = %%x[%%c, max(0, min(index(floor(abs(%%x[0, %%i, 0] * 4.0 + "
             "f32(%%s)))), 8)), %%l] * (%%x[0, %%i, 1] * 0.5 - f32(%%s))\n"
             "      for %%t in 2 {\n"
             "        %%sum[] = fma(%%one[], abs(%%x[0, %%i, 2] * 3.0 - f32(%%t)), %%sum[])\n"
             "      }\n"
             "      %%sum[] = fma(%%x[%%c, max(0, min(index(floor(abs(%%x[0, %%i, 0] * 4.0 + "
             "f32(%%s)))), 8)), %%l], max(0.0, 1.0 - abs(%%x[0, %%i, 3] * 0.5 - f32(%%s))), "
             "%%sum[])\n"
             "    }\n"
             "    %%y[%%c, %%i, %%l] = %%sum[]\n"
             "  } } }\n}\n",
             blocks, blocks, blocks);
    return check(text, (int64_t)blocks * 4 * 8, "cpu -vector_bits=256");
}

Test(lines, places_are_known_behind_a_loop_inside) {
    cr_expect_eq(around_a_loop(1), 5);
    cr_expect_eq(around_a_loop(4), 5 * 4);
}
