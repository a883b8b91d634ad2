// How the driver reaches a VTA: a simulator in this process, or a board's registers. Both have
// memory of their own with 32-bit physical addresses, which this process sees at `memory.data`.
#ifndef BERTH_DRIVERS_VTA_DRIVER_TRANSPORT_H_
#define BERTH_DRIVERS_VTA_DRIVER_TRANSPORT_H_

#include "drivers/vta/driver/options.h"
#include "drivers/vta/model.h"

typedef struct berth_vta_transport berth_vta_transport;

typedef struct berth_vta_transport_ops {
    // Runs `count` instructions at a physical address to their end. One at a time.
    berth_status (*run)(berth_vta_transport *transport, uint64_t address, uint32_t count);
    void (*close)(berth_vta_transport *transport);
} berth_vta_transport_ops;

struct berth_vta_transport {
    const berth_vta_transport_ops *ops;
    berth_allocator allocator;
    berth_vta_dram memory;
    bool boards;  // streams must keep to what boards do
};

// The functional model. Memory is this process's, taken as it is touched.
BERTH_MUST_USE berth_status berth_vta_simulator_open(berth_allocator allocator,
                                                     const berth_vta_device_options *options,
                                                     berth_vta_transport **out_transport);

// A board's registers and its contiguous memory, mapped from files (options.h). Written from the
// description of upstream's design for Zynq boards and tested on files that a thread answers; it has
// not run on a board. Memory must be coherent, or mapped without caches: nothing is flushed.
//   errors: UNAVAILABLE a file that cannot be opened or mapped; a run: DEADLINE_EXCEEDED the board
//           does not finish, and UNAVAILABLE from then on, as nothing says what it still writes
BERTH_MUST_USE berth_status berth_vta_registers_open(berth_allocator allocator,
                                                     const berth_vta_device_options *options,
                                                     berth_vta_transport **out_transport);

#endif  // BERTH_DRIVERS_VTA_DRIVER_TRANSPORT_H_
