// What the fuzz targets of the IR's serial forms share.
#ifndef BERTH_TESTS_FUZZ_IR_FORMS_H_
#define BERTH_TESTS_FUZZ_IR_FORMS_H_

#include <stdio.h>
#include <stdlib.h>

#include "ir/equal.h"
#include "ir/pass.h"

typedef struct printing {
    berth_module *module;
    berth_strbuf out;
} printing;

static inline void check(bool fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static inline void check_status(berth_status status, const char *what) {
    if (!status) return;
    fprintf(stderr, "%s: %s\n", what, berth_status_message(status));
    abort();
}

static inline berth_status verify_body(void *user) {
    return berth_module_verify(user);
}

static inline bool verifies(berth_module *module) {
    berth_status status = berth_arena_try(module->arena, verify_body, module);
    bool fine = !status;
    berth_status_free(status);
    return fine;
}

static inline void check_equal(const berth_module *a, const berth_module *b) {
    bool equal = false;
    const char *why = "";
    check_status(berth_module_equal(a, b, &equal, &why), "compare");
    check(equal, why);
}

#endif  // BERTH_TESTS_FUZZ_IR_FORMS_H_
