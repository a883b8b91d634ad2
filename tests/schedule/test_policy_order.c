// What the cpu policy decides about loops, seen in the scheduled function.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "ir/text.h"
#include "tests/schedule/support.h"

static berth_tfn *parse(berth_arena *arena, const char *text) {
    berth_module *module = NULL;
    text = berth_arena_printf(arena, "module \"t\"\n\n%s\n", text);
    berth_status status = berth_module_parse(arena, text, strlen(text), "case", &module);
    cr_assert_null(status, "%s\n%s", berth_status_message(status), text);
    return berth_tfn_get(module, berth_module_find_function(module, "f"));
}

static void schedule(berth_arena *arena, berth_tfn *fn, const char *target) {
    berth_status status = berth_schedule_apply(fn, support_target(arena, target));
    cr_assert_null(status, "%s", berth_status_message(status));
}

static int widest_store(const berth_tfn *fn, berth_buf to) {
    int lanes = 1;
    for (uint32_t s = 1; s < fn->stmts.count; ++s) {
        const berth_stmt_node *node = &fn->stmts.data[s];
        if (node->kind != BERTH_STMT_STORE || node->buf != to) continue;
        if (fn->exprs.data[node->value].lanes > lanes) lanes = fn->exprs.data[node->value].lanes;
    }
    return lanes;
}

// Stride 1: columns and channels follow each other in memory, but columns decide what is padding.
Test(policy_order, padded_pools_are_vectors) {
    static const char text[] =
        "tensor @f(%x: f32[1,16,9,9]{aBcd8b} in, %y: f32[1,16,9,9]{aBcd8b} out) {\n"
        "  parallel %o in 2 { parallel %h in 9 { for %w in 9 { for %i in 8 {\n"
        "    register %m: f32[]\n    %m[] = -inf\n"
        "    for %a in 3 { for %b in 3 {\n"
        "      %m[] = max(%m[], select(%h + %a + -1 >= 0 && %h + %a + -1 < 9 &&\n"
        "                              %w + %b + -1 >= 0 && %w + %b + -1 < 9,\n"
        "        %x[0, %o * 8 + %i, %h + %a + -1, %w + %b + -1], -inf)) } }\n"
        "    %y[0, %o * 8 + %i, %h, %w] = %m[]\n  } } } }\n}";
    bench_case c = support_case_create();
    berth_tfn *fn = parse(c.arena, text);
    schedule(c.arena, fn, "cpu -vector_bits=256");
    cr_expect_eq(widest_store(fn, 1), 8);
    support_case_destroy(&c);
}

static const char *outermost(const berth_tfn *fn) {
    berth_stmt id = fn->body;
    while (fn->stmts.data[id].kind == BERTH_STMT_SEQ) id = fn->lists.data[fn->stmts.data[id].first];
    cr_assert_eq(fn->stmts.data[id].kind, BERTH_STMT_FOR);
    return berth_module_str(fn->module, fn->vars.data[fn->stmts.data[id].var].name);
}

// Products p of small matrices over 3000 rows: where the rows of all products lie together, they
// stay in the cache while the products pass; where each product has its own rows, products are
// outside.
Test(policy_order, rows_that_lie_together_are_outside) {
    static const struct { const char *layout, *outer; } rows[] = {{"{bac}", "rows"}, {"", "p"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        bench_case c = support_case_create();
        char *text = berth_arena_printf(
            c.arena,
            "tensor @f(%%x: f32[16,3000,32]%s in, %%u: f32[16,32,32]{aCb16c} in,\n"
            "    %%y: f32[16,3000,32]%s out) {\n"
            "  parallel %%p in 16 { parallel %%t in 3000 { for %%o in 32 {\n"
            "    register %%s: f32[]\n    %%s[] = 0.0\n"
            "    for %%k in 32 { %%s[] = fma(%%x[%%p, %%t, %%k], %%u[%%p, %%k, %%o], %%s[]) }\n"
            "    %%y[%%p, %%t, %%o] = %%s[]\n  } } }\n}",
            rows[i].layout, rows[i].layout);
        berth_tfn *fn = parse(c.arena, text);
        schedule(c.arena, fn, "cpu -vector_bits=512 -l2_bytes=1048576");
        cr_expect_str_eq(outermost(fn), rows[i].outer, "layout \"%s\"", rows[i].layout);
        support_case_destroy(&c);
    }
}

// A 1 x 1 convolution: where its pixels stay in the cache, each tile of channels passes over all of
// them; where they do not, all channels pass over some of them.
Test(policy_order, rows_that_do_not_stay_are_outside) {
    static const struct {
        int pixels;
        const char *outer;
    } rows[] = {{100, "columns"}, {3000, "rows"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        bench_case c = support_case_create();
        int n = rows[i].pixels;
        char *text = berth_arena_printf(
            c.arena,
            "tensor @f(%%x: f32[1,256,%d]{aBc8b} in, %%u: f32[64,256]{AB8b16a} in,\n"
            "    %%y: f32[1,64,%d]{aBc8b} out) {\n"
            "  parallel %%o in 8 { parallel %%t in %d { for %%i in 8 {\n"
            "    register %%s: f32[]\n    %%s[] = 0.0\n"
            "    for %%k in 256 { %%s[] = fma(%%x[0, %%k, %%t], %%u[%%o * 8 + %%i, %%k], %%s[]) }\n"
            "    %%y[0, %%o * 8 + %%i, %%t] = %%s[]\n  } } }\n}",
            n, n, n);
        berth_tfn *fn = parse(c.arena, text);
        schedule(c.arena, fn, "cpu -vector_bits=256 -l2_bytes=524288");
        cr_expect_str_eq(outermost(fn), rows[i].outer, "%d pixels", n);
        support_case_destroy(&c);
    }
}

// Sums in registers at once, for every use of three rows of one product of many.
static int64_t sums_of_three_rows(int64_t products, int64_t columns) {
    char text[1024];
    snprintf(
        text, sizeof(text),
        "module \"m\"\n"
        "tensor @f(%%x: f32[%ld,3,20] in, %%w: f32[%ld,20,%ld] in, %%y: f32[%ld,3,%ld] out) {\n"
        "  parallel %%b in %ld { parallel %%i in 3 { for %%j in %ld {\n"
        "    register %%acc: f32[]\n"
        "    %%acc[] = 0.0\n"
        "    for %%k in 20 { %%acc[] = fma(%%x[%%b, %%i, %%k], %%w[%%b, %%k, %%j], %%acc[]) }\n"
        "    %%y[%%b, %%i, %%j] = %%acc[]\n"
        "  } } }\n}\n",
        products, products, columns, products, columns, products, columns);
    bench_case c = support_case_parse(text);
    support_fill(&c, 3);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    const float *plain = c.buffers[2];
    status = berth_schedule_apply(
        c.fn, support_target(c.arena, "cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512"));
    cr_assert(!status, "%s", berth_status_message(status));
    status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_leq(support_difference(c.buffers[2], plain, c.element_counts[2]), 2e-5);
    int64_t sums = 0;
    for (uint32_t i = 0; i < c.fn->bufs.count; ++i) {
        const berth_buf_info *info = &c.fn->bufs.data[i];
        if (info->scope == BERTH_SCOPE_REGISTER && info->lanes == 16 && info->dims[0] > sums)
            sums = info->dims[0];
    }
    support_case_destroy(&c);
    return sums;
}

// Eight sums hide how long one takes. Loops around them give threads their work, so that columns
// need not be apart for that.
Test(policy_order, few_rows_have_more_columns) {
    cr_expect_eq(sums_of_three_rows(40, 48), 9);
    cr_expect_eq(sums_of_three_rows(40, 96), 9);
    cr_expect_eq(sums_of_three_rows(1, 96), 6);
}

// Tiles of rows that one group works through in a product of 280 rows.
static int64_t tiles_of_group(int64_t terms, int64_t columns) {
    bench_case c = support_case_create();
    support_build_matmul(&c, 280, terms, columns, "Ba16b");
    schedule(c.arena, c.fn,
             "cpu -arch=x86_64 -vector_bits=512 -l2_bytes=1048576 "
             "-features=avx2,fma,avx512f,avx512bw,avx512dq,avx512vl");
    int64_t tiles = 0;
    for (uint32_t i = 0; i < c.fn->stmts.count; ++i) {
        const berth_stmt_node *node = &c.fn->stmts.data[i];
        if (node->kind == BERTH_STMT_FOR &&
            strcmp(berth_module_str(c.module, c.fn->vars.data[node->var].name), "tile") == 0)
            berth_tfn_const_value(c.fn, node->value, &tiles);
    }
    support_case_destroy(&c);
    return tiles;
}

// The results of 14 rows of 3200 columns are 179,200 bytes, and a quarter of the cache is 262,144. Of
// long sums, or where all rows fit, the results do not matter.
Test(policy_order, results_of_short_sums_stay_in_the_cache) {
    cr_expect_eq(tiles_of_group(10, 3200), 1);
    cr_expect_gt(tiles_of_group(33, 3200), 1);
    cr_expect_gt(tiles_of_group(10, 480), 1);
}

// Devices with work-groups and nothing beside them have the same schedules, whatever interface they are behind.
Test(policy_order, gpus_have_one_policy) {
    static const char *const kinds[] = {"opencl -arch=gfx900", "vulkan -arch=gfx900",
                                        "cuda -arch=sm_60"};
    static const struct {
        const char *name, *text;
        int kinds;  // the first ones; CUDA's threads have more results of a product each
    } cases[] = {
        {"elements",
         "tensor @f(%x: f32[64,100,8] in, %y: f32[64,100,8] out) {\n"
         "  parallel %i in 64 { for %j in 100 { for %k in 8 {\n"
         "    %y[%i, %j, %k] = exp(%x[%i, %j, %k]) } } }\n}",
         3},
        {"rows",
         "tensor @f(%x: f32[64,2000] in, %y: f32[64] out) {\n"
         "  parallel %i in 64 {\n    register %s: f32[]\n    %s[] = 0.0\n"
         "    for %k in 2000 { %s[] = %s[] + %x[%i, %k] }\n    %y[%i] = %s[] }\n}",
         3},
        {"product",
         "tensor @f(%x: f32[128,256] in, %w: f32[256,192] in, %y: f32[128,192] out) {\n"
         "  parallel %i in 128 { parallel %j in 192 {\n    register %s: f32[]\n    %s[] = 0.0\n"
         "    for %k in 256 { %s[] = fma(%x[%i, %k], %w[%k, %j], %s[]) }\n"
         "    %y[%i, %j] = %s[] } }\n}",
         2}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        bench_case c = support_case_create();
        const char *first = NULL;
        for (int k = 0; k < cases[i].kinds; ++k) {
            berth_tfn *fn = parse(c.arena, cases[i].text);
            schedule(c.arena, fn,
                     berth_arena_printf(c.arena,
                                        "%s -compute_units=16 -max_group_size=256 "
                                        "-local_memory_bytes=32768 -host=cpu",
                                        kinds[k]));
            berth_strbuf text = berth_strbuf_make(c.arena);
            berth_module_print(fn->module, &text);
            if (!first)
                first = berth_strbuf_text(&text);
            else
                cr_expect_str_eq(berth_strbuf_text(&text), first, "%s on %s", cases[i].name,
                                 kinds[k]);
        }
        support_case_destroy(&c);
    }
}
