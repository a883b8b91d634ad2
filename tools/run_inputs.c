#include "tools/run_inputs.h"

#include <string.h>

#include "base/tensor.h"

berth_status berth_run_inputs_feed(berth_session *session, const berth_cli_values *given,
                                   uint64_t seed) {
    for (uint32_t i = 0; i < given->input_count; ++i)
        BERTH_TRY(
            berth_session_set_input(session, given->inputs[i].name, &given->inputs[i].tensor));
    for (uint32_t i = 0; berth_session_input(session, i); ++i) {
        bool bound = false;
        for (uint32_t j = 0; j < given->input_count; ++j)
            bound |= strcmp(given->inputs[j].name, berth_session_input_name(session, i)) == 0;
        if (bound) continue;
        berth_tensor tensor = *berth_session_input(session, i);
        berth_tensor_fill_random(&tensor, seed + i);
    }
    return BERTH_OK;
}

static berth_status make_input(berth_arena *arena, const berth_port *port, uint64_t seed,
                               berth_tensor *out) {
    bool known = port->type.dtype && port->type.rank >= 0;
    *out = port->type;
    for (int d = 0; known && d < out->rank; ++d) {
        const bool bounded = port->most && (port->least[d] || port->most[d]);
        known = out->dims[d] >= 0 || bounded || (d == 0 && out->rank > 1);
        if (out->dims[d] < 0) out->dims[d] = bounded ? port->most[d] : 1;
    }
    if (!port->type.dtype)
        return berth_status_make(BERTH_UNSUPPORTED, "input \"%s\" is no tensor: it cannot be given",
                                 port->name);
    if (!known)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the shape of input \"%s\" is open: give it (--input %s=FILE)",
                                 port->name, port->name);
    *out = berth_tensor_create(arena, out->dtype, out->rank, out->dims);
    berth_tensor_fill_random(out, seed);
    return BERTH_OK;
}

berth_status berth_run_inputs_make(berth_arena *arena, const berth_program *program,
                                   const berth_cli_values *given, uint64_t seed,
                                   berth_tensor **out_inputs) {
    uint32_t count = berth_program_input_count(program), found = 0;
    berth_tensor *inputs = berth_arena_new_array(arena, berth_tensor, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_port *port = berth_program_input(program, i);
        uint32_t at = 0;
        while (at < given->input_count && strcmp(given->inputs[at].name, port->name) != 0) ++at;
        found += at < given->input_count;
        if (at < given->input_count)
            inputs[i] = given->inputs[at].tensor;
        else
            BERTH_TRY(make_input(arena, port, seed + i, &inputs[i]));
    }
    *out_inputs = inputs;
    if (found == given->input_count) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "%u inputs are given that the program does not have",
                             given->input_count - found);
}
