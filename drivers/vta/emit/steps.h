// What happens to the accumulators of a window operation between their reset and the store: by what its
// inputs are multiplied on their way in, and which operations of the ALU follow, in order. It is what
// intrinsics in scheduled functions say (compiler/intrinsics.h), and what the emitter makes streams of.
//
//   products of 3.5 bits, rounded:  results += bias; copy = 0; copy += results; copy += 11; copy >>= 4;
//                                   results >>= 4; results += copy; results = min(results, 127) ...
#ifndef BERTH_DRIVERS_VTA_EMIT_STEPS_H_
#define BERTH_DRIVERS_VTA_EMIT_STEPS_H_

#include <stdbool.h>
#include <stdint.h>

enum { BERTH_VTA_MOST_STEPS = 24, BERTH_VTA_MOST_DIGITS = 4 };

typedef enum berth_vta_operand {
    BERTH_VTA_BY_NUMBER,  // the same in every lane: an immediate, or loaded where 16 bits are too few
    BERTH_VTA_BY_BIAS,    // bias[o] + added_to_bias
    BERTH_VTA_BY_RESULTS,  // accumulators, each by its own
    BERTH_VTA_BY_COPY,
} berth_vta_operand;

typedef struct berth_vta_step {
    bool to_copy;  // else to the results
    bool resets;   // to 0; nothing else counts
    uint8_t code;  // berth_vta_alu_opcode (isa.h)
    uint8_t by;    // berth_vta_operand
    int32_t number;
} berth_vta_step;

typedef struct berth_vta_steps {
    // Sums: what each of two inputs is multiplied by, or one input's factor in digits of seven bits,
    // the first one first; each next one is added after seven doublings.
    uint32_t factors[BERTH_VTA_MOST_DIGITS], factor_count;
    uint32_t digits;  // of one input; else 1
    int32_t added_to_bias;
    bool has_copy;
    berth_vta_step steps[BERTH_VTA_MOST_STEPS];
    uint32_t count;
} berth_vta_steps;

// False: there is no room.
bool berth_vta_steps_add(berth_vta_steps *list, berth_vta_step step);

// Whether a number must be loaded, since immediates have 16 bits.
bool berth_vta_step_loads(const berth_vta_step *step);
uint32_t berth_vta_steps_loaded(const berth_vta_steps *list);

#endif  // BERTH_DRIVERS_VTA_EMIT_STEPS_H_
