#include <string.h>
#include <unistd.h>

#include "artifact/file_reader.h"
#include "base/file.h"
#include "target/target.h"

#define BAD BERTH_ARTIFACT__BAD

// ---- kernels, steps, constants ----

// It lies in the images of this file or of that around it.
static berth_status check_image(const berth_file_reader *r, const void *data, uint64_t size_bytes) {
    for (; r; r = r->surrounding) {
        const uint64_t total = r->sections[BERTH_SECTION_IMAGES].size_bytes;
        const uint64_t offset =
            (uintptr_t)data - (uintptr_t)berth_artifact__content(r, BERTH_SECTION_IMAGES);
        if (offset <= total && size_bytes <= total - offset) return BERTH_OK;
    }
    return BAD("it ends outside of the images");
}

static berth_status check_images(const berth_file_reader *r, const berth_program *program) {
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

static berth_status read_step(const berth_file_reader *r, const berth_program *program,
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
    BERTH_TRY(berth_artifact__read_numbers(r, BERTH_SECTION_NUMBERS_32, 4, in->bindings,
                                           in->binding_count, &numbers));
    step->bindings = numbers;
    BERTH_TRY(berth_artifact__read_numbers(r, BERTH_SECTION_NUMBERS_32, 4, in->waits,
                                           in->wait_count, &numbers));
    step->waits = numbers;
    BERTH_TRY(berth_artifact__read_numbers(r, BERTH_SECTION_NUMBERS_64, 8, in->constants,
                                           in->constant_count, &numbers));
    step->constants = numbers;
    return BERTH_OK;
}

// Adds the devices from 64 on to what pools are shared with.
static berth_status read_sharers(const berth_file_reader *r, berth_program *program) {
    const void *records = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_SHARERS, &records, &count));
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

static berth_status read_kernels(const berth_file_reader *r, berth_program *program) {
    const void *records = NULL;
    const void *bindings = NULL;
    uint32_t binding_count = 0;
    BERTH_TRY(
        berth_artifact__read_records(r, BERTH_SECTION_KERNELS, &records, &program->kernel_count));
    BERTH_TRY(
        berth_artifact__read_records(r, BERTH_SECTION_KERNEL_BINDINGS, &bindings, &binding_count));
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

static berth_status read_steps(const berth_file_reader *r, berth_program *program) {
    const void *records = NULL;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_STEPS, &records, &program->step_count));
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
static berth_status find_surrounding(const berth_file_reader *r,
                                     const berth_file_constant *constant, uint64_t size_bytes,
                                     const void **out_data) {
    if (!r->surrounding) return BAD("it is in a surrounding file, but there is none");
    uint64_t total = r->surrounding->sections[BERTH_SECTION_CONSTANT_DATA].size_bytes;
    if (constant->offset_bytes % BERTH_PROGRAM_FILE_ALIGNMENT || constant->offset_bytes > total ||
        size_bytes > total - constant->offset_bytes)
        return BAD("its bytes lie outside of the surrounding file's constants");
    *out_data =
        (const uint8_t *)berth_artifact__content(r->surrounding, BERTH_SECTION_CONSTANT_DATA) +
        constant->offset_bytes;
    return BERTH_OK;
}

static berth_status read_constants(const berth_file_reader *r, berth_program *program) {
    const void *records = NULL;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_CONSTANTS, &records,
                                           &program->constant_count));
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
        constants[i].data =
            (const uint8_t *)berth_artifact__content(r, BERTH_SECTION_CONSTANT_DATA) + end;
        end += berth_artifact__padded(size_bytes);
    }
    if (end != r->sections[BERTH_SECTION_CONSTANT_DATA].size_bytes)
        return BAD("the constant data has bytes behind its end");
    program->constants = constants;
    return BERTH_OK;
}

// ---- files in the file ----

static berth_status parse_whole(berth_file_reader *r);

// The file at `offset` of the section, and where the next one begins.
static berth_status read_file(const berth_file_reader *r, berth_file_section_kind kind,
                              uint64_t *offset, const berth_program **out_program) {
    const berth_file_section *section = &r->sections[kind];
    const uint8_t *data = (const uint8_t *)berth_artifact__content(r, kind) + *offset;
    uint64_t left = section->size_bytes - *offset;
    berth_file_header header;
    if (left < sizeof(header)) return BAD("it lies outside of its section");
    memcpy(&header, data, sizeof(header));
    uint64_t size_bytes = header.file_size_bytes;
    if (size_bytes > left || berth_artifact__padded(size_bytes) > left)
        return BAD("it lies outside of its section");
    if (!berth_artifact__all_zero(data + size_bytes,
                                  (size_t)(berth_artifact__padded(size_bytes) - size_bytes)))
        return BAD("the program file is damaged behind it");
    berth_file_reader *inner = berth_arena_new(r->arena, berth_file_reader);
    *inner = (berth_file_reader){.arena = r->arena,
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

berth_status berth_artifact__read_programs(const berth_file_reader *r, berth_file_section_kind kind,
                                           const char *what,
                                           const berth_program *const **out_programs,
                                           uint32_t *out_count) {
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

// ---- program ----

static berth_status read_program(const berth_file_reader *r, berth_program *program) {
    const char *texts = berth_artifact__content(r, BERTH_SECTION_TEXTS);
    uint64_t text_bytes = r->sections[BERTH_SECTION_TEXTS].size_bytes;
    if (text_bytes == 0 || texts[text_bytes - 1] != 0) return BAD("the texts do not end");
    const void *list = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_artifact__read_records(r, BERTH_SECTION_PROGRAM, &list, &count));
    if (count != 1) return BAD("%u program records", count);
    const berth_file_program *facts = list;
    program->name = facts->name;
    program->target_json = facts->target_json;
    program->executor = facts->executor;
    program->predicted_ns = facts->predicted_ns;
#define READ(kind, member, member_count)                                                           \
    BERTH_TRY(berth_artifact__read_records(r, kind, &list, &program->member_count));               \
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
    BERTH_TRY(berth_artifact__read_vm(r, program));
    BERTH_TRY(berth_artifact__read_programs(r, BERTH_SECTION_FALLBACKS, "fallbacks",
                                            &program->fallbacks, &program->fallback_count));
    return berth_program_verify(program);
}

static berth_status parse_whole(berth_file_reader *r) {
    BERTH_TRY(berth_artifact__read_frame(r));
    berth_program *program = berth_arena_new(r->arena, berth_program);
    BERTH_TRY(read_program(r, program));
    program->file = r->file;
    *r->out_program = program;
    return BERTH_OK;
}

static berth_status parse_body(void *user) {
    berth_file_reader *r = user;
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
    berth_file_reader r = {.arena = arena,
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
    berth_file_reader r = {.arena = arena,
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
    const size_t magic_bytes = sizeof(((berth_file_header *)0)->magic);
    berth_mapping file = {0};
    berth_status_free(berth_file_map(path, &file));
    bool is_it =
        file.size_bytes >= magic_bytes && memcmp(file.data, BERTH_PROGRAM_MAGIC, magic_bytes) == 0;
    berth_file_unmap(file);
    return is_it;
}
