// The byte code of a program file.
#include "artifact/family.h"
#include "artifact/file_reader.h"
#include "artifact/vm.h"

#define BAD BERTH_ARTIFACT__BAD

static berth_status read_vm_functions(const berth_file_reader *r, berth_vm_program *code) {
    const void *records = NULL;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_VM_FUNCTIONS, &records,
                                           &code->function_count));
    const berth_file_vm_function *in = records;
    berth_vm_function *functions =
        berth_arena_new_array(r->arena, berth_vm_function, code->function_count);
    for (uint32_t i = 0; i < code->function_count; ++i) {
        const void *words = NULL;
        functions[i] = (berth_vm_function){.name = in[i].name,
                                           .code_count = in[i].code_count,
                                           .register_count = in[i].register_count,
                                           .parameter_count = in[i].parameter_count,
                                           .result_count = in[i].result_count};
        berth_status status = berth_artifact__read_numbers(
            r, BERTH_SECTION_NUMBERS_32, sizeof(uint32_t), in[i].code, in[i].code_count, &words);
        if (status) return berth_status_prefix(status, "vm_functions[%u]", i);
        functions[i].code = words;
    }
    code->functions = functions;
    BERTH_TRY(
        berth_artifact__read_records(r, BERTH_SECTION_VM_MESSAGES, &records, &code->message_count));
    const berth_file_vm_message *texts = records;
    const char **messages = berth_arena_array(r->arena, code->message_count, sizeof(char *));
    for (uint32_t i = 0; i < code->message_count; ++i) messages[i] = texts[i].text;
    code->messages = messages;
    return BERTH_OK;
}

static berth_status read_vm_lists(const berth_file_reader *r, const berth_file_vm_code *head,
                                  berth_vm_program *code) {
    const void *records = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_VM_PIECES, &records, &count));
    if (head->segment_count > count)
        return BAD("vm_code: %u of %u pieces", head->segment_count, count);
    code->segments = records;
    code->segment_count = head->segment_count;
    code->host_operations = code->segments + head->segment_count;
    code->host_operation_count = count - head->segment_count;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_VM_PORTS, &records, &count));
    if (head->input_count > count) return BAD("vm_code: %u of %u ports", head->input_count, count);
    code->inputs = records;
    code->input_count = head->input_count;
    code->outputs = code->inputs + head->input_count;
    code->output_count = count - head->input_count;
    return BERTH_OK;
}

static berth_status read_vm_tensors(const berth_file_reader *r, const berth_program *program,
                                    const berth_tensor **out_tensors, uint32_t *out_count) {
    const void *records = NULL;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_VM_TENSORS, &records, out_count));
    berth_tensor *tensors = berth_arena_new_array(r->arena, berth_tensor, *out_count);
    for (uint32_t i = 0; i < *out_count; ++i) {
        berth_status status = berth_artifact__read_tensor(
            program, (const berth_file_vm_tensor *)records + i, &tensors[i]);
        if (status) return berth_status_prefix(status, "vm_tensors[%u]", i);
    }
    *out_tensors = tensors;
    return BERTH_OK;
}

// `tensors`: those after the constants.
static berth_status read_vm_variants(const berth_file_reader *r, berth_vm_body *vm,
                                     const berth_tensor *tensors, uint32_t tensor_count) {
    const void *records = NULL;
    const berth_program *const *programs = NULL;
    uint32_t program_count = 0, used = 0, next_program = 1;
    uint32_t piece_count = vm->code->segment_count + vm->code->host_operation_count;
    BERTH_TRY(berth_artifact__read_programs(r, BERTH_SECTION_VM_PROGRAMS, "vm_programs", &programs,
                                            &program_count));
    BERTH_TRY(
        berth_artifact__read_records(r, BERTH_SECTION_VM_VARIANTS, &records, &vm->variant_count));
    const berth_file_vm_variant *in = records;
    berth_vm_variant *variants =
        berth_arena_new_array(r->arena, berth_vm_variant, vm->variant_count);
    for (uint32_t i = 0; i < vm->variant_count; ++i) {
        if (in[i].piece >= piece_count)
            return BAD("vm_variants[%u].piece: %u of %u", i, in[i].piece, piece_count);
        if (in[i].program && (in[i].program != next_program || next_program++ > program_count))
            return BAD("vm_variants[%u].program: %u is not in order", i, in[i].program);
        const berth_vm_piece *piece = berth_vm_piece_at(vm->code, in[i].piece);
        uint64_t count = (uint64_t)piece->input_count + (in[i].program ? 0 : piece->output_count);
        if (count > tensor_count - used) return BAD("vm_variants[%u]: too few tensors are left", i);
        variants[i].piece = in[i].piece;
        variants[i].inputs = tensors + used;
        if (in[i].program)
            variants[i].program = programs[in[i].program - 1];
        else
            variants[i].results = tensors + used + piece->input_count;
        used += (uint32_t)count;
    }
    if (next_program != program_count + 1 || used != tensor_count)
        return BAD("the variants have %u of %u programs, %u of %u tensors", next_program - 1,
                   program_count, used, tensor_count);
    vm->variants = variants;
    return BERTH_OK;
}

static berth_status read_vm_families(const berth_file_reader *r, berth_vm_body *vm) {
    const void *records = NULL, *words = NULL;
    BERTH_TRY(
        berth_artifact__read_records(r, BERTH_SECTION_VM_FAMILIES, &records, &vm->family_count));
    const berth_file_vm_family *in = records;
    berth_vm_family *families = berth_arena_new_array(r->arena, berth_vm_family, vm->family_count);
    for (uint32_t i = 0; i < vm->family_count; ++i) {
        berth_status status = berth_artifact__read_numbers(
            r, BERTH_SECTION_NUMBERS_64, sizeof(int64_t), in[i].words, in[i].word_count, &words);
        families[i] = (berth_vm_family){
            .variant = in[i].variant, .words = words, .word_count = in[i].word_count};
        if (!status) status = berth_vm_family_read(&families[i]);
        if (status) return berth_status_prefix(status, "vm_families[%u]", i);
    }
    vm->families = families;
    return BERTH_OK;
}

berth_status berth_artifact__read_vm(const berth_file_reader *r, berth_program *program) {
    const void *records = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_VM_CODE, &records, &count));
    const berth_file_vm_code *head = records;
    for (uint32_t kind = BERTH_SECTION_VM_FUNCTIONS; kind <= BERTH_SECTION_VM_PROGRAMS; ++kind)
        if (count == 0 && r->sections[kind].record_count &&
            (kind <= BERTH_SECTION_VM_FAMILIES || kind == BERTH_SECTION_VM_PROGRAMS))
            return BAD("a section of kind %u without byte code", kind);
    if (count == 0) return BERTH_OK;
    if (count != 1) return BAD("%u vm_code records", count);
    berth_vm_program *code = berth_arena_new(r->arena, berth_vm_program);
    berth_vm_body *vm = berth_arena_new(r->arena, berth_vm_body);
    vm->code = code;
    code->name = program->name;
    BERTH_TRY(read_vm_functions(r, code));
    BERTH_TRY(read_vm_lists(r, head, code));
    const berth_tensor *tensors = NULL;
    BERTH_TRY(read_vm_tensors(r, program, &tensors, &count));
    if (head->constant_count > count)
        return BAD("vm_code: %u of %u tensors", head->constant_count, count);
    code->constants = tensors;
    code->constant_count = head->constant_count;
    BERTH_TRY(
        read_vm_variants(r, vm, tensors + head->constant_count, count - head->constant_count));
    BERTH_TRY(read_vm_families(r, vm));
    program->vm = vm;
    return BERTH_OK;
}
