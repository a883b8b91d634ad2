// What a VTA device is opened with: words "NAME=VALUE", as berth_device_options.attributes has them.
//
//   transport=sim          the model in this process (the default), or
//   transport=registers    a board, by the files that follow
//   log_block=4 ...        the configuration (config.def); a board's must be what its bitstream has
//   memory_bytes=N         the device's memory (default 256 MiB)
//   memory_base=ADDRESS    its physical address (default 0x10000; a board: what its allocator gave)
// and for registers:
//   registers=FILE         mapped at registers_at (default /dev/mem, 0x43C00000: Pynq)
//   registers_at=OFFSET
//   memory=FILE            mapped at memory_at: contiguous memory, such as /dev/udmabuf0
//   memory_at=OFFSET
//   timeout_ms=N           of one run (default 10000)
#ifndef BERTH_DRIVERS_VTA_DRIVER_OPTIONS_H_
#define BERTH_DRIVERS_VTA_DRIVER_OPTIONS_H_

#include <stdbool.h>

#include "drivers/vta/config.h"

enum { BERTH_VTA_PATH_BYTES = 256 };

typedef struct berth_vta_device_options {
    bool registers;
    berth_vta_config config;
    uint64_t memory_bytes, memory_base;
    uint64_t registers_at, memory_at;
    uint64_t timeout_ms;
    char registers_file[BERTH_VTA_PATH_BYTES];
    char memory_file[BERTH_VTA_PATH_BYTES];
} berth_vta_device_options;

// NULL or "" gives the defaults. Errors: INVALID_ARGUMENT with the word; and those of
// berth_vta_shape_make and berth_vta_isa_make.
BERTH_MUST_USE berth_status berth_vta_device_options_parse(const char *attributes,
                                                           berth_vta_device_options *out_options);

#endif  // BERTH_DRIVERS_VTA_DRIVER_OPTIONS_H_
