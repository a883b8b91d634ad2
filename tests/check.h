// Checks of a status that many tests make.
#ifndef BERTH_TESTS_CHECK_H_
#define BERTH_TESTS_CHECK_H_

#include <criterion/criterion.h>
#include <string.h>

#include "base/status.h"

static inline void assert_ok(berth_status status) {
    cr_assert_null(status, "%s", berth_status_message(status));
}

// The call fails with `code` and says `part`. Frees the status.
static inline void assert_fails(berth_status status, berth_code code, const char *part) {
    cr_assert_eq(berth_status_code(status), code, "%s: %s",
                 berth_code_name(berth_status_code(status)), berth_status_message(status));
    cr_assert_not_null(strstr(berth_status_message(status), part), "\"%s\" is not in \"%s\"", part,
                       berth_status_message(status));
    berth_status_free(status);
}

#endif  // BERTH_TESTS_CHECK_H_
