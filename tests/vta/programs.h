// Programs for tests: made at random within the rules, or written down instruction by instruction.
#ifndef BERTH_TESTS_VTA_PROGRAMS_H_
#define BERTH_TESTS_VTA_PROGRAMS_H_

#include "drivers/vta/run.h"
#include "tests/check.h"

// Configurations that differ in everything: the first is upstream's.
enum { CONFIGURATIONS = 6 };
berth_vta_config configuration(int index);

// DRAM with a program in it. Zeroed but for what `begin_program` makes.
typedef struct program {
    berth_vta_config config;
    berth_vta_shape shape;
    berth_vta_isa isa;
    berth_vta_dram dram;
    uint64_t address;  // of the instructions
    uint32_t count;
    uint32_t capacity;
    uint64_t random;
} program;

enum { PROGRAM_BASE = 0x10000, PROGRAM_BYTES = 1 << 18 };

// DRAM of random bytes with room for `capacity` instructions at its end.
void begin_program(program *p, berth_vta_config config, uint32_t capacity, uint64_t seed);
void add_instruction(program *p, berth_vta_instruction instruction);
void end_program(program *p);  // frees the DRAM
uint64_t random_below(program *p, uint64_t limit);

// Instructions of all kinds, one after the other by tokens, that stay within every buffer; with all
// but register shifts, which only small shift counts define.
void random_program(program *p, berth_vta_config config, uint32_t steps, uint64_t seed);

// A micro-op at a DRAM address.
void put_micro_op(program *p, uint64_t address, uint32_t dst, uint32_t src, uint32_t wgt);

#endif  // BERTH_TESTS_VTA_PROGRAMS_H_
