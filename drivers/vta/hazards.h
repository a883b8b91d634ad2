// Finds what two units use without a token that orders them, an element of SRAM or bytes of DRAM,
// where one of them writes: a stream whose result depends on how fast the units are. Any schedule of
// the stream finds one if there is one: each unit runs its queue in order, and the n-th token taken
// from a counter is the n-th given to it, so what is ordered before what is the same in all of them.
//
// Vector clocks after Flanagan and Freund, "FastTrack" (PLDI 2009), simplified: of any SRAM buffer,
// one unit writes and one reads (load writes inp and wgt, which compute reads; compute writes the
// results that store reads), so that an element needs two numbers. Transfers are compared with those
// of other units that they are not ordered after: few in a stream that keeps its buffers in use.
#ifndef BERTH_DRIVERS_VTA_HAZARDS_H_
#define BERTH_DRIVERS_VTA_HAZARDS_H_

#include "drivers/vta/model.h"

// How many instructions of each unit's queue are done before something.
typedef struct berth_vta_clock {
    uint32_t done[BERTH_VTA_UNIT_COUNT];
} berth_vta_clock;

typedef struct berth_vta_hazards berth_vta_hazards;

BERTH_MUST_USE berth_status berth_vta_hazards_create(berth_allocator allocator,
                                                     const berth_vta_shape *shape,
                                                     berth_vta_hazards **out_hazards);
void berth_vta_hazards_destroy(berth_vta_hazards *hazards);  // NULL is fine
// What earlier runs did is ordered before all that follows.
void berth_vta_hazards_begin_run(berth_vta_hazards *hazards);

// Notes what an instruction uses, before or after it is executed and in an order that the tokens
// allow. `clock` is what is ordered before it, its own unit's earlier instructions included.
// Errors: RACE, which names the other instruction's place in its unit's queue; WORK_LIMIT where so
// many transfers are unordered that comparing them takes too long; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vta_hazards_note(berth_vta_hazards *hazards,
                                                   const berth_vta_model *model,
                                                   const berth_vta_instruction *instruction,
                                                   const berth_vta_clock *clock,
                                                   berth_vta_fault *out_fault);

#endif  // BERTH_DRIVERS_VTA_HAZARDS_H_
