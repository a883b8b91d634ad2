#include "ir/c/emitter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "target/virtual_device.h"

void berth_emit_line(berth_c_emitter *e, const char *format, ...) {
    char small[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    berth_strbuf_add(&e->body, "    ");
    if (length >= 0 && (size_t)length < sizeof(small)) {
        berth_strbuf_add(&e->body, small);
    } else if (length > 0) {
        char *text = berth_arena_alloc(e->scratch, (size_t)length + 1);
        va_start(args, format);
        (void)vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
        berth_strbuf_add(&e->body, text);
    }
    berth_strbuf_add(&e->body, "\n");
}

// ---- literals -----------------------------------------------------------------------------------

// C99 promises literals of this many characters.
enum { most_literal = 4000, bytes_per_line = 20, values_per_line = 12 };

const char *berth_emit_string(berth_c_emitter *e, const char *text) {
    size_t length = strlen(text);
    if (length > most_literal)
        return berth_arena_printf(e->scratch, "(const char *)%s",
                                  berth_emit_data(e, text, length + 1));
    berth_strbuf out = berth_strbuf_make(e->scratch);
    berth_strbuf_add(&out, "\"");
    for (const char *at = text; *at; ++at) {
        unsigned char byte = (unsigned char)*at;
        if (byte == '"' || byte == '\\' || byte == '?')  // "??=" is a trigraph
            berth_strbuf_addf(&out, "\\%c", byte);
        else if (byte == '\n')
            berth_strbuf_add(&out, "\\n");
        else if (byte < 0x20 || byte >= 0x7f)
            berth_strbuf_addf(&out, "\\%03o", byte);
        else
            berth_strbuf_addf(&out, "%c", byte);
    }
    berth_strbuf_add(&out, "\"");
    return berth_strbuf_text(&out);
}

const char *berth_emit_int(berth_c_emitter *e, int64_t value) {
    if (value == INT64_MIN) return "INT64_MIN";
    if (value >= INT32_MIN + 1 && value <= INT32_MAX)
        return berth_arena_printf(e->scratch, "%lld", (long long)value);
    return berth_arena_printf(e->scratch, "INT64_C(%lld)", (long long)value);
}

const char *berth_emit_float(berth_c_emitter *e, double value) {
    if (isnan(value)) return "(double)NAN";
    if (isinf(value)) return value > 0 ? "(double)INFINITY" : "(double)-INFINITY";
    const char *text = berth_arena_printf(e->scratch, "%.17g", value);
    return strpbrk(text, ".e") ? text : berth_arena_printf(e->scratch, "%s.0", text);
}

const char *berth_emit_dtype(berth_dtype dtype) {
#define BERTH_C_DTYPE_(suffix, name, size, class_) [BERTH_DTYPE_##suffix] = "BERTH_DTYPE_" #suffix,
    static const char *const names[] = {[BERTH_DTYPE_NONE] = "BERTH_DTYPE_NONE",
                                        BERTH_DTYPES(BERTH_C_DTYPE_)};
#undef BERTH_C_DTYPE_
    return dtype == BERTH_DTYPE_STRING ? "BERTH_DTYPE_STRING" : names[dtype];
}

const char *berth_emit_str_id(berth_c_emitter *e, berth_str_id text) {
    if (!text) return "0";
    return berth_arena_printf(e->scratch, "berth_module_intern(m, %s)",
                              berth_emit_string(e, berth_module_str(e->module, text)));
}

const char *berth_emit_dim(berth_c_emitter *e, int64_t dim) {
    if (!berth_dim_is_symbol(dim)) return berth_emit_int(e, dim);
    return berth_arena_printf(e->scratch, "berth_dim_symbol(%s)",
                              berth_emit_str_id(e, berth_dim_symbol_name(dim)));
}

const char *berth_emit_list(berth_c_emitter *e, uint32_t count,
                            const char *(*item)(berth_c_emitter *e, const void *items,
                                                uint32_t index),
                            const void *items) {
    berth_strbuf out = berth_strbuf_make(e->scratch);
    berth_strbuf_add(&out, "{");
    for (uint32_t i = 0; i < count; ++i) {
        if (i) berth_strbuf_add(&out, i % values_per_line ? ", " : ",\n        ");
        berth_strbuf_add(&out, item(e, items, i));
    }
    berth_strbuf_add(&out, "}");
    return berth_strbuf_text(&out);
}

const char *berth_emit_data(berth_c_emitter *e, const void *data, size_t size_bytes) {
    const uint8_t *bytes = data;
    uint32_t number = e->data_count++;
    berth_strbuf_addf(&e->data, "static _Alignas(16) uint8_t data_%u[%zu] = {", number,
                      size_bytes ? size_bytes : 1);
    for (size_t i = 0; i < size_bytes; ++i)
        berth_strbuf_addf(&e->data, "%s%u,", i % bytes_per_line ? "" : "\n    ", bytes[i]);
    berth_strbuf_add(&e->data, size_bytes ? "\n};\n" : "0};\n");
    return berth_arena_printf(e->scratch, "data_%u", number);
}

// ---- tables -------------------------------------------------------------------------------------

static const char *item_dim(berth_c_emitter *e, const void *items, uint32_t index) {
    return berth_emit_dim(e, ((const int64_t *)items)[index]);
}

static const char *item_type(berth_c_emitter *e, const void *items, uint32_t index) {
    return berth_emit_type(e, ((const berth_type_id *)items)[index]);
}

static const char *type_call(berth_c_emitter *e, const berth_type *type) {
    berth_arena *arena = e->scratch;
    uint32_t results = type->field_count - type->param_count;
    switch (type->kind) {
    case BERTH_TYPE_TENSOR:
        return berth_arena_printf(
            arena, "berth_type_tensor_layout(m, %s, %d, (const int64_t[])%s, %s)",
            berth_emit_dtype(type->dtype), type->rank,
            type->rank > 0 ? berth_emit_list(e, (uint32_t)type->rank, item_dim, type->dims) : "{0}",
            berth_emit_str_id(e, type->layout));
    case BERTH_TYPE_TUPLE:
        return berth_arena_printf(
            arena, "berth_type_tuple(m, (const berth_type_id[])%s, %u)",
            type->field_count ? berth_emit_list(e, type->field_count, item_type, type->fields)
                              : "{0}",
            type->field_count);
    case BERTH_TYPE_FUNCTION:
        return berth_arena_printf(
            arena,
            "berth_type_function(m, (const berth_type_id[])%s, %u, (const berth_type_id[])%s, %u)",
            type->param_count ? berth_emit_list(e, type->param_count, item_type, type->fields)
                              : "{0}",
            type->param_count,
            results ? berth_emit_list(e, results, item_type, type->fields + type->param_count)
                    : "{0}",
            results);
    case BERTH_TYPE_STORAGE: return "berth_type_storage(m)";
    default: return "0";
    }
}

// What a type consists of comes before it.
const char *berth_emit_type(berth_c_emitter *e, berth_type_id id) {
    if (!id) return "0";
    if (!e->types[id]) {
        const berth_type type = *berth_type_get(e->module, id);
        const char *call = type_call(e, &type);
        e->types[id] = ++e->type_count;
        berth_strbuf_addf(&e->setup, "    t->types[%u] = %s;\n", e->types[id] - 1, call);
    }
    return berth_arena_printf(e->scratch, "t->types[%u]", e->types[id] - 1);
}

static const char *item_loc(berth_c_emitter *e, const void *items, uint32_t index) {
    return berth_emit_loc(e, ((const berth_loc_id *)items)[index]);
}

static void add_loc(berth_c_emitter *e, berth_loc_id id) {
    const berth_loc loc = *berth_loc_get(e->module, id);
    const char *parts =
        loc.part_count ? berth_emit_list(e, loc.part_count, item_loc, loc.parts) : "{0}";
    e->locs[id] = ++e->loc_count;
    berth_strbuf_addf(&e->setup,
                      "    t->locs[%u] = berth_loc_add(\n        m, (berth_loc){.file = %s",
                      e->locs[id] - 1, berth_emit_str_id(e, loc.file));
    if (loc.node) berth_strbuf_addf(&e->setup, ", .node = %s", berth_emit_str_id(e, loc.node));
    if (loc.op_type)
        berth_strbuf_addf(&e->setup, ", .op_type = %s", berth_emit_str_id(e, loc.op_type));
    if (loc.line || loc.column)
        berth_strbuf_addf(&e->setup, ", .line = %u, .column = %u", loc.line, loc.column);
    if (loc.part_count)
        berth_strbuf_addf(&e->setup, ", .part_count = %u, .parts = (const berth_loc_id[])%s",
                          loc.part_count, parts);
    berth_strbuf_add(&e->setup, "});\n");
}

const char *berth_emit_loc(berth_c_emitter *e, berth_loc_id id) {
    if (!id || id >= e->module->locs.count) return "0";
    if (!e->locs[id]) add_loc(e, id);
    return berth_arena_printf(e->scratch, "t->locs[%u]", e->locs[id] - 1);
}

static const char *kind_name(berth_device_kind kind) {
    static const char *const names[] = {
        "BERTH_DEVICE_FREE",
#define KIND(enum_name, name, traits, doc) "BERTH_DEVICE_" #enum_name,
#include "target/kinds.def"
    };
    return names[kind];
}

static void add_device(berth_c_emitter *e, berth_device_id id) {
    berth_virtual_device device = berth_virtual_device_get(e->module->devices, id);
    e->devices[id] = ++e->device_count;
    berth_strbuf_addf(&e->setup,
                      "    t->devices[%u] = berth_virtual_device_intern(\n"
                      "        m->devices, (berth_virtual_device){.device_type = %s, .virtual_id = "
                      "%d",
                      e->devices[id] - 1, kind_name(device.device_type), device.virtual_id);
    if (device.has_target)
        berth_strbuf_addf(
            &e->setup, ", .has_target = true, .target = {UINT64_C(0x%llx), UINT64_C(0x%llx)}",
            (unsigned long long)device.target.high, (unsigned long long)device.target.low);
    if (device.memory_scope)
        berth_strbuf_addf(&e->setup, ", .memory_scope = %s",
                          berth_emit_string(e, device.memory_scope));
    berth_strbuf_add(&e->setup, "});\n");
}

const char *berth_emit_device(berth_c_emitter *e, berth_device_id id) {
    if (!id) return "0";
    if (!e->devices[id]) add_device(e, id);
    return berth_arena_printf(e->scratch, "t->devices[%u]", e->devices[id] - 1);
}
