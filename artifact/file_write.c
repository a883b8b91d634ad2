#include <string.h>

#include "artifact/family.h"
#include "artifact/file_form.h"
#include "artifact/vm.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"

typedef BERTH_VEC(berth_file_part) part_list;

// Constants, or images, of a program by content.
typedef struct indexed_content {
    const void *data;
    uint64_t size_bytes;
    uint64_t offset_bytes;  // in CONSTANT_DATA, or IMAGES
    uint32_t record;        // of a constant
} indexed_content;
typedef struct content_index {
    berth_interner *hashes;
    BERTH_VEC(indexed_content) rows;  // by interned id
} content_index;

typedef struct writer {
    const berth_program *program;
    berth_arena *arena;
    berth_interner *interner;          // texts seen so far
    BERTH_VEC(uint64_t) text_offsets;  // by interned id
    berth_strbuf texts;
    BERTH_VEC(uint32_t) numbers_32;
    BERTH_VEC(int64_t) numbers_64;
    berth_strbuf images;
    part_list constant_parts;  // content and the gap after it, alternating
    uint64_t constant_bytes;
    const content_index *surrounding;         // of a file in a file: the constants of that one
    const content_index *surrounding_images;  // the same; NULL: it has none that are shared
    content_index *shared_images;             // that several programs of variants have; NULL: none
    bool has_shared;                          // an image here is the surrounding file's
    part_list fallback_parts;
    part_list vm_parts;   // programs of variants
    bool lacks_constant;  // data of byte code is none of the program's constants
    berth_file_header header;
    berth_file_section sections[BERTH_SECTION_KINDS];  // by kind
    const void *contents[BERTH_SECTION_KINDS];
    bool present[BERTH_SECTION_KINDS];
    berth_file_section table[BERTH_SECTION_KINDS];  // those that are present
    const berth_secret_key *key;                    // NULL = no signature
} writer;

static const uint8_t zeros[BERTH_PROGRAM_FILE_ALIGNMENT];

static uint64_t add_text(writer *w, const char *text) {
    if (!text) text = "";
    uint32_t id = berth_intern(w->interner, text);
    while (w->text_offsets.count <= id) berth_vec_push(w->arena, &w->text_offsets, UINT64_MAX);
    if (w->text_offsets.data[id] == UINT64_MAX) {
        w->text_offsets.data[id] = w->texts.length;
        berth_strbuf_add_n(&w->texts, text, strlen(text) + 1);
    }
    return w->text_offsets.data[id];
}

static uint64_t add_image(writer *w, const void *data, uint64_t size_bytes) {
    size_t gap = (size_t)(berth_artifact__padded(w->images.length) - w->images.length);
    berth_strbuf_add_n(&w->images, (const char *)zeros, gap);
    uint64_t offset = w->images.length;
    berth_strbuf_add_n(&w->images, data, (size_t)size_bytes);
    return offset;
}

static uint32_t id_of_content(berth_interner *hashes, const void *data, uint64_t size_bytes) {
    char hex[33];
    berth_hash128_hex(berth_hash128_of(data, (size_t)size_bytes), hex);
    return berth_intern(hashes, hex);
}

// The same content in an index; NULL: it has none, or there is no index.
static const indexed_content *find_content(const content_index *index, const void *data,
                                           uint64_t size_bytes) {
    if (!index || size_bytes == 0) return NULL;
    uint32_t id = id_of_content(index->hashes, data, size_bytes);
    if (id >= index->rows.count) return NULL;
    const indexed_content *row = &index->rows.data[id];
    if (row->size_bytes != size_bytes || memcmp(row->data, data, (size_t)size_bytes) != 0)
        return NULL;
    return row;
}

// Where the file that is written has an image, or that around it.
static uint64_t place_image(writer *w, const void *data, uint64_t size_bytes) {
    const indexed_content *same = find_content(w->surrounding_images, data, size_bytes);
    w->has_shared |= same != NULL;
    return same ? same->offset_bytes | BERTH_IMAGE_SURROUNDING : add_image(w, data, size_bytes);
}

// Packs one record. `image_bytes`: of its IMAGE field, if it has one.
static void put_record(writer *w, const berth_file_record_form *form, const void *record,
                       uint64_t image_bytes, uint8_t *out) {
    for (uint32_t i = 0; i < form->field_count; ++i) {
        const berth_file_field *field = &form->fields[i];
        const uint8_t *member = (const uint8_t *)record + field->offset_bytes;
        const void *pointer = NULL;
        uint64_t offset = 0;
        uint32_t flag = 0;
        uint32_t size_bytes = berth_artifact__field_bytes(field);
        switch ((berth_field_type)field->type) {
        case BERTH_FIELD_TEXT:
            memcpy(&pointer, member, sizeof(pointer));
            offset = add_text(w, pointer);
            memcpy(out, &offset, sizeof(offset));
            break;
        case BERTH_FIELD_IMAGE:
            memcpy(&pointer, member, sizeof(pointer));
            offset = place_image(w, pointer, image_bytes);
            memcpy(out, &offset, sizeof(offset));
            break;
        case BERTH_FIELD_BOOL:
            flag = *(const bool *)member ? 1 : 0;
            memcpy(out, &flag, sizeof(flag));
            break;
        case BERTH_FIELD_U32:
        case BERTH_FIELD_64: memcpy(out, member, size_bytes); break;
        }
        out += size_bytes;
    }
}

static void set_section(writer *w, berth_file_section_kind kind, const void *content,
                        uint32_t record_count, uint64_t size_bytes) {
    bool optional = false;
    if (!berth_artifact__section_known(kind, &optional) || (optional && size_bytes == 0)) return;
    bool ignorable = berth_artifact__section_ignorable(kind);
    w->contents[kind] = content;
    w->present[kind] = true;
    w->sections[kind] =
        (berth_file_section){.kind = kind | (ignorable ? BERTH_SECTION_OPTIONAL : 0),
                             .record_count = record_count,
                             .size_bytes = size_bytes,
                             .checksum = berth_hash64(content, (size_t)size_bytes, 0)};
}

static void put_records(writer *w, berth_file_section_kind kind, const void *records,
                        uint32_t count) {
    const berth_file_record_form *form = berth_artifact__record_form(kind);
    uint32_t record_bytes = berth_artifact__record_bytes(form, form->field_count);
    uint8_t *content = berth_arena_array(w->arena, count, record_bytes);
    for (uint32_t i = 0; i < count; ++i) {
        const uint8_t *record = (const uint8_t *)records + (size_t)i * form->struct_bytes;
        uint64_t image_bytes = 0;
        if (kind == BERTH_SECTION_EXECUTABLES) image_bytes = w->program->executables[i].size_bytes;
        if (kind == BERTH_SECTION_ATTACHMENTS) image_bytes = w->program->attachments[i].size_bytes;
        put_record(w, form, record, image_bytes, content + (size_t)i * record_bytes);
    }
    set_section(w, kind, content, count, (uint64_t)count * record_bytes);
}

static void put_kernels(writer *w) {
    const berth_program *program = w->program;
    BERTH_VEC(berth_kernel_binding) bindings = {0};
    for (uint32_t i = 0; i < program->kernel_count; ++i)
        for (uint32_t b = 0; b < program->kernels[i].binding_count; ++b)
            berth_vec_push(w->arena, &bindings, program->kernels[i].bindings[b]);
    put_records(w, BERTH_SECTION_KERNELS, program->kernels, program->kernel_count);
    put_records(w, BERTH_SECTION_KERNEL_BINDINGS, bindings.data, bindings.count);
}

static void put_sharers(writer *w) {
    BERTH_VEC(berth_file_sharer) sharers = {0};
    for (uint32_t i = 0; i < w->program->pool_count; ++i) {
        berth_bits shared = w->program->pools[i].shared_with;
        for (uint32_t d = berth_bits_next(shared, 63); d != BERTH_BITS_END;
             d = berth_bits_next(shared, d))
            berth_vec_push(w->arena, &sharers, (berth_file_sharer){i, d});
    }
    put_records(w, BERTH_SECTION_SHARERS, sharers.data, sharers.count);
}

static uint64_t add_numbers_32(writer *w, const uint32_t *numbers, uint32_t count) {
    uint64_t first = w->numbers_32.count;
    for (uint32_t i = 0; i < count; ++i) berth_vec_push(w->arena, &w->numbers_32, numbers[i]);
    return first;
}

static void put_steps(writer *w) {
    const berth_program *program = w->program;
    berth_file_step *steps = berth_arena_new_array(w->arena, berth_file_step, program->step_count);
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        bool dispatch = step->kind == BERTH_STEP_DISPATCH;
        const berth_program_kernel *kernel = dispatch ? &program->kernels[step->kernel] : NULL;
        steps[i] = (berth_file_step){.kind = step->kind,
                                     .queue = step->queue,
                                     .kernel = dispatch ? step->kernel : 0,
                                     .binding_count = kernel ? kernel->binding_count : 2,
                                     .wait_count = step->wait_count,
                                     .constant_count = kernel ? kernel->constant_count : 0,
                                     .name = step->name,
                                     .op = step->op};
        steps[i].bindings = add_numbers_32(w, step->bindings, steps[i].binding_count);
        steps[i].waits = add_numbers_32(w, step->waits, step->wait_count);
        steps[i].constants = w->numbers_64.count;
        for (uint32_t c = 0; c < steps[i].constant_count; ++c)
            berth_vec_push(w->arena, &w->numbers_64, step->constants[c]);
    }
    put_records(w, BERTH_SECTION_STEPS, steps, program->step_count);
    set_section(w, BERTH_SECTION_NUMBERS_32, w->numbers_32.data, w->numbers_32.count,
                (uint64_t)w->numbers_32.count * sizeof(uint32_t));
    set_section(w, BERTH_SECTION_NUMBERS_64, w->numbers_64.data, w->numbers_64.count,
                (uint64_t)w->numbers_64.count * sizeof(int64_t));
}

static content_index *index_constants(const writer *w) {
    const berth_program *program = w->program;
    content_index *index = berth_arena_new(w->arena, content_index);
    index->hashes = berth_interner_create(w->arena);
    uint64_t offset_bytes = 0;
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        const void *data = program->constants[i].data;
        uint64_t size_bytes = program->tensors[program->constants[i].tensor].size_bytes;
        uint32_t id = id_of_content(index->hashes, data, size_bytes);
        while (index->rows.count <= id)
            berth_vec_push(w->arena, &index->rows, (indexed_content){0});
        index->rows.data[id] = (indexed_content){data, size_bytes, offset_bytes, i};
        offset_bytes += berth_artifact__padded(size_bytes);
    }
    return index;
}

static void put_constants(writer *w) {
    const berth_program *program = w->program;
    berth_file_constant *records =
        berth_arena_new_array(w->arena, berth_file_constant, program->constant_count);
    uint64_t hash = 0;
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        const berth_program_constant *constant = &program->constants[i];
        uint64_t size_bytes = program->tensors[constant->tensor].size_bytes;
        size_t gap = (size_t)(berth_artifact__padded(size_bytes) - size_bytes);
        const indexed_content *same = find_content(w->surrounding, constant->data, size_bytes);
        if (same) {
            records[i] = (berth_file_constant){constant->tensor, 1, same->offset_bytes};
            continue;
        }
        records[i] =
            (berth_file_constant){.tensor = constant->tensor, .offset_bytes = w->constant_bytes};
        berth_vec_push(w->arena, &w->constant_parts,
                       (berth_file_part){constant->data, (size_t)size_bytes});
        berth_vec_push(w->arena, &w->constant_parts, (berth_file_part){zeros, gap});
        hash = berth_hash64(constant->data, (size_t)size_bytes, hash);
        hash = berth_hash64(zeros, gap, hash);
        w->constant_bytes += size_bytes + gap;
    }
    put_records(w, BERTH_SECTION_CONSTANTS, records, program->constant_count);
    w->present[BERTH_SECTION_CONSTANT_DATA] = true;
    w->sections[BERTH_SECTION_CONSTANT_DATA] =
        (berth_file_section){.kind = BERTH_SECTION_CONSTANT_DATA,
                             .record_count = program->constant_count,
                             .size_bytes = w->constant_bytes,
                             .checksum = hash};
}

// ---- byte code ----------------------------------------------------------------------------------

// Where constants lie, by their data.
typedef struct vm_tensors {
    const content_index *index;
    BERTH_VEC(berth_file_vm_tensor) list;
} vm_tensors;

static void add_vm_tensor(writer *w, vm_tensors *t, const berth_tensor *tensor) {
    berth_file_vm_tensor record = {.dtype = tensor->dtype, .rank = tensor->rank};
    for (int d = 0; d < tensor->rank; ++d) record.dims[d] = tensor->dims[d];
    size_t size_bytes = tensor->data ? berth_tensor_size_bytes(tensor) : 0;
    if (size_bytes) {
        uint32_t id = id_of_content(t->index->hashes, tensor->data, size_bytes);
        if (id < t->index->rows.count) record.constant = t->index->rows.data[id].record + 1;
        w->lacks_constant |= record.constant == 0;
    }
    berth_vec_push(w->arena, &t->list, record);
}

static void put_vm_functions(writer *w, const berth_vm_program *code) {
    berth_file_vm_function *functions =
        berth_arena_new_array(w->arena, berth_file_vm_function, code->function_count);
    for (uint32_t i = 0; i < code->function_count; ++i) {
        const berth_vm_function *held = &code->functions[i];
        functions[i] = (berth_file_vm_function){.name = held->name,
                                                .code_count = held->code_count,
                                                .register_count = held->register_count,
                                                .parameter_count = held->parameter_count,
                                                .result_count = held->result_count};
        functions[i].code = add_numbers_32(w, held->code, held->code_count);
    }
    put_records(w, BERTH_SECTION_VM_FUNCTIONS, functions, code->function_count);
    berth_file_vm_message *messages =
        berth_arena_new_array(w->arena, berth_file_vm_message, code->message_count);
    for (uint32_t i = 0; i < code->message_count; ++i) messages[i].text = code->messages[i];
    put_records(w, BERTH_SECTION_VM_MESSAGES, messages, code->message_count);
}

static void put_vm_lists(writer *w, const berth_vm_program *code) {
    BERTH_VEC(berth_vm_piece) pieces = {0};
    BERTH_VEC(berth_vm_port) ports = {0};
    for (uint32_t i = 0; i < code->segment_count + code->host_operation_count; ++i)
        berth_vec_push(w->arena, &pieces, *berth_vm_piece_at(code, i));
    for (uint32_t i = 0; i < code->input_count; ++i)
        berth_vec_push(w->arena, &ports, code->inputs[i]);
    for (uint32_t i = 0; i < code->output_count; ++i)
        berth_vec_push(w->arena, &ports, code->outputs[i]);
    put_records(w, BERTH_SECTION_VM_PIECES, pieces.data, pieces.count);
    put_records(w, BERTH_SECTION_VM_PORTS, ports.data, ports.count);
}

static void put_vm_families(writer *w, const berth_vm_body *vm) {
    berth_file_vm_family *families =
        berth_arena_new_array(w->arena, berth_file_vm_family, vm->family_count);
    for (uint32_t i = 0; i < vm->family_count; ++i) {
        const berth_vm_family *held = &vm->families[i];
        families[i] =
            (berth_file_vm_family){held->variant, (uint32_t)held->word_count, w->numbers_64.count};
        for (uint32_t k = 0; k < held->word_count; ++k)
            berth_vec_push(w->arena, &w->numbers_64, held->words[k]);
    }
    put_records(w, BERTH_SECTION_VM_FAMILIES, families, vm->family_count);
}

static void put_vm(writer *w, const berth_vm_body *vm) {
    const berth_vm_program *code = vm->code;
    const berth_file_vm_code head = {code->segment_count, code->constant_count, code->input_count};
    vm_tensors tensors = {.index = index_constants(w)};
    uint32_t program_count = 0;
    berth_file_vm_variant *variants =
        berth_arena_new_array(w->arena, berth_file_vm_variant, vm->variant_count);
    put_records(w, BERTH_SECTION_VM_CODE, &head, 1);
    put_vm_functions(w, code);
    put_vm_lists(w, code);
    for (uint32_t i = 0; i < code->constant_count; ++i)
        add_vm_tensor(w, &tensors, &code->constants[i]);
    for (uint32_t i = 0; i < vm->variant_count; ++i) {
        const berth_vm_variant *held = &vm->variants[i];
        const berth_vm_piece *piece = berth_vm_piece_at(code, held->piece);
        variants[i].piece = held->piece;
        if (held->program) variants[i].program = ++program_count;
        for (uint32_t k = 0; k < piece->input_count; ++k)
            add_vm_tensor(w, &tensors, &held->inputs[k]);
        for (uint32_t k = 0; !held->program && k < piece->output_count; ++k)
            add_vm_tensor(w, &tensors, &held->results[k]);
    }
    put_records(w, BERTH_SECTION_VM_TENSORS, tensors.list.data, tensors.list.count);
    put_records(w, BERTH_SECTION_VM_VARIANTS, variants, vm->variant_count);
    put_vm_families(w, vm);
}

// What is met the second time is stored here, once for all programs that have it.
static void share_image(writer *w, content_index *met, const void *data, uint64_t size_bytes) {
    const uint32_t id = id_of_content(met->hashes, data, size_bytes);
    while (met->rows.count <= id) berth_vec_push(w->arena, &met->rows, (indexed_content){0});
    indexed_content *row = &met->rows.data[id];
    if (row->record++ != 1) return;
    *row = (indexed_content){data, size_bytes, add_image(w, data, size_bytes), 2};
    w->shared_images = met;
}

static void share_images(writer *w, const berth_vm_body *vm) {
    content_index *met = berth_arena_new(w->arena, content_index);
    met->hashes = berth_interner_create(w->arena);
    for (uint32_t i = 0; i < vm->variant_count; ++i) {
        const berth_program *p = vm->variants[i].program;
        for (uint32_t k = 0; p && k < p->executable_count; ++k)
            share_image(w, met, p->executables[k].data, p->executables[k].size_bytes);
        for (uint32_t k = 0; p && k < p->attachment_count; ++k)
            share_image(w, met, p->attachments[k].data, p->attachments[k].size_bytes);
    }
}

static void put_sections(writer *w) {
    const berth_program *p = w->program;
    add_text(w, "");
    const berth_file_program facts = {p->name, p->target_json, p->executor, p->predicted_ns};
    put_records(w, BERTH_SECTION_PROGRAM, &facts, 1);
    put_records(w, BERTH_SECTION_DEVICES, p->devices, p->device_count);
    put_records(w, BERTH_SECTION_QUEUES, p->queues, p->queue_count);
    put_records(w, BERTH_SECTION_POOLS, p->pools, p->pool_count);
    put_records(w, BERTH_SECTION_TENSORS, p->tensors, p->tensor_count);
    put_constants(w);
    put_records(w, BERTH_SECTION_INPUTS, p->inputs, p->input_count);
    put_records(w, BERTH_SECTION_OUTPUTS, p->outputs, p->output_count);
    put_records(w, BERTH_SECTION_EXECUTABLES, p->executables, p->executable_count);
    put_kernels(w);
    if (p->vm) put_vm(w, p->vm);
    if (p->vm) share_images(w, p->vm);
    put_steps(w);
    put_records(w, BERTH_SECTION_PLACEMENTS, p->placements, p->placement_count);
    put_records(w, BERTH_SECTION_ATTACHMENTS, p->attachments, p->attachment_count);
    put_records(w, BERTH_SECTION_CHECKS, p->checks, p->check_count);
    put_sharers(w);
    set_section(w, BERTH_SECTION_TEXTS, w->texts.data, w->text_offsets.count, w->texts.length);
    set_section(w, BERTH_SECTION_IMAGES, berth_strbuf_text(&w->images), p->executable_count,
                w->images.length);
}

static void add_part(writer *w, part_list *parts, const void *data, uint64_t size_bytes) {
    berth_vec_push(w->arena, parts, (berth_file_part){data, (size_t)size_bytes});
}

static void add_parts(writer *w, part_list *parts, const part_list *added) {
    for (uint32_t p = 0; p < added->count; ++p) berth_vec_push(w->arena, parts, added->data[p]);
}

// The table and the content of the sections that are present, each at its place.
static uint64_t place_sections(writer *w, part_list *parts) {
    for (uint32_t kind = 0; kind < BERTH_SECTION_KINDS; ++kind)
        w->header.section_count += w->present[kind];
    size_t table_bytes = w->header.section_count * sizeof(*w->table);
    uint64_t offset = sizeof(w->header) + table_bytes;
    add_part(w, parts, &w->header, sizeof(w->header));
    add_part(w, parts, w->table, table_bytes);
    uint32_t count = 0;
    for (uint32_t kind = 0; kind < BERTH_SECTION_KINDS; ++kind) {
        if (!w->present[kind]) continue;
        uint64_t start = berth_artifact__padded(offset);
        add_part(w, parts, zeros, start - offset);
        w->sections[kind].offset_bytes = start;
        w->table[count++] = w->sections[kind];
        offset = start + w->sections[kind].size_bytes;
        if (kind == BERTH_SECTION_CONSTANT_DATA)
            add_parts(w, parts, &w->constant_parts);
        else if (kind == BERTH_SECTION_FALLBACKS)
            add_parts(w, parts, &w->fallback_parts);
        else if (kind == BERTH_SECTION_VM_PROGRAMS)
            add_parts(w, parts, &w->vm_parts);
        else if (kind != BERTH_SECTION_SIGNATURE)
            add_part(w, parts, w->contents[kind], w->sections[kind].size_bytes);
    }
    return offset;
}

typedef struct write_call {
    berth_arena *arena;
    const berth_program *program;
    const char *path;  // NULL = to memory, in `into`
    const berth_secret_key *key;
    berth_strbuf into;
} write_call;

// The oldest version whose readers understand all of the file.
static uint32_t version_of(const writer *w) {
    const berth_program *program = w->program;
    if (w->shared_images || w->has_shared) return BERTH_PROGRAM_VERSION;
    for (uint32_t i = 0; program->vm && i < program->vm->family_count; ++i)
        for (uint32_t k = 0; k < program->vm->families[i].header->patch_count; ++k)
            if (program->vm->families[i].patches[k].kind == BERTH_PATCH_CHECK_EXTENT)
                return BERTH_PROGRAM_WITH_CHECKS;
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage == BERTH_POOL_STORE) return BERTH_PROGRAM_WITH_STORES;
    return BERTH_PROGRAM_OLDEST;
}

// All of the file but a signature, as parts.
static void make_parts(writer *w, part_list *parts) {
    memcpy(w->header.magic, BERTH_PROGRAM_MAGIC, sizeof(w->header.magic));
    w->header.version = version_of(w);
    w->header.file_size_bytes = place_sections(w, parts);
    w->header.checksum = berth_artifact__header_checksum(&w->header, w->table);
}

static writer *make_writer(berth_arena *arena, const berth_program *program) {
    writer *w = berth_arena_new(arena, writer);
    w->program = program;
    w->arena = arena;
    w->interner = berth_interner_create(arena);
    w->texts = berth_strbuf_make(arena);
    w->images = berth_strbuf_make(arena);
    return w;
}

// Whole files in a row, after the constants, to which they refer.
static berth_status put_files(writer *w, berth_file_section_kind kind,
                              const berth_program *const *programs, uint32_t count,
                              part_list *parts) {
    if (count == 0) return BERTH_OK;
    const content_index *index = index_constants(w);
    bool ignorable = berth_artifact__section_ignorable(kind);
    uint64_t size_bytes = 0;
    for (uint32_t i = 0; i < count; ++i) {
        writer *inner = make_writer(w->arena, programs[i]);
        inner->surrounding = index;
        inner->surrounding_images = kind == BERTH_SECTION_VM_PROGRAMS ? w->shared_images : NULL;
        put_sections(inner);
        make_parts(inner, parts);
        uint64_t file_bytes = inner->header.file_size_bytes;
        uint64_t padded_bytes = berth_artifact__padded(file_bytes);
        add_part(w, parts, zeros, padded_bytes - file_bytes);
        size_bytes += padded_bytes;
    }
    berth_hash64_stream *stream = berth_hash64_begin();
    if (!stream) return berth_status_oom();
    for (uint32_t i = 0; i < parts->count; ++i)
        berth_hash64_add(stream, parts->data[i].data, parts->data[i].size_bytes);
    w->present[kind] = true;
    w->sections[kind] =
        (berth_file_section){.kind = kind | (ignorable ? BERTH_SECTION_OPTIONAL : 0),
                             .record_count = count,
                             .size_bytes = size_bytes,
                             .checksum = berth_hash64_end(stream)};
    return BERTH_OK;
}

static berth_status put_vm_programs(writer *w, const berth_vm_body *vm) {
    BERTH_VEC(const berth_program *) programs = {0};
    for (uint32_t i = 0; vm && i < vm->variant_count; ++i)
        if (vm->variants[i].program) berth_vec_push(w->arena, &programs, vm->variants[i].program);
    return put_files(w, BERTH_SECTION_VM_PROGRAMS, programs.data, programs.count, &w->vm_parts);
}

static berth_status write_parts(writer *w, write_call *call) {
    part_list parts = {0};
    make_parts(w, &parts);
    berth_file_signature signature;
    if (w->key) {
        BERTH_TRY(berth_artifact__sign(parts.data, parts.count, w->key, &signature));
        add_part(w, &parts, &signature, sizeof(signature));
    }
    if (call->path) return berth_file_write_parts(call->path, parts.data, parts.count);
    for (uint32_t i = 0; i < parts.count; ++i)
        berth_strbuf_add_n(&call->into, parts.data[i].data, parts.data[i].size_bytes);
    return BERTH_OK;
}

static berth_status write_body(void *user) {
    write_call *call = user;
    writer *w = make_writer(call->arena, call->program);
    w->key = call->key;
    put_sections(w);
    const berth_program *p = w->program;
    if (w->lacks_constant)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "byte code has data that is none of the program's constants");
    BERTH_TRY(put_vm_programs(w, p->vm));
    BERTH_TRY(
        put_files(w, BERTH_SECTION_FALLBACKS, p->fallbacks, p->fallback_count, &w->fallback_parts));
    w->present[BERTH_SECTION_SIGNATURE] = w->key != NULL;
    w->sections[BERTH_SECTION_SIGNATURE] =
        (berth_file_section){.kind = BERTH_SECTION_SIGNATURE | BERTH_SECTION_OPTIONAL,
                             .size_bytes = sizeof(berth_file_signature)};
    return write_parts(w, call);
}

static berth_status write_program(const berth_program *program, const char *path,
                                  const berth_secret_key *key) {
    BERTH_TRY(berth_program_verify(program));
    write_call call = {.program = program, .path = path, .key = key};
    return berth_arena_scratch(write_body, &call, &call.arena);
}

berth_status berth_program_write(const berth_program *program, const char *path) {
    return write_program(program, path, NULL);
}

berth_status berth_program_write_signed(const berth_program *program, const char *path,
                                        const berth_secret_key *key) {
    return write_program(program, path, key);
}

typedef struct memory_call {
    const berth_program *program;
    berth_arena *arena;
    berth_strbuf bytes;
} memory_call;

// The arena of what is written and that of the result are apart: each has its own way out.
static berth_status write_memory(void *user) {
    memory_call *call = user;
    write_call write = {.program = call->program,
                        .arena = berth_arena_create_child(call->arena),
                        .into = berth_strbuf_make(call->arena)};
    berth_status status = write_body(&write);
    berth_arena_destroy(write.arena);
    call->bytes = write.into;
    return status;
}

berth_status berth_program_to_memory(const berth_program *program, berth_arena *arena,
                                     const void **out_data, size_t *out_size_bytes) {
    BERTH_TRY(berth_program_verify(program));
    memory_call call = {.program = program, .arena = arena};
    BERTH_TRY(berth_arena_try(arena, write_memory, &call));
    *out_data = call.bytes.data;
    *out_size_bytes = call.bytes.length;
    return BERTH_OK;
}
