#include "drivers/vta/timing.h"

#include <string.h>

enum { most = 1000000 };

berth_vta_timing berth_vta_timing_default(void) {
    return (berth_vta_timing){
#define TIMING(name, value, meaning) .name = (value),
#include "drivers/vta/timing.def"
    };
}

berth_status berth_vta_timing_set(berth_vta_timing *timing, const char *name, uint32_t value) {
    uint32_t *figure = NULL;
    const char *names[] = {
#define TIMING(member, standard, meaning) #member,
#include "drivers/vta/timing.def"
        NULL};
#define TIMING(member, standard, meaning)                                                          \
    if (strcmp(name, #member) == 0) figure = &timing->member;
#include "drivers/vta/timing.def"
    if (!figure) {
        const char *closest = berth_closest(name, names);
        return berth_status_make(BERTH_NOT_FOUND, "the timing model has no %s%s%s%s", name,
                                 closest ? "; did you mean " : "", closest ? closest : "",
                                 closest ? "?" : "");
    }
    bool divides =
        figure == &timing->dram_bytes_per_cycle || figure == &timing->pad_elements_per_cycle;
    if (value > most || (divides && value == 0))
        return berth_status_make(BERTH_OUT_OF_RANGE, "%s=%u: from %d to %d", name, value,
                                 divides ? 1 : 0, most);
    *figure = value;
    return BERTH_OK;
}

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

berth_vta_cost berth_vta_cost_of(const berth_vta_timing *t, const berth_vta_instruction *i,
                                 const berth_vta_work *work, const berth_vta_shape *shape) {
    berth_vta_cost cost = {.own = t->issue_cycles};
    if (work->micro_ops)
        cost.own +=
            t->pipeline_latency +
            work->micro_ops * (i->opcode == BERTH_VTA_ALU ? t->alu_interval : t->gemm_interval);
    if (work->dram_bytes)
        cost.port = t->dram_latency + (work->dram_rows - 1) * t->row_cycles +
                    divide_up(work->dram_bytes, t->dram_bytes_per_cycle);
    if (i->opcode == BERTH_VTA_LOAD && work->sram_elements) {
        uint64_t element_bytes = shape->memory[i->memory_type].element_bytes;
        uint64_t padding = work->sram_elements - work->dram_bytes / element_bytes;
        cost.own += divide_up(padding, t->pad_elements_per_cycle);
    }
    return cost;
}
