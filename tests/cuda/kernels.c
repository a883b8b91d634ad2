#include "tests/cuda/kernels.h"

#include "tests/lower/op_case.h"

#define CASE(text) text,
static const char *const operators[] = {
#include "tests/lower/cases.def"
};
#undef CASE
#define CASE(text, instruction) text,
static const char *const matrices[] = {
#include "tests/cuda/matrix_cases.def"
};
#undef CASE
#define CASE(text, instruction) instruction,
static const char *const matrix_instructions[] = {
#include "tests/cuda/matrix_cases.def"
};
#undef CASE
#define CASE(text, instruction) text,
static const char *const warpgroups[] = {
#include "tests/cuda/warpgroup_cases.def"
};
#undef CASE
#define CASE(text, instruction) instruction,
static const char *const warpgroup_instructions[] = {
#include "tests/cuda/warpgroup_cases.def"
};
#undef CASE

cuda_images cuda_images_of_operators(void) {
    return (cuda_images){.cases = operators, .case_count = sizeof(operators) / sizeof(*operators)};
}

cuda_images cuda_images_of_matrices(const char *const **instructions) {
    if (instructions) *instructions = matrix_instructions;
    return (cuda_images){.cases = matrices, .case_count = sizeof(matrices) / sizeof(*matrices)};
}

cuda_images cuda_images_of_warpgroups(const char *const **instructions) {
    if (instructions) *instructions = warpgroup_instructions;
    return (cuda_images){.cases = warpgroups,
                         .case_count = sizeof(warpgroups) / sizeof(*warpgroups)};
}

const char *cuda_images_prefix(int index, berth_arena *arena) {
    return berth_arena_printf(arena, "c%d", index);
}

cuda_images cuda_images_of_tf32(void) {
    static const char *const products[] = {
        "matmul | f32[64,64] f32[64,64] |",
        "matmul | f32[2,35,18] f32[2,18,41] |",
        "gemm | f32[40,48] f32[72,48] f32[72] | transA=0 transB=1",
        "conv | f32[1,16,9,9] f32[24,16,3,3] f32[24] | pads=1,1,1,1",
    };
    return (cuda_images){.cases = products, .case_count = sizeof(products) / sizeof(*products)};
}

cuda_images cuda_images_of_copies(void) {
    static const char *const products[] = {
        "matmul | f32[64,96] f32[96,64] |",
        "matmul | f32[70,100] f32[100,90] |",  // rows of 90 are no multiple of 16 bytes
        "matmul | f32[3,20,60] f32[3,60,60] |",
        "matmul | f64[33,50] f64[50,20] |",
        "matmul | i32[40,70] i32[70,24] |",
        "conv | f32[1,16,9,11] f32[24,16,3,3] f32[24] | pads=1,1,1,1",
        "conv | f32[2,64,10,12] f32[16,64,1,1] |",
        // Whole vectors that begin at any place of a line, and at every other one.
        "conv | f32[1,16,10,14] f32[24,16,3,3] |",
        "conv | f32[1,16,10,16] f32[24,16,3,3] | dilations=2,2",
        "conv | f32[1,8,14,9] f32[20,8,5,5] | pads=2,2,2,2 strides=2,2",
        "matmul | f16[64,256] f16[256,64] |",
        "matmul_integer | u8[66,320] i8[320,40] |",
        "conv | f16[1,16,9,11] f16[24,16,3,3] f16[24] | pads=1,1,1,1",
    };
    return (cuda_images){.cases = products, .case_count = sizeof(products) / sizeof(*products)};
}

cuda_images cuda_images_of_large(void) {
    static const char *const products[] = {
        "matmul | f32[256,288] f32[288,512] |",
        "matmul | f32[250,100] f32[100,500] |",  // the last tile of both, and the end of the sum
        "gemm | f32[240,52] f32[382,52] f32[382] | transA=0 transB=1",
        "matmul | i32[250,48] i32[48,250] |",
        "conv | f32[1,32,18,20] f32[250,32,3,3] f32[250] | pads=1,1,1,1",
        "conv | f32[1,32,18,20] f32[250,32,3,3]{acdb} | pads=1,1,1,1",  // rows in vectors, padding
        "conv | f32[2,3,32,39] f32[128,3,7,7] | pads=3,3,3,3 strides=2,2",
    };
    return (cuda_images){.cases = products, .case_count = sizeof(products) / sizeof(*products)};
}

cuda_images cuda_images_of_wide(void) {
    static const char *const products[] = {
        "matmul | f16[128,160] f16[160,256] |",
        "matmul | bf16[100,150] bf16[150,120] |",
        "gemm | f16[120,104] f16[140,104] f16[140] | transA=0 transB=1",
        "matmul_integer | u8[130,320] i8[320,128] |",
    };
    return (cuda_images){.cases = products, .case_count = sizeof(products) / sizeof(*products)};
}

cuda_images cuda_images_of_panels(void) {
    static const char *const products[] = {
        "matmul | f16[128,256] f16[256,256]{Ab8a} |",
        "matmul | f16[70,192] f16[192,128]{Ab8a} |",
        "matmul | f16[70,104] f16[104,300]{Ab8a} |",  // the last tile of columns, and the end of the sum
        "matmul | bf16[3,72,128] bf16[128,256]{Ab8a} |",
        "matmul_integer | u8[66,384] i8[384,128]{Ab16a} |",
        // Columns are channels, or rows are.
        "conv | f16[1,64,12,12]{aBcd8b} f16[128,64,3,3]{Bcda8b} f16[128] | pads=1,1,1,1 | {aBcd8b}",
        "conv | bf16[2,64,9,10]{aBcd8b} bf16[256,64,3,3]{Bcda8b} | pads=1,1,1,1 strides=2,2 |",
        "conv | f16[1,40,9,11]{aBcd8b} f16[200,40,1,1]{Bcda8b} | | {aBcd8b}",  // both operands
        "conv_integer | u8[1,128,9,9]{aBcd16b} i8[64,128,1,1]{Bcda16b} | | {aBcd16b}",
    };
    return (cuda_images){.cases = products, .case_count = sizeof(products) / sizeof(*products)};
}

cuda_images cuda_images_of_long_sums(void) {
    static const char *const products[] = {
        "matmul | f16[128,384] f16[384,256] |",
        "matmul | bf16[120,270] bf16[270,200] |",
        "matmul | f16[128,456] f16[456,256]{Ab8a} |",
        "matmul_integer | u8[100,512] i8[512,256] |",
    };
    return (cuda_images){.cases = products, .case_count = sizeof(products) / sizeof(*products)};
}

static berth_status print_image(const berth_target *target, int first, berth_arena *arena,
                                cuda_images *images) {
    berth_codegen_unit units[CASES_PER_IMAGE];
    berth_codegen_job job = {.target = target, .units = units, .arena = arena};
    for (int i = first; i < images->case_count && i < first + CASES_PER_IMAGE; ++i) {
        const berth_tfn *fn = NULL;
        berth_codegen_result *code = berth_arena_new(arena, berth_codegen_result);
        BERTH_TRY(berth_status_prefix(op_case_schedule(images->cases[i], target, arena, &fn), "%s",
                                      images->cases[i]));
        berth_status status =
            berth_codegen_cuda.print(fn, NULL, cuda_images_prefix(i, arena), arena, code);
        if (berth_status_code(status) == BERTH_UNSUPPORTED) images->refused++;
        if (berth_status_code(status) == BERTH_UNSUPPORTED)
            berth_status_free(status);
        else if (status)
            return berth_status_prefix(status, "%s", images->cases[i]);
        else
            units[job.count++] = (berth_codegen_unit){.label = images->cases[i], .code = code};
    }
    berth_codegen_bytes bytes;
    BERTH_TRY(berth_codegen_cuda.finish(&job, &bytes));
    images->sources[images->count++] = bytes.data;
    return BERTH_OK;
}

berth_status cuda_images_print(const berth_target *target, berth_arena *arena,
                               cuda_images *images) {
    for (int first = 0; first < images->case_count; first += CASES_PER_IMAGE)
        BERTH_TRY(print_image(target, first, arena, images));
    return BERTH_OK;
}
