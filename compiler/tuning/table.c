#include "compiler/tuning/table.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compiler/json_lines.h"

struct berth_tuned_table {
    berth_arena *arena;
    berth_interner *keys;  // a record's number is its key's less 1
    BERTH_VEC(berth_tuned_record) records;
};

berth_tuned_table *berth_tuned_table_create(berth_arena *arena) {
    berth_tuned_table *table = berth_arena_new(arena, berth_tuned_table);
    table->arena = arena;
    table->keys = berth_interner_create(arena);
    return table;
}

static const char *key_of(berth_arena *arena, const char *target, berth_hash128 function) {
    char hex[33];
    berth_hash128_hex(function, hex);
    return berth_arena_printf(arena, "%s %s", hex, target);
}

static double gain(const berth_tuned_record *record) {
    return record->ns > 0 ? record->policy_ns / record->ns : 0;
}

void berth_tuned_table_add(berth_tuned_table *table, const berth_tuned_record *record) {
    berth_arena *arena = table->arena;
    uint32_t id = berth_intern(table->keys, key_of(arena, record->target, record->function));
    bool held = id <= table->records.count;
    if (held && gain(&table->records.data[id - 1]) >= gain(record)) return;
    berth_tuned_record copy = *record;
    const char **decisions = berth_arena_new_array(arena, const char *, record->nest_count + 1);
    for (uint32_t i = 0; i < record->nest_count; ++i)
        decisions[i] = berth_arena_strdup(arena, record->decisions[i]);
    copy.target = berth_arena_strdup(arena, record->target);
    copy.name = berth_arena_strdup(arena, record->name);
    copy.decisions = decisions;
    if (held)
        table->records.data[id - 1] = copy;
    else
        berth_vec_push(arena, &table->records, copy);
}

const berth_tuned_record *berth_tuned_table_find(const berth_tuned_table *table, const char *target,
                                                 berth_hash128 function) {
    uint32_t id = 0;
    if (!berth_intern_find(table->keys, key_of(table->arena, target, function), &id) || id == 0)
        return NULL;
    return &table->records.data[id - 1];
}

uint32_t berth_tuned_table_count(const berth_tuned_table *table) {
    return table->records.count;
}

const berth_tuned_record *berth_tuned_table_at(const berth_tuned_table *table, uint32_t index) {
    return &table->records.data[index];
}

// ---- reading ------------------------------------------------------------------------------------

static bool read_hash(const char *text, berth_hash128 *out) {
    if (!text || strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32) return false;
    char high[17] = {0};
    memcpy(high, text, 16);
    out->high = strtoull(high, NULL, 16);
    out->low = strtoull(text + 16, NULL, 16);
    char back[33];
    berth_hash128_hex(*out, back);
    return strcmp(back, text) == 0;
}

static berth_status read_decisions(const berth_json_line *line, const json_t *list,
                                   berth_tuned_record *record) {
    enum { most_nests = 4096 };
    size_t count = json_array_size(list);
    const char **decisions = berth_arena_new_array(line->arena, const char *, count + 1);
    if (!json_is_array(list) || count > most_nests)
        return berth_json_line_wrong(line, "\"decisions\" is no list of strings");
    for (size_t i = 0; i < count; ++i) {
        decisions[i] = json_string_value(json_array_get(list, i));
        if (!decisions[i])
            return berth_json_line_wrong(line, "\"decisions\" is no list of strings");
    }
    record->decisions = decisions;
    record->nest_count = (uint32_t)count;
    return BERTH_OK;
}

static berth_status read_record(void *user, const berth_json_line *line, const json_t *object) {
    const json_t *target = json_object_get(object, "target");
    const char *name = json_string_value(json_object_get(object, "name"));
    berth_tuned_record record = {.name = name ? name : ""};
    double runs = 0;
    record.target = berth_json_line_target(line, target);
    if (!record.target)
        return berth_json_line_wrong(line, "\"target\" is no object with a \"kind\"");
    if (!read_hash(json_string_value(json_object_get(object, "function")), &record.function))
        return berth_json_line_wrong(line, "\"function\" is no hash of 32 digits 0-9a-f");
    BERTH_TRY(read_decisions(line, json_object_get(object, "decisions"), &record));
    BERTH_TRY(berth_json_line_number(line, object, "ns", 1e-3, 1e15, &record.ns));
    BERTH_TRY(berth_json_line_number(line, object, "policy_ns", 1e-3, 1e15, &record.policy_ns));
    BERTH_TRY(berth_json_line_number(line, object, "runs", 1, UINT32_MAX, &runs));
    record.runs = (uint32_t)runs;
    berth_tuned_table_add(user, &record);
    return BERTH_OK;
}

berth_status berth_tuned_table_read(berth_tuned_table *table, const char *path) {
    const berth_json_lines file = {
        .path = path, .writer = "berth tune", .add = read_record, .user = table};
    return berth_json_lines_read(&file, table->arena);
}

// ---- writing ------------------------------------------------------------------------------------

static int by_key(const void *a, const void *b) {
    const berth_tuned_record *x = a, *y = b;
    int order = strcmp(x->target, y->target);
    if (!order)
        order = (x->function.high > y->function.high) - (x->function.high < y->function.high);
    return order ? order
                 : (x->function.low > y->function.low) - (x->function.low < y->function.low);
}

static void add_line(berth_strbuf *out, const void *record) {
    const berth_tuned_record *r = record;
    char hex[33], ns[32], policy_ns[32];
    berth_hash128_hex(r->function, hex);
    berth_format_f64(r->ns, ns);
    berth_format_f64(r->policy_ns, policy_ns);
    berth_strbuf_addf(out, "{\"target\": %s, \"function\": \"%s\", \"name\": ", r->target, hex);
    berth_strbuf_add_json(out, r->name);
    berth_strbuf_add(out, ", \"decisions\": [");
    for (uint32_t i = 0; i < r->nest_count; ++i) {
        if (i) berth_strbuf_add(out, ", ");
        berth_strbuf_add_json(out, r->decisions[i]);
    }
    berth_strbuf_addf(out, "], \"ns\": %s, \"policy_ns\": %s, \"runs\": %u}\n", ns, policy_ns,
                      r->runs);
}

static const void *record_at(const void *table, uint32_t index) {
    return berth_tuned_table_at(table, index);
}

berth_status berth_tuned_table_write(const berth_tuned_table *table, const char *path) {
    const berth_json_lines_output file = {.path = path,
                                          .count = berth_tuned_table_count(table),
                                          .at = record_at,
                                          .order = by_key,
                                          .add = add_line,
                                          .table = table};
    return berth_json_lines_write(&file, table->arena);
}
