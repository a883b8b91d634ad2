// The rules of the instruction set for streams that any VTA runs, boards included, checked from the
// bytes alone: nothing here is shared with the driver, its model or its emitters.
//   - tokens: program order is a possible order, and every token that is given is taken
//   - what two units use, in SRAM or DRAM, is ordered by tokens where one of them writes
//   - FINISH comes last, once, without tokens, after every load and store
//   - every SRAM index and every DRAM byte exists
//   - what is stored was last written by the ALU or a GEMM without reset, in every element
//   - no result is used again within the next two micro-ops
//   - padding only of inp and acc; micro-ops load as one row; no sizes or counts of 0 but in pauses,
//     which are 0 in every field
//   - no MUL, no 8-bit loads of acc, shifts by immediates of 0 to 15 only
//   - at most 255 tokens in a counter, 2^21 instructions
#ifndef BERTH_TESTS_VTA_VALIDATOR_H_
#define BERTH_TESTS_VTA_VALIDATOR_H_

#include "tests/vta/fields.h"

typedef struct stream {
    berth_vta_config config;
    const uint8_t *dram;  // with the instructions and the micro-ops that they load
    int64_t base, size;
    int64_t address;
    int count;
} stream;

// NULL, or what is wrong: in static storage, until the next call.
const char *validate(const stream *s);

#endif  // BERTH_TESTS_VTA_VALIDATOR_H_
