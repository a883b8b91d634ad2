// JSON of whole modules:
//   {"format": "berth-module", "version": 1, "name": "m", "attributes": [...],
//    "functions": [{"name": "main", "dialect": "graph", "attributes": [...], "location": 1,
//                   "body": {...}}],
//    "locations": [{"file": "m.onnx", "node": "conv1", "op": "Conv"}]}
#include <stdlib.h>
#include <string.h>

#include "ir/json.h"
#include "ir/json/reader.h"
#include "ir/json/writer.h"

static const int format_version = 1;

// ---- writing ------------------------------------------------------------------------------------

typedef struct write_request {
    berth_arena *arena;
    const berth_module *module;
    int indent;
    const char *text;
} write_request;

static void decref(void *value) {
    json_decref(value);
}

static void write_function(berth_json_writer *w, json_t *array, berth_func_id id) {
    const berth_function *function = berth_module_function(w->module, id);
    json_t *object = berth_json_put_object(w, array, NULL);
    berth_json_put_str(w, object, "name", function->name);
    berth_json_put_text(w, object, "dialect", function->dialect->name);
    berth_json_put_attrs(w, object, &function->attrs);
    berth_json_put_loc(w, object, "location", function->loc);
    json_t *body = berth_json_put_object(w, object, "body");
    if (function->dialect->to_json)
        function->dialect->to_json(w, id, body);
    else if (!w->status)
        w->status =
            berth_status_make(BERTH_UNSUPPORTED, "function @%s: the dialect %s has no JSON form",
                              berth_module_str(w->module, function->name), function->dialect->name);
}

static void write_module(berth_json_writer *w, json_t *root) {
    berth_json_put(w, root, "format", json_string("berth-module"));
    berth_json_put_int(w, root, "version", format_version);
    berth_json_put_str(w, root, "name", w->module->name);
    berth_json_put_attrs(w, root, &w->module->attrs);
    json_t *functions = berth_json_put_array(w, root, "functions");
    w->locations = berth_json_put_array(w, root, "locations");
    for (uint32_t i = 0; i < w->module->functions.count && !w->failed; ++i)
        if (!w->module->functions.data[i].removed) write_function(w, functions, i);
}

static berth_status dump(berth_json_writer *w, const json_t *root, write_request *r) {
    if (w->status) return w->status;
    if (w->failed) return berth_status_oom();
    size_t flags = JSON_REAL_PRECISION(17) |
                   (r->indent > 0 ? JSON_INDENT((size_t)r->indent & 31) : JSON_COMPACT);
    char *text = json_dumps(root, flags);
    if (!text) return berth_status_oom();
    berth_arena_defer(w->scratch, free, text);
    r->text = berth_arena_strdup(r->arena, text);
    return BERTH_OK;
}

static berth_status write_body(void *user) {
    write_request *r = user;
    berth_arena *scratch = berth_arena_create_child(r->arena);
    json_t *root = json_object();
    if (!root) return berth_status_oom();
    berth_arena_defer(scratch, decref, root);
    berth_json_writer w = {.module = r->module,
                           .scratch = scratch,
                           .locs = berth_interner_create(scratch),
                           .loc_numbers =
                               berth_arena_new_array(scratch, uint32_t, r->module->locs.count)};
    write_module(&w, root);
    berth_status status = dump(&w, root, r);
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_module_to_json_text(berth_arena *arena, const berth_module *module, int indent,
                                       const char **out_text) {
    write_request r = {arena, module, indent, NULL};
    *out_text = NULL;
    BERTH_TRY(berth_arena_try(arena, write_body, &r));
    *out_text = r.text;
    return BERTH_OK;
}

// ---- reading ------------------------------------------------------------------------------------

typedef struct read_request {
    berth_arena *arena;
    const char *text;
    size_t length;
    const char *file_name;
    const berth_dialect_registry *registry;
    berth_module *module;
} read_request;

static berth_status read_location(berth_json_reader *r, const json_t *object) {
    berth_loc loc = {0};
    int64_t line = 0;
    int64_t column = 0;
    const json_t *fused = NULL;
    if (!json_is_object(object)) return berth_json_expected(r, NULL, "an object");
    BERTH_TRY(berth_json_get_str(r, object, "file", true, &loc.file));
    BERTH_TRY(berth_json_get_str(r, object, "node", true, &loc.node));
    BERTH_TRY(berth_json_get_str(r, object, "op", true, &loc.op_type));
    BERTH_TRY(berth_json_get_int(r, object, "line", true, 0, UINT32_MAX, &line));
    BERTH_TRY(berth_json_get_int(r, object, "column", true, 0, UINT32_MAX, &column));
    BERTH_TRY(berth_json_get_array(r, object, "fused", true, &fused));
    loc.line = (uint32_t)line;
    loc.column = (uint32_t)column;
    loc.part_count = (uint32_t)json_array_size(fused);
    berth_loc_id *parts = berth_arena_new_array(r->module->arena, berth_loc_id, loc.part_count);
    for (uint32_t i = 0; i < loc.part_count; ++i) {
        const json_t *item = json_array_get(fused, i);
        json_int_t number = json_integer_value(item);
        if (!json_is_integer(item) || number < 0 || number > r->locs.count)
            return berth_json_expected(r, "fused", "numbers of locations before this one");
        parts[i] = number ? r->locs.data[number - 1] : 0;
    }
    loc.parts = parts;
    berth_vec_push(r->module->arena, &r->module->locs, loc);
    berth_vec_push(r->scratch, &r->locs, r->module->locs.count - 1);
    return BERTH_OK;
}

static berth_status read_items(berth_json_reader *r, const json_t *root, const char *key,
                               berth_status (*read)(berth_json_reader *r, const json_t *item)) {
    const json_t *array = NULL;
    BERTH_TRY(berth_json_get_array(r, root, key, false, &array));
    for (size_t i = 0; i < json_array_size(array); ++i) {
        size_t mark = berth_json_enter(r, key, 0);
        (void)berth_json_enter(r, NULL, i);
        BERTH_TRY(read(r, json_array_get(array, i)));
        berth_json_leave(r, mark);
    }
    return BERTH_OK;
}

// Names first, so that functions may refer to each other.
static berth_status declare_function(berth_json_reader *r, const json_t *object) {
    const char *name = NULL;
    const char *dialect_name = NULL;
    BERTH_TRY(berth_json_get_text(r, object, "name", false, &name));
    BERTH_TRY(berth_json_get_text(r, object, "dialect", false, &dialect_name));
    const berth_dialect *dialect = berth_dialect_find(r->registry, dialect_name);
    if (!dialect || !dialect->from_json)
        return berth_json_expected(r, "dialect", "a known dialect (graph, tensor, external)");
    if (berth_module_find_function(r->module, name) != BERTH_NONE)
        return berth_json_expected(r, "name", "a new name");
    berth_module_add_function(r->module, name, dialect, NULL, 0);
    return BERTH_OK;
}

static berth_status read_function(berth_json_reader *r, const json_t *object) {
    const char *name = NULL;
    berth_attrs attrs = {{0}};
    berth_loc_id loc = 0;
    BERTH_TRY(berth_json_get_text(r, object, "name", false, &name));
    berth_func_id id = berth_module_find_function(r->module, name);
    BERTH_TRY(berth_json_get_attrs(r, object, &attrs));
    BERTH_TRY(berth_json_get_loc(r, object, "location", &loc));
    berth_module_function(r->module, id)->attrs = attrs;
    berth_module_function(r->module, id)->loc = loc;
    size_t mark = berth_json_enter(r, "body", 0);
    const json_t *body = json_object_get(object, "body");
    if (!json_is_object(body)) return berth_json_expected(r, NULL, "an object");
    BERTH_TRY(berth_module_function(r->module, id)->dialect->from_json(r, body, id));
    berth_json_leave(r, mark);
    return BERTH_OK;
}

static berth_status read_module(berth_json_reader *r, const json_t *root) {
    const char *format = "";
    int64_t version = 0;
    BERTH_TRY(berth_json_get_text(r, root, "format", true, &format));
    if (strcmp(format, "berth-module") != 0)
        return berth_json_expected(r, "format", "\"berth-module\"");
    BERTH_TRY(berth_json_get_int(r, root, "version", false, 1, format_version, &version));
    BERTH_TRY(berth_json_get_str(r, root, "name", false, &r->module->name));
    BERTH_TRY(read_items(r, root, "locations", read_location));
    BERTH_TRY(read_items(r, root, "functions", declare_function));
    BERTH_TRY(berth_json_get_attrs(r, root, &r->module->attrs));
    return read_items(r, root, "functions", read_function);
}

static berth_status read_body(void *user) {
    read_request *q = user;
    berth_arena *scratch = berth_arena_create_child(q->arena);
    json_error_t error;
    const berth_limits *limits = q->registry ? q->registry->limits : NULL;
    BERTH_TRY(berth_limits_check_bytes(limits, q->file_name, q->length, 0));
    json_t *root = json_loadb(q->text, q->length, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%s:%d:%d: %s", q->file_name, error.line,
                                 error.column, error.text);
    berth_arena_defer(scratch, decref, root);
    berth_json_reader reader = {
        .module = berth_module_create(q->arena, ""),
        .scratch = scratch,
        .registry = q->registry,
        .file_name = q->file_name,
        .most_depth = berth_limits_depth(limits, BERTH_MAX_NESTING),
        .watch = berth_limits_watch(limits, q->file_name, "operations and statements", 0)};
    q->module = reader.module;
    berth_status status = read_module(&reader, root);
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_module_from_json_text(berth_arena *arena, const char *text, size_t length,
                                         const char *file_name,
                                         const berth_dialect_registry *registry,
                                         berth_module **out_module) {
    read_request q = {.arena = arena,
                      .text = text,
                      .length = length,
                      .file_name = file_name,
                      .registry = registry};
    *out_module = NULL;
    BERTH_TRY(berth_arena_try(arena, read_body, &q));
    *out_module = q.module;
    return BERTH_OK;
}
