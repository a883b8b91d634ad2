// The content of a program's constants against its checksum, which opening a file leaves unread.
#include <string.h>

#include "artifact/file_form.h"
#include "artifact/vm.h"
#include "base/file.h"
#include "base/hash.h"

#define BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

typedef struct checked_file {
    const uint8_t *data;    // of the whole file, which parses
    berth_mapping mapping;  // of data NULL = the file is in memory
} checked_file;

// The constants of a file at `data`, but for those of a surrounding file.
static berth_status check_constant_data(const checked_file *file, const uint8_t *data,
                                        const berth_program *program) {
    uint64_t hash = 0;
    berth_file_header header;  // the reader has checked it and the table
    berth_file_section held = {0}, section;
    memcpy(&header, data, sizeof(header));
    for (uint32_t i = 0; i < header.section_count; ++i) {
        memcpy(&section, data + sizeof(header) + i * sizeof(section), sizeof(section));
        if (section.kind == BERTH_SECTION_CONSTANT_DATA) held = section;
    }
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        const berth_program_constant *constant = &program->constants[i];
        uint64_t size_bytes = program->tensors[constant->tensor].size_bytes;
        uint64_t offset = (uint64_t)((const uint8_t *)constant->data - data) - held.offset_bytes;
        if (size_bytes && offset >= held.size_bytes) continue;
        hash = berth_hash64(constant->data, (size_t)size_bytes, hash);
        hash = berth_hash64((const uint8_t *)constant->data + size_bytes,
                            (size_t)(berth_artifact__padded(size_bytes) - size_bytes), hash);
        // What is read piece by piece is not wanted in memory at once.
        if (file->mapping.data &&
            program->pools[program->tensors[constant->tensor].pool].usage == BERTH_POOL_STORE)
            berth_file_drop_range(file->mapping, constant->data, (size_t)size_bytes);
    }
    if (held.checksum == hash) return BERTH_OK;
    return BAD("the program file is damaged: the checksum of its constants differs");
}

// Of whole files in a row.
static berth_status check_files(const checked_file *file, uint64_t *offset,
                                const berth_program *program) {
    const uint8_t *data = file->data + *offset;
    berth_file_header header;
    memcpy(&header, data, sizeof(header));
    *offset += berth_artifact__padded(header.file_size_bytes);
    return check_constant_data(file, data, program);
}

static berth_status check_all_constants(const checked_file *file, const berth_program *program) {
    const uint8_t *data = file->data;
    BERTH_TRY(check_constant_data(file, data, program));
    berth_file_header header;
    memcpy(&header, data, sizeof(header));
    for (uint32_t i = 0; i < header.section_count; ++i) {
        berth_file_section section;
        memcpy(&section, data + sizeof(header) + i * sizeof(section), sizeof(section));
        uint32_t kind = section.kind & ~BERTH_SECTION_OPTIONAL;
        uint64_t offset = section.offset_bytes;
        for (uint32_t f = 0; kind == BERTH_SECTION_FALLBACKS && f < program->fallback_count; ++f)
            BERTH_TRY(check_files(file, &offset, program->fallbacks[f]));
        if (kind != BERTH_SECTION_VM_PROGRAMS || !program->vm) continue;
        for (uint32_t v = 0; v < program->vm->variant_count; ++v)
            if (program->vm->variants[v].program)
                BERTH_TRY(check_files(file, &offset, program->vm->variants[v].program));
    }
    return BERTH_OK;
}

berth_status berth_program_file_check(berth_allocator allocator, const char *path,
                                      const berth_limits *limits) {
    berth_arena *arena = NULL;
    BERTH_TRY(berth_arena_create(allocator, &arena));
    checked_file file = {0};
    const berth_program *program = NULL;
    berth_status status = berth_artifact__read_mapped(arena, path, limits, &file.mapping, &program);
    file.data = file.mapping.data;
    if (!status) status = berth_status_prefix(check_all_constants(&file, program), "\"%s\"", path);
    berth_arena_destroy(arena);
    return status;
}

berth_status berth_program_parse_checked(berth_arena *arena, const void *data, size_t size_bytes,
                                         const char *name, const berth_limits *limits,
                                         const berth_program **out_program) {
    const checked_file file = {.data = data};
    BERTH_TRY(berth_artifact__parse_limited(arena, data, size_bytes, name, limits, out_program));
    berth_status status = check_all_constants(&file, *out_program);
    if (status) *out_program = NULL;
    return status;
}
