#include "toolkit/vm_general_file.h"

#include <string.h>

#include "artifact/file.h"
#include "base/str.h"
#include "compiler/toolchain/toolchain.h"
#include "ir/graph/graph.h"
#include "ir/text.h"
#include "toolkit/build_id.h"
#include "toolkit/vm_bounds.h"

// ---- the key ------------------------------------------------------------------------------------

typedef struct key_job {
    const berth_module *module;
    const berth_compile_options *options;
    berth_arena *arena;
    berth_strbuf text;  // whose hash is the key
    bool is_whole;
} key_job;

static void add_hash(key_job *job, const void *data, size_t size_bytes) {
    const berth_hash128 hash = berth_hash128_of(data, size_bytes);
    berth_strbuf_add_n(&job->text, (const char *)&hash, sizeof(hash));
}

// What the module's text has by its size only.
static void add_constant(key_job *job, const berth_tensor *tensor) {
    if (!tensor || !tensor->data) return;
    if (tensor->dtype != BERTH_DTYPE_STRING) {
        add_hash(job, tensor->data, berth_tensor_size_bytes(tensor));
        return;
    }
    const berth_string *strings = berth_tensor_strings(tensor);
    for (int64_t i = 0; i < berth_tensor_element_count(tensor); ++i)
        add_hash(job, strings[i].data, strings[i].length);
}

static void add_graph(key_job *job, const berth_graph *graph) {
    for (uint32_t i = 0; i < graph->ops.count; ++i) {
        const berth_attrs *attrs = &graph->ops.data[i].attrs;
        for (uint32_t k = 0; k < attrs->items.count; ++k) {
            if (attrs->items.data[k].kind == BERTH_ATTR_TENSOR)
                add_constant(job, attrs->items.data[k].tensor);
            job->is_whole &= attrs->items.data[k].kind != BERTH_ATTR_OPAQUE;
        }
    }
}

static void add_module(key_job *job) {
    const berth_text_options reading = {.elide = true};
    for (uint32_t f = 0; f < job->module->functions.count; ++f) {
        if (job->module->functions.data[f].removed) continue;
        const berth_graph *graph = berth_graph_get(job->module, f);
        job->is_whole &= graph != NULL;
        if (graph) add_graph(job, graph);
    }
    if (!job->is_whole) return;
    berth_status status = berth_module_to_text(job->module, &reading, &job->text);
    job->is_whole &= status == BERTH_OK;
    berth_status_free(status);
}

static void add_text(key_job *job, const char *text) {
    berth_strbuf_addf(&job->text, "%s\n", text ? text : "");
}

// All that decides what is compiled, but for where tools and files are.
static void add_options(key_job *job) {
    const berth_compile_options *o = job->options;
    const char *texts[] = {o->target_text, o->strategy, o->objective,
                           o->parallel,    o->patches,  o->c_compiler};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) add_text(job, texts[i]);
    berth_strbuf_addf(
        &job->text, "%llu %lld %u %llu %llu %llu ", (unsigned long long)o->node_budget,
        (long long)o->time_budget_ns, o->max_instances, (unsigned long long)o->slice_budget_bytes,
        (unsigned long long)o->slice_spare_bytes, (unsigned long long)o->stated_limit_bytes);
    const bool flags[] = {o->no_fusion, o->no_layouts, o->no_winograd,
                          o->no_slices, o->small_code, o->keep_source};
    for (size_t i = 0; i < sizeof(flags); ++i) berth_strbuf_addf(&job->text, "%d", flags[i]);
    job->is_whole &= !o->costs && !o->tuned && !o->reserve_bytes;
}

static berth_status write_key(void *user) {
    key_job *job = user;
    job->text = berth_strbuf_make(job->arena);
    add_options(job);
    if (job->is_whole) add_module(job);
    return BERTH_OK;
}

berth_status berth_vm_general_key(const berth_module *module, const berth_compile_options *options,
                                  berth_hash128 *out_key, bool *out_has_key) {
    berth_hash128 build;
    *out_has_key = false;
    if (!options->cache_folder || !berth_build_id(&build)) return BERTH_OK;
    key_job job = {.module = module, .options = options, .is_whole = true};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &job.arena));
    berth_status status = berth_arena_try(job.arena, write_key, &job);
    if (!status && job.is_whole) {
        const berth_hash128 parts[2] = {build, berth_hash128_of(job.text.data, job.text.length)};
        *out_key = berth_hash128_of(parts, sizeof(parts));
        *out_has_key = true;
    }
    berth_arena_destroy(job.arena);
    return status;
}

// ---- files --------------------------------------------------------------------------------------

// An entry is a program file, shapes, and this.
typedef struct tail {
    uint64_t program_bytes;
    uint32_t row_count, axis_count;
    uint32_t level, unused;
} tail;

typedef struct file_job {
    const berth_compile_options *options;
    berth_hash128 key;
    berth_arena *arena;
    berth_vm_general_file *file;
} file_job;

static size_t rows_at(uint64_t program_bytes) {
    return (size_t)((program_bytes + 7) / 8 * 8);
}

// False: the shapes are none of this model.
static bool read_rows(file_job *job, const char *data, uint64_t size_bytes, uint32_t axis_count,
                      tail *out) {
    if (size_bytes < sizeof(*out)) return false;
    memcpy(out, data + size_bytes - sizeof(*out), sizeof(*out));
    if (out->program_bytes > size_bytes || out->axis_count != axis_count || axis_count == 0)
        return false;
    const uint64_t row_bytes = axis_count * sizeof(int64_t), begin = rows_at(out->program_bytes);
    if (begin + sizeof(*out) > size_bytes) return false;
    const uint64_t room = size_bytes - sizeof(*out) - begin;
    if (room % row_bytes || room / row_bytes != out->row_count || out->row_count < 2) return false;
    const int64_t **rows = berth_arena_new_array(job->arena, const int64_t *, out->row_count);
    for (uint32_t i = 0; i < out->row_count; ++i)
        rows[i] = berth_arena_copy(job->arena, data + begin + i * row_bytes, row_bytes);
    job->file->rows = rows;
    job->file->row_count = out->row_count;
    job->file->axis_count = axis_count;
    job->file->level = out->level;
    return out->level < BERTH_VM_BOUNDS_LEVELS;
}

static berth_status read_file(void *user) {
    file_job *job = user;
    const void *data = NULL;
    uint64_t size_bytes = 0;
    tail end;
    const uint32_t axis_count = job->file->axis_count;
    *job->file = (berth_vm_general_file){0};
    BERTH_TRY(berth_toolchain_cache_find_program(job->options->cache_folder,
                                                 (berth_log){.write = NULL}, job->key, job->arena,
                                                 &data, &size_bytes));
    if (!data || !read_rows(job, data, size_bytes, axis_count, &end)) return BERTH_OK;
    BERTH_TRY(
        berth_program_parse(job->arena, data, (size_t)end.program_bytes, &job->file->program));
    job->file->size_bytes = size_bytes;
    return BERTH_OK;
}

berth_status berth_vm_general_read(const berth_compile_options *options, berth_hash128 key,
                                   uint32_t axis_count, berth_arena *arena,
                                   berth_vm_general_file *out_file) {
    file_job job = {options, key, arena, out_file};
    out_file->axis_count = axis_count;
    berth_status status = berth_arena_try(arena, read_file, &job);
    if (!status) return BERTH_OK;
    *out_file = (berth_vm_general_file){0};
    if (berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    berth_status_free(status);
    return BERTH_OK;
}

static berth_status write_file(void *user) {
    const file_job *job = user;
    const berth_vm_general_file *file = job->file;
    const void *program = NULL;
    size_t program_bytes = 0;
    BERTH_TRY(berth_program_to_memory(file->program, job->arena, &program, &program_bytes));
    const size_t row_bytes = file->axis_count * sizeof(int64_t);
    const size_t begin = rows_at(program_bytes);
    const size_t size_bytes = begin + file->row_count * row_bytes + sizeof(tail);
    char *data = berth_arena_new_array(job->arena, char, size_bytes);
    memcpy(data, program, program_bytes);
    for (uint32_t i = 0; i < file->row_count; ++i)
        memcpy(data + begin + i * row_bytes, file->rows[i], row_bytes);
    const tail end = {program_bytes, file->row_count, file->axis_count, file->level, 0};
    memcpy(data + size_bytes - sizeof(end), &end, sizeof(end));
    return berth_toolchain_cache_keep_program(job->options->cache_folder,
                                              (berth_log){.write = NULL}, job->key, data,
                                              size_bytes, job->options->cache_limit_bytes);
}

void berth_vm_general_write(const berth_compile_options *options, berth_hash128 key,
                            const berth_vm_general_file *file) {
    berth_vm_general_file held = *file;
    file_job job = {options, key, NULL, &held};
    berth_status status = berth_arena_create(berth_allocator_system(), &job.arena);
    if (!status) status = berth_arena_try(job.arena, write_file, &job);
    berth_arena_destroy(job.arena);
    berth_status_free(status);
}
