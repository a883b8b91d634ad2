#include "executor/vm_states.h"

#include <string.h>

#include "executor/vm_grown.h"

static size_t bytes_of(const berth_vm_program *program) {
    return ((size_t)program->input_count + 1) * 2 * sizeof(berth_vm_value *);
}

berth_status berth_vm_states_open(const berth_vm_program *program, berth_allocator allocator,
                                  berth_vm_states *out_states) {
    out_states->held = berth_calloc(berth_allocator_system(), 1, bytes_of(program));
    if (!out_states->held) return berth_status_oom();
    out_states->fed = out_states->held + program->input_count;
    out_states->program = program;
    out_states->allocator = allocator;
    return BERTH_OK;
}

void berth_vm_states_reset(berth_vm_states *states) {
    for (uint32_t i = 0; i < states->program->input_count; ++i) {
        berth_vm_value_release(states->held[i]);
        states->held[i] = NULL;
    }
}

void berth_vm_states_close(berth_vm_states *states) {
    if (!states->program) return;
    berth_vm_states_reset(states);
    berth_free(berth_allocator_system(), states->held, bytes_of(states->program));
    states->program = NULL;
}

// Left out where its dimensions have no bounds.
static berth_status make_first(const berth_vm_port *port, berth_allocator allocator,
                               berth_vm_value **out_value) {
    int64_t dims[BERTH_MAX_RANK];
    if (!port->state) return BERTH_OK;
    for (int d = 0; d < port->rank; ++d) {
        dims[d] = port->dims[d] >= 0 ? port->dims[d] : port->least[d];
        if (port->dims[d] < 0 && !port->most[d]) return BERTH_OK;
    }
    BERTH_TRY(berth_vm_value_tensor(allocator, port->dtype, port->rank, dims, out_value));
    size_t size_bytes = berth_tensor_size_bytes(&(*out_value)->tensor);
    if (size_bytes) memset((*out_value)->tensor.data, 0, size_bytes);
    return BERTH_OK;
}

berth_status berth_vm_states_feed(berth_vm_states *states, berth_vm_value *const *inputs) {
    const berth_vm_program *program = states->program;
    for (uint32_t i = 0; i < program->input_count; ++i) {
        if (!inputs[i] && !states->held[i])
            BERTH_TRY(make_first(&program->inputs[i], states->allocator, &states->held[i]));
        states->fed[i] = inputs[i] ? inputs[i] : states->held[i];
        if (!states->fed[i])
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "input \"%s\" (%s) is missing: give a value",
                                     program->inputs[i].name, program->inputs[i].type);
    }
    return BERTH_OK;
}

berth_status berth_vm_states_take(berth_vm_states *states, berth_vm_value **outputs) {
    const berth_vm_program *program = states->program;
    for (int moves = 0; moves < 2; ++moves)
        for (uint32_t i = 0; i < program->input_count; ++i) {
            if (!program->inputs[i].state) continue;
            berth_vm_value **output = &outputs[program->inputs[i].state - 1];
            // What lies in memory of the caller is copied: it is read after the call.
            if (!moves && *output && !(*output)->storage) BERTH_TRY(berth_vm_value_own(output));
            if (!moves) continue;
            berth_vm_value_release(states->held[i]);
            states->held[i] = *output;
            *output = NULL;
        }
    return BERTH_OK;
}

// Who looks at a state may keep it longer than the device is open.
static berth_status copy_from_device(berth_vm_value **value) {
    berth_vm_value *own = NULL;
    if (!(*value)->buffer) return BERTH_OK;
    BERTH_TRY(berth_vm_value_copy((*value)->allocator, &(*value)->tensor, &own));
    berth_vm_value_release(*value);
    *value = own;
    return BERTH_OK;
}

berth_status berth_vm_states_get(const berth_vm_states *states, uint32_t input,
                                 berth_vm_value **out_value) {
    *out_value = NULL;
    if (input >= states->program->input_count || !states->held[input]) return BERTH_OK;
    berth_vm_traffic traffic = {0};
    BERTH_TRY(berth_vm_value_to_host(states->held[input], &traffic));
    *out_value = berth_vm_value_retain(states->held[input]);
    if ((*out_value)->storage) return berth_vm_grown_to_dense(out_value, &traffic);
    return copy_from_device(out_value);
}
