// Values that wait in host memory while a device's memory is full.
#include "compiler/package/value_moves.h"

static const bool writes_second[] = {false, true};

// All bytes of a storage.
static uint32_t add_whole(berth_packager *p, uint32_t storage, const char *name) {
    uint64_t size_bytes = p->storages.data[storage].size_bytes;
    berth_program_tensor tensor = {.name = name,
                                   .size_bytes = size_bytes,
                                   .dtype = BERTH_DTYPE_U8,
                                   .rank = 1,
                                   .dims = {(int64_t)size_bytes},
                                   .layout = ""};
    berth_vec_push(p->arena, &p->tensors, tensor);
    berth_vec_push(p->arena, &p->storage_of, storage);
    return p->tensors.count - 1;
}

static void insert_copy(berth_packager *p, uint32_t device, uint32_t at, uint32_t source,
                        uint32_t destination, const char *name) {
    uint32_t *bindings = berth_arena_new_array(p->arena, uint32_t, 2);
    bindings[0] = source;
    bindings[1] = destination;
    berth_program_step step = {.kind = BERTH_STEP_COPY,
                               .device = device,
                               .kernel = BERTH_NO_INDEX,
                               .bindings = bindings,
                               .name = name,
                               .op = "copy"};
    berth_step_facts facts = {.written = writes_second, .unit = BERTH_NO_INDEX, .apart = true};
    berth_packager__insert_steps(p, at, &step, &facts, 1);
}

// Where the value comes back: as early before its use as there is room for it and kernels hide it.
static uint32_t return_step(const berth_waiting_value *value, const berth_spill_request *request) {
    uint32_t at = value->after;
    double hidden_ns = 0;
    while (at - 1 > request->peak_step && request->needed[at - 1] <= request->room_bytes &&
           hidden_ns < request->copy_ns)
        hidden_ns += request->step_ns[--at];
    return at;
}

void berth_packager__spill(berth_packager *p, const berth_waiting_value *value,
                           const berth_spill_request *request) {
    const berth_storage held = p->storages.data[value->storage];
    uint32_t host = berth_packager__place(p, p->target->host, NULL);
    uint32_t back = return_step(value, request);
    const char *name = berth_packager__name_of(p, value->storage, value->before);
    uint32_t second =
        berth_packager__add_workspace(p, held.place, held.size_bytes, value->after, held.last_step);
    uint32_t waiting =
        berth_packager__add_workspace(p, host, held.size_bytes, value->before, value->after);
    uint32_t out = add_whole(p, value->storage, name), kept = add_whole(p, waiting, name);
    uint32_t in = add_whole(p, second, name);
    for (uint32_t i = value->after; i < p->steps.count; ++i)
        berth_packager__rebind_step(p, i, value->storage, second);
    insert_copy(p, request->device, back, kept, in, berth_arena_printf(p->arena, "%s back", name));
    p->storages.data[second].first_step = p->storages.data[waiting].last_step = back;
    p->storages.data[value->storage].last_step = value->before;
    insert_copy(p, request->device, value->before + 1, out, kept,
                berth_arena_printf(p->arena, "%s away", name));
    p->storages.data[value->storage].last_step = value->before + 1;
    p->storages.data[waiting].first_step = value->before + 1;
}
