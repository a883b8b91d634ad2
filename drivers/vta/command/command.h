// The actions of `berth vta` (the program berth-vta).
#ifndef BERTH_DRIVERS_VTA_COMMAND_COMMAND_H_
#define BERTH_DRIVERS_VTA_COMMAND_COMMAND_H_

#include "drivers/vta/image.h"
#include "drivers/vta/trace_file.h"
#include "tools/cli.h"

typedef struct vta_command {
    berth_cli_model cli;
    const char *action;
    berth_cli_strings files;
    const char *output;  // profile: the picture
    berth_vta_timing timing;
    int order;  // replay: one of them; -1 = all
    uint64_t most_micro_ops;
    bool json;
} vta_command;

// What is run: a kernel, and the operations of the model that it is for.
typedef struct vta_step {
    const berth_vta_kernel *kernel;
    const char *name, *op;  // op: "" = not known
} vta_step;

// A recorded program, or an executable (image.h), by itself or of a program of `berth build`, whose
// kernels are then in `image`.
typedef struct vta_file {
    bool is_image;
    BERTH_VEC(vta_step) steps;  // of an image: its kernels, or a program's in its order
    berth_vta_trace trace;
    berth_vta_image image;
    berth_vta_config config;  // of either
} vta_file;

// Reads a file into the command's arena; an image is freed with it.
BERTH_MUST_USE berth_status vta_read_file(vta_command *command, const char *path,
                                          vta_file *out_file);

// program.c
BERTH_MUST_USE berth_status vta_read_image(vta_command *command, const void *data,
                                           size_t size_bytes, vta_file *out_file);
// Errors: NOT_FOUND the program has nothing for a VTA; UNSUPPORTED for several; those of its file.
BERTH_MUST_USE berth_status vta_read_program(vta_command *command, const char *path,
                                             vta_file *out_file);

BERTH_MUST_USE berth_status vta_replay(vta_command *command);
BERTH_MUST_USE berth_status vta_disasm(vta_command *command);
BERTH_MUST_USE berth_status vta_profile(vta_command *command);

#endif  // BERTH_DRIVERS_VTA_COMMAND_COMMAND_H_
