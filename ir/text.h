// The text form of modules, for people: what `berth opt` prints.
//
//   graph @main(%0 "image": f32[1,1,8,8]) {
//     %1 = constant() {value = f32[16,1,3,3] 576 bytes}
//     %2 = conv(%0, %1, _) {pads = [1, 1, 1, 1]}: f32[1,16,8,8] on opencl:0 // node "conv1" (Conv)
//     return %2
//   }
#ifndef BERTH_IR_TEXT_H_
#define BERTH_IR_TEXT_H_

#include "ir/module.h"

// Appends the module's text. Inside berth_arena_try of out's arena.
void berth_module_print(const berth_module *module, berth_strbuf *out);

#endif  // BERTH_IR_TEXT_H_
