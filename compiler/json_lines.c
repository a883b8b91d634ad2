#include "compiler/json_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

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

const char *berth_json_line_target(const berth_json_line *line, const json_t *object) {
    if (!json_is_object(object) || !json_is_string(json_object_get(object, "kind"))) return NULL;
    char *text = json_dumps(object, JSON_SORT_KEYS);
    if (!text) berth_arena_fail(line->arena);
    berth_arena_defer(line->arena, drop_text, text);
    return text;
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
    berth_json_line line = {.file = job->file};
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
