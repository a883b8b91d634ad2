// Recorded programs ("VTA-GOLDEN 1", *.vtag): instructions, the DRAM they start with, and the DRAM
// that another implementation left behind. Plain text, a line each:
//
//   VTA-GOLDEN 1
//   name NAME
//   desc TEXT
//   hw_portable yes | no: REASON     whether boards would do the same
//   config KEY=VALUE ...             base-2 logarithms (config.def)
//   arena BASE SIZE                  hex: DRAM is these bytes and no others
//   fill XX                          of all bytes that no region gives
//   region NAME ADDRESS SIZE in|out  hex, decimal; then the bytes as hex, 32 a line
//   run ADDRESS COUNT                hex, decimal; then an instruction a line, highest digit first
//   expect NAME ADDRESS SIZE         like region: what must be there after the last run
//   stats KEY=VALUE ...              the other implementation's counters, of all runs
//   end
#ifndef BERTH_DRIVERS_VTA_TRACE_FILE_H_
#define BERTH_DRIVERS_VTA_TRACE_FILE_H_

#include "drivers/vta/config.h"
#include "drivers/vta/run.h"

enum { BERTH_VTA_TRACE_MOST_BYTES = 1 << 26 };  // of an arena

typedef struct berth_vta_trace_run {
    uint64_t address;
    uint32_t count;
} berth_vta_trace_run;

typedef struct berth_vta_trace_region {
    const char *name;
    uint64_t address;
    uint64_t size_bytes;
    const uint8_t *data;
} berth_vta_trace_region;

// All in the caller's arena.
typedef struct berth_vta_trace {
    const char *name;
    const char *description;
    bool portable;
    const char *portability;  // the reason why not
    berth_vta_config config;
    uint64_t base, size_bytes;
    uint8_t *before;  // [size_bytes]: regions and instructions are in it
    BERTH_VEC(berth_vta_trace_run) runs;
    BERTH_VEC(berth_vta_trace_region) expected;
    struct {
        bool given;
        uint64_t inp_load_nbytes, wgt_load_nbytes, acc_load_nbytes, uop_load_nbytes;
        uint64_t out_store_nbytes, gemm_counter, alu_counter;
    } stats;
} berth_vta_trace;

// Reads the text of a file; `name` is for messages. Inside berth_arena_try of the arena.
//   errors: INVALID_ARGUMENT with the line; OUT_OF_RANGE an arena beyond 32 bits or the limit above
BERTH_MUST_USE berth_status berth_vta_trace_parse(berth_arena *arena, const char *name,
                                                  const char *text, size_t length,
                                                  berth_vta_trace *out_trace);

// What replaying a trace once gave.
typedef struct berth_vta_replay {
    bool reproduced;  // every expected byte, and no other byte changed
    bool counted;     // the counters are those of the trace too (true where it has none)
    uint64_t wrong_bytes;
    uint64_t first_wrong;     // its address
    berth_vta_report report;  // of the last run that began
    berth_vta_counters counters;
} berth_vta_replay;

// Replays all runs of a trace on a new device whose SRAM holds garbage by the seed. A stream that
// the model refuses is its status; a wrong result is not. `options` as for berth_vta_run.
BERTH_MUST_USE berth_status berth_vta_trace_replay(const berth_vta_trace *trace,
                                                   berth_allocator allocator,
                                                   const berth_vta_run_options *options,
                                                   berth_vta_replay *out_replay);

#endif  // BERTH_DRIVERS_VTA_TRACE_FILE_H_
