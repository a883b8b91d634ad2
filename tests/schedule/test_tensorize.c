// Reductions become intrinsics where they compute the same: under the interpreter before and after,
// compiled where this machine has the instruction, against sums that are counted apart; and nothing
// else does.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "compiler/schedule/tensorize.h"
#include "tests/schedule/support.h"

typedef struct product {
    berth_intrinsic intrinsic;
    const char *x;  // element types
    const char *w;
    const char *w_layout;  // of w[outputs, k]
} product;

static const product products[] = {
    {BERTH_INTRINSIC_DOT_U8I8_X16, "u8", "i8", "AB4b16a4b"},
    {BERTH_INTRINSIC_DOT_U8I8_X8, "u8", "i8", "AB2b8a4b"},
    {BERTH_INTRINSIC_DOT_I16_X16, "i16", "i16", "AB16a2b"},
    {BERTH_INTRINSIC_DOT_I16_X16, "u8", "i8", "AB4b16a2b"},
    {BERTH_INTRINSIC_DOT_I16_X8, "u8", "i8", "AB8a2b"},
    {BERTH_INTRINSIC_DOT_I16_X8, "i8", "u8", "AB8a2b"},
};
enum { product_count = sizeof(products) / sizeof(products[0]), rows = 3, blocks = 2, depths = 16 };

// What the loops compute, by default the product.
typedef struct variant {
    const char *update;   // of acc by X and W
    const char *x_index;  // of the summed dimension, counted by %%k
    const char *w_layout;
} variant;

static const variant plain = {"%acc[] + X * W", "%k", NULL};

// y[i, j] = i32 sum over k of x[i, k] * w[j, k]; loops i, jo, ji and inside ko, ki.
static bench_case build(const product *p, const variant *v) {
    int64_t lanes = berth_intrinsic_get(p->intrinsic)->operands[0].lanes;
    int64_t depth = berth_intrinsic_depth(p->intrinsic);
    char text[2048];
    int n =
        snprintf(text, sizeof(text),
                 "module \"m\"\n"
                 "tensor @f(%%x: %s[%d,%d] in, %%w: %s[%ld,%d]{%s} in, %%y: i32[%d,%ld] out) {\n"
                 "  parallel %%i in %d { for %%jo in %d { for %%ji in %ld {\n"
                 "    register %%acc: i32[]\n"
                 "    %%acc[] = 0:i32\n"
                 "    for %%ko in %ld { for %%ki in %ld {\n"
                 "      %%acc[] = ",
                 p->x, rows, 2 * depths, p->w, blocks * lanes, depths,
                 v->w_layout ? v->w_layout : p->w_layout, rows, blocks * lanes, rows, blocks, lanes,
                 depths / depth, depth);
    for (const char *at = v->update; *at; ++at) {
        size_t left = sizeof(text) - (size_t)n;
        bool of_x = *at == 'X';
        if (*at == 'J')
            n += snprintf(text + n, left, "%%jo * %ld + %%ji", lanes);
        else if (*at != 'X' && *at != 'W')
            text[n++] = *at;
        else if (of_x && strcmp(v->x_index, "%k") != 0)
            n += snprintf(text + n, left, "i32(%%x[%%i, %s])", v->x_index);
        else
            n += snprintf(text + n, left,
                          of_x ? "i32(%%x[%%i, %%ko * %ld + %%ki])"
                               : "i32(%%w[%%jo * %ld + %%ji, %%ko * %ld + %%ki])",
                          of_x ? depth : lanes, depth);
    }
    snprintf(text + n, sizeof(text) - (size_t)n,
             "\n    } }\n    %%y[%%i, %%jo * %ld + %%ji] = %%acc[]\n  } } }\n}\n", lanes);
    return support_case_parse(text);
}

static berth_status tensorize(bench_case *c, berth_intrinsic id) {
    berth_nest nest;
    cr_assert(berth_nest_parse(c->fn, c->fn->body, &nest));
    cr_assert_eq(nest.count, 3);
    BERTH_TRY(berth_schedule_tensorize(c->fn, &nest, id));
    cr_expect_eq(nest.count, 2);
    berth_stmt stmt = berth_nest_emit(c->fn, &nest);
    c->fn->body = berth_tfn_seq(c->fn, &stmt, 1);
    return BERTH_OK;
}

// Sums of the operands' bytes, taken apart by their layouts and added in 64 bits.
static void expect_sums(const bench_case *c, const char *what) {
    int64_t columns = c->fn->bufs.data[2].dims[1];
    const int32_t *y = c->buffers[2];
    berth_tensor x = {.dtype = c->fn->bufs.data[0].dtype, .rank = 1, .data = c->buffers[0]};
    berth_tensor w = {.dtype = c->fn->bufs.data[1].dtype, .rank = 1, .data = c->buffers[1]};
    berth_layout layout;
    const berth_buf_info *weights = &c->fn->bufs.data[1];
    cr_assert(!berth_layout_parse(berth_module_str(c->module, weights->layout), 2, &layout));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
            int64_t sum = 0;
            for (int64_t k = 0; k < depths; ++k) {
                int64_t at = berth_layout_offset(&layout, weights->dims, (int64_t[]){j, k});
                sum += berth_tensor_get_i64(&x, i * 2 * depths + k) * berth_tensor_get_i64(&w, at);
            }
            if (y[i * columns + j] == (int32_t)(uint32_t)sum) continue;
            cr_expect_fail("%s: y[%ld,%ld] is %d, expected %ld", what, i, j, y[i * columns + j],
                           sum);
            return;
        }
}

static void fill_with(const bench_case *c, berth_buf buf, int64_t value) {
    berth_tensor tensor = {
        .dtype = c->fn->bufs.data[buf].dtype, .rank = 1, .data = c->buffers[buf]};
    for (int64_t i = 0; i < c->element_counts[buf]; ++i) berth_tensor_set_i64(&tensor, i, value);
}

static int64_t extreme(berth_dtype dtype, bool high) {
    int bits = (int)berth_dtype_size_bytes(dtype) * 8;
    int64_t low = berth_dtype_is_signed(dtype) ? -((int64_t)1 << (bits - 1)) : 0;
    return high ? low + ((int64_t)1 << bits) - 1 : low;
}

// Random data (3), then both operands at either end of their types (0 to 3).
static void fill(bench_case *c, int round) {
    support_fill(c, (uint64_t)round);
    if (round >= 4) return;
    for (berth_buf b = 0; b < 2; ++b)
        fill_with(c, b, extreme(c->fn->bufs.data[b].dtype, round >> b & 1));
}

ParameterizedTestParameters(tensorize, products_become_the_intrinsic) {
    static int indices[product_count];
    for (int i = 0; i < product_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, product_count);
}

ParameterizedTest(int *index, tensorize, products_become_the_intrinsic) {
    const product *p = &products[*index];
    const char *name = berth_intrinsic_get(p->intrinsic)->name;
    bench_case before = build(p, &plain);
    bench_case after = build(p, &plain);
    berth_status status = tensorize(&after, p->intrinsic);
    cr_assert(!status, "%s: %s", name, berth_status_message(status));
    const berth_target *here = support_target(after.arena, "cpu");
    for (int round = 0; round < 7; ++round) {
        fill(&before, round);
        fill(&after, round);
        cr_assert(!support_interpret(&before));
        expect_sums(&before, "loops");
        status = support_interpret(&after);
        cr_assert(!status, "%s: %s", name, berth_status_message(status));
        expect_sums(&after, name);
        if (!berth_intrinsic_serves(p->intrinsic, here)) continue;
        status = support_run_compiled(&after, here, true);
        cr_assert(!status, "%s: %s", name, berth_status_message(status));
        expect_sums(&after, berth_arena_printf(after.arena, "%s in C", name));
    }
    support_case_destroy(&before);
    support_case_destroy(&after);
}

// Operands in another order are the same sum.
Test(tensorize, sums_and_products_commute) {
    static const variant others[] = {{"%acc[] + W * X", "%k", NULL},
                                     {"X * W + %acc[]", "%k", NULL}};
    for (int i = 0; i < 2; ++i) {
        bench_case c = build(&products[0], &others[i]);
        cr_expect(!tensorize(&c, products[0].intrinsic));
        support_fill(&c, 5);
        cr_assert(!support_interpret(&c));
        expect_sums(&c, others[i].update);
        support_case_destroy(&c);
    }
}

Test(tensorize, refuses_what_computes_something_else) {
    static const struct {
        int product;
        variant v;
    } rows_of[] = {
        {0, {"%acc[] - X * W", "%k", NULL}},
        {0, {"%acc[] + X + W", "%k", NULL}},
        {0, {"max(%acc[], X * W)", "%k", NULL}},
        {0, {"X * W", "%k", NULL}},                            // no sum
        {0, {"%acc[] + X * X", "%k", NULL}},                   // both operands without outputs
        {0, {"%acc[] + X * W", "(%ko * 4 + %ki) * 2", NULL}},  // not next to each other
        {0, {"%acc[] + X * W", "%ko * 4", NULL}},              // the same activation four times
        {0, {"%acc[] + X * W", "%ko * 4 + %ki", "AB16a16b"}},  // weights in another order
        {0, {"%acc[] + X * W", "%ko * 4 + %ki", "AB4b4a"}},
        {0, {"%acc[] + X * i32(%w[J, %ko])", "%k", NULL}},
    };
    for (size_t i = 0; i < sizeof(rows_of) / sizeof(rows_of[0]); ++i) {
        const product *p = &products[rows_of[i].product];
        bench_case c = build(p, &rows_of[i].v);
        berth_status status = tensorize(&c, p->intrinsic);
        cr_expect_eq(berth_status_code(status), BERTH_FAILED_PRECONDITION, "%s",
                     rows_of[i].v.update);
        berth_status_free(status);
        support_case_destroy(&c);
    }
    // Signed activations and unsigned weights are not what a u8 x i8 product takes.
    product swapped = {BERTH_INTRINSIC_DOT_U8I8_X16, "i8", "u8", "AB4b16a4b"};
    bench_case c = build(&swapped, &plain);
    berth_status status = tensorize(&c, swapped.intrinsic);
    cr_expect_eq(berth_status_code(status), BERTH_FAILED_PRECONDITION);
    berth_status_free(status);
    support_case_destroy(&c);
}

Test(tensorize, needs_name_features_of_targets) {
    static const struct {
        const char *target;
        berth_intrinsic intrinsic;
        bool serves;
    } facts[] = {
        {"cpu -features=avx512vnni", BERTH_INTRINSIC_DOT_U8I8_X16, true},
        {"cpu -features=avx512vnni", BERTH_INTRINSIC_DOT_U8I8_X8, false},
        {"cpu -features=avx512vl,avx512vnni", BERTH_INTRINSIC_DOT_U8I8_X8, true},
        {"cpu -features=avxvnni", BERTH_INTRINSIC_DOT_U8I8_X8, true},
        {"cpu -features=avxvnni", BERTH_INTRINSIC_DOT_U8I8_X16, false},
        {"cpu -features=avx2", BERTH_INTRINSIC_DOT_I16_X8, true},
        {"cpu -features=sse4.2", BERTH_INTRINSIC_DOT_I16_X8, false},
    };
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); ++i) {
        bench_case c = support_case_create();
        const berth_target *target = support_target(c.arena, facts[i].target);
        cr_expect_eq(berth_intrinsic_serves(facts[i].intrinsic, target), facts[i].serves, "%s",
                     facts[i].target);
        support_case_destroy(&c);
    }
}
