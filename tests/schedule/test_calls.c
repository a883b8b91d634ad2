// Tensor functions that call others: random ones mean the same before and after their callees become
// part of them, and compute it in C, on OpenCL and on Vulkan devices, scheduled or not.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/passes/inline_tensor.h"
#include "ir/pass.h"
#include "tests/schedule/opencl_run.h"

enum { out_param = 2 };

typedef struct maker {
    uint64_t state;
    char text[16384];
    size_t length;
    int planes, rows, columns;
} maker;

static int below(maker *m, int count) {
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((m->state >> 33) % (uint64_t)count);
}

static void add(maker *m, const char *format, ...) BERTH_PRINTF(2, 3);
static void add(maker *m, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    m->length +=
        (size_t)vsnprintf(m->text + m->length, sizeof(m->text) - m->length, format, arguments);
    va_end(arguments);
    cr_assert_lt(m->length, sizeof(m->text));
}

// Two nests with a workspace between them, on vectors of n elements.
static void add_leaf(maker *m, const char *name, int n) {
    add(m,
        "tensor @%s(%%a: f32[%d] in, %%b: f32[%d] inout) {\n  workspace %%t: f32[%d]\n"
        "  parallel %%k in %d {\n    let %%v = %%a[%%k] * 0.%d\n    %%t[%%k] = %%v + %%b[%%k]\n  "
        "}\n"
        "  parallel %%k in %d {\n    register %%s: f32[]\n    %%s[] = 0.25\n"
        "    for %%i in %d {\n      if %%i <= %%k {\n        %%s[] = max(%%s[], %%t[%%i])\n      "
        "}\n"
        "    }\n    %%b[%%k] = %%s[] - %%t[(%%k + %d) %% %d]\n  }\n}\n",
        name, n, n, n, n, 1 + below(m, 9), n, n, below(m, 3), n);
}

// Rows and columns of a matrix, one by one and somewhere else.
static void add_middle(maker *m) {
    int r = m->rows, c = m->columns;
    add(m, "tensor @middle(%%a: f32[%d,%d] in, %%b: f32[%d,%d] inout) {\n", r, c, r, c);
    for (int i = 1 + below(m, 3); i > 0; --i) {
        if (below(m, 2))
            add(m,
                "  parallel %%j in %d {\n    call @row(%%a[%%j, 0 for %d], %%b[(%%j + %d) %% %d, 0 "
                "for %d])\n  }\n",
                r, c, below(m, 4), r, c);
        else
            add(m,
                "  for %%j in %d {\n    call @column(%%a[0 for %d, %%j], %%b[0 for %d, %%j])\n  "
                "}\n",
                c, r, r);
    }
    add(m, "}\n");
}

static void add_top(maker *m) {
    int p = m->planes, r = m->rows, c = m->columns;
    add(m, "tensor @top(%%x: f32[%d,%d,%d] in, %%n: i32[%d] in, %%y: f32[%d,%d,%d] out) {\n", p, r,
        c, p, p, r, c);
    add(m,
        "  parallel %%i in %d {\n    for %%j in %d {\n      for %%k in %d {\n"
        "        %%y[%%i, %%j, %%k] = %%x[%%i, %%j, %%k]\n      }\n    }\n  }\n",
        p, r, c);
    for (int i = 1 + below(m, 3); i > 0; --i) switch (below(m, 4)) {
        case 0:  // at the top: the callee's nests become kernels
            add(m, "  call @middle(%%x[%d, 0 for %d, 0 for %d], %%y[%d, 0 for %d, 0 for %d])\n",
                below(m, p), r, c, below(m, p), r, c);
            break;
        case 1:
            add(m,
                "  parallel %%i in %d {\n    call @middle(%%x[%%i, 0 for %d, 0 for %d], %%y[%%i, 0 "
                "for %d, 0 for %d])\n  }\n",
                p, r, c, r, c);
            break;
        case 2:  // a place that is read from memory
            add(m,
                "  call @row(%%x[min(max(index(%%n[%d]), 0), %d), %d, 0 for %d], %%y[%d, %d, 0 for "
                "%d])\n",
                below(m, p), p - 1, below(m, r), c, below(m, p), below(m, r), c);
            break;
        default:  // a private buffer
            add(m,
                "  parallel %%i in %d {\n    private %%q: f32[%d]\n    for %%k in %d {\n      "
                "%%q[%%k] = %%x[%%i, 0, %%k]\n    }\n    call @row(%%x[%%i, %d, 0 for %d], %%q)\n  "
                " "
                " for %%k in %d {\n      %%y[%%i, 0, %%k] = %%q[%%k]\n    }\n  }\n",
                p, c, c, below(m, r), c, c);
        }
    add(m, "}\n");
}

static const char *make(maker *m, uint64_t seed) {
    m->state = seed;
    m->length = 0;
    m->planes = 1 + below(m, 4);
    m->rows = 1 + below(m, 5);
    m->columns = 1 + below(m, 20);
    add(m, "module \"calls\"\n");
    add_top(m);
    add_middle(m);
    add_leaf(m, "row", m->columns);
    add_leaf(m, "column", m->rows);
    return m->text;
}

static void expect_close(const bench_case *c, const float *plain, const char *text,
                         const char *where, double most) {
    double difference =
        support_difference(c->buffers[out_param], plain, c->element_counts[out_param]);
    cr_expect(difference <= most, "%s: differs by %g in\n%s", where, difference, text);
}

static void check(const char *text, bool devices) {
    bench_case c = support_case_parse(text);
    berth_status status = berth_module_verify(c.module);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    support_fill(&c, 5);
    status = support_interpret(&c);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    const float *plain = c.buffers[out_param];
    status = berth_pass_inline_tensor_calls(c.module);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    cr_assert(!berth_tfn_has_calls(c.fn, c.fn->body), "calls are left in\n%s", text);
    status = berth_module_verify(c.module);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    status = support_interpret(&c);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    expect_close(&c, plain, text, "as one function", 0);
    const char *const kinds[] = {"opencl", "vulkan"};
    for (int i = 0; devices && i < 2; ++i) {
        if (!device_is_here(kinds[i])) continue;
        status = device_run(&c, berth_codegen_find(kinds[i]));
        cr_assert(!status, "%s%s: %s", text, kinds[i], berth_status_message(status));
        expect_close(&c, plain, text, kinds[i], 1e-6);
    }
    const berth_target *target = support_target(c.arena, "cpu");
    status = berth_schedule_apply(c.fn, target);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    status = support_run_compiled(&c, target, true);
    cr_assert(!status, "%s%s", text, berth_status_message(status));
    expect_close(&c, plain, text, "compiled", 1e-6);
    support_case_destroy(&c);
}

TestSuite(calls, .timeout = 240);

Test(calls, random_functions) {
    static maker m;
    for (uint64_t seed = 0; seed < 60; ++seed) {
        bench_case c = support_case_parse(make(&m, seed));
        berth_status status = berth_module_verify(c.module);
        cr_assert(!status, "%s%s", m.text, berth_status_message(status));
        support_fill(&c, seed);
        cr_assert(!(status = support_interpret(&c)), "%s%s", m.text, berth_status_message(status));
        const float *plain = c.buffers[out_param];
        cr_assert(!berth_pass_inline_tensor_calls(c.module));
        cr_assert(!(status = support_interpret(&c)), "%s%s", m.text, berth_status_message(status));
        expect_close(&c, plain, m.text, "as one function", 0);
        support_case_destroy(&c);
    }
}

Test(calls, random_functions_on_devices) {
    static maker m;
    for (uint64_t seed = 100; seed < 104; ++seed) check(make(&m, seed), true);
}

// The callee's loops over work-groups make it a kernel.
Test(calls, kernels_are_called_outside_of_loops) {
    static const char text[] =
        "module \"m\"\n"
        "tensor @top(%x: f32[4,8] in, %n: i32[1] in, %y: f32[4,8] out) {\n  %s\n}\n"
        "tensor @kernel(%a: f32[4,8] in, %b: f32[4,8] out) {\n"
        "  group.x %g in 4 {\n    local.x %l in 8 {\n      %b[%g, %l] = %a[%g, %l]\n    }\n  "
        "}\n}\n";
    const char *const calls[] = {"call @kernel(%x, %y)",
                                 "for %i in 1 {\n    call @kernel(%x, %y)\n  }"};
    for (int i = 0; i < 2; ++i) {
        char whole[1024];
        const char *hole = strstr(text, "%s\n");
        snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(hole - text), text, calls[i], hole + 2);
        bench_case c = support_case_parse(whole);
        cr_assert(!berth_module_verify(c.module));
        berth_status status = berth_pass_inline_tensor_calls(c.module);
        if (i == 0) cr_assert_null(status, "%s", berth_status_message(status));
        if (i) cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED);
        if (i) cr_assert_not_null(strstr(berth_status_message(status), "outside of loops"));
        berth_status_free(status);
        support_case_destroy(&c);
    }
}

// Functions that double what they call grow without end.
Test(calls, growth_ends) {
    static char text[16384];
    size_t n = (size_t)snprintf(text, sizeof(text), "module \"m\"\n");
    for (int i = 0; i < 30; ++i)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "tensor @f%d(%%a: f32[2] in, %%b: f32[2] inout) {\n  call @f%d(%%a, "
                              "%%b)\n  call @f%d(%%a, %%b)\n}\n",
                              i, i + 1, i + 1);
    snprintf(text + n, sizeof(text) - n,
             "tensor @f30(%%a: f32[2] in, %%b: f32[2] inout) {\n  for %%i in 2 {\n    %%b[%%i] = "
             "%%a[%%i]\n  }\n}\n");
    bench_case c = support_case_parse(text);
    berth_status status = berth_module_verify(c.module);
    cr_assert(!status, "%s", berth_status_message(status));
    status = berth_pass_inline_tensor_calls(c.module);
    cr_assert_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    cr_assert_not_null(strstr(berth_status_message(status), "more than 100000 statements"));
    berth_status_free(status);
    support_case_destroy(&c);
}
