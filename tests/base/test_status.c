// Statuses: what would help stays with them.
#include <criterion/criterion.h>
#include <string.h>

#include "base/status.h"

TestSuite(status);

static berth_status with_two(void) {
    char name[] = "batch";  // copied, so it may go
    const berth_remedy remedies[] = {{BERTH_REMEDY_DIMENSION, name}, {BERTH_REMEDY_INPUT, "x y"}};
    berth_status status = berth_status_with_remedies(
        berth_status_make(BERTH_UNSUPPORTED, "extents are missing"), remedies, 2);
    name[0] = '?';
    return status;
}

static void check_two(berth_status status) {
    cr_assert_eq(berth_status_remedy_count(status), 2);
    cr_expect_eq(berth_status_remedy(status, 0).kind, BERTH_REMEDY_DIMENSION);
    cr_expect_str_eq(berth_status_remedy(status, 0).name, "batch");
    cr_expect_eq(berth_status_remedy(status, 1).kind, BERTH_REMEDY_INPUT);
    cr_expect_str_eq(berth_status_remedy(status, 1).name, "x y");
    cr_expect_eq((int)berth_status_remedy(status, 2).kind, 0);
    cr_expect_str_eq(berth_status_remedy(status, 2).name, "");
}

Test(status, remedies_are_copied) {
    berth_status status = with_two();
    check_two(status);
    berth_status_free(status);
}

Test(status, remedies_stay_with_prefixes_and_clones) {
    berth_status status = berth_status_prefix(with_two(), "model \"%s\"", "a.onnx");
    cr_expect_str_eq(berth_status_message(status), "model \"a.onnx\": extents are missing");
    check_two(status);
    berth_status clone = berth_status_clone(status);
    berth_status_free(status);
    check_two(clone);
    berth_status_free(clone);
}

Test(status, later_remedies_take_the_place_of_earlier) {
    const berth_remedy other = {BERTH_REMEDY_DIMENSION, "n"};
    berth_status status = berth_status_with_remedies(with_two(), &other, 1);
    cr_assert_eq(berth_status_remedy_count(status), 1);
    cr_expect_str_eq(berth_status_remedy(status, 0).name, "n");
    berth_status_free(status);
}

Test(status, none_where_there_are_none) {
    cr_expect_eq(berth_status_remedy_count(BERTH_OK), 0);
    cr_expect_eq(berth_status_remedy_count(berth_status_oom()), 0);
    const berth_remedy one = {BERTH_REMEDY_INPUT, "x"};
    cr_expect_null(berth_status_with_remedies(BERTH_OK, &one, 1));
    cr_expect_eq(berth_status_with_remedies(berth_status_oom(), &one, 1), berth_status_oom());
    berth_status status = berth_status_make(BERTH_IO, "no");
    cr_expect_eq(berth_status_remedy_count(status), 0);
    cr_expect_str_eq(berth_status_remedy(status, 0).name, "");
    berth_status_free(status);
}
