// Loops along rows in vectors: under the interpreter they compute what the plain loops compute, and
// how many vectors they sum in is what the length of the row allows.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/opencl_run.h"

// Rows of `height` x `width`, each brought to one number: from `first`, by `next`.
static bench_case rows(int height, int width, const char *first, const char *next) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[3,%d,%d] in, %%y: f32[3] out) {\n"
             "  parallel %%i in 3 {\n"
             "    register %%acc: f32[]\n"
             "    %%acc[] = %s\n"
             "    for %%h in %d { for %%w in %d {\n"
             "      %%acc[] = %s\n"
             "    } }\n"
             "    %%y[%%i] = %%acc[]\n"
             "  }\n}\n",
             height, width, first, height, width, next);
    return support_case_parse(text);
}

// Registers of so many lanes that a function makes.
static int64_t registers_of(const berth_tfn *fn, berth_stmt id, int lanes) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (node->kind == BERTH_STMT_ALLOC) {
        const berth_buf_info *info = &fn->bufs.data[node->buf];
        return info->scope == BERTH_SCOPE_REGISTER && info->lanes == lanes ? info->dims[0] : 0;
    }
    if (node->kind == BERTH_STMT_FOR) return registers_of(fn, node->body, lanes);
    int64_t all = 0;
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        all += registers_of(fn, fn->lists.data[node->first + i], lanes);
    return all;
}

// Vectors of so many lanes that a case's rows are taken in once it is scheduled for `target`; 0 = none.
static int64_t vectors_in(bench_case c, const char *target, int lanes) {
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    float *plain = c.buffers[1];
    status = berth_schedule_apply(c.fn, support_target(c.arena, target));
    cr_assert(!status, "%s", berth_status_message(status));
    bool on_device = strncmp(target, "opencl", 6) == 0 && opencl_is_here();
    for (int run = 0; run <= on_device; ++run) {
        status = run ? opencl_run(&c) : support_interpret(&c);
        cr_assert(!status, "%s", berth_status_message(status));
        double difference = support_difference(c.buffers[1], plain, 3);
        cr_expect(difference < 1e-5, "%s, run %d, differs by %g", target, run, difference);
    }
    int64_t vectors = registers_of(c.fn, c.fn->body, lanes);
    support_case_destroy(&c);
    return vectors;
}

// The same of sums of rows of `height` x `width`.
static int64_t vectors_on(const char *target, int lanes, int height, int width) {
    bench_case c = rows(height, width, "0:f32", "%acc[] + %x[%i, %h, %w]");
    support_fill(&c, 5);
    return vectors_in(c, target, lanes);
}

static int64_t vectors_of(int height, int width) {
    return vectors_on("cpu -vector_bits=256", 8, height, width);
}

// Registers of eight floats: rows shorter than one of them stay as they are, those of eight and
// more are summed in four at once. 7 x 9 = 63 floats are shorter than 64.
Test(row_lanes, rows_of_two_dimensions) {
    cr_expect_eq(vectors_of(1, 7), 0);
    cr_expect_eq(vectors_of(1, 8), 1);
    cr_expect_eq(vectors_of(1, 15), 1);
    cr_expect_eq(vectors_of(1, 16), 1);
    cr_expect_eq(vectors_of(2, 3), 0);
    cr_expect_eq(vectors_of(5, 3), 1);
    cr_expect_eq(vectors_of(6, 3), 1);
    cr_expect_eq(vectors_of(7, 9), 1);
    cr_expect_eq(vectors_of(13, 17), 4);
    cr_expect_eq(vectors_of(8, 8), 4);
}

// Work-items of processor cores have registers as wide as the cpu's kernels use.
Test(row_lanes, rows_of_work_items_on_cores) {
    cr_expect_eq(vectors_on("opencl -subgroup_size=1 -vector_bits=512", 16, 8, 16), 4);
    cr_expect_eq(vectors_on("opencl -subgroup_size=1 -vector_bits=256", 8, 7, 9), 1);
    cr_expect_eq(vectors_on("opencl -subgroup_size=1 -vector_bits=256", 16, 8, 16), 0);
    cr_expect_eq(vectors_on("opencl -subgroup_size=32 -vector_bits=512", 16, 8, 16), 0);
}

// What stands twice in the text of a choice is loaded once: both sides may be computed in every lane. A
// window's maximum asks so whether what it takes is NaN, which it leaves out. The third of these has a
// side that loads what its condition has not: that may lie outside of its buffer.
// Rows of halves whose values need a sum are stored in vectors, too.
Test(row_lanes, halves_are_stored_in_vectors) {
    bench_case c = support_case_parse("module \"m\"\n"
                                      "tensor @f(%x: f32[3,64] in, %y: f16[3,64] out) {\n"
                                      "  parallel %i in 3 {\n"
                                      "    register %acc: f32[]\n"
                                      "    %acc[] = 0.0\n"
                                      "    for %j in 64 { %acc[] = %acc[] + %x[%i, %j] }\n"
                                      "    for %j in 64 { %y[%i, %j] = f16(%x[%i, %j] * %acc[]) }\n"
                                      "  }\n}\n");
    support_fill(&c, 11);
    cr_assert_null(support_interpret(&c));
    const uint16_t *plain = c.buffers[1];
    const char *target = "cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512";
    cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, target)));
    berth_codegen_result result;
    cr_assert_null(berth_codegen_c.print(c.fn, NULL, "k", c.arena, &result));
    cr_expect_not_null(strstr(strstr(result.source, "void k_0("), "berth_store_f16x16"));
    cr_assert_null(support_interpret(&c));
    const uint16_t *scheduled = c.buffers[1];
    for (int i = 0; i < 3 * 64; ++i)  // the sum in another order: at most the next half
        cr_expect(plain[i] - scheduled[i] <= 1 && scheduled[i] - plain[i] <= 1, "element %d", i);
    support_case_destroy(&c);
}

Test(row_lanes, choices_whose_sides_are_loaded_anyway) {
    const char *target = "cpu -vector_bits=256";
    const char *next[] = {
        "max(%acc[], select(is_nan(%x[%i, %h, %w] * 2.5:f32), -inf:f32, %x[%i, %h, %w] * 2.5:f32))",
        "%acc[] + select(%x[%i, %h, %w] < 0:f32, exp(%x[%i, %h, %w]) - 1:f32, %x[%i, %h, %w])",
        "%acc[] + select(%x[%i, 0, 0] * %x[%i, %h, %w] < 0:f32, 1:f32, %x[0, %h, %w])",
        "%acc[] + select(i32(%x[%i, %h, %w]) < 0:i32, 1:f32, %x[0, %h, %w])"};  // may say what there is
    for (int i = 0; i < 4; ++i) {
        bench_case c = rows(8, 9, i == 0 ? "-inf:f32" : "0:f32", next[i]);
        support_fill(&c, 5);
        if (i == 0) ((float *)c.buffers[0])[7] = NAN;
        int64_t vectors = vectors_in(c, target, 8);
        cr_expect_eq(vectors, i < 3 ? 4 : 0, "form %d: %d vectors", i, (int)vectors);
    }
}

// Serial loops around the statement that makes the first register of eight floats; -1 = none does.
static int loops_around_parts(const berth_tfn *fn, berth_stmt id, int depth) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (node->kind == BERTH_STMT_ALLOC) return fn->bufs.data[node->buf].lanes == 8 ? depth : -1;
    if (node->kind == BERTH_STMT_FOR)
        return loops_around_parts(fn, node->body, depth + (node->loop_kind == BERTH_LOOP_SERIAL));
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i) {
        int found = loops_around_parts(fn, fn->lists.data[node->first + i], depth);
        if (found >= 0) return found;
    }
    return -1;
}

// `update` of %acc by pieces of a row that lie apart: lanes are put together once, after all of them.
static void expect_parts_outside(const char *first, const char *update, int width) {
    char text[1024];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[5,3,%d] in, %%y: f32[3] out) {\n"
             "  parallel %%i in 3 {\n"
             "    register %%acc: f32[]\n"
             "    %%acc[] = %s\n"
             "    for %%h in 5 { for %%w in %d { %%acc[] = %s } }\n"
             "    %%y[%%i] = %%acc[]\n"
             "  }\n}\n",
             width, first, width, update);
    bench_case c = support_case_parse(text);
    support_fill(&c, 5);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    float *plain = c.buffers[1];
    status = berth_schedule_apply(c.fn, support_target(c.arena, "cpu -vector_bits=256"));
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_eq(loops_around_parts(c.fn, c.fn->body, 0), 0, "%s of %d", update, width);
    status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_leq(support_difference(c.buffers[1], plain, 3), 1e-5, "%s of %d", update, width);
    status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_leq(support_difference(c.buffers[1], plain, 3), 1e-5, "%s of %d", update, width);
    support_case_destroy(&c);
}

Test(row_lanes, pieces_that_lie_apart) {
    static const int widths[] = {8, 16, 31, 64, 79, 100, 203};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); ++i) {
        expect_parts_outside("0.5:f32", "%acc[] + %x[%h, %i, %w]", widths[i]);
        expect_parts_outside("0.5:f32", "max(%acc[], %x[%h, %i, %w])", widths[i]);
        expect_parts_outside("-inf:f32", "max(%acc[], %x[%h, %i, %w])", widths[i]);
        expect_parts_outside("0:f32", "fma(%x[%h, %i, %w], %x[%h, %i, %w], %acc[])", widths[i]);
    }
}
