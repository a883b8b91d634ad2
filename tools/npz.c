#include "tools/npz.h"

#include <string.h>
#include <zip.h>

#include "tools/cli_tensor.h"

enum { most_arrays = 1024, deflate_at_most = 1032 };  // times: the form's limit

typedef struct archive {
    berth_arena *arena;
    berth_arena *scratch;
    zip_t *zip;
    zip_file_t *file;
} archive;

bool berth_npz_is(const void *data, size_t size_bytes) {
    return size_bytes >= 4 &&
           (memcmp(data, "PK\x03\x04", 4) == 0 || memcmp(data, "PK\x05\x06", 4) == 0);
}

static void close_archive(void *user) {
    const archive *a = user;
    if (a->file) zip_fclose(a->file);
    if (a->zip) zip_discard(a->zip);
}

static berth_status damaged(const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "the .npz archive is damaged: %s", what);
}

static berth_status open_archive(archive *a, const void *data, size_t size_bytes) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(data, size_bytes, 0, &error);
    a->zip = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : NULL;
    if (!a->zip && source) zip_source_free(source);
    berth_status status = a->zip ? BERTH_OK : damaged(zip_error_strerror(&error));
    zip_error_fini(&error);
    return status;
}

static berth_status read_content(archive *a, zip_uint64_t index, const zip_stat_t *facts,
                                 const char **out_content) {
    if (facts->size / deflate_at_most > facts->comp_size)
        return berth_status_make(
            BERTH_OUT_OF_RANGE, "%llu bytes packed into %llu, which is more than packing can do",
            (unsigned long long)facts->size, (unsigned long long)facts->comp_size);
    char *content = berth_arena_alloc_unset(a->scratch, (size_t)facts->size + 1, 64);
    a->file = zip_fopen_index(a->zip, index, 0);
    if (!a->file)
        return berth_status_make(BERTH_UNSUPPORTED, "it cannot be unpacked: %s",
                                 zip_strerror(a->zip));
    size_t done =
        0;  // one byte more than it says, so that its end, with the checksum, is looked at
    for (zip_int64_t got; (got = zip_fread(a->file, content + done, facts->size + 1 - done));) {
        if (got < 0) return damaged(zip_file_strerror(a->file));
        done += (size_t)got;
        if (done > facts->size) return damaged("more content than it says");
    }
    zip_fclose(a->file);
    a->file = NULL;
    *out_content = content;
    return done == facts->size ? BERTH_OK : damaged("less content than it says");
}

static berth_status read_array(archive *a, zip_uint64_t index, berth_npz_array *out) {
    zip_stat_t facts;
    if (zip_stat_index(a->zip, index, 0, &facts) != 0) return damaged(zip_strerror(a->zip));
    size_t length = strlen(facts.name);
    if (length > 4 && strcmp(facts.name + length - 4, ".npy") == 0) length -= 4;
    out->name = berth_arena_strndup(a->arena, facts.name, length);
    const char *content = NULL;
    berth_status status = read_content(a, index, &facts, &content);
    if (!status)
        status = berth_cli_tensor_parse(a->arena, content, (size_t)facts.size, &out->tensor);
    return berth_status_prefix(status, "array \"%s\"", out->name);
}

static berth_status read_all(archive *a, const void *data, size_t size_bytes,
                             const berth_npz_array **out_arrays, uint32_t *out_count) {
    BERTH_TRY(open_archive(a, data, size_bytes));
    zip_int64_t count = zip_get_num_entries(a->zip, 0);
    if (count > most_arrays)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%lld arrays; at most %d are read",
                                 (long long)count, most_arrays);
    berth_npz_array *arrays = berth_arena_new_array(a->arena, berth_npz_array, (size_t)count);
    for (zip_int64_t i = 0; i < count; ++i) BERTH_TRY(read_array(a, (zip_uint64_t)i, &arrays[i]));
    *out_arrays = arrays;
    *out_count = (uint32_t)count;
    return BERTH_OK;
}

berth_status berth_npz_read(berth_arena *arena, const void *data, size_t size_bytes,
                            const berth_npz_array **out_arrays, uint32_t *out_count) {
    *out_arrays = NULL;
    *out_count = 0;
    archive a = {.arena = arena, .scratch = berth_arena_create_child(arena)};
    archive *held = berth_arena_new(a.scratch, archive);
    *held = a;
    berth_arena_defer(a.scratch, close_archive, held);
    berth_status status = read_all(held, data, size_bytes, out_arrays, out_count);
    berth_arena_destroy(a.scratch);
    return status;
}
