// Vectors of every element type that has them: loops in vectors compute what they computed before,
// bit for bit, under the interpreter, in C and in OpenCL C.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/opencl_run.h"

enum { elements = 64 };

// What conversions meet: ties, both ends of the types and beyond, infinities, NaN.
static const double edges[] = {
    0,     -0.0,     0.5,     1.5,    2.5,      -0.5,      -1.5,   -2.5,       127,
    127.5, 128,      -128,    -128.5, -129,     254.5,     255,    255.5,      256,
    -1,    -1e-30,   1e-30,   32767,  32768,    -32768,    -32769, 65535.4,    65536,
    1e9,   -1e9,     3e9,     -3e9,   INFINITY, -INFINITY, NAN,    0.49999997, 1e38,
    -1e38, 16777217, 8388609, 100.25, -99.75,   3.999,     4.0001, 1e-8};

static void fill(bench_case *c) {
    support_fill(c, 3);
    for (berth_buf b = 0; b < c->fn->param_count; ++b) {
        const berth_buf_info *info = &c->fn->bufs.data[b];
        berth_tensor tensor = {.dtype = info->dtype, .rank = 1, .dims = {c->element_counts[b]}};
        tensor.data = c->buffers[b];
        for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); ++i)
            if (info->role == BERTH_ROLE_IN && berth_dtype_is_float(info->dtype))
                berth_tensor_set_f64(&tensor, (int64_t)i, edges[i]);
    }
}

typedef struct outputs {
    void *of[SUPPORT_MAX_BUFFERS];
} outputs;

static outputs outputs_of(const bench_case *c) {
    outputs all = {{0}};
    for (berth_buf b = 0; b < c->fn->param_count; ++b) all.of[b] = c->buffers[b];
    return all;
}

static void expect_equal(const bench_case *c, const outputs *expected, const char *text,
                         const char *where) {
    for (berth_buf b = 2; b < c->fn->param_count; ++b) {
        size_t size = berth_dtype_size_bytes(c->fn->bufs.data[b].dtype);
        const unsigned char *got = c->buffers[b];
        const unsigned char *wanted = expected->of[b];
        for (size_t i = 0; i < elements; ++i)
            if (memcmp(got + i * size, wanted + i * size, size) != 0) {
                cr_expect_fail("%s: element %zu of output %u differs in\n%s", where, i, b - 2,
                               text);
                break;
            }
    }
}

// This machine, and what it has of older ones.
static const char *const machines[] = {"cpu", "cpu -features=avx,avx2,f16c,fma",
                                       "cpu -features=sse4.2"};

static bool runs_here(const bench_case *c, const berth_target *target) {
    const berth_target *here = support_target(c->arena, "cpu");
    for (uint32_t i = 0; i < target->features.count; ++i)
        if (!berth_target_has_feature(here, target->features.data[i])) return false;
    return true;
}

static void check_compiled(bench_case *c, const outputs *plain, const char *text) {
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); ++i) {
        const berth_target *target = support_target(c->arena, machines[i]);
        if (!runs_here(c, target)) continue;
        berth_status status = support_run_compiled(c, target, true);
        cr_assert(!status, "%s%s", text, berth_status_message(status));
        expect_equal(c, plain, text, machines[i]);
    }
}

// The inner loop becomes vectors.
static void check(const char *text, bool opencl) {
    bench_case c = support_case_parse(text);
    fill(&c);
    berth_status status = support_interpret(&c);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    outputs plain = outputs_of(&c);
    berth_nest nest;
    cr_assert(berth_nest_parse(c.fn, c.fn->body, &nest));
    status = berth_schedule_vectorize(c.fn, &nest);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    berth_stmt stmt = berth_nest_emit(c.fn, &nest);
    c.fn->body = berth_tfn_seq(c.fn, &stmt, 1);
    status = support_interpret(&c);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    expect_equal(&c, &plain, text, "vectors");
    check_compiled(&c, &plain, text);
    if (opencl && opencl_is_here()) {
        status = opencl_run(&c);
        cr_assert(!status, "%s%s", text, berth_status_message(status));
        expect_equal(&c, &plain, text, "OpenCL C");
    }
    support_case_destroy(&c);
}

// Values computed from x and z of one type, each to an output of its own type.
typedef struct values {
    const char *from;
    int count;
    char to[SUPPORT_MAX_BUFFERS][8];
    char value[SUPPORT_MAX_BUFFERS][128];
} values;

#define X "%x[%n, %i]"
#define Z "%z[%n, %i]"

// The inner loop has `lanes` iterations.
static void check_lanes(const values *v, int lanes, bool opencl) {
    char text[4096];
    int outer = elements / lanes;
    int n =
        snprintf(text, sizeof(text), "module \"m\"\ntensor @f(%%x: %s[%d,%d] in, %%z: %s[%d,%d] in",
                 v->from, outer, lanes, v->from, outer, lanes);
    for (int i = 0; i < v->count; ++i)
        n += snprintf(text + n, sizeof(text) - (size_t)n, ", %%y%d: %s[%d,%d] out", i, v->to[i],
                      outer, lanes);
    n += snprintf(text + n, sizeof(text) - (size_t)n,
                  ") {\n  parallel %%n in %d {\n    for %%i in %d {\n", outer, lanes);
    for (int i = 0; i < v->count; ++i)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "      %%y%d[%%n, %%i] = %s\n", i,
                      v->value[i]);
    snprintf(text + n, sizeof(text) - (size_t)n, "    }\n  }\n}\n");
    check(text, opencl);
}

static void add(values *v, const char *to, const char *format, const char *type) {
    snprintf(v->to[v->count], sizeof(v->to[0]), "%s", to);
    char *at = v->value[v->count++];
    for (; *format; ++format)
        if (*format == '@')
            at += sprintf(at, "%s", type);
        else
            *at++ = *format;
    *at = 0;
}

static void check_values(const values *v) {
    check_lanes(v, 16, true);
    check_lanes(v, 8, false);
}

static const char *const types[] = {"f32", "i32", "i8", "u8", "i16", "u16", "f16", "bf16"};
enum { type_count = sizeof(types) / sizeof(types[0]), half_types = 2 };

// Halves are computed in f32, as lowering does it.
Test(vectors, casts_between_all_types) {
    for (int from = 0; from < type_count; ++from) {
        values v = {.from = types[from]};
        for (int to = 0; to < type_count; ++to) {
            bool half = from >= type_count - half_types || to >= type_count - half_types;
            const char *form = from == to ? X : half && from && to ? "@(f32(" X "))" : "@(" X ")";
            add(&v, types[to], form, types[to]);
        }
        check_values(&v);
    }
}

Test(vectors, integers_wrap_compare_and_choose) {
    for (int t = 1; t < type_count - half_types; ++t) {
        values v = {.from = types[t]};
        add(&v, types[t], X " + " Z " * " X " - " Z, "");
        add(&v, types[t], "max(" X ", " Z ")", "");
        add(&v, types[t], "min(" X ", " Z ")", "");
        add(&v, types[t], "min(" X ", select(" X " < " Z ", 100:@, 3:@))", types[t]);
        add(&v, "f32", "select(" X " >= " Z ", 2.5, 0.5) + f32(" X ")", "");
        check_values(&v);
    }
}

// Those whose results are exact; each is printed as a function of vectors.
Test(vectors, functions_of_floats) {
    static const char *const names[] = {"abs", "sign", "floor", "ceil", "round", "trunc", "sqrt"};
    values v = {.from = "f32"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
        add(&v, "f32", "@(" X ") + " Z, names[i]);
    check_values(&v);
}

// The form that quantisation takes: the cast saturates, NaN gives 0. One addition rounds, also where
// the zero point is at the end of the type; one that the type does not hold has another form.
Test(vectors, quantisation) {
    values v = {.from = "f32"};
    add(&v, "u8", "u8(round(" X " / 0.5) + 3.0)", "");
    add(&v, "u8", "u8(round(" X "))", "");
    add(&v, "u8", "u8(round(" X ") + 255.0)", "");
    add(&v, "i8", "i8(round(" X ") + -128.0)", "");
    add(&v, "i8", "i8(round(" X " * 3.0) + 127.0)", "");
    add(&v, "u16", "u16(round(" X ") + 65535.0)", "");
    add(&v, "i16", "i16(round(" X ") + -32768.0)", "");
    add(&v, "i8", "i8(round(" X ") + 200.0)", "");
    add(&v, "u8", "u8(round(" X ") + 0.25)", "");
    check_values(&v);
}

// Bounds by themselves.
Test(vectors, rounding_within_bounds) {
    values v = {.from = "f32"};
    add(&v, "u8", "u8(i32(round(max(-3.0, min(252.0, " X " / 0.5)))) + 3:i32)", "");
    add(&v, "i8", "i8(i32(round(min(127.0, max(-128.0, " X ")))))", "");
    add(&v, "u16", "u16(i32(round(max(0.0, min(65535.0, " X ")))))", "");
    add(&v, "i16", "i16(i32(round(max(-32768.0, min(32767.0, " X ")))))", "");
    add(&v, "u8", "u8(i32(round(max(-3e7, min(2e8, " X ")))) + 3:i32)", "");
    add(&v, "u8", "select(" X " < " Z ", 3:u8, 200:u8)", "");
    check_values(&v);
    values back = {.from = "u8"};
    add(&back, "f32", "f32(i32(" X ") - 128:i32) * 0.02", "");
    check_values(&back);
}
