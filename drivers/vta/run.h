// Running a stream: instructions go to the queues of three units (load, compute, store), which run
// side by side and are ordered by tokens only. Here one runs at a time, in an order that the caller
// chooses among those that queues and tokens allow; with the timing model, in the order of time.
//
//   berth_vta_run_options options = {.order = BERTH_VTA_ORDER_TIME, .most_micro_ops = 1u << 30};
//   berth_vta_report report;
//   BERTH_TRY(berth_vta_run(model, &dram, address, count, &options, &report));
//
// A stream that can go no further ends with DEADLOCK and says where each unit stands; nothing here
// waits for ever. O(instructions + work), and as much memory as the stream has instructions.
#ifndef BERTH_DRIVERS_VTA_RUN_H_
#define BERTH_DRIVERS_VTA_RUN_H_

#include "drivers/vta/hazards.h"
#include "drivers/vta/timing.h"

// Which of the instructions that could run next does. FINISH never before others.
typedef enum berth_vta_order {
    BERTH_VTA_ORDER_PROGRAM,        // the earliest in the stream
    BERTH_VTA_ORDER_LOAD_FIRST,     // load as far as it gets, then compute, then store
    BERTH_VTA_ORDER_COMPUTE_FIRST,  // compute, store, load
    BERTH_VTA_ORDER_STORE_FIRST,    // store, load, compute
    BERTH_VTA_ORDER_RANDOM,         // by `seed`
    BERTH_VTA_ORDER_TIME,           // as the timing model has it
} berth_vta_order;
enum { BERTH_VTA_ORDER_COUNT = 6 };
const char *berth_vta_order_name(berth_vta_order order);

// What one instruction took, in cycles since the run began.
typedef struct berth_vta_event {
    uint32_t instruction;  // index in the stream
    berth_vta_unit unit;
    uint64_t ready;  // its unit was free
    uint64_t start;  // its tokens were there: [ready, start) is a stall
    uint64_t port;   // the memory port was free; start where it moves nothing
    uint64_t end;
    berth_vta_instruction decoded;
    berth_vta_work work;
} berth_vta_event;

typedef struct berth_vta_run_options {
    berth_vta_order order;
    uint64_t seed;
    const uint8_t *stream;    // (optional) the instructions, which then need not be in DRAM
    uint64_t most_micro_ops;  // of the whole run; 0 = any number
    // Faults beyond those that stop any VTA: AFTER_FINISH, RACE. Only noted without.
    bool refuse_unordered;
    berth_vta_hazards *hazards;  // (optional) looks for races
    berth_vta_timing timing;     // ORDER_TIME; all 0 = the default
    // (optional) ORDER_TIME: called for each instruction, in the order of starts.
    void (*observe)(void *user, const berth_vta_event *event);
    void *user;
} berth_vta_run_options;

typedef struct berth_vta_unit_report {
    uint32_t count;    // instructions in its queue
    uint32_t done;     // how many of them ran
    uint32_t current;  // index in the stream of the one that it stands at; UINT32_MAX at the end
    // ORDER_TIME, in cycles:
    uint64_t busy;         // transfers and micro-ops
    uint64_t token_stall;  // waits for tokens
    uint64_t port_stall;   // waits for the memory port
} berth_vta_unit_report;

typedef struct berth_vta_report {
    berth_vta_fault fault;
    uint32_t instruction;  // where the fault is; UINT32_MAX = nowhere in particular
    berth_vta_unit_report units[BERTH_VTA_UNIT_COUNT];
    uint32_t tokens[4];     // left: load to compute, compute to load, compute to store, back
    bool unordered_finish;  // work that FINISH does not wait for
    bool race;
    char first_race[200];
    uint64_t micro_ops;
    uint64_t cycles;  // ORDER_TIME: until FINISH
} berth_vta_report;

// Runs `count` instructions at DRAM byte `address`. After a fault SRAM and DRAM hold what ran
// before it. The report is filled in any case.
//   errors:  the faults of faults.def; OUT_OF_MEMORY
//   threads: one run at a time with a model
BERTH_MUST_USE berth_status berth_vta_run(berth_vta_model *model, const berth_vta_dram *dram,
                                          uint64_t address, uint64_t count,
                                          const berth_vta_run_options *options,
                                          berth_vta_report *out_report);

#endif  // BERTH_DRIVERS_VTA_RUN_H_
