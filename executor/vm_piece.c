// Segments and host operations of byte code, as whoever runs a machine has them.
#include <string.h>

#include "artifact/program.h"
#include "executor/vm.h"

static berth_status check_bounds(const berth_vm_port *port, const berth_tensor *tensor) {
    for (int d = 0; d < port->rank; ++d) {
        if (!port->least[d] && !port->most[d]) continue;
        if (tensor->dims[d] < port->least[d] || tensor->dims[d] > port->most[d])
            return berth_status_make(BERTH_INCOMPATIBLE,
                                     "input \"%s\" (%s): dimension %d is %lld, outside its bounds "
                                     "%lld..%lld",
                                     port->name, port->type, d, (long long)tensor->dims[d],
                                     (long long)port->least[d], (long long)port->most[d]);
    }
    return BERTH_OK;
}

static berth_status check_input(const berth_vm_port *port, const berth_vm_value *value) {
    char shape[192];
    if (!port->is_tensor) return BERTH_OK;
    if (!value || value->kind != BERTH_VM_VALUE_TENSOR)
        return berth_status_make(BERTH_INCOMPATIBLE, "input \"%s\" is no tensor, but must be %s",
                                 port->name, port->type);
    const berth_tensor *tensor = &value->tensor;
    bool fits = (!port->dtype || tensor->dtype == port->dtype) &&
                (port->rank < 0 || tensor->rank == port->rank);
    for (int d = 0; fits && d < port->rank; ++d)
        fits = port->dims[d] < 0 || tensor->dims[d] == port->dims[d];
    if (fits) return check_bounds(port, tensor);
    berth_tensor_format_shape(tensor, shape);
    return berth_status_make(BERTH_INCOMPATIBLE, "input \"%s\" is %s, but must be %s", port->name,
                             shape, port->type);
}

berth_status berth_vm_check_inputs(const berth_vm_program *program, berth_vm_value *const *inputs) {
    for (uint32_t i = 0; i < program->input_count; ++i)
        BERTH_TRY(check_input(&program->inputs[i], inputs[i]));
    return BERTH_OK;
}

berth_status berth_vm_piece_tensors(const berth_vm_piece *piece, berth_vm_value *const *inputs,
                                    berth_tensor *out_tensors) {
    for (uint32_t i = 0; i < piece->input_count; ++i) {
        out_tensors[i] = (berth_tensor){.dtype = BERTH_DTYPE_NONE};
        if (!inputs[i]) continue;
        if (inputs[i]->kind != BERTH_VM_VALUE_TENSOR)
            return berth_status_make(BERTH_INVALID_ARGUMENT, "operand %u of %s is not a tensor", i,
                                     piece->name);
        out_tensors[i] = inputs[i]->tensor;
    }
    return BERTH_OK;
}

static void release_all(berth_vm_value **values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        berth_vm_value_release(values[i]);
        values[i] = NULL;
    }
}

static berth_status feed(berth_session *session, const berth_program *program,
                         const berth_tensor *inputs, uint32_t input_count, berth_tensor *room) {
    for (uint32_t i = 0; i < program->input_count; ++i) {
        const berth_vm_variant variant = {.program = program};
        uint32_t from = berth_vm_variant_input(&variant, i);
        room[i] = *berth_session_input(session, i);
        if (from >= input_count ||
            berth_tensor_size_bytes(&room[i]) != berth_tensor_size_bytes(&inputs[from]))
            return berth_status_make(BERTH_INTERNAL, "a segment has another input than was given");
        room[i].data = inputs[from].data;
    }
    return BERTH_OK;
}

berth_status berth_vm_piece_run(berth_session *session, const berth_program *program,
                                const berth_tensor *inputs, uint32_t input_count,
                                berth_tensor *room, berth_vm_value **outputs) {
    uint32_t count = program->output_count;
    berth_tensor *results = room + program->input_count;
    BERTH_TRY(feed(session, program, inputs, input_count, room));
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < count; ++i) outputs[i] = NULL;
    for (uint32_t i = 0; i < count && !status; ++i) {
        const berth_tensor *made = berth_session_output(session, i);
        status = berth_vm_value_tensor(berth_allocator_system(), made->dtype, made->rank,
                                       made->dims, &outputs[i]);
        if (!status) results[i] = outputs[i]->tensor;
    }
    if (status) {
        release_all(outputs, count);
        return status;
    }
    status = berth_session_run_with(session, room, program->input_count, results, count, -1);
    if (status) {
        // What it began must not go on in the workspace that other sessions use, too.
        berth_status_ignore(berth_session_recover(session));
        release_all(outputs, count);
    }
    return status;
}

berth_status berth_vm_piece_give(const berth_tensor *tensors, uint32_t count,
                                 berth_vm_value **outputs) {
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < count; ++i) outputs[i] = NULL;
    for (uint32_t i = 0; i < count && !status; ++i)
        status = berth_vm_value_copy(berth_allocator_system(), &tensors[i], &outputs[i]);
    if (status) release_all(outputs, count);
    return status;
}
