#include "tools/plan_compare.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "tools/cli.h"

// A sum of both plans under one name: a device's time and operations, the copies of one way, what is
// planned for a memory.
typedef struct row {
    const char *name;
    double time_ms[2];
    double bytes[2];
    uint32_t count[2];
} row;

typedef struct rows {
    BERTH_VEC(row) items;
} rows;

// An operation of one plan or of both.
typedef struct operation {
    const char *node, *op;
    const char *device[2];  // NULL = not in this plan
    double time_us[2];
} operation;

typedef struct comparer {
    berth_arena *arena;
    const char *path[2];
    json_t *plan[2];
    double predicted_ms[2];
    const char *strategy[2];
    rows devices, copies, memories;
    BERTH_VEC(operation) operations;
    json_t *known;  // key of an operation -> its index
} comparer;

// ---- reading ------------------------------------------------------------------------------------

static berth_status wrong(const comparer *c, int side, const char *list, size_t index,
                          const char *key, const char *wanted) {
    const char *place = list ? berth_arena_printf(c->arena, "%s[%zu].%s", list, index, key) : key;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "\"%s\" is no plan of `berth plan --format=json`: %s: %s is wanted",
                             c->path[side], place, wanted);
}

static berth_status read_text(const comparer *c, int side, const json_t *object, const char *list,
                              size_t index, const char *key, const char **out) {
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value)) return wrong(c, side, list, index, key, "a text");
    *out = json_string_value(value);
    return BERTH_OK;
}

static berth_status read_number(const comparer *c, int side, const json_t *object, const char *list,
                                size_t index, const char *key, double *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_number_value(value);
    if (!json_is_number(value) || !(*out >= 0 && *out < 1e300))
        return wrong(c, side, list, index, key, "a number from 0");
    return BERTH_OK;
}

static berth_status read_list(const comparer *c, int side, const char *key, json_t **out) {
    *out = json_object_get(c->plan[side], key);
    return json_is_array(*out) ? BERTH_OK : wrong(c, side, NULL, 0, key, "a list");
}

static row *row_of(const comparer *c, rows *list, const char *name) {
    for (uint32_t i = 0; i < list->items.count; ++i)
        if (strcmp(list->items.data[i].name, name) == 0) return &list->items.data[i];
    berth_vec_push(c->arena, &list->items, (row){.name = berth_arena_strdup(c->arena, name)});
    return &list->items.data[list->items.count - 1];
}

// Operations of one name and operator are told apart by their number.
static operation *operation_of(comparer *c, json_t *numbers, const char *node, const char *op) {
    const char *plain = berth_arena_printf(c->arena, "%s\n%s", node, op);
    json_int_t number = json_integer_value(json_object_get(numbers, plain));
    json_object_set_new(numbers, plain, json_integer(number + 1));
    const char *key = berth_arena_printf(c->arena, "%lld\n%s", (long long)number, plain);
    const json_t *index = json_object_get(c->known, key);
    if (index) return &c->operations.data[json_integer_value(index)];
    json_object_set_new(c->known, key, json_integer(c->operations.count));
    berth_vec_push(c->arena, &c->operations, (operation){.node = node, .op = op});
    return &c->operations.data[c->operations.count - 1];
}

static berth_status read_operations(comparer *c, int side, json_t *numbers) {
    json_t *list = NULL;
    const json_t *item = NULL;
    size_t i = 0;
    BERTH_TRY(read_list(c, side, "operations", &list));
    json_array_foreach(list, i, item) {
        const char *node = NULL, *op = NULL, *device = NULL;
        double time_us = 0;
        BERTH_TRY(read_text(c, side, item, "operations", i, "node", &node));
        BERTH_TRY(read_text(c, side, item, "operations", i, "op", &op));
        BERTH_TRY(read_text(c, side, item, "operations", i, "device", &device));
        BERTH_TRY(read_number(c, side, item, "operations", i, "time_us", &time_us));
        operation *o = operation_of(c, numbers, node, op);
        o->device[side] = device;
        o->time_us[side] = time_us;
        row *sum = row_of(c, &c->devices, device);
        sum->time_ms[side] += time_us / 1e3;
        sum->count[side]++;
    }
    return BERTH_OK;
}

static berth_status read_copies(comparer *c, int side) {
    json_t *list = NULL;
    const json_t *item = NULL;
    size_t i = 0;
    BERTH_TRY(read_list(c, side, "copies", &list));
    json_array_foreach(list, i, item) {
        const char *from = NULL, *to = NULL;
        double bytes = 0, time_us = 0;
        BERTH_TRY(read_text(c, side, item, "copies", i, "from", &from));
        BERTH_TRY(read_text(c, side, item, "copies", i, "to", &to));
        BERTH_TRY(read_number(c, side, item, "copies", i, "bytes", &bytes));
        BERTH_TRY(read_number(c, side, item, "copies", i, "time_us", &time_us));
        row *sum = row_of(c, &c->copies, berth_arena_printf(c->arena, "%s > %s", from, to));
        sum->time_ms[side] += time_us / 1e3;
        sum->bytes[side] += bytes;
        sum->count[side]++;
    }
    return BERTH_OK;
}

static berth_status read_memories(comparer *c, int side) {
    json_t *list = NULL;
    const json_t *item = NULL;
    size_t i = 0;
    BERTH_TRY(read_list(c, side, "memory", &list));
    json_array_foreach(list, i, item) {
        const char *memory = NULL;
        double bytes = 0;
        BERTH_TRY(read_text(c, side, item, "memory", i, "memory", &memory));
        BERTH_TRY(read_number(c, side, item, "memory", i, "peak_bytes", &bytes));
        row_of(c, &c->memories, memory)->bytes[side] += bytes;
    }
    return BERTH_OK;
}

static berth_status read_plan(comparer *c, int side) {
    enum { limit_bytes = 1 << 28 };
    char *data = NULL;
    size_t size_bytes = 0;
    json_error_t error;
    BERTH_TRY(berth_file_read(c->arena, c->path[side], limit_bytes, &data, &size_bytes));
    c->plan[side] = json_loadb(data, size_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!c->plan[side])
        return berth_status_make(BERTH_INVALID_ARGUMENT, "\"%s\" is not JSON: line %d: %s",
                                 c->path[side], error.line, error.text);
    BERTH_TRY(read_number(c, side, c->plan[side], NULL, 0, "predicted_ms", &c->predicted_ms[side]));
    BERTH_TRY(read_text(c, side, c->plan[side], NULL, 0, "strategy", &c->strategy[side]));
    BERTH_TRY(read_copies(c, side));
    BERTH_TRY(read_memories(c, side));
    json_t *numbers = json_object();
    berth_status status = read_operations(c, side, numbers);
    json_decref(numbers);
    return status;
}

// ---- showing ------------------------------------------------------------------------------------

static bool moved(const operation *o) {
    return o->device[0] && o->device[1] && strcmp(o->device[0], o->device[1]) != 0;
}

static void print_times(double a, double b) {
    berth_cli_print("%12.3f %12.3f %+12.3f ms", a, b, b - a);
}

static void print_devices(const comparer *c) {
    for (uint32_t i = 0; i < c->devices.items.count; ++i) {
        const row *r = &c->devices.items.data[i];
        berth_cli_print("%-24s", r->name);
        print_times(r->time_ms[0], r->time_ms[1]);
        berth_cli_print(", %u and %u operations\n", r->count[0], r->count[1]);
    }
}

static void print_copies(const comparer *c) {
    for (uint32_t i = 0; i < c->copies.items.count; ++i) {
        const row *r = &c->copies.items.data[i];
        char bytes[2][32];
        berth_format_bytes_f64(r->bytes[0], bytes[0]);
        berth_format_bytes_f64(r->bytes[1], bytes[1]);
        berth_cli_print("copies %-17s", r->name);
        print_times(r->time_ms[0], r->time_ms[1]);
        berth_cli_print(", %u and %u, %s and %s\n", r->count[0], r->count[1], bytes[0], bytes[1]);
    }
}

static void print_memories(const comparer *c) {
    for (uint32_t i = 0; i < c->memories.items.count; ++i) {
        const row *r = &c->memories.items.data[i];
        char bytes[3][32];
        double more = r->bytes[1] - r->bytes[0];
        berth_format_bytes_f64(r->bytes[0], bytes[0]);
        berth_format_bytes_f64(r->bytes[1], bytes[1]);
        berth_format_bytes_f64(fabs(more), bytes[2]);
        berth_cli_print("memory %-17s%12s %12s %s%s\n", r->name, bytes[0], bytes[1],
                        more < 0 ? "-" : "+", bytes[2]);
    }
}

static void print_operations(const comparer *c) {
    uint32_t moves = 0, both = 0, other_times = 0, only[2] = {0, 0};
    for (uint32_t i = 0; i < c->operations.count; ++i) {
        const operation *o = &c->operations.data[i];
        both += o->device[0] && o->device[1];
        moves += moved(o);
        other_times += o->device[0] && o->device[1] && !moved(o) && o->time_us[0] != o->time_us[1];
        only[0] += !o->device[1];
        only[1] += !o->device[0];
    }
    berth_cli_print(
        "%u of %u operations moved, %u take another time where they are, %u are only in "
        "A, %u only in B\n",
        moves, both, other_times, only[0], only[1]);
    for (uint32_t i = 0; i < c->operations.count; ++i) {
        const operation *o = &c->operations.data[i];
        if (moved(o))
            berth_cli_print("  %s (%s): %s, %.1f us > %s, %.1f us\n", o->node, o->op, o->device[0],
                            o->time_us[0], o->device[1], o->time_us[1]);
        else if (!o->device[0] || !o->device[1])
            berth_cli_print("  %s (%s): only in %s, %s\n", o->node, o->op, o->device[0] ? "A" : "B",
                            o->device[0] ? o->device[0] : o->device[1]);
    }
}

static void print_text(const comparer *c) {
    for (int side = 0; side < 2; ++side)
        berth_cli_print("%c  %s: strategy %s\n", 'A' + side, c->path[side], c->strategy[side]);
    berth_cli_print("%-24s%12s %12s %12s\n", "", "A", "B", "B - A");
    berth_cli_print("%-24s", "predicted");
    print_times(c->predicted_ms[0], c->predicted_ms[1]);
    if (c->predicted_ms[0] > 0)
        berth_cli_print(", %+.1f %%", 100 * (c->predicted_ms[1] / c->predicted_ms[0] - 1));
    berth_cli_print("\n");
    print_devices(c);
    print_copies(c);
    print_memories(c);
    print_operations(c);
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t *pair(double a, double b) {
    return json_pack("[f, f]", a, b);
}

static json_t *rows_json(const rows *list) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < list->items.count; ++i) {
        const row *r = &list->items.data[i];
        json_array_append_new(array, json_pack("{s:o, s:o, s:o, s:[i, i]}", "name",
                                               berth_cli_json_text(r->name), "time_ms",
                                               pair(r->time_ms[0], r->time_ms[1]), "bytes",
                                               pair(r->bytes[0], r->bytes[1]), "count",
                                               (int)r->count[0], (int)r->count[1]));
    }
    return array;
}

static void print_json(const comparer *c) {
    json_t *operations = json_array();
    for (uint32_t i = 0; i < c->operations.count; ++i) {
        const operation *o = &c->operations.data[i];
        if (!moved(o) && o->device[0] && o->device[1]) continue;
        json_array_append_new(operations, json_pack("{s:o, s:o, s:[o, o], s:o}", "node",
                                                    berth_cli_json_text(o->node), "op",
                                                    berth_cli_json_text(o->op), "device",
                                                    berth_cli_json_text(o->device[0]),
                                                    berth_cli_json_text(o->device[1]), "time_us",
                                                    pair(o->time_us[0], o->time_us[1])));
    }
    berth_cli_print_json(json_pack("{s:o, s:o, s:o, s:o, s:o}", "predicted_ms",
                                   pair(c->predicted_ms[0], c->predicted_ms[1]), "devices",
                                   rows_json(&c->devices), "copies", rows_json(&c->copies),
                                   "memories", rows_json(&c->memories), "operations", operations));
}

berth_status berth_plan_compare(berth_arena *arena, const char *a, const char *b, bool json) {
    comparer c = {.arena = arena, .path = {a, b}, .known = json_object()};
    berth_status status = read_plan(&c, 0);
    if (!status) status = read_plan(&c, 1);
    if (!status && json) print_json(&c);
    if (!status && !json) print_text(&c);
    json_decref(c.known);
    json_decref(c.plan[0]);
    json_decref(c.plan[1]);
    return status;
}
