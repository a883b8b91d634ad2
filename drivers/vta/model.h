// What VTA computes: the SRAM buffers and the effect of one instruction, lane for lane. The order
// of instructions is run.h's.
//
// Sources: apache/tvm-vta, vta_hw/src/sim/sim_driver.cc (the functional simulator, whose results
// these are, wrap-around included). What that simulator leaves undefined is a fault here.
#ifndef BERTH_DRIVERS_VTA_MODEL_H_
#define BERTH_DRIVERS_VTA_MODEL_H_

#include "base/alloc.h"
#include "drivers/vta/isa.h"

typedef enum berth_vta_fault {
    BERTH_VTA_FAULT_NONE,
#define FAULT(name, text, code, meaning) BERTH_VTA_FAULT_##name,
#include "drivers/vta/faults.def"
} berth_vta_fault;

const char *berth_vta_fault_name(berth_vta_fault fault);

// A failed status with the fault's name; *out_fault says which.
BERTH_MUST_USE berth_status berth_vta_fail(berth_vta_fault *out_fault, berth_vta_fault fault,
                                           const char *format, ...) BERTH_PRINTF(3, 4);

// The memory that a device reaches: bytes [base, base + size) of its 32-bit physical addresses.
typedef struct berth_vta_dram {
    uint8_t *data;
    uint64_t base;
    uint64_t size_bytes;
} berth_vta_dram;

// Upstream's counters, and what a careful reader of a stream wants to know. Of all runs since the
// model was made.
typedef struct berth_vta_counters {
    uint64_t load_bytes[BERTH_VTA_MEMORY_COUNT];  // by memory type, padding not counted; acc8 is
                                                  // part of acc, as wide as in SRAM
    uint64_t store_bytes;
    uint64_t gemm_micro_ops;  // of GEMMs without reset
    uint64_t alu_micro_ops;
    uint64_t undefined_shifts;  // lanes shifted by more than 31: taken modulo 32, as x86 does
    uint64_t stale_stores;      // elements stored whose last writer was a LOAD or a reset: boards
                                // store something else
} berth_vta_counters;

// What one instruction did, for a timing model.
typedef struct berth_vta_work {
    uint64_t dram_bytes;
    uint64_t dram_rows;  // contiguous pieces of those
    uint64_t micro_ops;
    uint64_t sram_elements;  // written by LOAD, padding included; or read by STORE
} berth_vta_work;

typedef struct berth_vta_model {
    berth_vta_config config;
    berth_vta_shape shape;
    berth_vta_isa isa;
    berth_allocator allocator;
    uint8_t *uop, *wgt, *inp;  // as in DRAM
    int32_t *acc;              // a lane each, sign-extended where accumulators have 16 bits
    uint8_t *stale;            // by acc element: `out` of a board does not hold its low bits
    bool refuse_shifts;        // undefined shifts are faults
    // Only addresses, `stale` and micro-ops are followed: of DRAM, only the micro-ops that are loaded
    // need be there.
    bool without_data;
    berth_vta_counters counters;
    berth_vta_fault fault;  // of the last failure
} berth_vta_model;

// SRAM holds garbage at first, as a device's does.
//   errors: those of berth_vta_shape_make and berth_vta_isa_make; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_vta_model_create(berth_allocator allocator,
                                                   const berth_vta_config *config,
                                                   berth_vta_model **out_model);
void berth_vta_model_destroy(berth_vta_model *model);  // NULL is fine

// Fills all SRAM with bytes that depend on the seed.
void berth_vta_model_scramble(berth_vta_model *model, uint64_t seed);

// Micro-op `index` of the buffer, which must be below its depth.
berth_vta_micro_op berth_vta_model_micro_op(const berth_vta_model *model, uint32_t index);

// What can be said of an instruction alone, before anything runs: it exists, its tokens have
// neighbours, a STORE has no padding.
BERTH_MUST_USE berth_status berth_vta_model_check(berth_vta_model *model,
                                                  const berth_vta_instruction *instruction);

// Checks every address of an instruction, then does its work; a fault leaves everything as it was,
// but for SHIFT_RANGE. Tokens are run.h's. `most_micro_ops` bounds the work (WORK_LIMIT).
BERTH_MUST_USE berth_status berth_vta_model_execute(berth_vta_model *model,
                                                    const berth_vta_dram *dram,
                                                    const berth_vta_instruction *instruction,
                                                    uint64_t most_micro_ops,
                                                    berth_vta_work *out_work);

#endif  // BERTH_DRIVERS_VTA_MODEL_H_
