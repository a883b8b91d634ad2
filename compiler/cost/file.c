// Files of measured costs: JSON lines (cost_table.h).
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "compiler/cost/table.h"

// ---- reading ------------------------------------------------------------------------------------

typedef struct reader {
    berth_cost_table *table;
    berth_arena *arena;  // of one line
    const char *path;
    uint32_t line;
} reader;

static void drop_tree(void *tree) {
    json_decref(tree);
}

static void drop_text(void *text) {
    free(text);
}

static berth_status wrong(const reader *r, const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "%s:%u: %s; a line of a file of costs is as `berth calibrate` writes "
                             "it",
                             r->path, r->line, what);
}

// A culled target as berth_target_culled writes it; NULL = it is none.
static const char *read_target(berth_arena *arena, const json_t *object) {
    if (!json_is_object(object) || !json_is_string(json_object_get(object, "kind"))) return NULL;
    char *text = json_dumps(object, JSON_SORT_KEYS);
    if (!text) berth_arena_fail(arena);
    berth_arena_defer(arena, drop_text, text);
    return text;
}

static berth_status read_number(const reader *r, const json_t *object, const char *name,
                                double least, double *out_value) {
    const json_t *value = json_object_get(object, name);
    *out_value = json_number_value(value);
    if (json_is_number(value) && isfinite(*out_value) && *out_value >= least) return BERTH_OK;
    return wrong(r,
                 berth_arena_printf(r->arena, "\"%s\" is no number of at least %g", name, least));
}

static berth_status read_record(const reader *r, const json_t *object) {
    const json_t *from = json_object_get(object, "from");
    const char *work = json_string_value(json_object_get(object, "work"));
    const char *kind = json_string_value(json_object_get(object, "class"));
    berth_cost_record record = {.kind = kind ? kind : "", .work = work ? work : ""};
    double runs = 0;
    record.target = read_target(r->arena, json_object_get(object, "target"));
    if (!record.target) return wrong(r, "\"target\" is no object with a \"kind\"");
    if (from) record.from = read_target(r->arena, from);
    if (from && !record.from) return wrong(r, "\"from\" is no object with a \"kind\"");
    if (!from && (!work || !kind)) return wrong(r, "neither \"work\" and \"class\" nor \"from\"");
    if (!from) BERTH_TRY(read_number(r, object, "flops", 0, &record.flops));
    BERTH_TRY(read_number(r, object, "bytes", 0, &record.bytes));
    BERTH_TRY(read_number(r, object, "ns", 1e-3, &record.ns));
    BERTH_TRY(read_number(r, object, "runs", 1, &runs));
    if (runs > 1e15) return wrong(r, "\"runs\" is too large");
    const char *by = json_string_value(json_object_get(object, "by"));
    record.modelled = by && strcmp(by, "model") == 0;
    record.runs = (uint64_t)runs;
    berth_cost_table_add(r->table, &record);
    return BERTH_OK;
}

static berth_status read_line(reader *r, const char *text, size_t length) {
    json_error_t error;
    size_t blank = 0;
    while (blank < length && (text[blank] == ' ' || text[blank] == '\t' || text[blank] == '\r'))
        ++blank;
    if (blank == length) return BERTH_OK;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!object) return wrong(r, berth_arena_printf(r->arena, "no JSON: %s", error.text));
    berth_arena_defer(r->arena, drop_tree, object);
    if (!json_is_object(object)) return wrong(r, "no JSON object");
    return read_record(r, object);
}

static berth_status read_lines(void *user) {
    static const size_t limit_bytes = (size_t)1 << 28;
    reader *r = user;
    berth_arena *outer = berth_arena_create_child(berth_cost_table_arena(r->table));
    char *data = NULL;
    size_t size_bytes = 0;
    berth_status status = berth_file_read(outer, r->path, limit_bytes, &data, &size_bytes);
    for (size_t at = 0; !status && at < size_bytes;) {
        const char *text = data + at;
        const char *end = memchr(text, '\n', size_bytes - at);
        size_t length = end ? (size_t)(end - text) : size_bytes - at;
        r->line++;
        r->arena = berth_arena_create_child(outer);  // of the line's JSON
        status = read_line(r, text, length);
        berth_arena_destroy(r->arena);
        at += length + 1;
    }
    berth_arena_destroy(outer);
    return status;
}

berth_status berth_cost_table_read(berth_cost_table *table, const char *path) {
    reader r = {.table = table, .path = path};
    return berth_arena_try(berth_cost_table_arena(table), read_lines, &r);
}

// ---- writing ------------------------------------------------------------------------------------

static int by_key(const void *a, const void *b) {
    const berth_cost_record *x = *(const berth_cost_record *const *)a;
    const berth_cost_record *y = *(const berth_cost_record *const *)b;
    int order = strcmp(x->target, y->target);
    if (!order) order = strcmp(x->from ? x->from : "", y->from ? y->from : "");
    if (!order) order = strcmp(x->work, y->work);
    return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void add_number(berth_strbuf *out, const char *name, double value) {
    char text[32];
    berth_format_f64(value, text);
    berth_strbuf_addf(out, ", \"%s\": %s", name, text);
}

static void add_line(berth_strbuf *out, const berth_cost_record *r) {
    berth_strbuf_addf(out, "{\"target\": %s", r->target);
    if (r->from) {
        berth_strbuf_addf(out, ", \"from\": %s", r->from);
    } else {
        berth_strbuf_add(out, ", \"class\": ");
        berth_strbuf_add_json(out, r->kind);
        berth_strbuf_add(out, ", \"work\": ");
        berth_strbuf_add_json(out, r->work);
        add_number(out, "flops", r->flops);
    }
    add_number(out, "bytes", r->bytes);
    add_number(out, "ns", r->ns);
    berth_strbuf_addf(out, ", \"runs\": %llu%s}\n", (unsigned long long)r->runs,
                      r->modelled ? ", \"by\": \"model\"" : "");
}

typedef struct text_job {
    const berth_cost_table *table;
    berth_strbuf text;
} text_job;

static berth_status write_lines(void *user) {
    text_job *job = user;
    uint32_t count = berth_cost_table_count(job->table);
    const berth_cost_record **sorted =
        berth_arena_new_array(job->text.arena, const berth_cost_record *, count + 1);
    for (uint32_t i = 0; i < count; ++i) sorted[i] = berth_cost_table_at(job->table, i);
    qsort(sorted, count, sizeof(*sorted), by_key);
    for (uint32_t i = 0; i < count; ++i) add_line(&job->text, sorted[i]);
    return BERTH_OK;
}

berth_status berth_cost_table_write(const berth_cost_table *table, const char *path) {
    berth_arena *arena = berth_cost_table_arena(table);
    text_job job = {.table = table, .text = berth_strbuf_make(arena)};
    BERTH_TRY(berth_arena_try(arena, write_lines, &job));
    return berth_file_write(path, job.text.data, job.text.length);
}
