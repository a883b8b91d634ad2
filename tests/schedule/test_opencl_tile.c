// Schedules for OpenCL and Vulkan compute what the plain definition computes: under the interpreter, whose
// work-items run in step between barriers, and on a device. Targets force every policy: groups with
// local memory, little of it, and processor cores.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "compiler/schedule/decisions.h"
#include "tests/schedule/opencl_run.h"

#define TOLERANCE 2e-5

static const char *const targets[] = {
    "opencl -arch=gfx900 -subgroup_size=64 -max_group_size=256 -local_memory_bytes=65536",
    "opencl -arch=gfx900 -subgroup_size=64 -max_group_size=12 -local_memory_bytes=3000",
    "opencl -arch=x86_64 -features=avx2,fma -local_memory_bytes=65536 -max_group_size=4096",
    "vulkan -max_group_size=128 -local_memory_bytes=16384",
};
enum { TARGETS = 4 };

static void check_given(bench_case *c, int which, bool tiles, const char *given, const char *what) {
    const berth_target *target = support_target(c->arena, targets[which]);
    support_fill(c, 7);
    berth_buf y = c->fn->param_count - 1;
    berth_status status = support_interpret(c);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    float *plain = c->buffers[y];
    c->fn->decisions = berth_decisions_create(c->arena, 1);
    cr_assert_null(berth_decisions_parse(&c->fn->decisions->nests[0], given));
    status = berth_schedule_apply(c->fn, target);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    c->fn->decisions = NULL;
    berth_strbuf text = berth_strbuf_make(c->arena);
    berth_tfn_print(c->fn, &text);
    bool has_tile = strstr(berth_strbuf_text(&text), "row_tile") != NULL;
    if (which != 2) cr_expect_eq(has_tile, tiles, "%s: tiles in local memory: %d", what, has_tile);
    status = support_interpret(c);
    cr_assert(!status, "%s: scheduled: %s", what, berth_status_message(status));
    double difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < TOLERANCE, "%s: scheduled differs by %g", what, difference);
    const berth_codegen *codegen = berth_codegen_find(berth_device_kind_name(target->kind));
    if (!device_is_here(codegen->kind)) cr_skip("no device: the interpreter alone");
    status = device_run(c, codegen);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < TOLERANCE, "%s: on the device it differs by %g", what, difference);
}

static void check_target(bench_case *c, int which, bool tiles, const char *what) {
    check_given(c, which, tiles, "", what);
}

static struct criterion_test_params indices(int count) {
    static int numbers[64];
    for (int i = 0; i < count; ++i) numbers[i] = i;
    return cr_make_param_array(int, numbers, (size_t)count);
}

// ---- matrix products ----------------------------------------------------------------------------

static const int64_t matmuls[][3] = {{16, 16, 16},  {7, 33, 50}, {70, 19, 90}, {65, 48, 64},
                                     {130, 40, 30}, {2, 8, 3},   {1, 40, 100}};
enum { MATMULS = 7 };

ParameterizedTestParameters(opencl_tile, matmul) {
    return indices(MATMULS * TARGETS);
}

ParameterizedTest(int *index, opencl_tile, matmul, .timeout = 120) {
    const int64_t *s = matmuls[*index / TARGETS];
    bench_case c = support_case_create();
    support_build_matmul(&c, s[0], s[1], s[2], "");
    char what[64];
    snprintf(what, sizeof(what), "matmul %ldx%ldx%ld on %d", s[0], s[1], s[2], *index % TARGETS);
    check_target(&c, *index % TARGETS, s[0] > 1, what);
    support_case_destroy(&c);
}

// Tiles in turns, staged ahead: on devices whose copies are done where they stand, too.
Test(opencl_tile, stages, .timeout = 120) {
    static const int which[] = {0, 3};
    for (int i = 0; i < 6; ++i) {
        bench_case c = support_case_create();
        char what[64], given[32];
        support_build_matmul(&c, 40, 90, 24, "");
        snprintf(given, sizeof(given), "stages=%d depth=8", 2 + i / 2);
        snprintf(what, sizeof(what), "%s on %d", given, which[i % 2]);
        check_given(&c, which[i % 2], true, given, what);
        support_case_destroy(&c);
    }
}

// ---- convolutions -------------------------------------------------------------------------------

typedef struct padded_shape {
    int64_t n, group, ic, oc, ih, iw, k, stride, dilation, pad;  // channels per group
} padded_shape;

static const padded_shape convs[] = {
    {1, 1, 8, 16, 14, 14, 3, 1, 1, 1}, {2, 1, 5, 7, 9, 11, 3, 1, 1, 1},
    {1, 1, 3, 20, 17, 19, 7, 2, 1, 3}, {1, 2, 6, 10, 8, 8, 3, 1, 1, 1},
    {1, 1, 16, 40, 7, 7, 1, 1, 1, 0},  {1, 1, 12, 9, 15, 16, 3, 1, 2, 2},
    {1, 1, 4, 66, 12, 30, 5, 1, 1, 2}, {3, 1, 9, 8, 13, 5, 1, 2, 1, 0},
    {1, 6, 1, 1, 10, 12, 3, 1, 1, 1},
};
enum { CONVS = 9 };

static berth_expr sum_of(berth_tfn *fn, berth_var a, int64_t k, berth_expr b) {
    berth_expr scaled =
        berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_var_ref(fn, a), berth_tfn_index(fn, k));
    return berth_tfn_binary(fn, BERTH_BINARY_ADD, scaled, b);
}

static berth_expr inside(berth_tfn *fn, berth_expr at, int64_t extent) {
    return berth_tfn_binary(fn, BERTH_BINARY_AND,
                            berth_tfn_binary(fn, BERTH_BINARY_GE, at, berth_tfn_index(fn, 0)),
                            berth_tfn_binary(fn, BERTH_BINARY_LT, at, berth_tfn_index(fn, extent)));
}

static berth_expr window_at(berth_tfn *fn, const padded_shape *s, berth_var o, berth_var k) {
    berth_expr at = sum_of(fn, o, s->stride, sum_of(fn, k, s->dilation, berth_tfn_index(fn, 0)));
    return berth_tfn_binary(fn, BERTH_BINARY_SUB, at, berth_tfn_index(fn, s->pad));
}

static int64_t output_extent(const padded_shape *s, int64_t input) {
    return (input + 2 * s->pad - s->dilation * (s->k - 1) - 1) / s->stride + 1;
}

// y[n, g*oc + o, oh, ow] = sum of x[n, g*ic + c, ...] (0 in the padding) * w[g*oc + o, c, kh, kw]
static void build_padded_conv(bench_case *c, const padded_shape *s) {
    berth_tfn *fn = c->fn;
    int64_t oh = output_extent(s, s->ih);
    int64_t ow = output_extent(s, s->iw);
    int64_t channels = s->group * s->oc;
    berth_buf x = support_param(c, "x", 4, (int64_t[]){s->n, s->group * s->ic, s->ih, s->iw}, "",
                                BERTH_ROLE_IN);
    berth_buf w =
        support_param(c, "w", 4, (int64_t[]){channels, s->ic, s->k, s->k}, "", BERTH_ROLE_IN);
    berth_buf y = support_param(c, "y", 4, (int64_t[]){s->n, channels, oh, ow}, "", BERTH_ROLE_OUT);
    berth_buf acc = berth_tfn_buffer(fn, "acc", BERTH_DTYPE_F32, 0, NULL, BERTH_SCOPE_REGISTER);
    static const char *const names[] = {"n", "g", "oc", "oh", "ow", "ic", "kh", "kw"};
    const int64_t extents[] = {s->n, s->group, s->oc, oh, ow, s->ic, s->k, s->k};
    berth_var v[8];
    berth_expr at[8];
    for (int i = 0; i < 8; ++i) {
        v[i] = berth_tfn_var(fn, names[i]);
        at[i] = berth_tfn_var_ref(fn, v[i]);
    }
    berth_expr channel = sum_of(fn, v[1], s->oc, at[2]);
    berth_expr row = window_at(fn, s, v[3], v[6]);
    berth_expr column = window_at(fn, s, v[4], v[7]);
    berth_expr zero = berth_tfn_float(fn, BERTH_DTYPE_F32, 0);
    berth_expr value = berth_tfn_load(
        fn, x, (berth_expr[]){at[0], sum_of(fn, v[1], s->ic, at[5]), row, column}, 4);
    if (s->pad)
        value = berth_tfn_select(fn,
                                 berth_tfn_binary(fn, BERTH_BINARY_AND, inside(fn, row, s->ih),
                                                  inside(fn, column, s->iw)),
                                 value, zero);
    berth_expr weight = berth_tfn_load(fn, w, (berth_expr[]){channel, at[5], at[6], at[7]}, 4);
    berth_expr sum = berth_tfn_fma(fn, value, weight, berth_tfn_load(fn, acc, NULL, 0));
    berth_stmt update = berth_tfn_store(fn, acc, NULL, 0, sum);
    for (int i = 7; i >= 5; --i)
        update =
            berth_tfn_for(fn, v[i], berth_tfn_index(fn, extents[i]), BERTH_LOOP_SERIAL, update);
    berth_stmt items[] = {
        berth_tfn_alloc(fn, acc), berth_tfn_store(fn, acc, NULL, 0, zero), update,
        berth_tfn_store(fn, y, (berth_expr[]){at[0], channel, at[3], at[4]}, 4,
                        berth_tfn_unary(fn, BERTH_UNARY_TANH, berth_tfn_load(fn, acc, NULL, 0)))};
    berth_stmt body = berth_tfn_seq(fn, items, 4);
    for (int i = 4; i >= 0; --i)
        body = berth_tfn_for(fn, v[i], berth_tfn_index(fn, extents[i]),
                             i < 4 ? BERTH_LOOP_PARALLEL : BERTH_LOOP_SERIAL, body);
    fn->body = berth_tfn_seq(fn, &body, 1);
}

ParameterizedTestParameters(opencl_tile, conv) {
    return indices(CONVS * TARGETS);
}

ParameterizedTest(int *index, opencl_tile, conv, .timeout = 120) {
    const padded_shape *s = &convs[*index / TARGETS];
    bench_case c = support_case_create();
    build_padded_conv(&c, s);
    char what[64];
    snprintf(what, sizeof(what), "conv %d on %d", *index / TARGETS, *index % TARGETS);
    check_target(&c, *index % TARGETS, s->oc > 1, what);
    support_case_destroy(&c);
}

// Integers: y[i, j] = sum of (x[i, k] - 3) * w[k, j], all i32.
Test(opencl_tile, integer_products, .timeout = 120) {
    enum { M = 21, K = 37, N = 18 };
    bench_case c = support_case_create();
    berth_tfn *fn = c.fn;
    const int64_t dims[3][2] = {{M, K}, {K, N}, {M, N}};
    const int64_t extents[] = {M, N, K};
    for (int b = 0; b < 3; ++b) {
        berth_type_id type = berth_type_tensor(c.module, BERTH_DTYPE_I32, 2, dims[b]);
        berth_tfn_param(fn,
                        b == 0   ? "x"
                        : b == 1 ? "w"
                                 : "y",
                        type, b == 2 ? BERTH_ROLE_OUT : BERTH_ROLE_IN);
        c.element_counts[b] = dims[b][0] * dims[b][1];
        int32_t *data = berth_arena_alloc_aligned(c.arena, (size_t)c.element_counts[b] * 4, 128);
        for (int64_t i = 0; i < c.element_counts[b]; ++i)
            data[i] = b == 2 ? -1 : (int32_t)(i * 37 % 251) - 100;
        c.buffers[b] = data;
    }
    berth_buf acc = berth_tfn_buffer(fn, "acc", BERTH_DTYPE_I32, 0, NULL, BERTH_SCOPE_REGISTER);
    berth_var v[3] = {berth_tfn_var(fn, "i"), berth_tfn_var(fn, "j"), berth_tfn_var(fn, "k")};
    berth_expr at[3];
    for (int i = 0; i < 3; ++i) at[i] = berth_tfn_var_ref(fn, v[i]);
    berth_expr x = berth_tfn_binary(fn, BERTH_BINARY_SUB,
                                    berth_tfn_load(fn, 0, (berth_expr[]){at[0], at[2]}, 2),
                                    berth_tfn_int(fn, BERTH_DTYPE_I32, 3));
    berth_expr w = berth_tfn_load(fn, 1, (berth_expr[]){at[2], at[1]}, 2);
    berth_expr sum = berth_tfn_binary(fn, BERTH_BINARY_ADD, berth_tfn_load(fn, acc, NULL, 0),
                                      berth_tfn_binary(fn, BERTH_BINARY_MUL, x, w));
    berth_stmt items[] = {berth_tfn_alloc(fn, acc),
                          berth_tfn_store(fn, acc, NULL, 0, berth_tfn_int(fn, BERTH_DTYPE_I32, 0)),
                          berth_tfn_for(fn, v[2], berth_tfn_index(fn, K), BERTH_LOOP_SERIAL,
                                        berth_tfn_store(fn, acc, NULL, 0, sum)),
                          berth_tfn_store(fn, 2, at, 2, berth_tfn_load(fn, acc, NULL, 0))};
    berth_stmt body = berth_tfn_seq(fn, items, 4);
    for (int i = 1; i >= 0; --i)
        body = berth_tfn_for(fn, v[i], berth_tfn_index(fn, extents[i]), BERTH_LOOP_PARALLEL, body);
    fn->body = berth_tfn_seq(fn, &body, 1);
    berth_status status = berth_schedule_apply(fn, support_target(c.arena, targets[0]));
    cr_assert(!status, "%s", berth_status_message(status));
    const int32_t *a = c.buffers[0];
    const int32_t *b = c.buffers[1];
    for (int run = 0; run < (opencl_is_here() ? 2 : 1); ++run) {
        status = run ? opencl_run(&c) : berth_tfn_interpret(fn, c.buffers, c.arena);
        cr_assert(!status, "%s", berth_status_message(status));
        const int32_t *y = c.buffers[2];
        for (int i = 0; i < M; ++i)
            for (int j = 0; j < N; ++j) {
                int32_t expected = 0;
                for (int k = 0; k < K; ++k) expected += (a[i * K + k] - 3) * b[k * N + j];
                cr_assert_eq(y[i * N + j], expected, "[%d, %d] %s", i, j,
                             run ? "on the device" : "interpreted");
            }
    }
    support_case_destroy(&c);
}

// Blocked layouts, as the layout pass gives them to cores.
Test(opencl_tile, blocked_layouts_on_cores, .timeout = 120) {
    static const conv_shape shapes[] = {
        {16, 32, 4, 14, 3, 3, 1, "aBcd8b", "ABcd8b16a", "aBcd8b", false},
        {24, 24, 6, 10, 3, 3, 1, "aBcd8b", "Abcd8a", "aBcd8b", true},
    };
    for (int i = 0; i < 2; ++i) {
        bench_case c = support_case_create();
        support_build_conv(&c, &shapes[i]);
        check_target(&c, 2, false, i ? "blocked depthwise" : "blocked conv");
        support_case_destroy(&c);
    }
}

// Stores whose distance is an argument may overlap as far as a compiler sees: it is told that they do not.
Test(opencl_tile, loops_without_order_say_so) {
    bench_case c = support_case_parse(
        "module \"m\"\ntensor @f(%x: f32[4, 64] in, %y: f32[2, 4, 64] out) {\n"
        "  parallel %t in 4 {\n    simd %i in 64 {\n      %y[0, %t, %i] = %x[%t, %i]\n"
        "      %y[1, %t, %i] = -%x[%t, %i]\n    }\n  }\n}\n");
    berth_codegen_result code = {0};
    berth_status status = berth_codegen_opencl.print(c.fn, NULL, "k", c.arena, &code);
    cr_assert_null(status, "%s", berth_status_message(status));
    const char *hint = strstr(code.source, "\nBERTH_SIMD\n");
    cr_assert_not_null(hint, "%s", code.source);
    cr_expect_eq(strncmp(hint + 12 + strspn(hint + 12, " "), "for (", 5), 0, "%s", hint);
    support_case_destroy(&c);
}
