// The C hooks of the built-in dialects (private to ir/; dialect.c lists them).
#ifndef BERTH_IR_C_HOOKS_H_
#define BERTH_IR_C_HOOKS_H_

#include "ir/dialect.h"

void berth_c__emit_graph(struct berth_c_emitter *emitter, berth_func_id function);
void berth_c__emit_tfn(struct berth_c_emitter *emitter, berth_func_id function);
void berth_c__emit_external(struct berth_c_emitter *emitter, berth_func_id function);

#endif  // BERTH_IR_C_HOOKS_H_
