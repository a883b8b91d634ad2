// A VTA's configuration: nine numbers (config.def) that fix its matrix unit, its buffers and thereby
// the bits of its instructions; and what follows from them.
//
//   berth_vta_config config = berth_vta_config_default();
//   BERTH_TRY(berth_vta_config_set(&config, "log_block", 5));
//   berth_vta_shape shape;
//   BERTH_TRY(berth_vta_shape_make(&config, &shape));
#ifndef BERTH_DRIVERS_VTA_CONFIG_H_
#define BERTH_DRIVERS_VTA_CONFIG_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct berth_vta_config {
#define LOG(name, value, trace_name) uint32_t name;
#include "drivers/vta/config.def"
} berth_vta_config;

// What a LOAD or STORE names: an SRAM buffer, and how its elements lie in DRAM.
typedef enum berth_vta_memory {
    BERTH_VTA_UOP = 0,
    BERTH_VTA_WGT = 1,
    BERTH_VTA_INP = 2,
    BERTH_VTA_ACC = 3,
    BERTH_VTA_OUT = 4,
    BERTH_VTA_ACC8 = 5,  // the accumulators, loaded from lanes as wide as an input's
} berth_vta_memory;
enum { BERTH_VTA_MEMORY_COUNT = 6 };

typedef struct berth_vta_shape {
    uint32_t batch;                            // rows of an inp, acc or out element
    uint32_t block;                            // lanes of a row, and rows of a wgt element
    uint32_t inp_bytes, wgt_bytes, acc_bytes;  // of a lane; an out lane is as wide as an inp lane
    struct {
        const char *name;
        uint32_t log_depth;
        uint32_t depth;          // elements in SRAM
        uint32_t element_bytes;  // in DRAM
    } memory[BERTH_VTA_MEMORY_COUNT];
} berth_vta_shape;

// The configuration of all of upstream's boards: 1x16_i8w8a32_15_15_18_17.
berth_vta_config berth_vta_config_default(void);

// Sets one of the nine by its name. Errors: NOT_FOUND.
BERTH_MUST_USE berth_status berth_vta_config_set(berth_vta_config *config, const char *name,
                                                 uint32_t value);

bool berth_vta_config_equal(const berth_vta_config *a, const berth_vta_config *b);

// Upstream's name of it: "1x16_i8w8a32_15_15_18_17".
void berth_vta_config_text(const berth_vta_config *config, char out[96]);

// What follows from a configuration.
//   errors: UNSUPPORTED lanes that this model does not do (inp and wgt: 8 or 16 bits; acc: 16 or 32);
//           OUT_OF_RANGE a buffer without room for an element or deeper than can be addressed, an
//           element larger than 4096 bytes, indices that do not fit into a micro-op
BERTH_MUST_USE berth_status berth_vta_shape_make(const berth_vta_config *config,
                                                 berth_vta_shape *out_shape);

#endif  // BERTH_DRIVERS_VTA_CONFIG_H_
