// Texts of limits, and readers' counting against them.
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "tests/check.h"

Test(limits, a_text_sets_each_once) {
    berth_limits limits;
    assert_ok(berth_limits_parse("bytes=3MiB,items=70,depth=9,time=250ms", &limits));
    cr_expect_eq(limits.bytes, (uint64_t)3 << 20);
    cr_expect_eq(limits.items, 70);
    cr_expect_eq(limits.depth, 9);
    cr_expect_eq(limits.time_ns, 250000000);
    assert_ok(berth_limits_parse("time=2m", &limits));
    cr_expect_eq(limits.time_ns, INT64_C(120000000000));
    cr_expect_eq(limits.bytes + limits.items + limits.depth, 0, "of the text before");
    assert_ok(berth_limits_parse(NULL, &limits));
    cr_expect_eq(limits.time_ns, 0);
}

Test(limits, other_texts_are_refused) {
    static const char *const bad[][2] = {
        {"size=3", "\"size\""},       {"items", "\"items\""},   {"items=0", "\"0\""},
        {"items=-1", "\"-1\""},       {"items=", "\"\""},       {"depth=501", "1 to 500"},
        {"bytes=0", "\"0\""},         {"bytes=3X", "\"3X\""},   {"time=0s", "\"0s\""},
        {"items=1,items=2", "twice"}, {"items=1,,time=1s", ""}, {"items=99999999999999999999", ""}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        berth_limits limits;
        assert_fails(berth_limits_parse(bad[i][0], &limits), BERTH_INVALID_ARGUMENT, bad[i][1]);
    }
}

Test(limits, the_item_beyond_the_limit_is_refused) {
    const berth_limits limits = {.items = 3};
    berth_limit_watch watch = berth_limits_watch(&limits, "a.csv", "rows", 1);
    assert_ok(berth_limit_items(&watch, 2));
    assert_ok(berth_limit_item(&watch));
    assert_fails(berth_limit_item(&watch), BERTH_OUT_OF_RANGE, "a.csv: more than 3 rows");
    watch = berth_limits_watch(NULL, "a.csv", "rows", 1);  // the reader's own
    assert_ok(berth_limit_item(&watch));
    assert_fails(berth_limit_item(&watch), BERTH_OUT_OF_RANGE, "items=1");
}

Test(limits, time_ends_reading) {
    const berth_limits limits = {.time_ns = 1000000};
    berth_limit_watch watch = berth_limits_watch(&limits, "m.txt", "operations", 0);
    nanosleep(&(struct timespec){0, 3000000}, NULL);
    assert_fails(berth_limit_items(&watch, 1000), BERTH_OUT_OF_RANGE, "the limit time=0.001s");
    watch = berth_limits_watch(NULL, "m.txt", "operations", 0);
    assert_ok(berth_limit_items(&watch, 1000000));
}

Test(limits, bytes_and_depth) {
    const berth_limits limits = {.bytes = 10, .depth = 600};
    assert_ok(berth_limits_check_bytes(&limits, "f", 10, 5));
    assert_fails(berth_limits_check_bytes(&limits, "f", 11, 50), BERTH_OUT_OF_RANGE, "bytes=10");
    assert_ok(berth_limits_check_bytes(NULL, "f", UINT64_MAX, 0));
    assert_fails(berth_limits_check_bytes(NULL, "f", 6, 5), BERTH_OUT_OF_RANGE, "bytes=5");
    cr_expect_eq(berth_limits_depth(&limits, 500), 500,
                 "never beyond what the reader's stack holds");
    cr_expect_eq(berth_limits_depth(&(berth_limits){.depth = 7}, 500), 7);
}
