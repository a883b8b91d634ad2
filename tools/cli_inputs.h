// --input, --shape, --layout, --mean and --std: which values a model's inputs get.
#ifndef BERTH_TOOLS_CLI_INPUTS_H_
#define BERTH_TOOLS_CLI_INPUTS_H_

#include "tools/cli.h"

// What a model or program takes, before it is compiled.
typedef struct berth_cli_port {
    const char *name;
    berth_dtype dtype;
    int rank;                               // -1 = the model does not say
    int64_t dims[BERTH_MAX_RANK];           // -1 = open
    const char *dim_names[BERTH_MAX_RANK];  // of the open ones; NULL = none
} berth_cli_port;

// The inputs of cli->model, in its order; in the command's arena. Inside berth_arena_try. Errors: those of
// reading the model.
BERTH_MUST_USE berth_status berth_cli_ports(berth_cli_model *cli, const berth_cli_port **out_ports,
                                            uint32_t *out_count);

// The options of the argp parsers of cli.c: wrong usage ends the process.
void berth_cli_take_input(berth_cli_model *cli, const char *arg, struct argp_state *state);
void berth_cli_take_shape(berth_cli_model *cli, const char *arg, struct argp_state *state);
void berth_cli_take_layout(berth_cli_model *cli, int key, const char *arg,
                           struct argp_state *state);
// --mean (`out` = cli->mean), and --std, in which none is 0.
void berth_cli_take_numbers(berth_cli_numbers *out, const char *option, const char *arg,
                            struct argp_state *state);
void berth_cli_take_divisors(berth_cli_numbers *out, const char *option, const char *arg,
                             struct argp_state *state);

typedef struct berth_cli_dim {
    const char *name;  // of a dimension of the model, or "INPUT.AXIS"
    int64_t extent;
} berth_cli_dim;

typedef struct berth_cli_input {
    const char *name;
    berth_tensor tensor;
} berth_cli_input;

typedef struct berth_cli_values {
    const berth_cli_dim *dims;  // what --dim and --shape say
    uint32_t dim_count;
    const berth_cli_input *inputs;  // the files of --input
    uint32_t input_count;
} berth_cli_values;

// In the command's arena; files are only read where `read_inputs`. Errors: INVALID_ARGUMENT --shape does
// not fit the input; those of the files, naming them.
BERTH_MUST_USE berth_status berth_cli_read_values(berth_cli_model *cli, bool read_inputs,
                                                  berth_cli_values *out_values);

#endif  // BERTH_TOOLS_CLI_INPUTS_H_
