// Segments and host operations of byte code, as whoever runs a machine has them.
#include <string.h>

#include "artifact/program.h"
#include "executor/session_private.h"
#include "executor/vm.h"
#include "executor/vm_grown.h"

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

// Dimensions of one symbol. All inputs are what their ports say.
static berth_status check_same(const berth_vm_program *program, berth_vm_value *const *inputs,
                               uint32_t input) {
    const berth_vm_port *port = &program->inputs[input];
    for (int d = 0; port->is_tensor && d < port->rank; ++d) {
        const uint32_t first = (port->same_as[d] - 1) / BERTH_MAX_RANK;
        const uint32_t axis = (port->same_as[d] - 1) % BERTH_MAX_RANK;
        if (first > input || !program->inputs[first].is_tensor) continue;
        const int64_t extent = inputs[input]->tensor.dims[d];
        const int64_t wanted = inputs[first]->tensor.dims[axis];
        if (extent != wanted)
            return berth_status_make(BERTH_INCOMPATIBLE,
                                     "input \"%s\" (%s): dimension %d is %lld, but that of "
                                     "\"%s\" (%s) is %lld",
                                     port->name, port->type, d, (long long)extent,
                                     program->inputs[first].name, program->inputs[first].type,
                                     (long long)wanted);
    }
    return BERTH_OK;
}

berth_status berth_vm_check_inputs(const berth_vm_program *program, berth_vm_value *const *inputs) {
    for (uint32_t i = 0; i < program->input_count; ++i)
        BERTH_TRY(check_input(&program->inputs[i], inputs[i]));
    for (uint32_t i = 0; i < program->input_count; ++i) BERTH_TRY(check_same(program, inputs, i));
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

// One run of a segment's program.
typedef struct piece_run {
    berth_session *session;
    const berth_program *program;
    berth_vm_piece_call call;
    uint32_t output_count;
} piece_run;

static berth_vm_memory memory_of(const piece_run *r, const berth_program_io *io) {
    berth_vm_memory memory = {.blocks = r->call.blocks};
    memory.device = berth_session_io_device(r->session, io, &memory.memory);
    return memory;
}

// The input of the piece that the program's is, as it is given; NULL where only tensors are.
static berth_vm_value *value_of(const piece_run *r, uint32_t from) {
    if (r->call.dense && r->call.dense[from]) return r->call.dense[from];
    return r->call.values ? r->call.values[from] : NULL;
}

static berth_status feed_from_device(const piece_run *r, uint32_t input, berth_vm_value *value,
                                     berth_vm_memory memory) {
    berth_buffer *buffer = NULL;
    if (!value)
        return berth_status_make(BERTH_INTERNAL, "a segment has an input on a device, not a value");
    BERTH_TRY(berth_vm_value_to_device(value, memory, r->call.traffic, &buffer));
    return berth_session_bind_input(r->session, input, buffer);
}

static berth_status feed(const piece_run *r) {
    for (uint32_t i = 0; i < r->program->input_count; ++i) {
        const berth_vm_variant variant = {.program = r->program};
        uint32_t from = berth_vm_variant_input(&variant, i);
        berth_tensor *fed = &r->call.room[i];
        *fed = *berth_session_input(r->session, i);
        if (from >= r->call.piece->input_count ||
            berth_tensor_size_bytes(fed) != berth_tensor_size_bytes(&r->call.inputs[from]))
            return berth_status_make(BERTH_INTERNAL, "a segment has another input than was given");
        berth_vm_value *value = value_of(r, from);
        const berth_vm_memory memory = memory_of(r, &r->program->inputs[i]);
        if (memory.device) {
            BERTH_TRY(feed_from_device(r, i, value, memory));
            continue;
        }
        if (value) BERTH_TRY(berth_vm_value_to_host(value, r->call.traffic));
        fed->data = value ? value->tensor.data : r->call.inputs[from].data;
    }
    return BERTH_OK;
}

// What an output goes on from, as rows in memory with room for more.
static berth_status continue_input(const piece_run *r, uint32_t output, berth_vm_value **out) {
    const berth_program_io *io = &r->program->outputs[output];
    const berth_program_tensor *tensor = &r->program->tensors[io->tensor];
    const uint32_t from = io->continues - 1;
    berth_program_room room;
    if (from >= r->call.piece->input_count || !r->call.values || !r->call.values[from] ||
        !berth_program_tensor_room(tensor, &room))
        return berth_status_make(BERTH_INTERNAL, "a segment has another input than was given");
    return berth_vm_grown_make(r->call.values[from], tensor, &room, memory_of(r, io),
                               r->call.traffic, r->call.copied_bytes, out);
}

static berth_status make_output(const piece_run *r, uint32_t i, berth_vm_value **out) {
    const berth_tensor *made = berth_session_output(r->session, i);
    const berth_vm_memory memory = memory_of(r, &r->program->outputs[i]);
    const berth_allocator allocator = r->call.allocator;
    if (r->program->outputs[i].continues)
        BERTH_TRY(continue_input(r, i, out));
    else if (memory.device)
        BERTH_TRY(
            berth_vm_value_on_device(allocator, memory, made->dtype, made->rank, made->dims, out));
    else
        BERTH_TRY(berth_vm_value_tensor(allocator, made->dtype, made->rank, made->dims, out));
    if (!memory.device) return BERTH_OK;
    const berth_vm_value *held = (*out)->storage ? (*out)->storage : *out;
    return berth_session_bind_output(r->session, i, held->buffer);
}

static berth_status make_outputs(const piece_run *r, berth_vm_value **outputs) {
    berth_tensor *results = r->call.room + r->program->input_count;
    for (uint32_t i = 0; i < r->output_count; ++i) {
        BERTH_TRY(make_output(r, i, &outputs[i]));
        results[i] = outputs[i]->tensor;
    }
    return BERTH_OK;
}

static void tell(const piece_run *r) {
    const berth_piece_facts facts = {.name = r->call.piece->name,
                                     .op = r->call.piece->op,
                                     .target = r->program->target_json,
                                     .session = r->session,
                                     .start_ns = r->session->run_start_ns,
                                     .duration_ns =
                                         r->session->run_end_ns - r->session->run_start_ns};
    r->call.watch->listener(r->call.watch->user, &facts);
}

static berth_status run_bound(const piece_run *r, berth_vm_value **outputs) {
    BERTH_TRY(feed(r));
    BERTH_TRY(make_outputs(r, outputs));
    berth_status status =
        berth_session_run_with(r->session, r->call.room, r->program->input_count,
                               r->call.room + r->program->input_count, r->output_count, -1);
    // What it began must not go on in the workspace that other sessions use, too.
    if (status) berth_status_ignore(berth_session_recover(r->session));
    return status;
}

berth_status berth_vm_piece_run(berth_session *session, const berth_program *program,
                                const berth_vm_piece_call *call, berth_vm_value **outputs) {
    const piece_run r = {session, program, *call, program->output_count};
    for (uint32_t i = 0; i < r.output_count; ++i) outputs[i] = NULL;
    berth_status status = run_bound(&r, outputs);
    berth_session_unbind(session);
    if (status) {
        release_all(outputs, r.output_count);
        return status;
    }
    for (uint32_t i = 0; i < r.output_count; ++i)
        if (program->outputs[i].continues) berth_vm_grown_keep(outputs[i]);
    if (call->watch->listener) tell(&r);
    return BERTH_OK;
}

berth_status berth_vm_piece_give(berth_allocator allocator, const berth_tensor *tensors,
                                 uint32_t count, berth_vm_value **outputs) {
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < count; ++i) outputs[i] = NULL;
    for (uint32_t i = 0; i < count && !status; ++i)
        status = berth_vm_value_copy(allocator, &tensors[i], &outputs[i]);
    if (status) release_all(outputs, count);
    return status;
}
