// Named decisions: what a policy decides of each loop nest of a tensor function, as plain data that
// is printed, read, searched (`berth tune`) and shown (`berth plan --why`).
//
//   form=register_tile intrinsic=none lanes=8 columns=2 rows=6 unroll=no panel=no chunk=7 order=...
//
// A policy asks for every decision with its own choice and the limits of what is possible; it gets
// back that choice, or what was given in its place. Forms are built from the answers alone. What was
// given and is not possible is an error of the function, never another choice.
#ifndef BERTH_COMPILER_SCHEDULE_DECISIONS_H_
#define BERTH_COMPILER_SCHEDULE_DECISIONS_H_

#include "ir/tensor/function.h"

typedef enum berth_decision {
#define BERTH_DECISION(constant, name, what) BERTH_DECISION_##constant,
#include "compiler/schedule/decisions.def"
#undef BERTH_DECISION
    BERTH_DECISION_COUNT
} berth_decision;

typedef enum berth_form {
#define BERTH_FORM(constant, name, what) BERTH_FORM_##constant,
#include "compiler/schedule/forms.def"
#undef BERTH_FORM
    BERTH_FORM_COUNT
} berth_form;

// Values of BERTH_DECISION_ORDER: the loops outside of tiles, outermost first.
typedef enum berth_tile_order {
    BERTH_TILE_ORDER_COLUMNS_ROWS,  // rows in the inner loop: weights stay in the cache
    BERTH_TILE_ORDER_ROWS_COLUMNS,  // columns in the inner loop: rows stay in the cache
    BERTH_TILE_ORDER_ROWS_FIRST,    // rows outside of all other loops
    BERTH_TILE_ORDER_COUNT
} berth_tile_order;

// What a policy could have decided and did not.
typedef struct berth_alternative {
    const char *what;  // decisions as text
    const char *why;
    double cost;  // times that of what was decided, estimated; 0 = not possible, or not known
} berth_alternative;

typedef struct berth_nest_decisions {
    uint32_t given;  // bit per decision
    uint32_t made;
    int64_t given_values[BERTH_DECISION_COUNT];
    int64_t values[BERTH_DECISION_COUNT];
    int64_t least[BERTH_DECISION_COUNT];  // of what is possible
    int64_t most[BERTH_DECISION_COUNT];
    const char *wrong;    // why a given decision is not possible; NULL = all are
    berth_status failed;  // of a transformation, other than that it does not fit; owned
    BERTH_VEC(berth_alternative) alternatives;
} berth_nest_decisions;

// Of all nests of a function, in the order in which they were lowered. In the arena.
typedef struct berth_schedule_decisions {
    berth_nest_decisions *nests;
    uint32_t nest_count;
    berth_nest_decisions *current;  // of the nest that is being scheduled; NULL = nobody asks
    bool explain;                   // alternatives are wanted
} berth_schedule_decisions;

// Strings, of a tensor function: its decisions, an entry per nest. Before the function is scheduled:
// those that take the place of the policy's ("" = none of a nest); afterwards: all that were made.
#define BERTH_ATTR_DECISIONS "decisions"

const char *berth_decision_name(berth_decision which);
const char *berth_form_name(berth_form form);

berth_schedule_decisions *berth_decisions_create(berth_arena *arena, uint32_t nest_count);
// Adds the decisions of a text to those that are given.
//   errors: INVALID_ARGUMENT what is wrong, and in which column
BERTH_MUST_USE berth_status berth_decisions_parse(berth_nest_decisions *nest, const char *text);
// Those that were made, or (`given`) those that are given; parse reads it.
const char *berth_decisions_print(berth_arena *arena, const berth_nest_decisions *nest, bool given);

// ---- for policies; fn->decisions may be NULL, or nobody asks --------------------------------------

// The value of a decision: `chosen`, or the one that is given, which must be in [least, most];
// `limit` says where these come from.
int64_t berth_decide(berth_tfn *fn, berth_decision which, int64_t chosen, int64_t least,
                     int64_t most, const char *limit);
// What is given of a decision, else `fallback`.
int64_t berth_decision_given(const berth_tfn *fn, berth_decision which, int64_t fallback);
// A given value within its limits is not possible for another reason.
void berth_decision_wrong(berth_tfn *fn, berth_decision which, const char *why);
// Begins with a form: false where another one is given. What earlier ones decided is forgotten.
bool berth_decide_form(berth_tfn *fn, berth_form form);
// The nest has none of the forms that were asked for.
void berth_decide_plain(berth_tfn *fn);
// Forgets what was decided in the form so far.
void berth_decisions_restart(berth_tfn *fn);
// A transformation said that it does not fit: kept as the reason against the form at hand. What is
// no such answer (anything but FAILED_PRECONDITION and UNSUPPORTED) becomes the function's error.
void berth_decisions_refuse(berth_tfn *fn, berth_status status);
bool berth_decisions_explain(const berth_tfn *fn);
void berth_decisions_add_alternative(berth_tfn *fn, const char *what, double cost, const char *why);
// Nests inside the one at hand are asked for nothing: returns what unmask takes back.
berth_nest_decisions *berth_decisions_mask(berth_tfn *fn);
void berth_decisions_unmask(berth_tfn *fn, berth_nest_decisions *held);
// After the nest: errors INVALID_ARGUMENT what was given and could not be made.
BERTH_MUST_USE berth_status berth_decisions_finish(berth_tfn *fn);

#endif  // BERTH_COMPILER_SCHEDULE_DECISIONS_H_
