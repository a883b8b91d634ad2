// Words of a target that nothing knows: an architecture or a feature of a GPU is a word, and a slip of the pen in it would
// give kernels without the instructions that were meant.
//
//   berth_target_words_check(target, log);   // warning: arch "sm_9x" of device "cuda:0" is none that kernels ...
#ifndef BERTH_COMPILER_TARGET_WORDS_H_
#define BERTH_COMPILER_TARGET_WORDS_H_

#include "base/log.h"
#include "target/target.h"

// A warning for each, of devices whose code generator says which words it knows.
void berth_target_words_check(const berth_multi_target *target, berth_log log);

#endif  // BERTH_COMPILER_TARGET_WORDS_H_
