// Any bytes for the NPU's model: as a recorded program where they begin like one, else as DRAM whose
// beginning is run as instructions, in an order and a configuration of the first two bytes. Every
// end is success or a named fault, in bounded time, and nothing outside of DRAM and SRAM is touched
// (the address sanitizer sees to that).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/vta/trace_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { work_limit = 20000 };

static void check(bool fine, const char *what, berth_status status) {
    if (fine) return;
    fprintf(stderr, "vta_stream: %s: %s\n", what, berth_status_message(status));
    abort();
}

static void check_end(berth_status status, const berth_vta_report *report) {
    bool failed = status != NULL;
    bool named = report->fault != BERTH_VTA_FAULT_NONE;
    check(failed == named, "a status and a fault, or neither", status);
    check(!failed || strstr(berth_status_message(status), berth_vta_fault_name(report->fault)),
          "the fault is not named", status);
    for (int u = 0; u < BERTH_VTA_UNIT_COUNT; ++u)
        check(failed || report->units[u].done == report->units[u].count, "work left", status);
}

static void run_stream(const uint8_t *data, size_t size) {
    berth_vta_config config = berth_vta_config_default();
    if (data[0] & 1) config.log_block = 3;
    if (data[0] & 2) config.log_batch = 1;
    if (data[0] & 4) config.log_acc_buff_size = 14;
    if (data[0] & 8) config.log_uop_buff_size = 9;
    if (data[0] & 16) config.log_inp_width = 4;
    berth_vta_model *model = NULL;
    berth_status status = berth_vta_model_create(berth_allocator_system(), &config, &model);
    berth_status_free(status);
    if (!model) return;
    berth_vta_run_options options = {.order = (berth_vta_order)(data[1] % BERTH_VTA_ORDER_COUNT),
                                     .seed = data[1],
                                     .most_micro_ops = work_limit,
                                     .refuse_unordered = data[1] >= 128};
    status = berth_vta_hazards_create(berth_allocator_system(), &model->shape, &options.hazards);
    check(!status, "out of memory", status);
    size_t bytes = size - 2;
    uint8_t *copy = malloc(bytes + 1);
    if (bytes) memcpy(copy, data + 2, bytes);
    berth_vta_dram dram = {copy, 0x1000, bytes};
    berth_vta_report report;
    uint64_t count = bytes / BERTH_VTA_INSTRUCTION_BYTES;
    status = berth_vta_run(model, &dram, 0x1000, count < 64 ? count : 64, &options, &report);
    check_end(status, &report);
    berth_status_free(status);
    free(copy);
    berth_vta_hazards_destroy(options.hazards);
    berth_vta_model_destroy(model);
}

typedef struct text {
    berth_arena *arena;
    const uint8_t *data;
    size_t size;
} text;

static berth_status replay(void *user) {
    text *t = user;
    berth_vta_trace trace;
    BERTH_TRY(berth_vta_trace_parse(t->arena, "input", (const char *)t->data, t->size, &trace));
    if (trace.size_bytes > 1 << 20) return BERTH_OK;  // only slow
    berth_vta_run_options options = {.order = BERTH_VTA_ORDER_TIME, .most_micro_ops = work_limit};
    berth_vta_replay result;
    return berth_vta_trace_replay(&trace, berth_allocator_system(), &options, &result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 1 << 16) return 0;
    if (data[0] != 'V') {
        run_stream(data, size);
        return 0;
    }
    text t = {.data = data, .size = size};
    berth_status status = berth_arena_create(berth_allocator_system(), &t.arena);
    check(!status, "out of memory", status);
    berth_status_free(berth_arena_try(t.arena, replay, &t));
    berth_arena_destroy(t.arena);
    return 0;
}
