// Files of measured costs: JSON lines (cost_table.h).
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "compiler/cost/table.h"
#include "compiler/json_lines.h"

// ---- reading ------------------------------------------------------------------------------------

static berth_status read_number(const berth_json_line *line, const json_t *object, const char *name,
                                double least, double *out_value) {
    const json_t *value = json_object_get(object, name);
    *out_value = json_number_value(value);
    if (json_is_number(value) && isfinite(*out_value) && *out_value >= least) return BERTH_OK;
    return berth_json_line_wrong(
        line, berth_arena_printf(line->arena, "\"%s\" is no number of at least %g", name, least));
}

static berth_status read_record(void *user, const berth_json_line *line, const json_t *object) {
    const json_t *from = json_object_get(object, "from");
    const char *work = json_string_value(json_object_get(object, "work"));
    const char *kind = json_string_value(json_object_get(object, "class"));
    berth_cost_record record = {.kind = kind ? kind : "", .work = work ? work : ""};
    double runs = 0;
    record.target = berth_json_line_target(line, json_object_get(object, "target"));
    if (!record.target)
        return berth_json_line_wrong(line, "\"target\" is no object with a \"kind\"");
    if (from) record.from = berth_json_line_target(line, from);
    if (from && !record.from)
        return berth_json_line_wrong(line, "\"from\" is no object with a \"kind\"");
    if (!from && (!work || !kind))
        return berth_json_line_wrong(line, "neither \"work\" and \"class\" nor \"from\"");
    if (!from) BERTH_TRY(read_number(line, object, "flops", 0, &record.flops));
    BERTH_TRY(read_number(line, object, "bytes", 0, &record.bytes));
    BERTH_TRY(read_number(line, object, "ns", 1e-3, &record.ns));
    BERTH_TRY(read_number(line, object, "runs", 1, &runs));
    if (runs > 1e15) return berth_json_line_wrong(line, "\"runs\" is too large");
    const char *by = json_string_value(json_object_get(object, "by"));
    record.modelled = by && strcmp(by, "model") == 0;
    record.runs = (uint64_t)runs;
    berth_cost_table_add(user, &record);
    return BERTH_OK;
}

berth_status berth_cost_table_read(berth_cost_table *table, const char *path) {
    const berth_json_lines file = {
        .path = path, .writer = "berth calibrate", .add = read_record, .user = table};
    return berth_json_lines_read(&file, berth_cost_table_arena(table));
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
