// The transport of a VTA that is not there: the functional model, in this process.
#include <sys/mman.h>

#include "drivers/vta/driver/transport.h"
#include "drivers/vta/run.h"

typedef struct simulator {
    berth_vta_transport base;
    berth_vta_model *model;
} simulator;

// Streams were checked when they were loaded; what only values show is checked here.
static berth_status run(berth_vta_transport *transport, uint64_t address, uint32_t count) {
    simulator *s = (simulator *)transport;
    const berth_vta_run_options options = {.order = BERTH_VTA_ORDER_PROGRAM,
                                           .refuse_unordered = true};
    berth_vta_report report;
    return berth_vta_run(s->model, &transport->memory, address, count, &options, &report);
}

static void close_simulator(berth_vta_transport *transport) {
    simulator *s = (simulator *)transport;
    berth_vta_model_destroy(s->model);
    if (transport->memory.data) munmap(transport->memory.data, transport->memory.size_bytes);
    berth_free(transport->allocator, s, sizeof(*s));
}

static const berth_vta_transport_ops ops = {.run = run, .close = close_simulator};

berth_status berth_vta_simulator_open(berth_allocator allocator,
                                      const berth_vta_device_options *options,
                                      berth_vta_transport **out_transport) {
    simulator *s = berth_calloc(allocator, 1, sizeof(*s));
    if (!s) return berth_status_oom();
    s->base = (berth_vta_transport){.ops = &ops, .allocator = allocator};
    berth_status status = berth_vta_model_create(allocator, &options->config, &s->model);
    if (!status) {
        void *memory = mmap(NULL, options->memory_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            status = berth_status_make(BERTH_OUT_OF_MEMORY,
                                       "no %llu bytes for the memory of a simulated VTA",
                                       (unsigned long long)options->memory_bytes);
        else
            s->base.memory = (berth_vta_dram){memory, options->memory_base, options->memory_bytes};
    }
    if (status) {
        close_simulator(&s->base);
        return status;
    }
    s->model->refuse_shifts = true;
    *out_transport = &s->base;
    return BERTH_OK;
}
