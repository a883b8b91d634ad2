#include "toolkit/value_file.h"

#include "base/file.h"
#include "base/tensor_proto.h"
#include "toolkit/tensor_file.h"

typedef struct value_job {
    berth_arena *arena;
    const berth_mapping *mapping;
    berth_test_value *value;
} value_job;

typedef BERTH_VEC(berth_tensor) tensor_list;

static berth_status add_tensor(berth_arena *arena, berth_wire wire, tensor_list *items) {
    berth_tensor_proto proto;
    BERTH_TRY(berth_tensor_proto_parse(arena, wire, false, &proto));
    if (proto.external)
        return berth_status_make(BERTH_UNSUPPORTED, "a tensor's data is in another file (\"%s\")",
                                 proto.location);
    berth_vec_push(arena, items, proto.tensor);
    return BERTH_OK;
}

// SequenceProto: 3 = tensor_values, 4 .. 7 = values of other kinds.
static berth_status read_sequence(berth_arena *arena, berth_wire wire, tensor_list *items) {
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        if (field.number == 3)
            BERTH_TRY(add_tensor(arena, berth_wire_enter(&wire, &field), items));
        else if (field.number >= 4 && field.number <= 7)
            return berth_status_make(BERTH_UNSUPPORTED, "a sequence of other things than tensors");
    }
    return berth_wire_status(&wire);
}

// OptionalProto: 3 = tensor_value, 5 = sequence_value.
static berth_status read_optional(berth_arena *arena, berth_wire wire, berth_test_value *value,
                                  tensor_list *items) {
    for (berth_wire_field field; berth_wire_next(&wire, &field);) {
        bool tensor = field.number == 3 && value->kind == BERTH_VALUE_OPTIONAL;
        bool sequence = field.number == 5 && value->kind == BERTH_VALUE_OPTIONAL_SEQUENCE;
        if (tensor) BERTH_TRY(add_tensor(arena, berth_wire_enter(&wire, &field), items));
        if (sequence) BERTH_TRY(read_sequence(arena, berth_wire_enter(&wire, &field), items));
        value->present |= tensor || sequence;
    }
    return berth_wire_status(&wire);
}

static berth_status read_value(void *user) {
    value_job *job = user;
    tensor_list items = {0};
    berth_wire wire = berth_wire_make(job->mapping->data, job->mapping->size_bytes);
    job->value->present = job->value->kind == BERTH_VALUE_SEQUENCE;
    if (job->value->present)
        BERTH_TRY(read_sequence(job->arena, wire, &items));
    else
        BERTH_TRY(read_optional(job->arena, wire, job->value, &items));
    job->value->items = items.data;
    job->value->item_count = items.count;
    return BERTH_OK;
}

berth_status berth_value_file_read(berth_arena *arena, const char *path, berth_value_kind kind,
                                   berth_test_value *out_value) {
    *out_value = (berth_test_value){.kind = kind, .present = true};
    berth_mapping mapping;
    BERTH_TRY(berth_file_map(path, &mapping));
    value_job job = {.arena = arena, .mapping = &mapping, .value = out_value};
    berth_status status = berth_arena_try(arena, read_value, &job);
    berth_file_unmap(mapping);
    return berth_status_prefix(status, "\"%s\"", path);
}
