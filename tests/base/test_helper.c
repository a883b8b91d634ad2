// Asking in a child process: its answer comes back, and nothing else that it does.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"
#include "tests/check.h"

#define SECOND_NS INT64_C(1000000000)

enum { answer_bytes = 200000 };  // more than a pipe holds

static int outside;

static void fill(const void *user, void *answer) {
    outside = 1;
    memset(answer, *(const char *)user, answer_bytes);
    puts("not to be seen");
    fflush(stdout);
}

static void crash(const void *user, void *answer) {
    (void)user, (void)answer;
    raise(SIGKILL);
}

static void end(const void *user, void *answer) {
    (void)user, (void)answer;
    abort();
}

static void hang(const void *user, void *answer) {
    (void)user, (void)answer;
    for (;;) sleep(1000);
}

Test(helper, only_the_answer_comes_back) {
    char *answer = calloc(1, answer_bytes);
    const char what = 'x';
    assert_ok(berth_helper_ask("letters", fill, &what, answer, answer_bytes, 60 * SECOND_NS));
    for (int i = 0; i < answer_bytes; ++i) cr_assert_eq(answer[i], 'x');
    cr_expect_eq(outside, 0, "it is another process");
    free(answer);
}

Test(helper, what_crashes_or_hangs_is_an_error) {
    char answer[8];
    assert_fails(berth_helper_ask("it", crash, NULL, answer, sizeof(answer), 60 * SECOND_NS),
                 BERTH_UNAVAILABLE, "it is not known");
    assert_fails(berth_helper_ask("it", end, NULL, answer, sizeof(answer), 60 * SECOND_NS),
                 BERTH_UNAVAILABLE, "crashed or hung");
    const int64_t start_ns = berth_clock_ns();
    assert_fails(berth_helper_ask("it", hang, NULL, answer, sizeof(answer), SECOND_NS / 10),
                 BERTH_UNAVAILABLE, "crashed or hung");
    cr_expect_lt(berth_clock_ns() - start_ns, 30 * SECOND_NS);
}

// Programs that do not want to hear of their children.
Test(helper, ignored_children) {
    char *answer = calloc(1, answer_bytes);
    const char what = 'y';
    signal(SIGCHLD, SIG_IGN);
    assert_ok(berth_helper_ask("letters", fill, &what, answer, answer_bytes, 60 * SECOND_NS));
    cr_expect_eq(answer[answer_bytes - 1], 'y');
    free(answer);
}
