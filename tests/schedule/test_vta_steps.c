// What a VTA's schedule makes of random functions: instructions only, which compute the same as the
// arithmetic did, bit by bit under the interpreter.
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compiler/codegen/kernel_facts.h"
#include "drivers/vta/compiler/compiler.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "tests/schedule/support.h"

typedef struct writer {
    char text[6000];
    size_t at;
    uint64_t state;
    int block;
} writer;

static int pick(writer *w, int low, int high) {
    w->state ^= w->state << 13;
    w->state ^= w->state >> 7;
    w->state ^= w->state << 17;
    return low + (int)(w->state % (uint64_t)(high - low + 1));
}

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->at, sizeof(w->text) - w->at, format, args);
    va_end(args);
    cr_assert(n >= 0 && w->at + (size_t)n < sizeof(w->text));
    w->at += (size_t)n;
}

static int blocks(const writer *w, int channels) {
    return (channels + w->block - 1) / w->block;
}

// The loops over results, up to "%y[0, CHANNEL, %h, %w] = ".
static void open_loops(writer *w, int channels, int height, int width) {
    put(w, "  parallel %%o in %d { for %%h in %d { for %%w in %d { for %%i in %d {\n",
        blocks(w, channels), height, width, w->block);
}

#define CHANNEL "%%o * %d + %%i"

// A value within random bounds, 0 in lanes that fill up, and the end.
static void store(writer *w, int channels, const char *value) {
    int low = pick(w, 0, 2), high = pick(w, 0, 1) ? 127 : pick(w, 0, 126);
    char bounded[1500];
    const char *from = low == 1 ? "0" : "-100";
    if (low && high < 127)
        snprintf(bounded, sizeof(bounded), "min(max(%s, %s:i8), %d:i8)", value, from, high);
    else if (low)
        snprintf(bounded, sizeof(bounded), "max(%s, %s:i8)", value, from);
    else
        snprintf(bounded, sizeof(bounded), "%s", value);
    put(w, "    %%y[0, " CHANNEL ", %%h, %%w] = ", w->block);
    if (channels % w->block)
        put(w, "select(" CHANNEL " < %d, %s, 0:i8)", w->block, channels, bounded);
    else
        put(w, "%s", bounded);
    put(w, "\n  } } } }\n}\n");
}

static void head(writer *w, const char *params, int channels, int height, int width) {
    put(w, "module \"m\"\ntensor @f(%s%%y: i8[1,%d,%d,%d]{aBcd%db} out) {\n", params, channels,
        height, width, w->block);
}

static const char *map(writer *w, char *out, size_t size, const char *name, int channels,
                       int height, int width) {
    snprintf(out, size, "%%%s: i8[1,%d,%d,%d]{aBcd%db} in, ", name, channels, height, width,
             w->block);
    return out;
}

static void write_sum_of_two(writer *w) {
    int channels = pick(w, 1, 3 * w->block), height = pick(w, 1, 3), width = pick(w, 1, 3);
    int to = pick(w, 0, 6), first = to - pick(w, -3, 5), second = first + pick(w, -3, 3);
    char a[80], b[80], params[200], value[600];
    snprintf(params, sizeof(params), "%s%s", map(w, a, sizeof(a), "a", channels, height, width),
             map(w, b, sizeof(b), "b", channels, height, width));
    head(w, params, channels, height, width);
    open_loops(w, channels, height, width);
    snprintf(value, sizeof(value),
             "i8(round((f32(i32(%%a[0, %%o * %d + %%i, %%h, %%w]) - i32(0:i8)) * %.20f + "
             "f32(i32(%%b[0, %%o * %d + %%i, %%h, %%w]) - i32(0:i8)) * %.20f) / %.20f))",
             w->block, __builtin_ldexp(1, -first), w->block, __builtin_ldexp(1, -second),
             __builtin_ldexp(1, -to));
    store(w, channels, value);
}

typedef struct window {
    int channels, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride, pad;
} window;

static window pick_window(writer *w, int most) {
    window v = {.channels = pick(w, 1, 2 * w->block),
                .kernel_h = pick(w, 1, most),
                .kernel_w = pick(w, 2, most),
                .stride = pick(w, 1, 3),
                .pad = pick(w, 0, 1),
                .out_h = pick(w, 1, 3),
                .out_w = pick(w, 1, 3)};
    v.in_h = (v.out_h - 1) * v.stride + v.kernel_h - 2 * v.pad;
    v.in_w = (v.out_w - 1) * v.stride + v.kernel_w - 2 * v.pad;
    if (v.in_h < 1) v.in_h = 1;
    if (v.in_w < 1) v.in_w = 1;
    return v;
}

// select(the position is inside, `value` of it, fill)
static void inside(char *out, size_t size, const window *v, const char *value, const char *fill) {
    char row[40], column[40];
    snprintf(row, sizeof(row), "%%h * %d + %s + -%d", v->stride, v->kernel_h > 1 ? "%kh" : "0",
             v->pad);
    snprintf(column, sizeof(column), "%%w * %d + %%kw + -%d", v->stride, v->pad);
    snprintf(out, size, "select(%s >= 0 && %s < %d && %s >= 0 && %s < %d, %s, %s)", row, row,
             v->in_h, column, column, v->in_w, value, fill);
}

static void open_window(writer *w, const window *v, const char *zero, const char *dtype) {
    put(w, "    register %%acc: %s[]\n    %%acc[] = %s\n", dtype, zero);
    if (v->kernel_h > 1) put(w, "    for %%kh in %d {\n", v->kernel_h);
    put(w, "    for %%kw in %d {\n", v->kernel_w);
}

static void place(char *out, size_t size, const writer *w, const window *v) {
    snprintf(out, size, "%%x[0, %%o * %d + %%i, %%h * %d + %s + -%d, %%w * %d + %%kw + -%d]",
             w->block, v->stride, v->kernel_h > 1 ? "%kh" : "0", v->pad, v->stride, v->pad);
}

static void write_average(writer *w) {
    window v = pick_window(w, 7);
    char x[80], at[200], bytes[260], value[900], average[200];
    head(w, map(w, x, sizeof(x), "x", v.channels, v.in_h, v.in_w), v.channels, v.out_h, v.out_w);
    open_loops(w, v.channels, v.out_h, v.out_w);
    open_window(w, &v, "0:i32", "i32");
    place(at, sizeof(at), w, &v);
    snprintf(bytes, sizeof(bytes), "i32(%s) - i32(0:i8)", at);
    inside(value, sizeof(value), &v, bytes, "0:i32");
    put(w, "      %%acc[] = %%acc[] + %s\n    }%s\n", value, v.kernel_h > 1 ? " }" : "");
    snprintf(average, sizeof(average), "i8(round(f32(%%acc[]) * %.20f / f32(%d) / 0.0625))",
             __builtin_ldexp(1, -pick(w, 3, 6)), v.kernel_h * v.kernel_w);
    store(w, v.channels, average);
}

static void write_maximum(writer *w) {
    window v = pick_window(w, 4);
    char x[80], at[200], value[900];
    head(w, map(w, x, sizeof(x), "x", v.channels, v.in_h, v.in_w), v.channels, v.out_h, v.out_w);
    open_loops(w, v.channels, v.out_h, v.out_w);
    open_window(w, &v, "-128:i8", "i8");
    place(at, sizeof(at), w, &v);
    inside(value, sizeof(value), &v, at, "-128:i8");
    put(w, "      %%acc[] = max(%%acc[], %s)\n    }%s\n", value, v.kernel_h > 1 ? " }" : "");
    store(w, v.channels, "%acc[]");
}

static void write_products(writer *w) {
    window v = pick_window(w, 3);
    int in = pick(w, 1, 2 * w->block), shift = pick(w, 0, 14);
    bool bias = pick(w, 0, 2) > 0;
    char x[80], params[300], at[200], bytes[260], value[900], result[300], added[60] = "";
    snprintf(params, sizeof(params), "%s%%k: i8[%d,%d,%d,%d]{ABcd%da%db} in, ",
             map(w, x, sizeof(x), "x", in, v.in_h, v.in_w), v.channels, in, v.kernel_h, v.kernel_w,
             w->block, w->block);
    size_t n = strlen(params);
    if (bias)
        snprintf(params + n, sizeof(params) - n, "%%b: i32[%d]{A%da} in, ", v.channels, w->block);
    head(w, params, v.channels, v.out_h, v.out_w);
    open_loops(w, v.channels, v.out_h, v.out_w);
    const char *ic = in > 1 ? "%ic" : "0", *kh = v.kernel_h > 1 ? "%kh" : "0";
    put(w, "    register %%acc: i32[]\n    %%acc[] = 0:i32\n");
    if (in > 1) put(w, "    for %%ic in %d {\n", in);
    if (v.kernel_h > 1) put(w, "    for %%kh in %d {\n", v.kernel_h);
    snprintf(at, sizeof(at), "%%x[0, %s, %%h * %d + %s + -%d, %%w * %d + %%kw + -%d]", ic, v.stride,
             kh, v.pad, v.stride, v.pad);
    snprintf(bytes, sizeof(bytes), "i32(%s) - i32(0:i8)", at);
    inside(value, sizeof(value), &v, bytes, "0:i32");
    put(w,
        "    for %%kw in %d {\n      %%acc[] = %%acc[] + %s * (i32(%%k[" CHANNEL
        ", %s, %s, %%kw]) - i32(0:i8))\n    }%s%s\n",
        v.kernel_w, value, w->block, ic, kh, in > 1 ? " }" : "", v.kernel_h > 1 ? " }" : "");
    if (bias) snprintf(added, sizeof(added), " + %%b[%%o * %d + %%i]", w->block);
    snprintf(result, sizeof(result), "i8(round(f32(%%acc[]%s) * (0.03125 * %.20f) / 0.03125))",
             added, __builtin_ldexp(1, -shift));
    store(w, v.channels, result);
}

static void write_padding(writer *w) {
    int channels = pick(w, 1, 2 * w->block), top = pick(w, 0, 2), left = pick(w, 0, 2);
    int height = pick(w, 1, 3), width = pick(w, 1, 3);
    char x[80], value[500];
    head(w, map(w, x, sizeof(x), "x", channels, height, width), channels, height + top + 1,
         width + left + 1);
    open_loops(w, channels, height + top + 1, width + left + 1);
    snprintf(value, sizeof(value),
             "select(%%h + -%d >= 0 && %%h + -%d < %d && %%w + -%d >= 0 && %%w + -%d < %d, "
             "%%x[0, %%o * %d + %%i, %%h + -%d, %%w + -%d], 0:i8)",
             top, top, height, left, left, width, w->block, top, left);
    store(w, channels, value);
}

static void write_parts(writer *w) {
    int first = w->block * pick(w, 1, 2), second = w->block * pick(w, 1, 2);
    int last = pick(w, 1, w->block), all = first + second + last;
    char a[80], b[80], c[80], params[260], value[700];
    snprintf(params, sizeof(params), "%s%s%s", map(w, a, sizeof(a), "a", first, 2, 3),
             map(w, b, sizeof(b), "b", second, 2, 3), map(w, c, sizeof(c), "c", last, 2, 3));
    head(w, params, all, 2, 3);
    open_loops(w, all, 2, 3);
    snprintf(value, sizeof(value),
             "select(%%o * %d + %%i < %d, %%a[0, %%o * %d + %%i, %%h, %%w], "
             "select(%%o * %d + %%i < %d, %%b[0, %%o * %d + %%i + -%d, %%h, %%w], "
             "%%c[0, %%o * %d + %%i + -%d, %%h, %%w]))",
             w->block, first, w->block, w->block, first + second, w->block, first, w->block,
             first + second);
    store(w, all, value);
}

static void write_slice(writer *w) {
    int before = w->block * pick(w, 0, 2), channels = w->block * pick(w, 1, 2);
    int all = before + channels + pick(w, 1, w->block);
    char x[80], value[200];
    head(w, map(w, x, sizeof(x), "x", all, 2, 3), channels, 2, 3);
    open_loops(w, channels, 2, 3);
    snprintf(value, sizeof(value), "%%x[0, %%o * %d + %%i + %d, %%h, %%w]", w->block, before);
    store(w, channels, value);
}

static void (*const kinds[])(writer *) = {write_sum_of_two, write_average, write_maximum,
                                          write_products,   write_padding, write_parts,
                                          write_slice};
static const char *const names[] = {"sum",     "average", "maximum", "products",
                                    "padding", "parts",   "slice"};
enum { kind_count = sizeof(kinds) / sizeof(kinds[0]), rounds = 8 };

static berth_status read_scheduled(const bench_case *c, berth_vta_nest *out) {
    berth_stmt *nests = NULL;
    uint32_t count = 0;
    const berth_tfn *copy = berth_kernel_copy_fn(c->fn, c->arena);
    BERTH_TRY(berth_kernel_nests(copy, c->arena, &nests, &count));
    cr_assert_eq(count, 1);
    return berth_vta_nest_read_scheduled(copy, nests[0], out);
}

// Biases of up to 2^20, so that sums reach the bounds and stay within 32 bits.
static void fill(bench_case *c, uint64_t seed) {
    support_fill(c, seed);
    for (berth_buf b = 0; b < c->fn->param_count; ++b) {
        const berth_buf_info *info = &c->fn->bufs.data[b];
        if (info->dtype != BERTH_DTYPE_I32) continue;
        int32_t *bias = c->buffers[b];
        for (int64_t i = 0; i < info->dims[0]; ++i)
            bias[i] =
                (int32_t)((uint64_t)(i + 1) * 0x9e3779b97f4a7c15u * (seed + 1) >> 43) - (1 << 20);
    }
}

static void check(int kind, uint64_t seed) {
    static const int sizes[] = {2, 4, 8, 16, 32};
    writer w = {.state = seed * 0x9e3779b97f4a7c15u + (uint64_t)kind + 1};
    w.block = sizes[pick(&w, 0, 4)];
    kinds[kind](&w);
    bench_case plain = support_case_parse(w.text), scheduled = support_case_parse(w.text);
    char target[120];
    int log_block = __builtin_ctz((unsigned)w.block);  // 2^9 elements in each buffer
    snprintf(target, sizeof(target),
             "vta -log_block=%d -log_inp_buff_size=%d -log_wgt_buff_size=%d -log_acc_buff_size=%d",
             log_block, log_block + 9, 2 * log_block + 9, log_block + 11);
    berth_status status =
        berth_vta_schedule.apply(scheduled.fn, support_target(scheduled.arena, target));
    if (!status) status = berth_module_verify(scheduled.module);
    berth_vta_nest nest;
    if (!status) status = read_scheduled(&scheduled, &nest);
    cr_assert_null(status, "%s %lu: %s\n%s", names[kind], seed, berth_status_message(status),
                   w.text);
    berth_strbuf printed = berth_strbuf_make(scheduled.arena);
    cr_assert_null(berth_module_to_text(scheduled.module, NULL, &printed));
    const char *text = berth_strbuf_text(&printed);
    cr_expect(strstr(text, " vta_") && !strstr(text, "round("), "%s", text);
    berth_buf y = plain.fn->param_count - 1;
    for (uint64_t round = 0; round < 3; ++round) {
        fill(&plain, round);
        fill(&scheduled, round);
        status = support_interpret(&plain);
        if (!status) status = support_interpret(&scheduled);
        cr_assert_null(status, "%s %lu: %s", names[kind], seed, berth_status_message(status));
        cr_expect_eq(
            memcmp(plain.buffers[y], scheduled.buffers[y], support_buffer_bytes(&plain, y)), 0,
            "%s %lu, round %lu: results differ\n%s\n%s", names[kind], seed, round, w.text, text);
    }
    support_case_destroy(&plain);
    support_case_destroy(&scheduled);
}

Test(vta_steps, instructions_compute_the_same, .timeout = 120) {
    cr_assert_null(berth_vta_intrinsics_register());
    for (int kind = 0; kind < kind_count; ++kind)
        for (uint64_t seed = 0; seed < rounds; ++seed) check(kind, seed);
}
