// The digits example: classifies handwritten digits with a small convolutional network, its
// convolutions on OpenCL and the rest on the CPU, and prints accuracy, where each operation ran and
// why, and memory and time per device.
//   digits [TARGET [PIN]] (default: "cpu,opencl" "op:Conv=opencl:0"), from the folder
//   examples/digits or with BERTH_DIGITS_FOLDER defined when it is built.
#include "executor/session.h"
#include "toolkit/model.h"
#include "toolkit/tensor_file.h"
#include <stdio.h>
#include <string.h>

#ifndef BERTH_DIGITS_FOLDER
#define BERTH_DIGITS_FOLDER "examples/digits"
#endif

static int64_t best_class(const berth_tensor *probabilities, int64_t row) {
    int64_t classes = probabilities->dims[1];
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
        if (berth_tensor_get_f64(probabilities, row * classes + c) >
            berth_tensor_get_f64(probabilities, row * classes + best))
            best = c;
    return best;
}

static void draw(const berth_tensor *images, int64_t index) {
    static const char shades[] = " .:-=+*#%@";
    for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) {
            double value = berth_tensor_get_f64(images, index * 64 + y * 8 + x);
            char shade = shades[(int)(value * 9.0)];
            printf("%c%c", shade, shade);
        }
        putchar('\n');
    }
}

static void report(const berth_program *program, berth_session *session) {
    printf("\nwhere each operation runs:\n");
    for (uint32_t i = 0; i < program->placement_count; ++i) {
        const berth_program_placement *p = &program->placements[i];
        printf("  %-10s %-10s %-10s %s\n", p->node, p->op, program->devices[p->device].name,
               p->reason);
    }
    berth_session_report facts;
    berth_session_get_report(session, &facts);
    printf("\nper device, for all images at once:\n");
    for (uint32_t d = 0; d < facts.device_count; ++d) {
        char bytes[32];
        berth_format_bytes(facts.devices[d].memory_bytes, bytes);
        printf("  %-10s %-40s %u kernels, busy %.3f ms, memory %s\n", facts.devices[d].name,
               facts.devices[d].physical_name, facts.devices[d].kernel_count,
               (double)facts.devices[d].busy_ns / 1e6, bytes);
    }
    char bytes[32];
    berth_format_bytes(facts.copied_bytes, bytes);
    printf("copied between devices: %s\n", bytes);
}

static berth_status classify(berth_arena *arena, const char *target, const char *pin) {
    berth_tensor images, labels;
    BERTH_TRY(berth_tensor_file_read(arena, BERTH_DIGITS_FOLDER "/test_images.npy", &images, NULL));
    BERTH_TRY(berth_tensor_file_read(arena, BERTH_DIGITS_FOLDER "/test_labels.npy", &labels, NULL));
    const char *pins[] = {pin, NULL};
    berth_dim_binding batch = {"batch", images.dims[0]};
    berth_model_options options = {
        .target = target, .target_options.pins = pins, .import = {.dims = &batch, .dim_count = 1}};
    berth_model *model = NULL;
    berth_session *session = NULL;
    BERTH_TRY(berth_model_load(BERTH_DIGITS_FOLDER "/digits.onnx", &options, &model));
    berth_session_options session_options = {.profile = true};
    berth_status status = berth_session_open(berth_allocator_system(), berth_model_program(model),
                                             &session_options, &session);
    if (!status) status = berth_session_set_input(session, "image", &images);
    for (int run = 0; run < 5 && !status; ++run) status = berth_session_run(session, -1);
    if (!status) {
        const berth_tensor *probabilities = berth_session_output(session, 0);
        int64_t right = 0;
        for (int64_t i = 0; i < labels.dims[0]; ++i)
            right += best_class(probabilities, i) == berth_tensor_get_i64(&labels, i);
        draw(&images, 0);
        printf("the first image is a %lld; recognised as %lld\n",
               (long long)berth_tensor_get_i64(&labels, 0),
               (long long)best_class(probabilities, 0));
        printf("accuracy: %lld of %lld images, %.2f %%\n", (long long)right,
               (long long)labels.dims[0], 100.0 * (double)right / (double)labels.dims[0]);
        report(berth_model_program(model), session);
    }
    berth_session_close(session);
    berth_model_destroy(model);
    return status;
}

int main(int argc, char **argv) {
    const char *target = argc > 1 ? argv[1] : "cpu,opencl";
    const char *pin = argc > 2 ? argv[2] : argc > 1 ? NULL : "op:Conv=opencl:0";
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (!status) status = classify(arena, target, pin);
    if (status) fprintf(stderr, "digits: %s\n", berth_status_message(status));
    int exit_status = status ? 1 : 0;
    berth_status_free(status);
    berth_arena_destroy(arena);
    return exit_status;
}
