// Transpositions in registers: under the interpreter and compiled they give the elements that the
// plain loops give, whatever is left over of the blocks, and registers are what they go through.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

static const char *const targets[] = {"cpu -features=avx2,avx512f,avx512vl,fma -vector_bits=512",
                                      "cpu -features=avx2,fma -vector_bits=256"};

enum { target_count = sizeof(targets) / sizeof(targets[0]) };

typedef struct form {
    const char *params;  // with D0, D1, D2, D3 for the extents of the result
    const char *value;   // of y[i, j, k, l]
    int64_t extents[4];
    const char *layout;  // of the result
    bool in_registers;
} form;

static const form forms[] = {
    {"%x: f32[D3,D2] in", "%x[%l, %k]", {1, 1, 16, 16}, "", true},
    {"%x: f32[D3,D2] in", "%x[%l, %k]", {1, 1, 8, 8}, "", true},
    {"%x: f32[D3,D2] in", "%x[%l, %k]", {1, 1, 17, 33}, "", true},
    {"%x: f32[D3,D2] in", "%x[%l, %k]", {1, 1, 100, 9}, "", true},
    {"%x: f32[D3,D2] in", "%x[%l, %k]", {1, 1, 9, 150}, "", true},
    {"%x: f32[D3,D2] in", "%x[%l, %k]", {1, 1, 73, 31}, "", true},
    {"%x: f32[D3,D2] in", "%x[%l, %k]", {1, 1, 50, 7}, "", false},
    {"%x: f32[D2,D3] in", "%x[%k, %l]", {1, 1, 24, 40}, "", false},
    // to channels last, and back; rows of two dimensions
    {"%x: f32[D0,D3,D1,D2] in", "%x[%i, %l, %j, %k]", {2, 5, 7, 19}, "", true},
    {"%x: f32[D0,D2,D3,D1] in", "%x[%i, %k, %l, %j]", {2, 21, 5, 9}, "", true},
    // every dimension moves
    {"%x: f32[D3,D2,D1,D0] in", "%x[%l, %k, %j, %i]", {11, 3, 5, 18}, "", true},
    // with operands that go along the result, or nowhere
    {"%x: f32[D3,D2] in, %a: f32[D2,D3] in, %b: f32[D3] in",
     "max(fma(%x[%l, %k], %b[%l], %a[%k, %l]), 0.0)",
     {1, 1, 20, 43},
     "",
     true},
    {"%x: f32[D3,D2] in, %a: f32[D2] in", "%x[%l, %k] * %a[%k]", {1, 1, 20, 43}, "", true},
    // two of them, or one that is addressed by data: left alone
    {"%x: f32[D3,D2] in, %a: f32[D3,D2] in", "%x[%l, %k] - %a[%l, %k]", {1, 1, 16, 16}, "", false},
    // into blocks of channels
    {"%x: f32[D0,D1,D2,D3] in", "%x[%i, %j, %k, %l]", {1, 32, 5, 9}, "aBcd16b", true},
    {"%x: f32[D0,D1,D2,D3] in", "%x[%i, %j, %k, %l]", {2, 16, 3, 11}, "aBcd8b", true},
    // with rows and columns of zeros around, which read nothing of the operand
    {"%x: f32[D0,D1,3,D3] in",
     "select(%k + -1 >= 0 && %k + -1 < 3, %x[%i, %j, %k + -1, %l], 0.0)",
     {1, 32, 5, 9},
     "aBcd16b",
     true},
    {"%x: f32[D0,D1,3,20] in",
     "select(%k + -1 >= 0 && %k + -1 < 3 && %l + -2 >= 0 && %l + -2 < 20, %x[%i, %j, %k + -1, %l + "
     "-2], 0.0)",
     {2, 16, 4, 23},
     "aBcd16b",
     true},
    // and of which the last block has not all channels
    {"%x: f32[D0,28,D2,D3] in",
     "select(%j < 28, %x[%i, %j, %k, %l], 0.0)",
     {1, 28, 5, 9},
     "aBcd16b",
     true},
    {"%x: f32[D0,37,3,20] in",
     "select(%j < 37, select(%k + -1 >= 0 && %k + -1 < 3 && %l + -2 >= 0 && %l + -2 < 20, "
     "%x[%i, %j, %k + -1, %l + -2], 0.0), 0.0)",
     {2, 37, 4, 23},
     "aBcd16b",
     true},
    {"%x: f32[D0,13,D2,D3] in",
     "select(%j < 13, %x[%i, %j, %k, %l], 0.0)",
     {2, 13, 3, 8},
     "aBcd8b",
     true},
    // every element twice, and what is no such copy
    {"%x: f32[D0,D1,D2,20] in", "%x[%i, %j, %k, %l / 2]", {2, 3, 5, 40}, "", true},
    {"%x: f32[D0,D1,4,39] in", "%x[%i, %j, %k / 2, %l / 2]", {1, 3, 8, 78}, "", true},
    {"%x: f32[D0,D1,D2,9] in", "%x[%i, %j, %k, %l / 2]", {1, 1, 5, 18}, "", true},
    {"%x: f32[D0,D1,D2,14] in", "%x[%i, %j, %k, %l / 3]", {1, 1, 5, 42}, "", false},
    {"%x: f32[D0,D1,D2,21] in", "%x[%i, %j, %k, (%l + 1) / 2]", {1, 1, 5, 40}, "", false},
    // out of blocks of channels
    {"%x: f32[D0,D1,D2,D3]{aBcd16b} in", "%x[%i, %j, %k, %l]", {1, 32, 5, 9}, "", true},
    {"%x: f32[D0,D1,D2,D3]{aBcd8b} in", "%x[%i, %j, %k, %l]", {2, 24, 3, 11}, "", true},
    // of which the last one is not full, also by far; a last channel alone; no whole block
    {"%x: f32[D0,D1,D2,D3]{aBcd16b} in", "%x[%i, %j, %k, %l]", {1, 28, 5, 9}, "", true},
    {"%x: f32[D0,D1,D2,D3]{aBcd16b} in", "%x[%i, %j, %k, %l]", {3, 45, 7, 9}, "", true},
    {"%x: f32[D0,D1,D2,D3]{aBcd16b} in", "max(%x[%i, %j, %k, %l], 0.0)", {2, 33, 4, 8}, "", true},
    {"%x: f32[D0,D1,D2,D3]{aBcd16b} in", "%x[%i, %j, %k, %l]", {2, 3, 4, 8}, "", true},
    {"%x: f32[D0,D1,D2,D3]{aBcd8b} in", "%x[%i, %j, %k, %l]", {2, 21, 3, 11}, "", true},
    // that are converted: what comes as another type, and what becomes one
    {"%x: f16[D3,D2] in", "f32(%x[%l, %k])", {1, 1, 20, 43}, "", true},
    {"%x: f16[D0,D1,3,D3] in",
     "select(%k + -1 >= 0 && %k + -1 < 3, f32(%x[%i, %j, %k + -1, %l]), 0.0)",
     {1, 32, 5, 9},
     "aBcd16b",
     true},
    {"%x: u8[D3,D2] in, %a: f32[D2] in",
     "(f32(%x[%l, %k]) - 3.0) * %a[%k]",
     {1, 1, 17, 33},
     "",
     true},
    {"%x: f32[D3,D2] in", "u8(round(%x[%l, %k] * 100.0) + 120.0)", {1, 1, 17, 33}, "", true},
    {"%x: f32[D0,D1,D2,D3] in",
     "i8(round(%x[%i, %j, %k, %l] * 64.0))",
     {1, 32, 5, 9},
     "aBcd16b",
     true},
    {"%x: f32[D3,D2] in", "f16(%x[%l, %k])", {1, 1, 20, 43}, "", true},
    {"%x: u8[D3,D2] in", "u8(round(f32(%x[%l, %k]) * 0.5) + 7.0)", {1, 1, 20, 43}, "", true},
    // not where integers are computed with
    {"%x: u8[D3,D2] in", "f32(i32(%x[%l, %k]) * 3:i32)", {1, 1, 20, 43}, "", false},
};

enum { form_count = sizeof(forms) / sizeof(forms[0]) };

static void add(char *out, size_t size, const char *text, const form *f) {
    size_t n = strlen(out);
    for (; *text && n + 24 < size; ++text) {
        if (text[0] == 'D' && text[1] >= '0' && text[1] <= '3')
            n += (size_t)snprintf(out + n, size - n, "%ld", f->extents[*++text - '0']);
        else
            out[n++] = *text;
    }
    out[n] = 0;
}

static const char *type_of_result(const form *f) {
    static const char *const types[] = {"u8", "i8", "f16"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i)
        if (strncmp(f->value, types[i], strlen(types[i])) == 0) return types[i];
    return "f32";
}

// A result in blocks has its loops in the order of its storage, as lowering has them.
static bench_case build(const form *f) {
    char text[2048] = "module \"m\"\ntensor @f(";
    bool blocked = f->layout[0] != 0;
    int64_t block = !blocked ? 1 : strstr(f->layout, "16") ? 16 : 8;
    add(text, sizeof(text), f->params, f);
    snprintf(text + strlen(text), 64, ", %%y: %s", type_of_result(f));
    add(text, sizeof(text), "[D0,D1,D2,D3]", f);
    if (blocked) snprintf(text + strlen(text), 64, "{%s}", f->layout);
    char channels[64] = "%j in D1";
    if (blocked)
        snprintf(channels, sizeof(channels), "%%jo in %ld", (f->extents[1] + block - 1) / block);
    add(text, sizeof(text), " out) {\n  parallel %i in D0 { parallel ", f);
    add(text, sizeof(text), channels, f);
    add(text, sizeof(text), " { parallel %k in D2 { parallel %l in D3 {\n", f);
    if (blocked) snprintf(text + strlen(text), 64, "parallel %%ji in %ld {\n", block);
    char index[64] = "%j";
    if (blocked) snprintf(index, sizeof(index), "%%jo * %ld + %%ji", block);
    char store[512] = "%y[%i, %j, %k, %l] = ";
    add(store, sizeof(store), f->value, f);
    for (const char *at = store; *at; ++at) {
        size_t n = strlen(text);
        bool is_j = at[0] == '%' && at[1] == 'j';
        snprintf(text + n, sizeof(text) - n, is_j ? "%s" : "%.1s", is_j ? index : at);
        at += is_j;
    }
    strcat(text, blocked ? "\n} } } } } }\n" : "\n} } } } }\n");
    return support_case_parse(text);
}

// Blocks of computed values are shuffles; of values that are only moved, two loops that the printer has a function for.
static bool has_blocks(const berth_tfn *fn) {
    for (uint32_t i = 1; i < fn->exprs.count; ++i)
        if (fn->exprs.data[i].kind == BERTH_EXPR_INTRINSIC) return true;
    for (uint32_t i = 1; i < fn->stmts.count; ++i) {
        const berth_stmt_node *outer = &fn->stmts.data[i];
        if (outer->kind != BERTH_STMT_FOR || outer->loop_kind != BERTH_LOOP_UNROLL) continue;
        const berth_stmt_node *inner = &fn->stmts.data[outer->body];
        if (inner->kind == BERTH_STMT_FOR && inner->loop_kind == BERTH_LOOP_UNROLL) return true;
    }
    return false;
}

// The largest difference of results; 1 where those of other types than f32 differ at all.
static double difference(const bench_case *c, berth_buf y, const void *a, const void *b) {
    berth_dtype dtype = c->fn->bufs.data[y].dtype;
    if (dtype == BERTH_DTYPE_F32) return support_difference(a, b, c->element_counts[y]);
    return memcmp(a, b, support_buffer_bytes(c, y)) == 0 ? 0 : 1;
}

ParameterizedTestParameters(transpose, blocks_in_registers) {
    static int indices[form_count * target_count];
    for (int i = 0; i < form_count * target_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, form_count *target_count);
}

ParameterizedTest(int *index, transpose, blocks_in_registers) {
    const form *f = &forms[*index / target_count];
    const char *target = targets[*index % target_count];
    bench_case c = build(f);
    berth_buf y = c.fn->param_count - 1;
    support_fill(&c, 11);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s: %s", f->value, berth_status_message(status));
    const void *plain = c.buffers[y];
    status = berth_schedule_apply(c.fn, support_target(c.arena, target));
    cr_assert(!status, "%s: %s", f->value, berth_status_message(status));
    cr_expect_eq(has_blocks(c.fn), f->in_registers, "%s of %ld x %ld", f->value, f->extents[2],
                 f->extents[3]);
    status = support_interpret(&c);
    cr_assert(!status, "%s: %s", f->value, berth_status_message(status));
    cr_expect_eq(difference(&c, y, c.buffers[y], plain), 0, "%s: interpreted for %s", f->value,
                 target);
    status = support_run_compiled(&c, support_target(c.arena, "cpu"), true);
    cr_assert(!status, "%s: %s", f->value, berth_status_message(status));
    cr_expect_leq(difference(&c, y, c.buffers[y], plain), 1e-6, "%s: compiled for %s", f->value,
                  target);
    support_case_destroy(&c);
}

// Blocks begin before the end of what is left, and compute some results again: not where these lie over an operand.
Test(transpose, results_over_an_operand) {
    static const int64_t extents[][2] = {{29, 23}, {40, 21}, {23, 40}};
    for (int t = 0; t < target_count; ++t)
        for (size_t i = 0; i < sizeof(extents) / sizeof(extents[0]); ++i) {
            form f = {"%x: f32[D3,D2] in, %a: f32[D2,D3] in",
                      "%x[%l, %k] * %a[%k, %l]",
                      {1, 1},
                      "",
                      true};
            memcpy(f.extents + 2, extents[i], sizeof(extents[i]));
            bench_case c = build(&f);
            const berth_buf a = 1, y = 2;
            support_fill(&c, 7);
            cr_assert_null(support_interpret(&c));
            size_t size_bytes = (size_t)c.element_counts[y] * sizeof(float);
            float *plain = berth_arena_new_array(c.arena, float, c.element_counts[y]);
            memcpy(plain, c.buffers[y], size_bytes);
            c.fn->bufs.data[a].may_alias = c.fn->bufs.data[y].may_alias = true;
            cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, targets[t])));
            cr_expect(has_blocks(c.fn));
            void *own = c.buffers[y];
            c.buffers[y] = c.buffers[a];
            cr_assert_null(berth_tfn_interpret(c.fn, c.buffers, c.arena));
            cr_expect_eq(support_difference(c.buffers[y], plain, c.element_counts[y]), 0, "%s",
                         targets[t]);
            c.buffers[y] = own;
            support_case_destroy(&c);
        }
}

// Operands that leave the second level of the cache behind are read by two lines at a time.
Test(transpose, pairs_of_lines) {
    static const struct {
        const char *target;
        int64_t groups;
    } cases[] = {
        {"cpu -features=avx2,avx512f,fma -vector_bits=512 -l1_bytes=4096 -l2_bytes=65536", 4},
        {"cpu -features=avx2,avx512f,fma -vector_bits=512 -l1_bytes=4096 -l2_bytes=16384", 2}};
    form f = {"%x: f32[D3,D2] in", "%x[%l, %k]", {1, 1, 64, 64}, "", true};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        bench_case c = build(&f);
        cr_assert_null(berth_schedule_apply(c.fn, support_target(c.arena, cases[i].target)));
        int64_t groups = 0;
        for (berth_stmt at = c.fn->body; at && groups <= 1;) {
            const berth_stmt_node *node = &c.fn->stmts.data[at];
            cr_assert(node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_SEQ);
            if (node->kind == BERTH_STMT_FOR) berth_tfn_const_value(c.fn, node->value, &groups);
            at = node->kind == BERTH_STMT_FOR ? node->body : c.fn->lists.data[node->first];
        }
        cr_expect_eq(groups, cases[i].groups, "%s: %ld", cases[i].target, (long)groups);
        support_case_destroy(&c);
    }
}

// y[b, i, j] = sum over k of x[b, i, k] * w[b, j, k].
static bench_case product(int64_t b, int64_t m, int64_t n, int64_t k) {
    char text[1024];
    snprintf(
        text, sizeof(text),
        "module \"m\"\n"
        "tensor @f(%%x: f32[%ld,%ld,%ld] in, %%w: f32[%ld,%ld,%ld] in, %%y: f32[%ld,%ld,%ld] "
        "out) {\n"
        "  parallel %%b in %ld { parallel %%i in %ld { for %%j in %ld {\n"
        "    register %%acc: f32[]\n"
        "    %%acc[] = 0.0\n"
        "    for %%k in %ld { %%acc[] = fma(%%x[%%b, %%i, %%k], %%w[%%b, %%j, %%k], %%acc[]) }\n"
        "    %%y[%%b, %%i, %%j] = %%acc[]\n"
        "  } } }\n}\n",
        b, m, k, b, n, k, b, m, n, b, m, n, k);
    return support_case_parse(text);
}

// Copies of the operand that the scheduled product makes.
static int copies_of(int64_t b, int64_t m, int64_t n, int64_t k, const char *target) {
    bench_case c = product(b, m, n, k);
    support_fill(&c, 3);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    const float *plain = c.buffers[2];
    status = berth_schedule_apply(c.fn, support_target(c.arena, target));
    cr_assert(!status, "%s", berth_status_message(status));
    int copies = 0;
    for (uint32_t i = 0; i < c.fn->bufs.count; ++i)
        copies += c.fn->bufs.data[i].scope == BERTH_SCOPE_WORKSPACE;
    status = support_interpret(&c);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_leq(support_difference(c.buffers[2], plain, c.element_counts[2]), 2e-5,
                  "%ld x %ld x %ld x %ld for %s", b, m, n, k, target);
    support_case_destroy(&c);
    return copies;
}

// The copy pays for itself where every element is used by some rows.
Test(transpose, products_with_a_transposed_operand) {
    for (int t = 0; t < target_count; ++t) {
        cr_expect_eq(copies_of(1, 16, 32, 16, targets[t]), 1);
        cr_expect_eq(copies_of(3, 7, 19, 33, targets[t]), 1);
        cr_expect_eq(copies_of(2, 4, 50, 9, targets[t]), 1);
        cr_expect_eq(copies_of(2, 3, 50, 64, targets[t]), 0);
        cr_expect_eq(copies_of(5, 1, 50, 64, targets[t]), 0);
    }
}
