#include "tools/vm_inputs.h"

#include <berth/inspect.h>
#include <string.h>

#include "base/tensor.h"

typedef struct feeding {
    berth_cli_model *cli;
    const berth_dynamic *model;
    const berth_cli_values *values;
    uint64_t seed;
    berth_tensor *inputs;
} feeding;

static const berth_tensor *given_input(const feeding *r, const char *name) {
    const berth_cli_values *given = r->values;
    for (uint32_t i = 0; i < given->input_count; ++i)
        if (strcmp(given->inputs[i].name, name) == 0) return &given->inputs[i].tensor;
    return NULL;
}

static berth_status check_given(const feeding *r) {
    const berth_cli_values *given = r->values;
    for (uint32_t i = 0; i < given->input_count; ++i) {
        bool found = false;
        for (uint32_t k = 0; k < berth_dynamic_input_count(r->model); ++k)
            found |= strcmp(berth_dynamic_input_name(r->model, k), given->inputs[i].name) == 0;
        if (!found)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "the model has no input \"%s\"",
                                     given->inputs[i].name);
    }
    return BERTH_OK;
}

// The extent of an open dimension for random values: the most of its bounds, else 1 for what looks like the
// batch; -1: it must be given.
static int64_t extent_of(const berth_dynamic_port *port, int d) {
    if (port->dims[d] >= 0) return port->dims[d];
    if (port->least[d] || port->most[d]) return port->most[d];
    return d == 0 && port->rank > 1 ? 1 : -1;
}

// Random values.
static berth_status random_input(const feeding *r, const berth_dynamic_port *port, uint32_t index) {
    int64_t dims[BERTH_MAX_RANK];
    bool known = port->is_tensor && port->dtype && port->rank >= 0;
    bool by_bounds = false, assumed = false;
    for (int d = 0; known && d < port->rank; ++d) {
        dims[d] = extent_of(port, d);
        known = dims[d] >= 0;
        by_bounds |= port->least[d] || port->most[d];
        assumed |= port->dims[d] < 0;
    }
    if (!port->is_tensor)
        return berth_status_make(
            BERTH_UNSUPPORTED,
            "input \"%s\" is %s, which cannot be given here yet (`berth verify` "
            "reads it)",
            port->name, port->type);
    if (!known)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "input \"%s\" is %s: give it (--input %s=FILE), or its dimensions "
                                 "(--dim NAME=EXTENT)",
                                 port->name, port->type, port->name);
    if (by_bounds)
        berth_cli_level_message(
            r->cli, BERTH_MESSAGE_NOTE,
            berth_arena_printf(r->cli->arena,
                               "input \"%s\" (%s): run with the most of its bounds; --input gives "
                               "others",
                               port->name, port->type));
    else if (assumed)
        berth_cli_level_message(
            r->cli, BERTH_MESSAGE_NOTE,
            berth_arena_printf(
                r->cli->arena, "input \"%s\" (%s): run with a batch of 1; %s gives others",
                port->name, port->type,
                berth_program_file_is(r->cli->model) ? "--input" : "--input or --dim"));
    r->inputs[index] = berth_tensor_create(r->cli->arena, port->dtype, port->rank, dims);
    berth_tensor_fill_random(&r->inputs[index], r->seed + index);
    return BERTH_OK;
}

static berth_status feed(const feeding *r) {
    BERTH_TRY(check_given(r));
    for (uint32_t i = 0; i < berth_dynamic_input_count(r->model); ++i) {
        berth_dynamic_port port;
        BERTH_TRY(berth_dynamic_get_input(r->model, i, &port, sizeof(port)));
        const berth_tensor *given = given_input(r, port.name);
        if (given)
            r->inputs[i] = *given;
        else
            BERTH_TRY(random_input(r, &port, i));
    }
    return BERTH_OK;
}

berth_status berth_vm_inputs_make(berth_cli_model *cli, const berth_dynamic *model,
                                  const berth_cli_values *given, uint64_t seed,
                                  berth_tensor **out_inputs) {
    const feeding r = {.cli = cli,
                       .model = model,
                       .values = given,
                       .seed = seed,
                       .inputs = berth_arena_new_array(cli->arena, berth_tensor,
                                                       berth_dynamic_input_count(model) + 1)};
    *out_inputs = r.inputs;
    return feed(&r);
}
