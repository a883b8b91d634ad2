#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact/family.h"
#include "artifact/file_form.h"
#include "artifact/vm.h"
#include "base/file.h"
#include "base/hash.h"
#include "target/target.h"

#define BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

typedef struct reader {
    berth_arena *arena;
    const uint8_t *data;  // aligned to BERTH_PROGRAM_FILE_ALIGNMENT
    size_t size_bytes;
    bool check_sums;
    const berth_program_file *file;    // whose mapping `data` is; NULL = none
    const struct reader *surrounding;  // of a fallback: the file that it is in
    const berth_program **out_program;
    berth_limit_watch *watch;                       // of records; NULL = nothing is counted
    berth_file_section table[BERTH_SECTION_KINDS];  // as it stands in the file
    uint32_t section_count;
    berth_file_section sections[BERTH_SECTION_KINDS];  // by kind; empty where there is none
} reader;

static const void *content_of(const reader *r, berth_file_section_kind kind) {
    return r->data + r->sections[kind].offset_bytes;
}

// ---- frame ----

static berth_status read_header(reader *r) {
    berth_file_header header;
    if (r->size_bytes < sizeof(header) ||
        memcmp(r->data, BERTH_PROGRAM_MAGIC, sizeof(header.magic)) != 0)
        return BAD("not a Berth program file");
    memcpy(&header, r->data, sizeof(header));
    if (header.version < BERTH_PROGRAM_OLDEST || header.version > BERTH_PROGRAM_VERSION)
        return BAD(
            "the program file has version %u; this version of Berth reads %u to %u: build it again",
            header.version, BERTH_PROGRAM_OLDEST, BERTH_PROGRAM_VERSION);
    if (header.section_count > BERTH_SECTION_KINDS)
        return BAD("the program file has %u sections; at most %d", header.section_count,
                   BERTH_SECTION_KINDS);
    size_t table_bytes = header.section_count * sizeof(*r->table);
    if (header.file_size_bytes != r->size_bytes || r->size_bytes < sizeof(header) + table_bytes)
        return BAD("the program file is truncated: %zu bytes of %llu", r->size_bytes,
                   (unsigned long long)header.file_size_bytes);
    memcpy(r->table, r->data + sizeof(header), table_bytes);
    r->section_count = header.section_count;
    if (r->check_sums && berth_artifact__header_checksum(&header, r->table) != header.checksum)
        return BAD("the program file is damaged: the checksum of its header differs");
    return BERTH_OK;
}

static bool all_zero(const uint8_t *data, size_t size_bytes) {
    for (size_t i = 0; i < size_bytes; ++i)
        if (data[i]) return false;
    return true;
}

// A section that this version knows, or may leave out.
static berth_status take_section(reader *r, const berth_file_section *section) {
    uint32_t kind = section->kind & ~BERTH_SECTION_OPTIONAL;
    bool optional = false;
    if (!berth_artifact__section_known(kind, &optional)) {
        if (section->kind & BERTH_SECTION_OPTIONAL) return BERTH_OK;
        return BAD("the program file has a section of kind %u, which a newer Berth knows: build it "
                   "again, or take that Berth",
                   kind);
    }
    if (kind == BERTH_SECTION_SIGNATURE && (section->checksum != 0 || section->record_count != 0 ||
                                            section->size_bytes != sizeof(berth_file_signature)))
        return BAD("the signature of the program file is none");
    if (kind == BERTH_SECTION_FALLBACKS && r->surrounding)
        return BAD("a fallback has fallbacks of its own");
    if (kind == BERTH_SECTION_VM_PROGRAMS && r->surrounding)
        return BAD("a program of byte code has byte code of its own");
    r->sections[kind] = *section;
    return BERTH_OK;
}

static berth_status read_section(reader *r, uint32_t i, uint64_t *end, uint32_t *least_kind) {
    const berth_file_section *section = &r->table[i];
    uint32_t kind = section->kind & ~BERTH_SECTION_OPTIONAL;
    if (kind < *least_kind || kind > BERTH_SECTION_SIGNATURE)
        return BAD("section %u of the program file has kind %u", i, kind);
    *least_kind = kind + 1;
    if (section->offset_bytes != berth_artifact__padded(*end) ||
        section->offset_bytes > r->size_bytes ||
        section->size_bytes > r->size_bytes - section->offset_bytes)
        return BAD("section %u of the program file lies outside of it", i);
    if (!all_zero(r->data + *end, (size_t)(section->offset_bytes - *end)))
        return BAD("the program file is damaged before section %u", i);
    *end = section->offset_bytes + section->size_bytes;
    if (r->check_sums && kind < BERTH_SECTION_VM_PROGRAMS &&
        berth_hash64(r->data + section->offset_bytes, (size_t)section->size_bytes, 0) !=
            section->checksum)
        return BAD("the program file is damaged: the checksum of section %u differs", i);
    return take_section(r, section);
}

static berth_status read_sections(reader *r) {
    uint64_t end = sizeof(berth_file_header) + r->section_count * sizeof(*r->table);
    uint32_t least_kind = 0;
    for (uint32_t i = 0; i < r->section_count; ++i)
        BERTH_TRY(read_section(r, i, &end, &least_kind));
    if (end != r->size_bytes)
        return BAD("the program file has %zu bytes behind its end", r->size_bytes - (size_t)end);
    for (uint32_t kind = 0; kind < BERTH_SECTION_KINDS; ++kind) {
        bool optional = false;
        if (berth_artifact__section_known(kind, &optional) && !optional &&
            r->sections[kind].offset_bytes == 0)
            return BAD("the program file has no section of kind %u", kind);
    }
    return BERTH_OK;
}

// ---- records ----

static berth_status read_text(const reader *r, uint64_t offset, const char **out_text) {
    if (offset >= r->sections[BERTH_SECTION_TEXTS].size_bytes)
        return BAD("a text at %llu is outside of the texts", (unsigned long long)offset);
    *out_text = (const char *)content_of(r, BERTH_SECTION_TEXTS) + offset;
    return BERTH_OK;
}

static berth_status read_field(const reader *r, const berth_file_field *field, const uint8_t *in,
                               uint8_t *member) {
    uint64_t offset = 0;
    uint32_t flag = 0;
    const char *text = NULL;
    const void *image = NULL;
    switch ((berth_field_type)field->type) {
    case BERTH_FIELD_TEXT:
        memcpy(&offset, in, sizeof(offset));
        BERTH_TRY(read_text(r, offset, &text));
        memcpy(member, &text, sizeof(text));
        break;
    case BERTH_FIELD_IMAGE:  // the end is checked with the size, when the record is complete
        memcpy(&offset, in, sizeof(offset));
        if (offset > r->sections[BERTH_SECTION_IMAGES].size_bytes)
            return BAD("an image at %llu is outside of the images", (unsigned long long)offset);
        image = (const uint8_t *)content_of(r, BERTH_SECTION_IMAGES) + offset;
        memcpy(member, &image, sizeof(image));
        break;
    case BERTH_FIELD_BOOL:
        memcpy(&flag, in, sizeof(flag));
        if (flag > 1) return BAD("a flag is %u", flag);
        *(bool *)member = flag == 1;
        break;
    case BERTH_FIELD_U32:
    case BERTH_FIELD_64: memcpy(member, in, berth_artifact__field_bytes(field)); break;
    }
    return BERTH_OK;
}

// How many fields of a record the file has, from the bytes of one: all that are known, or those that
// an older writer knew.
static berth_status known_fields(const berth_file_record_form *form, uint64_t record_bytes,
                                 uint32_t *out_count) {
    uint32_t count = form->field_count;
    while (count > form->required_count && berth_artifact__record_bytes(form, count) > record_bytes)
        --count;
    uint32_t known_bytes = berth_artifact__record_bytes(form, count);
    if (known_bytes > record_bytes || (count < form->field_count && known_bytes != record_bytes))
        return BAD("%s: records of %llu bytes", form->name, (unsigned long long)record_bytes);
    *out_count = count;
    return BERTH_OK;
}

static berth_status read_record(const reader *r, const berth_file_record_form *form,
                                uint32_t field_count, const uint8_t *in, uint8_t *record) {
    for (uint32_t f = 0; f < form->field_count; ++f) {
        const berth_file_field *field = &form->fields[f];
        const char *none = "";
        if (f < field_count) {
            BERTH_TRY(read_field(r, field, in, record + field->offset_bytes));
            in += berth_artifact__field_bytes(field);
        } else if (field->type == BERTH_FIELD_TEXT) {
            memcpy(record + field->offset_bytes, &none, sizeof(none));
        }
    }
    return BERTH_OK;
}

static berth_status read_records(const reader *r, berth_file_section_kind kind,
                                 const void **out_records, uint32_t *out_count) {
    const berth_file_record_form *form = berth_artifact__record_form(kind);
    const berth_file_section *section = &r->sections[kind];
    uint32_t count = section->record_count;
    uint64_t record_bytes = count ? section->size_bytes / count : 0;
    if (section->size_bytes != count * record_bytes)
        return BAD("%s: %u records in %llu bytes", form->name, count,
                   (unsigned long long)section->size_bytes);
    uint32_t field_count = 0;
    if (count) BERTH_TRY(known_fields(form, record_bytes, &field_count));
    if (r->watch) BERTH_TRY(berth_limit_items(r->watch, count));
    uint8_t *records = berth_arena_array(r->arena, count, form->struct_bytes);
    const uint8_t *in = content_of(r, kind);
    for (uint32_t i = 0; i < count; ++i) {
        berth_status status = read_record(r, form, field_count, in + i * record_bytes,
                                          records + (size_t)i * form->struct_bytes);
        if (status) return berth_status_prefix(status, "%s[%u]", form->name, i);
    }
    *out_records = records;
    *out_count = count;
    return BERTH_OK;
}

static berth_status check_image(const reader *r, const void *data, uint64_t size_bytes) {
    uint64_t offset =
        (uint64_t)((const uint8_t *)data - (const uint8_t *)content_of(r, BERTH_SECTION_IMAGES));
    if (size_bytes > r->sections[BERTH_SECTION_IMAGES].size_bytes - offset)
        return BAD("it ends outside of the images");
    return BERTH_OK;
}

static berth_status check_images(const reader *r, const berth_program *program) {
    for (uint32_t i = 0; i < program->executable_count; ++i) {
        const berth_executable_image *image = &program->executables[i];
        berth_status status = check_image(r, image->data, image->size_bytes);
        if (status) return berth_status_prefix(status, "executables[%u]", i);
    }
    for (uint32_t i = 0; i < program->attachment_count; ++i) {
        const berth_program_attachment *attached = &program->attachments[i];
        berth_status status = check_image(r, attached->data, attached->size_bytes);
        if (status) return berth_status_prefix(status, "attachments[%u]", i);
    }
    return BERTH_OK;
}

// A range of a section of numbers; NULL when empty.
static berth_status read_numbers(const reader *r, berth_file_section_kind kind, size_t number_bytes,
                                 uint64_t first, uint32_t count, const void **out_numbers) {
    uint64_t total = r->sections[kind].size_bytes / number_bytes;
    if (first > total || count > total - first)
        return BAD("numbers [%llu, +%u) of %llu", (unsigned long long)first, count,
                   (unsigned long long)total);
    *out_numbers = count ? (const uint8_t *)content_of(r, kind) + first * number_bytes : NULL;
    return BERTH_OK;
}

static berth_status read_step(const reader *r, const berth_program *program,
                              const berth_file_step *in, berth_program_step *step) {
    if (in->queue >= program->queue_count)
        return BAD("queue %u of %u", in->queue, program->queue_count);
    *step = (berth_program_step){.kind = (berth_step_kind)in->kind,
                                 .queue = in->queue,
                                 .device = program->queues[in->queue].device,
                                 .kernel = in->kernel,
                                 .wait_count = in->wait_count,
                                 .name = in->name,
                                 .op = in->op};
    uint32_t binding_count = 2;
    uint32_t constant_count = 0;
    if (step->kind == BERTH_STEP_DISPATCH) {
        if (in->kernel >= program->kernel_count)
            return BAD("kernel %u of %u", in->kernel, program->kernel_count);
        binding_count = program->kernels[in->kernel].binding_count;
        constant_count = program->kernels[in->kernel].constant_count;
    }
    if (in->binding_count != binding_count || in->constant_count != constant_count)
        return BAD("%u bindings and %u constants instead of %u and %u", in->binding_count,
                   in->constant_count, binding_count, constant_count);
    const void *numbers = NULL;
    BERTH_TRY(
        read_numbers(r, BERTH_SECTION_NUMBERS_32, 4, in->bindings, in->binding_count, &numbers));
    step->bindings = numbers;
    BERTH_TRY(read_numbers(r, BERTH_SECTION_NUMBERS_32, 4, in->waits, in->wait_count, &numbers));
    step->waits = numbers;
    BERTH_TRY(
        read_numbers(r, BERTH_SECTION_NUMBERS_64, 8, in->constants, in->constant_count, &numbers));
    step->constants = numbers;
    return BERTH_OK;
}

// Adds the devices from 64 on to what pools are shared with.
static berth_status read_sharers(const reader *r, berth_program *program) {
    const void *records = NULL;
    uint32_t count = 0;
    BERTH_TRY(read_records(r, BERTH_SECTION_SHARERS, &records, &count));
    const berth_file_sharer *in = records;
    if (count == 0) return BERTH_OK;
    berth_program_pool *pools =
        berth_arena_copy(r->arena, program->pools, program->pool_count * sizeof(*pools));
    uint32_t word_count = berth_bits_word_count(program->device_count);
    uint64_t *words = berth_arena_new_array(r->arena, uint64_t, word_count);
    for (uint32_t i = 0; i < count; ++i) {
        bool follows = i > 0 && in[i].pool == in[i - 1].pool;
        if (in[i].pool >= program->pool_count || in[i].device < 64 ||
            in[i].device >= program->device_count ||
            (i > 0 &&
             (in[i].pool < in[i - 1].pool || (follows && in[i].device <= in[i - 1].device))))
            return BAD("sharers[%u]: device %u in pool %u, out of order or of range", i,
                       in[i].device, in[i].pool);
        if (!follows) {
            memset(words, 0, word_count * sizeof(*words));
            words[0] = pools[in[i].pool].shared_with.word;
        }
        words[in[i].device / 64] |= (uint64_t)1 << in[i].device % 64;
        if (i + 1 == count || in[i + 1].pool != in[i].pool)
            pools[in[i].pool].shared_with = berth_bits_from_words(r->arena, words, word_count);
    }
    program->pools = pools;
    return BERTH_OK;
}

static berth_status read_kernels(const reader *r, berth_program *program) {
    const void *records = NULL;
    const void *bindings = NULL;
    uint32_t binding_count = 0;
    BERTH_TRY(read_records(r, BERTH_SECTION_KERNELS, &records, &program->kernel_count));
    BERTH_TRY(read_records(r, BERTH_SECTION_KERNEL_BINDINGS, &bindings, &binding_count));
    berth_program_kernel *kernels =
        berth_arena_copy(r->arena, records, program->kernel_count * sizeof(*kernels));
    uint32_t used = 0;
    for (uint32_t i = 0; i < program->kernel_count; ++i) {
        if (kernels[i].binding_count > binding_count - used)
            return BAD("kernels[%u].binding_count: %u, but %u are left", i,
                       kernels[i].binding_count, binding_count - used);
        kernels[i].bindings = (const berth_kernel_binding *)bindings + used;
        used += kernels[i].binding_count;
    }
    if (used != binding_count)
        return BAD("kernel_bindings: %u records, the kernels have %u", binding_count, used);
    program->kernels = kernels;
    return BERTH_OK;
}

static berth_status read_steps(const reader *r, berth_program *program) {
    const void *records = NULL;
    BERTH_TRY(read_records(r, BERTH_SECTION_STEPS, &records, &program->step_count));
    const berth_file_step *in = records;
    berth_program_step *steps =
        berth_arena_new_array(r->arena, berth_program_step, program->step_count);
    for (uint32_t i = 0; i < program->step_count; ++i) {
        berth_status status = read_step(r, program, &in[i], &steps[i]);
        if (status) return berth_status_prefix(status, "steps[%u]", i);
    }
    program->steps = steps;
    return BERTH_OK;
}

// A constant that the surrounding file has.
static berth_status find_surrounding(const reader *r, const berth_file_constant *constant,
                                     uint64_t size_bytes, const void **out_data) {
    if (!r->surrounding) return BAD("it is in a surrounding file, but there is none");
    uint64_t total = r->surrounding->sections[BERTH_SECTION_CONSTANT_DATA].size_bytes;
    if (constant->offset_bytes % BERTH_PROGRAM_FILE_ALIGNMENT || constant->offset_bytes > total ||
        size_bytes > total - constant->offset_bytes)
        return BAD("its bytes lie outside of the surrounding file's constants");
    *out_data = (const uint8_t *)content_of(r->surrounding, BERTH_SECTION_CONSTANT_DATA) +
                constant->offset_bytes;
    return BERTH_OK;
}

static berth_status read_constants(const reader *r, berth_program *program) {
    const void *records = NULL;
    BERTH_TRY(read_records(r, BERTH_SECTION_CONSTANTS, &records, &program->constant_count));
    const berth_file_constant *in = records;
    berth_program_constant *constants =
        berth_arena_new_array(r->arena, berth_program_constant, program->constant_count);
    uint64_t end = 0;  // constants lie one after another, so that the checksum covers every byte
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        if (in[i].tensor >= program->tensor_count)
            return BAD("constants[%u].tensor: %u of %u tensors", i, in[i].tensor,
                       program->tensor_count);
        uint64_t size_bytes = program->tensors[in[i].tensor].size_bytes;
        uint64_t total = r->sections[BERTH_SECTION_CONSTANT_DATA].size_bytes;
        constants[i].tensor = in[i].tensor;
        if (in[i].surrounding) {
            berth_status status = find_surrounding(r, &in[i], size_bytes, &constants[i].data);
            if (status) return berth_status_prefix(status, "constants[%u]", i);
            continue;
        }
        if (in[i].offset_bytes != end || end > total || size_bytes > total - end ||
            berth_artifact__padded(size_bytes) > total - end)
            return BAD("constants[%u]: its bytes lie outside of the constant data", i);
        constants[i].data = (const uint8_t *)content_of(r, BERTH_SECTION_CONSTANT_DATA) + end;
        end += berth_artifact__padded(size_bytes);
    }
    if (end != r->sections[BERTH_SECTION_CONSTANT_DATA].size_bytes)
        return BAD("the constant data has bytes behind its end");
    program->constants = constants;
    return BERTH_OK;
}

// ---- files in the file ----

static berth_status parse_whole(reader *r);

// The file at `offset` of the section, and where the next one begins.
static berth_status read_file(const reader *r, berth_file_section_kind kind, uint64_t *offset,
                              const berth_program **out_program) {
    const berth_file_section *section = &r->sections[kind];
    const uint8_t *data = (const uint8_t *)content_of(r, kind) + *offset;
    uint64_t left = section->size_bytes - *offset;
    berth_file_header header;
    if (left < sizeof(header)) return BAD("it lies outside of its section");
    memcpy(&header, data, sizeof(header));
    uint64_t size_bytes = header.file_size_bytes;
    if (size_bytes > left || berth_artifact__padded(size_bytes) > left)
        return BAD("it lies outside of its section");
    if (!all_zero(data + size_bytes, (size_t)(berth_artifact__padded(size_bytes) - size_bytes)))
        return BAD("the program file is damaged behind it");
    reader *inner = berth_arena_new(r->arena, reader);
    *inner = (reader){.arena = r->arena,
                      .data = data,
                      .size_bytes = (size_t)size_bytes,
                      .check_sums = r->check_sums,
                      .file = r->file,
                      .surrounding = r,
                      .watch = r->watch,
                      .out_program = out_program};
    *offset += berth_artifact__padded(size_bytes);
    return parse_whole(inner);
}

static berth_status read_files(const reader *r, berth_file_section_kind kind, const char *what,
                               const berth_program *const **out_programs, uint32_t *out_count) {
    const berth_file_section *section = &r->sections[kind];
    uint32_t count = section->record_count;
    if (count > section->size_bytes / sizeof(berth_file_header))
        return BAD("%s: %u in %llu bytes", what, count, (unsigned long long)section->size_bytes);
    const berth_program **programs =
        berth_arena_array(r->arena, count, sizeof(const berth_program *));
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; ++i) {
        berth_status status = read_file(r, kind, &offset, &programs[i]);
        if (status) return berth_status_prefix(status, "%s[%u]", what, i);
    }
    if (offset != section->size_bytes) return BAD("%s: bytes behind the last one", what);
    *out_programs = programs;
    *out_count = count;
    return BERTH_OK;
}

// ---- byte code ----

static berth_status read_vm_functions(const reader *r, berth_vm_program *code) {
    const void *records = NULL;
    BERTH_TRY(read_records(r, BERTH_SECTION_VM_FUNCTIONS, &records, &code->function_count));
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
        berth_status status = read_numbers(r, BERTH_SECTION_NUMBERS_32, sizeof(uint32_t),
                                           in[i].code, in[i].code_count, &words);
        if (status) return berth_status_prefix(status, "vm_functions[%u]", i);
        functions[i].code = words;
    }
    code->functions = functions;
    BERTH_TRY(read_records(r, BERTH_SECTION_VM_MESSAGES, &records, &code->message_count));
    const berth_file_vm_message *texts = records;
    const char **messages = berth_arena_array(r->arena, code->message_count, sizeof(char *));
    for (uint32_t i = 0; i < code->message_count; ++i) messages[i] = texts[i].text;
    code->messages = messages;
    return BERTH_OK;
}

static berth_status read_vm_lists(const reader *r, const berth_file_vm_code *head,
                                  berth_vm_program *code) {
    const void *records = NULL;
    uint32_t count = 0;
    BERTH_TRY(read_records(r, BERTH_SECTION_VM_PIECES, &records, &count));
    if (head->segment_count > count)
        return BAD("vm_code: %u of %u pieces", head->segment_count, count);
    code->segments = records;
    code->segment_count = head->segment_count;
    code->host_operations = code->segments + head->segment_count;
    code->host_operation_count = count - head->segment_count;
    BERTH_TRY(read_records(r, BERTH_SECTION_VM_PORTS, &records, &count));
    if (head->input_count > count) return BAD("vm_code: %u of %u ports", head->input_count, count);
    code->inputs = records;
    code->input_count = head->input_count;
    code->outputs = code->inputs + head->input_count;
    code->output_count = count - head->input_count;
    return BERTH_OK;
}

static berth_status read_vm_tensors(const reader *r, const berth_program *program,
                                    const berth_tensor **out_tensors, uint32_t *out_count) {
    const void *records = NULL;
    BERTH_TRY(read_records(r, BERTH_SECTION_VM_TENSORS, &records, out_count));
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
static berth_status read_vm_variants(const reader *r, berth_vm_body *vm,
                                     const berth_tensor *tensors, uint32_t tensor_count) {
    const void *records = NULL;
    const berth_program *const *programs = NULL;
    uint32_t program_count = 0, used = 0, next_program = 1;
    uint32_t piece_count = vm->code->segment_count + vm->code->host_operation_count;
    BERTH_TRY(read_files(r, BERTH_SECTION_VM_PROGRAMS, "vm_programs", &programs, &program_count));
    BERTH_TRY(read_records(r, BERTH_SECTION_VM_VARIANTS, &records, &vm->variant_count));
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

static berth_status read_vm_families(const reader *r, berth_vm_body *vm) {
    const void *records = NULL, *words = NULL;
    BERTH_TRY(read_records(r, BERTH_SECTION_VM_FAMILIES, &records, &vm->family_count));
    const berth_file_vm_family *in = records;
    berth_vm_family *families = berth_arena_new_array(r->arena, berth_vm_family, vm->family_count);
    for (uint32_t i = 0; i < vm->family_count; ++i) {
        berth_status status = read_numbers(r, BERTH_SECTION_NUMBERS_64, sizeof(int64_t),
                                           in[i].words, in[i].word_count, &words);
        families[i] = (berth_vm_family){
            .variant = in[i].variant, .words = words, .word_count = in[i].word_count};
        if (!status) status = berth_vm_family_read(&families[i]);
        if (status) return berth_status_prefix(status, "vm_families[%u]", i);
    }
    vm->families = families;
    return BERTH_OK;
}

static berth_status read_vm(const reader *r, berth_program *program) {
    const void *records = NULL;
    uint32_t count = 0;
    BERTH_TRY(read_records(r, BERTH_SECTION_VM_CODE, &records, &count));
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

// ---- program ----

static berth_status read_program(const reader *r, berth_program *program) {
    const char *texts = content_of(r, BERTH_SECTION_TEXTS);
    uint64_t text_bytes = r->sections[BERTH_SECTION_TEXTS].size_bytes;
    if (text_bytes == 0 || texts[text_bytes - 1] != 0) return BAD("the texts do not end");
    const void *list = NULL;
    uint32_t count = 0;
    BERTH_TRY(read_records(r, BERTH_SECTION_PROGRAM, &list, &count));
    if (count != 1) return BAD("%u program records", count);
    const berth_file_program *facts = list;
    program->name = facts->name;
    program->target_json = facts->target_json;
    program->executor = facts->executor;
    program->predicted_ns = facts->predicted_ns;
#define READ(kind, member, member_count)                                                           \
    BERTH_TRY(read_records(r, kind, &list, &program->member_count));                               \
    program->member = list
    READ(BERTH_SECTION_DEVICES, devices, device_count);
    READ(BERTH_SECTION_QUEUES, queues, queue_count);
    READ(BERTH_SECTION_POOLS, pools, pool_count);
    READ(BERTH_SECTION_TENSORS, tensors, tensor_count);
    READ(BERTH_SECTION_INPUTS, inputs, input_count);
    READ(BERTH_SECTION_OUTPUTS, outputs, output_count);
    READ(BERTH_SECTION_CHECKS, checks, check_count);
    READ(BERTH_SECTION_EXECUTABLES, executables, executable_count);
    READ(BERTH_SECTION_PLACEMENTS, placements, placement_count);
    READ(BERTH_SECTION_ATTACHMENTS, attachments, attachment_count);
#undef READ
    if (program->device_count > BERTH_TARGET_MAX_DEVICES)
        return BAD("devices: %u, at most %d are possible", program->device_count,
                   BERTH_TARGET_MAX_DEVICES);
    BERTH_TRY(read_sharers(r, program));
    BERTH_TRY(read_kernels(r, program));
    BERTH_TRY(check_images(r, program));
    BERTH_TRY(read_constants(r, program));
    BERTH_TRY(read_steps(r, program));
    BERTH_TRY(read_vm(r, program));
    BERTH_TRY(read_files(r, BERTH_SECTION_FALLBACKS, "fallbacks", &program->fallbacks,
                         &program->fallback_count));
    return berth_program_verify(program);
}

static berth_status parse_whole(reader *r) {
    BERTH_TRY(read_header(r));
    BERTH_TRY(read_sections(r));
    berth_program *program = berth_arena_new(r->arena, berth_program);
    BERTH_TRY(read_program(r, program));
    program->file = r->file;
    *r->out_program = program;
    return BERTH_OK;
}

static berth_status parse_body(void *user) {
    reader *r = user;
    if ((uintptr_t)r->data % BERTH_PROGRAM_FILE_ALIGNMENT != 0) {
        uint8_t *copy =
            berth_arena_alloc_aligned(r->arena, r->size_bytes, BERTH_PROGRAM_FILE_ALIGNMENT);
        memcpy(copy, r->data, r->size_bytes);
        r->data = copy;
    }
    return parse_whole(r);
}

static berth_status parse_with(berth_arena *arena, const void *data, size_t size_bytes,
                               bool check_sums, berth_limit_watch *watch,
                               const berth_program **out_program) {
    *out_program = NULL;
    reader r = {.arena = arena,
                .data = data,
                .size_bytes = size_bytes,
                .check_sums = check_sums,
                .watch = watch,
                .out_program = out_program};
    return berth_arena_try(arena, parse_body, &r);
}

berth_status berth_artifact__parse(berth_arena *arena, const void *data, size_t size_bytes,
                                   bool check_sums, const berth_program **out_program) {
    return parse_with(arena, data, size_bytes, check_sums, NULL, out_program);
}

berth_status berth_program_parse(berth_arena *arena, const void *data, size_t size_bytes,
                                 const berth_program **out_program) {
    return parse_with(arena, data, size_bytes, true, NULL, out_program);
}

berth_status berth_artifact__parse_limited(berth_arena *arena, const void *data, size_t size_bytes,
                                           const char *name, const berth_limits *limits,
                                           const berth_program **out_program) {
    *out_program = NULL;
    BERTH_TRY(berth_limits_check_bytes(limits, name, size_bytes, 0));
    berth_limit_watch watch = berth_limits_watch(limits, name, "records", 0);
    return parse_with(arena, data, size_bytes, true, &watch, out_program);
}

// ---- files ----

typedef struct map_call {
    berth_arena *arena;
    const char *path;
    berth_mapping mapping;
    berth_program_file *file;
} map_call;

static void close_file(void *pointer) {
    const berth_program_file *file = pointer;
    berth_file_unmap((berth_mapping){file->data, (size_t)file->size_bytes});
    close(file->fd);
}

static berth_status map_body(void *user) {
    map_call *call = user;
    call->file = berth_arena_new(call->arena, berth_program_file);
    BERTH_TRY(berth_file_map_open(call->path, &call->mapping, &call->file->fd));
    call->file->data = call->mapping.data;
    call->file->size_bytes = call->mapping.size_bytes;
    berth_arena_defer(call->arena, close_file, call->file);
    return BERTH_OK;
}

berth_status berth_artifact__read_mapped(berth_arena *arena, const char *path,
                                         const berth_limits *limits, berth_mapping *out_mapping,
                                         const berth_program **out_program) {
    *out_program = NULL;
    map_call call = {.arena = arena, .path = path};
    BERTH_TRY(berth_arena_try(arena, map_body, &call));
    *out_mapping = call.mapping;
    BERTH_TRY(berth_limits_check_bytes(limits, path, call.mapping.size_bytes, 0));
    berth_limit_watch watch = berth_limits_watch(limits, path, "records", 0);
    reader r = {.arena = arena,
                .data = call.mapping.data,
                .size_bytes = call.mapping.size_bytes,
                .check_sums = true,
                .file = call.file,
                .watch = &watch,
                .out_program = out_program};
    berth_status status = berth_arena_try(arena, parse_body, &r);
    if (berth_status_code(status) == BERTH_OUT_OF_RANGE) return status;  // names the file
    return berth_status_prefix(status, "\"%s\"", path);
}

berth_status berth_program_read(berth_arena *arena, const char *path, const berth_limits *limits,
                                const berth_program **out_program) {
    berth_mapping mapping;
    return berth_artifact__read_mapped(arena, path, limits, &mapping, out_program);
}

bool berth_program_is_file(const char *path) {
    char magic[sizeof(((berth_file_header *)0)->magic)];
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;  // opening a FIFO blocks
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    size_t got = fread(magic, 1, sizeof(magic), file);
    fclose(file);
    return got == sizeof(magic) && memcmp(magic, BERTH_PROGRAM_MAGIC, sizeof(magic)) == 0;
}
