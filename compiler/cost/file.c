// Files of measured costs: JSON lines (cost_table.h).
#include <jansson.h>
#include <string.h>

#include "compiler/cost/table.h"
#include "compiler/json_lines.h"

// ---- reading ------------------------------------------------------------------------------------

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
    if (!from) BERTH_TRY(berth_json_line_number(line, object, "flops", 0, 1e18, &record.flops));
    BERTH_TRY(berth_json_line_number(line, object, "bytes", 0, 1e18, &record.bytes));
    BERTH_TRY(berth_json_line_number(line, object, "ns", 1e-3, 1e18, &record.ns));
    BERTH_TRY(berth_json_line_number(line, object, "runs", 1, 1e15, &runs));
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
    const berth_cost_record *x = a, *y = b;
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

static void add_line(berth_strbuf *out, const void *record) {
    const berth_cost_record *r = record;
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

static const void *record_at(const void *table, uint32_t index) {
    return berth_cost_table_at(table, index);
}

berth_status berth_cost_table_write(const berth_cost_table *table, const char *path) {
    const berth_json_lines_output file = {.path = path,
                                          .count = berth_cost_table_count(table),
                                          .at = record_at,
                                          .order = by_key,
                                          .add = add_line,
                                          .table = table};
    return berth_json_lines_write(&file, berth_cost_table_arena(table));
}
