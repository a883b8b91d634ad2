#include "tests/cuda/kernels.h"

#include "tests/lower/op_case.h"

#define CASE(text) text,
static const char *const cases[] = {
#include "tests/lower/cases.def"
};
#undef CASE

enum { case_count = sizeof(cases) / sizeof(cases[0]) };

const char *cuda_images_prefix(int index, berth_arena *arena) {
    return berth_arena_printf(arena, "c%d", index);
}

static berth_status print_image(const berth_target *target, int first, berth_arena *arena,
                                cuda_images *images) {
    berth_codegen_unit units[CASES_PER_IMAGE];
    berth_codegen_job job = {.target = target, .units = units, .arena = arena};
    for (int i = first; i < case_count && i < first + CASES_PER_IMAGE; ++i) {
        const berth_tfn *fn = NULL;
        berth_codegen_result *code = berth_arena_new(arena, berth_codegen_result);
        BERTH_TRY(
            berth_status_prefix(op_case_schedule(cases[i], target, arena, &fn), "%s", cases[i]));
        berth_status status =
            berth_codegen_cuda.print(fn, cuda_images_prefix(i, arena), arena, code);
        if (berth_status_code(status) == BERTH_UNSUPPORTED) images->refused++;
        if (berth_status_code(status) == BERTH_UNSUPPORTED)
            berth_status_free(status);
        else if (status)
            return berth_status_prefix(status, "%s", cases[i]);
        else
            units[job.count++] = (berth_codegen_unit){.label = cases[i], .code = code};
    }
    berth_codegen_bytes bytes;
    BERTH_TRY(berth_codegen_cuda.finish(&job, &bytes));
    images->sources[images->count++] = bytes.data;
    return BERTH_OK;
}

berth_status cuda_images_print(const berth_target *target, berth_arena *arena,
                               cuda_images *out_images) {
    *out_images = (cuda_images){.cases = cases, .case_count = case_count};
    for (int first = 0; first < case_count; first += CASES_PER_IMAGE)
        BERTH_TRY(print_image(target, first, arena, out_images));
    return BERTH_OK;
}
