// --input, --shape, --layout, --mean and --std: which values a model's inputs get.
#ifndef BERTH_TOOLS_CLI_INPUTS_H_
#define BERTH_TOOLS_CLI_INPUTS_H_

#include "tools/cli.h"

// What a model or program takes, before it is compiled.
typedef struct berth_cli_port {
    const char *name;
    berth_dtype dtype;
    int rank;                      // -1 = the model does not say
    int64_t dims[BERTH_MAX_RANK];  // -1 = open
} berth_cli_port;

// The inputs of cli->model, in its order; in the command's arena. Inside berth_arena_try. Errors: those of
// reading the model.
BERTH_MUST_USE berth_status berth_cli_ports(berth_cli_model *cli, const berth_cli_port **out_ports,
                                            uint32_t *out_count);

// The options of the argp parsers of cli.c: wrong usage ends the process.
void berth_cli_take_input(berth_cli_model *cli, const char *arg, struct argp_state *state);
void berth_cli_take_shape(berth_cli_model *cli, const char *arg, struct argp_state *state);
void berth_cli_take_layout(berth_cli_model *cli, const char *arg, struct argp_state *state);
// --mean (`out` = cli->mean) or --std.
void berth_cli_take_numbers(berth_cli_numbers *out, const char *option, const char *arg,
                            struct argp_state *state);

// What --dim and --shape say, into out->import. Errors: INVALID_ARGUMENT --shape does not fit the input.
BERTH_MUST_USE berth_status berth_cli_read_dims(berth_cli_model *cli, berth_model_options *out);
// Reads the files of --input, into out->import. Errors: those of the files, naming them.
BERTH_MUST_USE berth_status berth_cli_read_inputs(berth_cli_model *cli, berth_model_options *out);

#endif  // BERTH_TOOLS_CLI_INPUTS_H_
