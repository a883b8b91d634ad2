// Maxima over windows that reach over the border: where places may be moved to it they are, where the
// window need not hold it they are not, and under the interpreter (which refuses places outside a
// buffer) and compiled the results are those of the plain loops.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

typedef struct form {
    const char *what;
    int input, output, window, stride, dilation, pad;
    const char *instead;  // of what is outside
    bool moves;
} form;

static const form forms[] = {
    {"zeros on both sides", 9, 9, 3, 1, 1, 1, "-inf", true},
    {"every other window, one border", 12, 6, 3, 2, 1, 1, "-inf", true},
    {"a window over all of its input", 4, 4, 7, 1, 1, 3, "-inf", true},
    {"a window with nothing inside: no place to move to", 4, 5, 2, 2, 1, 2, "-inf", false},
    {"steps of two: the border is between places", 9, 9, 3, 1, 2, 2, "-inf", false},
    {"something that counts in place of what is outside", 9, 9, 3, 1, 1, 1, "0.0", false},
};

enum { form_count = sizeof(forms) / sizeof(forms[0]) };

static bench_case build(const form *f) {
    char text[2048];
    snprintf(text, sizeof(text),
             "module \"m\"\n"
             "tensor @f(%%x: f32[1,32,%d,%d]{aBcd16b} in, %%y: f32[1,32,%d,%d]{aBcd16b} out) {\n"
             "  parallel %%o in 2 { parallel %%h in %d { for %%w in %d { for %%i in 16 {\n"
             "    register %%m: f32[]\n    %%m[] = -inf\n"
             "    for %%a in %d { for %%b in %d {\n"
             "      %%m[] = max(%%m[], select(\n"
             "        %%h * %d + %%a * %d + -%d >= 0 && %%h * %d + %%a * %d + -%d < %d &&\n"
             "        %%w * %d + %%b * %d + -%d >= 0 && %%w * %d + %%b * %d + -%d < %d,\n"
             "        %%x[0, %%o * 16 + %%i, %%h * %d + %%a * %d + -%d, %%w * %d + %%b * %d + "
             "-%d], %s)) } }\n"
             "    %%y[0, %%o * 16 + %%i, %%h, %%w] = %%m[]\n  } } } }\n}\n",
             f->input, f->input, f->output, f->output, f->output, f->output, f->window, f->window,
             f->stride, f->dilation, f->pad, f->stride, f->dilation, f->pad, f->input, f->stride,
             f->dilation, f->pad, f->stride, f->dilation, f->pad, f->input, f->stride, f->dilation,
             f->pad, f->stride, f->dilation, f->pad, f->instead);
    return support_case_parse(text);
}

// Whether the function still asks what is inside.
static bool asks(const bench_case *c) {
    berth_strbuf text = berth_strbuf_make(c->arena);
    berth_tfn_print(c->fn, &text);
    return strstr(berth_strbuf_text(&text), "select") != NULL;
}

ParameterizedTestParameters(clamp, windows) {
    static int indices[form_count];
    for (int i = 0; i < form_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, form_count);
}

ParameterizedTest(int *index, clamp, windows) {
    const form *f = &forms[*index];
    bench_case c = build(f);
    const berth_target *target = support_target(c.arena, "local");
    berth_buf y = c.fn->param_count - 1;
    support_fill(&c, 5);
    cr_assert_null(support_interpret(&c));
    float *plain = c.buffers[y];
    berth_status status = berth_schedule_apply(c.fn, target);
    cr_assert_null(status, "%s: %s", f->what, berth_status_message(status));
    cr_expect_eq(asks(&c), !f->moves, "%s", f->what);
    status = support_interpret(&c);
    cr_assert_null(status, "%s: %s", f->what, berth_status_message(status));
    cr_expect(support_difference(c.buffers[y], plain, c.element_counts[y]) == 0, "%s", f->what);
    status = support_run_compiled(&c, target, true);
    cr_assert_null(status, "%s: %s", f->what, berth_status_message(status));
    cr_expect(support_difference(c.buffers[y], plain, c.element_counts[y]) == 0, "%s: C", f->what);
    support_case_destroy(&c);
}
