// Any bytes as an executable of VTA: reading refuses it or gives kernels whose tables lie in it; a
// kernel that is found fit runs in buffers of the sizes that it says, in any order, without a fault
// that only addresses or tokens could cause.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/vta/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { most_bytes = 1 << 22, most_micro_ops = 200000 };

static void check(bool fine, const char *what, berth_status status) {
    if (fine) return;
    fprintf(stderr, "vta_image: %s: %s\n", what, berth_status_message(status));
    abort();
}

// Buffers one after the other; false where they are too large to try.
static bool place(const berth_vta_kernel *k, berth_vta_addresses *out, uint64_t *out_end) {
    uint64_t at = BERTH_VTA_ALIGNMENT;
    out->constants = at;
    at += ((uint64_t)k->constant_bytes + 4095) & ~(uint64_t)4095;
    for (uint32_t b = 0; b < k->binding_count; ++b) {
        out->bindings[b] = at;
        if (k->bindings[b].size_bytes > most_bytes) return false;
        at += (k->bindings[b].size_bytes + 4095) & ~(uint64_t)4095;
    }
    *out_end = at;
    return at <= most_bytes;
}

static void run_kernel(const berth_vta_config *config, const berth_vta_kernel *k) {
    berth_vta_addresses addresses;
    uint64_t end = 0;
    berth_vta_model *model = NULL;
    if (!place(k, &addresses, &end)) return;
    check(!berth_vta_model_create(berth_allocator_system(), config, &model), "no model", NULL);
    uint64_t bytes = end - BERTH_VTA_ALIGNMENT;
    uint8_t *dram = calloc(1, bytes + 1);
    uint8_t *stream = malloc((size_t)k->instruction_count * 16 + 1);
    if (k->constant_bytes) memcpy(dram, k->constants, k->constant_bytes);
    berth_status status = berth_vta_relocate(&model->isa, k, &addresses, stream);
    check(!status, "a kernel that was fit is not relocated", status);
    berth_vta_dram memory = {dram, BERTH_VTA_ALIGNMENT, bytes};
    for (int order = 0; order < BERTH_VTA_ORDER_COUNT; ++order) {
        berth_vta_run_options options = {.order = (berth_vta_order)order,
                                         .stream = stream,
                                         .most_micro_ops = most_micro_ops,
                                         .refuse_unordered = true};
        berth_vta_report report;
        status = berth_vta_run(model, &memory, 0, k->instruction_count, &options, &report);
        check(!status || report.fault == BERTH_VTA_FAULT_WORK_LIMIT,
              "a kernel that was fit does not run", status);
        berth_status_free(status);
    }
    free(stream);
    free(dram);
    berth_vta_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 1 << 16) return 0;
    berth_vta_image image;
    berth_status status = berth_vta_image_read(berth_allocator_system(), data, size, &image);
    berth_status_free(status);
    for (uint32_t i = 0; i < image.kernel_count && i < 4; ++i) {
        status = berth_vta_kernel_check(berth_allocator_system(), &image.config, &image.kernels[i],
                                        (i & 1) != 0);
        if (!status) run_kernel(&image.config, &image.kernels[i]);
        berth_status_free(status);
    }
    berth_vta_image_free(&image);
    return 0;
}
