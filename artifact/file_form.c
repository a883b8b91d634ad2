#include "artifact/file_form.h"

#include "artifact/vm.h"
#include "base/hash.h"

#define TEXT(type, member)                                                                         \
    { BERTH_FIELD_TEXT, 1, (uint16_t)offsetof(type, member) }
#define U32(type, member)                                                                          \
    { BERTH_FIELD_U32, 1, (uint16_t)offsetof(type, member) }
#define U32S(type, member, count)                                                                  \
    { BERTH_FIELD_U32, count, (uint16_t)offsetof(type, member) }
#define X64(type, member)                                                                          \
    { BERTH_FIELD_64, 1, (uint16_t)offsetof(type, member) }
#define X64S(type, member, count)                                                                  \
    { BERTH_FIELD_64, count, (uint16_t)offsetof(type, member) }
#define BOOL(type, member)                                                                         \
    { BERTH_FIELD_BOOL, 1, (uint16_t)offsetof(type, member) }
#define IMAGE(type, member)                                                                        \
    { BERTH_FIELD_IMAGE, 1, (uint16_t)offsetof(type, member) }

// What is stored as 32 or 64 bits must be so in memory.
_Static_assert(sizeof(int) == 4 && sizeof(berth_dtype) == 4 && sizeof(berth_pool_usage) == 4,
               "32-bit fields");
_Static_assert(sizeof(double) == 8 && sizeof(berth_file_header) == 64 &&
                   sizeof(berth_file_section) == 32,
               "64-bit fields and fixed forms");

static const berth_file_field program_fields[] = {
    TEXT(berth_file_program, name), TEXT(berth_file_program, target_json),
    TEXT(berth_file_program, executor), X64(berth_file_program, predicted_ns)};
static const berth_file_field device_fields[] = {
    TEXT(berth_program_device, name), TEXT(berth_program_device, kind),
    TEXT(berth_program_device, target_json), U32(berth_program_device, virtual_id),
    BOOL(berth_program_device, host_only)};
static const berth_file_field queue_fields[] = {U32(berth_program_queue, device),
                                                U32(berth_program_queue, kind)};
static const berth_file_field pool_fields[] = {TEXT(berth_program_pool, scope),
                                               X64(berth_program_pool, size_bytes),
                                               X64(berth_program_pool, lower_bound_bytes),
                                               X64(berth_program_pool, shared_with.word),
                                               U32(berth_program_pool, device),
                                               U32(berth_program_pool, usage),
                                               U32(berth_program_pool, alignment_bytes)};
static const berth_file_field tensor_fields[] = {TEXT(berth_program_tensor, name),
                                                 TEXT(berth_program_tensor, layout),
                                                 X64(berth_program_tensor, offset_bytes),
                                                 X64(berth_program_tensor, size_bytes),
                                                 X64S(berth_program_tensor, dims, BERTH_MAX_RANK),
                                                 U32(berth_program_tensor, pool),
                                                 U32(berth_program_tensor, dtype),
                                                 U32(berth_program_tensor, rank)};
static const berth_file_field constant_fields[] = {X64(berth_file_constant, offset_bytes),
                                                   U32(berth_file_constant, tensor),
                                                   U32(berth_file_constant, surrounding)};
static const berth_file_field io_fields[] = {
    TEXT(berth_program_io, name), U32(berth_program_io, tensor), U32(berth_program_io, continues)};
static const berth_file_field executable_fields[] = {
    TEXT(berth_executable_image, device_kind), TEXT(berth_executable_image, format),
    TEXT(berth_executable_image, options),     TEXT(berth_executable_image, external),
    IMAGE(berth_executable_image, data),       X64(berth_executable_image, size_bytes)};
static const berth_file_field kernel_fields[] = {
    TEXT(berth_program_kernel, entry),        X64(berth_program_kernel, flops),
    X64(berth_program_kernel, bytes),         U32(berth_program_kernel, executable),
    U32(berth_program_kernel, binding_count), U32(berth_program_kernel, constant_count),
    U32S(berth_program_kernel, groups, 3),    U32S(berth_program_kernel, group_size, 3),
    U32(berth_program_kernel, scratch_bytes)};
static const berth_file_field kernel_binding_fields[] = {X64(berth_kernel_binding, size_bytes),
                                                         U32(berth_kernel_binding, access)};
static const berth_file_field step_fields[] = {
    TEXT(berth_file_step, name),         TEXT(berth_file_step, op),
    X64(berth_file_step, bindings),      X64(berth_file_step, waits),
    X64(berth_file_step, constants),     U32(berth_file_step, kind),
    U32(berth_file_step, queue),         U32(berth_file_step, kernel),
    U32(berth_file_step, binding_count), U32(berth_file_step, wait_count),
    U32(berth_file_step, constant_count)};
static const berth_file_field placement_fields[] = {
    TEXT(berth_program_placement, node), TEXT(berth_program_placement, op),
    TEXT(berth_program_placement, reason), U32(berth_program_placement, device),
    BOOL(berth_program_placement, host_operation)};

static const berth_file_field attachment_fields[] = {TEXT(berth_program_attachment, name),
                                                     IMAGE(berth_program_attachment, data),
                                                     X64(berth_program_attachment, size_bytes)};

static const berth_file_field sharer_fields[] = {U32(berth_file_sharer, pool),
                                                 U32(berth_file_sharer, device)};

static const berth_file_field vm_code_fields[] = {U32(berth_file_vm_code, segment_count),
                                                  U32(berth_file_vm_code, constant_count),
                                                  U32(berth_file_vm_code, input_count)};
static const berth_file_field vm_function_fields[] = {
    U32(berth_file_vm_function, code_count),      U32(berth_file_vm_function, register_count),
    U32(berth_file_vm_function, parameter_count), U32(berth_file_vm_function, result_count),
    TEXT(berth_file_vm_function, name),           X64(berth_file_vm_function, code)};
static const berth_file_field vm_piece_fields[] = {
    TEXT(berth_vm_piece, name), TEXT(berth_vm_piece, op), U32(berth_vm_piece, input_count),
    U32(berth_vm_piece, output_count), BOOL(berth_vm_piece, is_arithmetic)};
static const berth_file_field vm_port_fields[] = {TEXT(berth_vm_port, name),
                                                  TEXT(berth_vm_port, type),
                                                  U32(berth_vm_port, dtype),
                                                  U32(berth_vm_port, rank),
                                                  BOOL(berth_vm_port, is_tensor),
                                                  U32(berth_vm_port, kind),
                                                  X64S(berth_vm_port, dims, BERTH_MAX_RANK),
                                                  X64S(berth_vm_port, least, BERTH_MAX_RANK),
                                                  X64S(berth_vm_port, most, BERTH_MAX_RANK),
                                                  U32(berth_vm_port, state),
                                                  U32S(berth_vm_port, same_as, BERTH_MAX_RANK)};
static const berth_file_field vm_message_fields[] = {TEXT(berth_file_vm_message, text)};
static const berth_file_field vm_tensor_fields[] = {
    U32(berth_file_vm_tensor, dtype), U32(berth_file_vm_tensor, rank),
    U32(berth_file_vm_tensor, constant), X64S(berth_file_vm_tensor, dims, BERTH_MAX_RANK)};
static const berth_file_field vm_variant_fields[] = {U32(berth_file_vm_variant, piece),
                                                     U32(berth_file_vm_variant, program)};
static const berth_file_field vm_family_fields[] = {U32(berth_file_vm_family, variant),
                                                    U32(berth_file_vm_family, word_count),
                                                    X64(berth_file_vm_family, words)};

static const berth_file_field check_fields[] = {
    TEXT(berth_program_check, node), U32(berth_program_check, tensor),
    BOOL(berth_program_check, from_end), U32(berth_program_check, width),
    X64S(berth_program_check, extents, BERTH_MAX_RANK)};

// `required`: fields that every file has; those after them came later (file_form.h).
#define FORM(name, fields, type, required)                                                         \
    { name, fields, sizeof(fields) / sizeof((fields)[0]), required, sizeof(type) }
static const berth_file_record_form forms[BERTH_SECTION_KINDS] = {
    [BERTH_SECTION_PROGRAM] = FORM("program", program_fields, berth_file_program, 4),
    [BERTH_SECTION_DEVICES] = FORM("devices", device_fields, berth_program_device, 5),
    [BERTH_SECTION_QUEUES] = FORM("queues", queue_fields, berth_program_queue, 2),
    [BERTH_SECTION_POOLS] = FORM("pools", pool_fields, berth_program_pool, 7),
    [BERTH_SECTION_TENSORS] = FORM("tensors", tensor_fields, berth_program_tensor, 8),
    [BERTH_SECTION_CONSTANTS] = FORM("constants", constant_fields, berth_file_constant, 3),
    [BERTH_SECTION_INPUTS] = FORM("inputs", io_fields, berth_program_io, 2),
    [BERTH_SECTION_OUTPUTS] = FORM("outputs", io_fields, berth_program_io, 2),
    [BERTH_SECTION_EXECUTABLES] = FORM("executables", executable_fields, berth_executable_image, 6),
    [BERTH_SECTION_KERNELS] = FORM("kernels", kernel_fields, berth_program_kernel, 9),
    [BERTH_SECTION_STEPS] = FORM("steps", step_fields, berth_file_step, 11),
    [BERTH_SECTION_KERNEL_BINDINGS] =
        FORM("kernel_bindings", kernel_binding_fields, berth_kernel_binding, 2),
    [BERTH_SECTION_PLACEMENTS] = FORM("placements", placement_fields, berth_program_placement, 5),
    [BERTH_SECTION_ATTACHMENTS] =
        FORM("attachments", attachment_fields, berth_program_attachment, 3),
    [BERTH_SECTION_SHARERS] = FORM("sharers", sharer_fields, berth_file_sharer, 2),
    [BERTH_SECTION_VM_CODE] = FORM("vm_code", vm_code_fields, berth_file_vm_code, 3),
    [BERTH_SECTION_VM_FUNCTIONS] =
        FORM("vm_functions", vm_function_fields, berth_file_vm_function, 6),
    [BERTH_SECTION_VM_PIECES] = FORM("vm_pieces", vm_piece_fields, berth_vm_piece, 5),
    [BERTH_SECTION_VM_PORTS] = FORM("vm_ports", vm_port_fields, berth_vm_port, 7),
    [BERTH_SECTION_VM_MESSAGES] = FORM("vm_messages", vm_message_fields, berth_file_vm_message, 1),
    [BERTH_SECTION_VM_TENSORS] = FORM("vm_tensors", vm_tensor_fields, berth_file_vm_tensor, 4),
    [BERTH_SECTION_VM_VARIANTS] = FORM("vm_variants", vm_variant_fields, berth_file_vm_variant, 2),
    [BERTH_SECTION_VM_FAMILIES] = FORM("vm_families", vm_family_fields, berth_file_vm_family, 3),
    [BERTH_SECTION_CHECKS] = FORM("checks", check_fields, berth_program_check, 5),
};

const berth_file_record_form *berth_artifact__record_form(uint32_t kind) {
    return kind < BERTH_SECTION_KINDS && forms[kind].fields ? &forms[kind] : NULL;
}

bool berth_artifact__section_known(uint32_t kind, bool *out_optional) {
    *out_optional = (kind >= BERTH_SECTION_PLACEMENTS && kind < BERTH_SECTION_RECORD_KINDS) ||
                    kind == BERTH_SECTION_VM_PROGRAMS || kind == BERTH_SECTION_FALLBACKS ||
                    kind == BERTH_SECTION_SIGNATURE;
    return berth_artifact__record_form(kind) || kind == BERTH_SECTION_TEXTS ||
           kind == BERTH_SECTION_NUMBERS_32 || kind == BERTH_SECTION_NUMBERS_64 ||
           kind == BERTH_SECTION_IMAGES || kind == BERTH_SECTION_CONSTANT_DATA ||
           kind == BERTH_SECTION_VM_PROGRAMS || kind == BERTH_SECTION_FALLBACKS ||
           kind == BERTH_SECTION_SIGNATURE;
}

bool berth_artifact__section_ignorable(uint32_t kind) {
    return kind == BERTH_SECTION_PLACEMENTS || kind == BERTH_SECTION_ATTACHMENTS ||
           kind == BERTH_SECTION_VM_FAMILIES || kind == BERTH_SECTION_FALLBACKS ||
           kind == BERTH_SECTION_SIGNATURE || kind == BERTH_SECTION_CHECKS;
}

uint32_t berth_artifact__field_bytes(const berth_file_field *field) {
    return field->type == BERTH_FIELD_U32 || field->type == BERTH_FIELD_BOOL ? 4u * field->count
                                                                             : 8u * field->count;
}

uint32_t berth_artifact__record_bytes(const berth_file_record_form *form, uint32_t field_count) {
    uint32_t total = 0;
    for (uint32_t i = 0; i < field_count; ++i)
        total += berth_artifact__field_bytes(&form->fields[i]);
    return total;
}

uint64_t berth_artifact__padded(uint64_t size_bytes) {
    return (size_bytes + BERTH_PROGRAM_FILE_ALIGNMENT - 1) &
           ~(uint64_t)(BERTH_PROGRAM_FILE_ALIGNMENT - 1);
}

uint64_t berth_artifact__header_checksum(const berth_file_header *header,
                                         const berth_file_section *sections) {
    berth_file_header cleared = *header;
    cleared.checksum = 0;
    uint64_t hash = berth_hash64(&cleared, sizeof(cleared), 0);
    return berth_hash64(sections, header->section_count * sizeof(*sections), hash);
}
