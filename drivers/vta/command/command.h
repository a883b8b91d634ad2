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

// A recorded program, or an executable (image.h), whose kernels are then in `image`.
typedef struct vta_file {
    bool is_image;
    berth_vta_trace trace;
    berth_vta_image image;
    berth_vta_config config;  // of either
} vta_file;

// Reads a file into the command's arena; an image is freed with it.
BERTH_MUST_USE berth_status vta_read_file(vta_command *command, const char *path,
                                          vta_file *out_file);

BERTH_MUST_USE berth_status vta_replay(vta_command *command);
BERTH_MUST_USE berth_status vta_disasm(vta_command *command);
BERTH_MUST_USE berth_status vta_profile(vta_command *command);

#endif  // BERTH_DRIVERS_VTA_COMMAND_COMMAND_H_
