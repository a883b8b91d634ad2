// The canonical form of a dimension as a polynomial (private to ir/dim*.c).
#ifndef BERTH_IR_DIM_FORM_H_
#define BERTH_IR_DIM_FORM_H_

#include "ir/dim.h"

enum { BERTH_DIM_MOST_TERMS = 24, BERTH_DIM_MOST_FACTORS = 6, BERTH_DIM_MOST_NESTING = 12 };
// Longer names and calls have no arithmetic, so that sizes stay bounded whatever a model says.
enum { BERTH_DIM_MOST_NAME = 200, BERTH_DIM_MOST_TEXT = 1000 };

typedef struct berth_dim_term {
    int64_t coefficient;
    int factor_count;
    berth_str_id
        factors[BERTH_DIM_MOST_FACTORS];  // names, or calls such as "floordiv(H,2)"; sorted
} berth_dim_term;

typedef struct berth_dim_form {
    bool bad;  // unknown, too large, or overflown
    int count;
    berth_dim_term terms[BERTH_DIM_MOST_TERMS];  // sorted; no two alike, none zero
} berth_dim_form;

berth_dim_form berth_dim__number(int64_t value);
berth_dim_form berth_dim__factor(berth_str_id factor);
bool berth_dim__constant(const berth_dim_form *form, int64_t *out_value);
berth_dim_form berth_dim__apply(berth_module *module, berth_dim_op op, const berth_dim_form *a,
                                const berth_dim_form *b);
void berth_dim__print(const berth_module *module, const berth_dim_form *form, berth_strbuf *out);
// The whole of text[0, length); false where it is none.
bool berth_dim__read(berth_module *module, const char *text, size_t length, berth_dim_form *out);
// A factor that is a call: its operation and operands. False for a name.
bool berth_dim__read_call(berth_module *module, berth_str_id factor, berth_dim_op *out_op,
                          berth_dim_form *out_a, berth_dim_form *out_b);
const char *berth_dim__op_name(berth_dim_op op);  // of calls

#endif  // BERTH_IR_DIM_FORM_H_
