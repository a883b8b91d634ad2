#include "compiler/json_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "target/target.h"

static void drop_tree(void *tree) {
    json_decref(tree);
}

static void drop_text(void *text) {
    free(text);
}

berth_status berth_json_line_wrong(const berth_json_line *line, const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s:%u: %s; a line is as `%s` writes it",
                             line->file->path, line->number, what, line->file->writer);
}

struct berth_json_targets {
    berth_arena *arena;
    berth_interner *texts;  // as they stand in the file; a target's number is its text's less 1
    BERTH_VEC(const char *) culled;  // as of now
};

const char *berth_json_line_target(const berth_json_line *line, const json_t *object) {
    berth_json_targets *targets = line->targets;
    if (!json_is_object(object) || !json_is_string(json_object_get(object, "kind"))) return NULL;
    char *dumped = json_dumps(object, JSON_SORT_KEYS);
    if (!dumped) berth_arena_fail(line->arena);
    berth_arena_defer(line->arena, drop_text, dumped);
    uint32_t id = berth_intern(targets->texts, dumped);
    if (id <= targets->culled.count) return targets->culled.data[id - 1];
    const char *text = berth_arena_strdup(targets->arena, dumped), *now = NULL;
    berth_status unknown = berth_target_renew_culled(targets->arena, text, &now);
    if (berth_status_code(unknown) == BERTH_OUT_OF_MEMORY) berth_arena_fail(targets->arena);
    berth_vec_push(targets->arena, &targets->culled, unknown ? text : now);
    berth_status_free(unknown);
    return targets->culled.data[id - 1];
}

static berth_status read_line(const berth_json_line *line, const char *text, size_t length) {
    json_error_t error;
    size_t blank = 0;
    while (blank < length && (text[blank] == ' ' || text[blank] == '\t' || text[blank] == '\r'))
        ++blank;
    if (blank == length) return BERTH_OK;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!object)
        return berth_json_line_wrong(line,
                                     berth_arena_printf(line->arena, "no JSON: %s", error.text));
    berth_arena_defer(line->arena, drop_tree, object);
    if (!json_is_object(object)) return berth_json_line_wrong(line, "no JSON object");
    return line->file->add(line->file->user, line, object);
}

typedef struct read_job {
    const berth_json_lines *file;
    berth_arena *arena;
} read_job;

static berth_status read_lines(void *user) {
    static const size_t limit_bytes = (size_t)1 << 28;
    const read_job *job = user;
    berth_arena *outer = berth_arena_create_child(job->arena);
    char *data = NULL;
    size_t size_bytes = 0;
    berth_status status = berth_file_read(outer, job->file->path, limit_bytes, &data, &size_bytes);
    berth_json_targets targets = {.arena = outer, .texts = berth_interner_create(outer)};
    berth_json_line line = {.file = job->file, .targets = &targets};
    for (size_t at = 0; !status && at < size_bytes;) {
        const char *end = memchr(data + at, '\n', size_bytes - at);
        size_t length = end ? (size_t)(end - data) - at : size_bytes - at;
        line.number++;
        line.arena = berth_arena_create_child(outer);
        status = read_line(&line, data + at, length);
        berth_arena_destroy(line.arena);
        at += length + 1;
    }
    berth_arena_destroy(outer);
    return status;
}

berth_status berth_json_lines_read(const berth_json_lines *file, berth_arena *arena) {
    read_job job = {file, arena};
    return berth_arena_try(arena, read_lines, &job);
}

berth_status berth_json_line_number(const berth_json_line *line, const json_t *object,
                                    const char *name, double least, double most,
                                    double *out_value) {
    const json_t *value = json_object_get(object, name);
    *out_value = json_number_value(value);
    if (json_is_number(value) && isfinite(*out_value) && *out_value >= least && *out_value <= most)
        return BERTH_OK;
    return berth_json_line_wrong(
        line,
        berth_arena_printf(line->arena, "\"%s\" is no number from %g to %g", name, least, most));
}

// ---- writing ------------------------------------------------------------------------------------

typedef struct sorted_record {
    const void *record;
    int (*order)(const void *a, const void *b);
} sorted_record;

static int by_order(const void *a, const void *b) {
    const sorted_record *x = a, *y = b;
    return x->order(x->record, y->record);
}

typedef struct write_job {
    const berth_json_lines_output *file;
    berth_strbuf text;
} write_job;

static berth_status write_lines(void *user) {
    write_job *job = user;
    const berth_json_lines_output *file = job->file;
    sorted_record *sorted =
        berth_arena_new_array(job->text.arena, sorted_record, (size_t)file->count + 1);
    for (uint32_t i = 0; i < file->count; ++i)
        sorted[i] = (sorted_record){file->at(file->table, i), file->order};
    qsort(sorted, file->count, sizeof(*sorted), by_order);
    for (uint32_t i = 0; i < file->count; ++i) file->add(&job->text, sorted[i].record);
    return BERTH_OK;
}

berth_status berth_json_lines_write(const berth_json_lines_output *file, berth_arena *arena) {
    write_job job = {.file = file, .text = berth_strbuf_make(arena)};
    BERTH_TRY(berth_arena_try(arena, write_lines, &job));
    return berth_file_write(file->path, berth_strbuf_text(&job.text), job.text.length);
}
