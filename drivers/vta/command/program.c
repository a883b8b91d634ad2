// The parts of a program file (`berth build`) that a VTA runs.
#include <string.h>

#include "artifact/file.h"
#include "artifact/program.h"
#include "drivers/vta/command/command.h"

static void free_image(void *pointer) {
    berth_vta_image_free(pointer);
}

berth_status vta_read_image(vta_command *command, const void *data, size_t size_bytes,
                            vta_file *out_file) {
    berth_arena *arena = command->cli.arena;
    berth_vta_image *image = berth_arena_new(arena, berth_vta_image);
    BERTH_TRY(berth_vta_image_read(berth_allocator_system(), data, size_bytes, image));
    berth_arena_defer(arena, free_image, image);
    out_file->is_image = true;
    out_file->image = *image;
    out_file->config = image->config;
    for (uint32_t k = 0; k < image->kernel_count; ++k)
        berth_vec_push(arena, &out_file->steps,
                       (vta_step){&image->kernels[k], image->kernels[k].name, ""});
    return BERTH_OK;
}

static const berth_vta_kernel *find(const vta_file *file, const char *entry) {
    for (uint32_t k = 0; k < file->image.kernel_count; ++k)
        if (strcmp(file->image.kernels[k].name, entry) == 0) return &file->image.kernels[k];
    return NULL;
}

berth_status vta_read_program(vta_command *command, const char *path, vta_file *out_file) {
    const berth_program *program = NULL;
    uint32_t found = BERTH_NO_INDEX;
    BERTH_TRY(berth_program_read(command->cli.arena, path, NULL, &program));
    for (uint32_t i = 0; i < program->executable_count; ++i) {
        if (strcmp(program->executables[i].format, BERTH_VTA_FORMAT) != 0) continue;
        if (found != BERTH_NO_INDEX)
            return berth_status_make(BERTH_UNSUPPORTED, "executables for several VTAs");
        found = i;
    }
    if (found == BERTH_NO_INDEX)
        return berth_status_make(BERTH_NOT_FOUND, "a program without work for a VTA");
    const berth_executable_image *executable = &program->executables[found];
    BERTH_TRY(vta_read_image(command, executable->data, (size_t)executable->size_bytes, out_file));
    out_file->steps.count = 0;
    for (uint32_t s = 0; s < program->step_count; ++s) {
        const berth_program_step *step = &program->steps[s];
        if (step->kind != BERTH_STEP_DISPATCH || program->kernels[step->kernel].executable != found)
            continue;
        const berth_vta_kernel *kernel = find(out_file, program->kernels[step->kernel].entry);
        if (!kernel)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "step %s: no kernel %s", step->name,
                                     program->kernels[step->kernel].entry);
        berth_vec_push(command->cli.arena, &out_file->steps,
                       (vta_step){kernel, step->name, step->op});
    }
    return BERTH_OK;
}
