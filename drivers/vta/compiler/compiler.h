// The compiler's side of the kind "vta" (compiler/plugin.h): rules that say what it runs, and a code
// generator that makes streams of scheduled functions.
#ifndef BERTH_DRIVERS_VTA_COMPILER_COMPILER_H_
#define BERTH_DRIVERS_VTA_COMPILER_COMPILER_H_

#include "compiler/codegen/codegen.h"
#include "compiler/rules.h"
#include "compiler/schedule/schedule.h"
#include "drivers/vta/compiler/intrinsics.h"
#include "drivers/vta/compiler/nest.h"
#include "drivers/vta/emit/conv.h"

extern const berth_kind_rules berth_vta_rules;
extern const berth_codegen berth_vta_codegen;
extern const berth_schedule_policy berth_vta_schedule;

// The configuration that a target's attributes say.
berth_vta_config berth_vta_config_of(const berth_target *target);

// The convolution that a nest is, with channels filled up to blocks.
//   errors: UNSUPPORTED a form or shape that the emitter has none for
BERTH_MUST_USE berth_status berth_vta_conv_of(const berth_vta_nest *nest,
                                              const berth_vta_config *config,
                                              berth_vta_conv *out_conv);

// What such tiles take of the five buffers, by their scopes (target/kinds.def); the number of them.
uint32_t berth_vta_conv_buffers(const berth_vta_config *config, const berth_vta_conv *conv,
                                const berth_vta_conv_tiles *tiles, berth_rules_buffer *out);

// The buffer that the smallest tile does not fit, in words; NULL: it is not that.
const char *berth_vta_conv_misfit(berth_arena *arena, const berth_vta_config *config,
                                  const berth_vta_conv *conv);

// rules.h: cycles of a kernel of an image by the timing model, at the target's clock, and the start of
// a kernel. Below 0 where the target is a board.
double berth_vta_modelled_ns(const berth_target *target, const berth_executable_image *image,
                             const char *entry);

// Why an operation runs elsewhere that a VTA has nothing for.
const char *berth_vta_no_work(const berth_rules_question *question);

#endif  // BERTH_DRIVERS_VTA_COMPILER_COMPILER_H_
