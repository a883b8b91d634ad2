// Index arithmetic of the forms for plain C (plain_windows.c, plain_columns.c, plain_floats.c). Private to
// compiler/schedule.
#ifndef BERTH_COMPILER_SCHEDULE_PLAIN_INDEX_H_
#define BERTH_COMPILER_SCHEDULE_PLAIN_INDEX_H_

#include "ir/tensor/function.h"

static inline berth_expr var(berth_tfn *fn, berth_var v) {
    return berth_tfn_var_ref(fn, v);
}

static inline berth_expr add(berth_tfn *fn, berth_expr a, berth_expr b) {
    return berth_tfn_binary(fn, BERTH_BINARY_ADD, a, b);
}

static inline berth_expr times(berth_tfn *fn, berth_expr a, int64_t factor) {
    return berth_tfn_binary(fn, BERTH_BINARY_MUL, a, berth_tfn_index(fn, factor));
}

#endif  // BERTH_COMPILER_SCHEDULE_PLAIN_INDEX_H_
