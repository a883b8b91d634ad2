// Devices that are only planned for (compiler/rules.h, described): what kernels would read and write,
// for the plan's memory and its schedule, and no code.
#include "compiler/codegen/kernel_facts.h"

static berth_status print(const berth_tfn *fn, const berth_target *target, const char *prefix,
                          berth_arena *arena, berth_codegen_result *out_result) {
    (void)target;
    berth_stmt *nests = NULL;
    uint32_t count = 0;
    const berth_tfn *copy = berth_kernel_copy_fn(fn, arena);
    *out_result = (berth_codegen_result){0};
    BERTH_TRY(berth_kernel_nests(copy, arena, &nests, &count));
    berth_kernel_source *kernels = berth_arena_new_array(arena, berth_kernel_source, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        kernels[i].entry = berth_arena_printf(arena, "%s_%u", prefix, i);
        berth_kernel_collect_facts(copy, arena, nests[i], &kernels[i]);
        for (int d = 0; d < 3; ++d) kernels[i].groups[d] = kernels[i].group_size[d] = 1;
    }
    *out_result = (berth_codegen_result){.source = "", .kernels = kernels, .kernel_count = count};
    return BERTH_OK;
}

static berth_status finish(const berth_codegen_job *job, berth_codegen_bytes *out_bytes) {
    *out_bytes = (berth_codegen_bytes){0};
    return berth_status_make(BERTH_UNSUPPORTED, "no code generator for devices of kind %s",
                             berth_device_kind_name(job->target->kind));
}

const berth_codegen berth_codegen_described = {
    .kind = "described", .format = "described", .print = print, .finish = finish};
