// Scheduled functions compute what their plain definition computes: under the interpreter and
// compiled.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>

#include "tests/schedule/support.h"

#define TOLERANCE 2e-5

static void check_case(bench_case *c, const char *what) {
    const berth_target *target = support_target(c->arena, "cpu");
    support_fill(c, 7);
    berth_buf y = c->fn->param_count - 1;
    berth_status status = support_interpret(c);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    float *plain = c->buffers[y];
    status = support_run_compiled(c, target, true);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    double difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < TOLERANCE, "%s: plain C differs by %g", what, difference);
    status = berth_schedule_apply(c->fn, target);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    status = support_interpret(c);
    cr_assert(!status, "%s: scheduled: %s", what, berth_status_message(status));
    difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < TOLERANCE, "%s: scheduled differs by %g", what, difference);
    status = support_run_compiled(c, target, true);
    cr_assert(!status, "%s: %s", what, berth_status_message(status));
    difference = support_difference(c->buffers[y], plain, c->element_counts[y]);
    cr_expect(difference < TOLERANCE, "%s: scheduled C differs by %g", what, difference);
}

static const int64_t matmuls[][3] = {{1, 1, 1},    {1, 40, 100}, {6, 16, 16}, {7, 33, 48},
                                     {20, 10, 17}, {29, 64, 32}, {3, 5, 40}};

ParameterizedTestParameters(policy_cpu, matmul) {
    static int indices[14];
    for (int i = 0; i < 14; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, 14);
}

ParameterizedTest(int *index, policy_cpu, matmul) {
    const int64_t *s = matmuls[*index / 2];
    bench_case c = support_case_create();
    support_build_matmul(&c, s[0], s[1], s[2], *index % 2 ? "Ba16b" : "");
    char what[64];
    snprintf(what, sizeof(what), "matmul %ldx%ldx%ld %d", s[0], s[1], s[2], *index % 2);
    check_case(&c, what);
    support_case_destroy(&c);
}

static const conv_shape convs[] = {
    {16, 32, 4, 14, 3, 3, 1, "aBcd8b", "ABcd8b16a", "aBcd8b", false},
    {16, 24, 3, 9, 3, 3, 2, "aBcd8b", "ABcd8b16a", "aBcd8b", false},
    {8, 16, 5, 5, 1, 1, 1, "aBcd8b", "ABcd8b16a", "aBcd8b", false},
    {3, 16, 4, 11, 7, 7, 2, "", "Abcd16a", "aBcd8b", false},
    {24, 24, 6, 10, 3, 3, 1, "aBcd8b", "Abcd8a", "aBcd8b", true},
    {3, 5, 4, 6, 3, 3, 1, "", "", "", false},
};

ParameterizedTestParameters(policy_cpu, conv) {
    static int indices[6];
    for (int i = 0; i < 6; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, 6);
}

ParameterizedTest(int *index, policy_cpu, conv) {
    bench_case c = support_case_create();
    support_build_conv(&c, &convs[*index]);
    char what[64];
    snprintf(what, sizeof(what), "conv %d", *index);
    check_case(&c, what);
    support_case_destroy(&c);
}
