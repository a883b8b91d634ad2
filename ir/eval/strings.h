// Strings in the interpreter, shared by the families of operators that know them.
#ifndef BERTH_IR_EVAL_STRINGS_H_
#define BERTH_IR_EVAL_STRINGS_H_

#include "ir/eval/internal.h"

// Errors: INVALID_ARGUMENT the operand is no tensor of strings.
BERTH_MUST_USE berth_status berth_eval__need_strings(const berth_eval_context *ctx, uint32_t index);
// Cast where either side is strings. Errors: INVALID_ARGUMENT a string that begins with no number.
BERTH_MUST_USE berth_status berth_eval__cast_strings(berth_eval_context *ctx, berth_dtype to);
BERTH_MUST_USE berth_status berth_eval__equal_strings(berth_eval_context *ctx);
// How many bytes of a string a message shows.
int berth_eval__shown(berth_string string);

#endif  // BERTH_IR_EVAL_STRINGS_H_
