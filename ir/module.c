#include "ir/module.h"

#include <string.h>

#include "ir/dim.h"
#include "ir/layout.h"
#include "ir/text/literal.h"
#include "target/virtual_device.h"

berth_module *berth_module_create(berth_arena *arena, const char *name) {
    berth_module *module = berth_arena_new(arena, berth_module);
    module->arena = arena;
    module->strings = berth_interner_create(arena);
    (void)berth_intern(module->strings, "?");  // id 1: BERTH_DIM_UNKNOWN
    module->devices = berth_virtual_device_table_create(arena);
    module->name = berth_intern(module->strings, name);
    berth_vec_push(arena, &module->types, (berth_type){.kind = BERTH_TYPE_UNKNOWN, .rank = -1});
    berth_vec_push(arena, &module->locs, (berth_loc){0});
    module->type_slot_count = 64;
    module->type_slots = berth_arena_new_array(arena, uint32_t, module->type_slot_count);
    return module;
}

void berth_module_drop_source_pages(const berth_module *module) {
    for (uint32_t i = 0; i < module->sources.count; ++i)
        berth_file_drop_pages(module->sources.data[i]);
}

berth_str_id berth_module_intern(berth_module *module, const char *text) {
    return berth_intern(module->strings, text);
}

const char *berth_module_str(const berth_module *module, berth_str_id id) {
    return berth_interned(module->strings, id);
}

// ---- types --------------------------------------------------------------------------------------

static uint64_t type_hash(const berth_type *type) {
    int64_t head[8 + BERTH_MAX_RANK] = {
        (int64_t)type->kind,   (int64_t)type->dtype,       type->rank,
        (int64_t)type->layout, (int64_t)type->field_count, (int64_t)type->param_count};
    for (int i = 0; i < type->rank; ++i) head[8 + i] = type->dims[i];
    uint64_t hash = berth_hash64(head, sizeof(head), 1);
    return type->field_count
               ? berth_hash64(type->fields, type->field_count * sizeof(*type->fields), hash)
               : hash;
}

static bool type_equal(const berth_type *a, const berth_type *b) {
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank ||
        a->layout != b->layout || a->field_count != b->field_count ||
        a->param_count != b->param_count)
        return false;
    for (int i = 0; i < a->rank; ++i)
        if (a->dims[i] != b->dims[i]) return false;
    for (uint32_t i = 0; i < a->field_count; ++i)
        if (a->fields[i] != b->fields[i]) return false;
    return true;
}

static uint32_t *type_slot(const berth_module *module, const berth_type *type) {
    uint32_t mask = module->type_slot_count - 1;
    for (uint32_t at = (uint32_t)type_hash(type) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &module->type_slots[at];
        if (*slot == 0 || type_equal(&module->types.data[*slot], type)) return slot;
    }
}

static void grow_type_slots(berth_module *module) {
    module->type_slot_count *= 2;
    module->type_slots = berth_arena_new_array(module->arena, uint32_t, module->type_slot_count);
    for (uint32_t i = 1; i < module->types.count; ++i)
        *type_slot(module, &module->types.data[i]) = i;
}

static berth_type_id intern_type(berth_module *module, const berth_type *type) {
    uint32_t *slot = type_slot(module, type);
    if (*slot) return *slot;
    if ((module->types.count + 1) * 2 > module->type_slot_count) {
        grow_type_slots(module);
        slot = type_slot(module, type);
    }
    berth_type held = *type;
    held.holds_function = type->kind == BERTH_TYPE_FUNCTION;
    for (uint32_t i = 0; i < type->field_count && !held.holds_function; ++i)
        held.holds_function = berth_type_get(module, type->fields[i])->holds_function;
    if (type->field_count)
        held.fields = berth_arena_copy(module->arena, type->fields,
                                       type->field_count * sizeof(*type->fields));
    berth_vec_push(module->arena, &module->types, held);
    *slot = module->types.count - 1;
    return *slot;
}

berth_type_id berth_type_tensor_layout(berth_module *module, berth_dtype dtype, int rank,
                                       const int64_t *dims, berth_str_id layout) {
    berth_type type = {
        .kind = BERTH_TYPE_TENSOR, .dtype = dtype, .rank = rank < 0 ? -1 : rank, .layout = layout};
    for (int i = 0; i < rank && i < BERTH_MAX_RANK; ++i) type.dims[i] = dims[i];
    return intern_type(module, &type);
}

berth_type_id berth_type_tensor(berth_module *module, berth_dtype dtype, int rank,
                                const int64_t *dims) {
    return berth_type_tensor_layout(module, dtype, rank, dims, 0);
}

berth_type_id berth_type_tuple(berth_module *module, const berth_type_id *fields, uint32_t count) {
    berth_type type = {
        .kind = BERTH_TYPE_TUPLE, .rank = -1, .field_count = count, .fields = fields};
    return intern_type(module, &type);
}

berth_type_id berth_type_function(berth_module *module, const berth_type_id *params,
                                  uint32_t param_count, const berth_type_id *results,
                                  uint32_t result_count) {
    berth_type_id *fields =
        berth_arena_new_array(module->arena, berth_type_id, param_count + result_count);
    for (uint32_t i = 0; i < param_count; ++i) fields[i] = params[i];
    for (uint32_t i = 0; i < result_count; ++i) fields[param_count + i] = results[i];
    berth_type type = {.kind = BERTH_TYPE_FUNCTION,
                       .rank = -1,
                       .field_count = param_count + result_count,
                       .param_count = param_count,
                       .fields = fields};
    return intern_type(module, &type);
}

berth_type_id berth_type_storage(berth_module *module) {
    return intern_type(module, &(berth_type){.kind = BERTH_TYPE_STORAGE, .rank = -1});
}

const berth_type *berth_type_get(const berth_module *module, berth_type_id id) {
    return &module->types.data[id < module->types.count ? id : 0];
}

bool berth_type_is_static(const berth_type *type) {
    if (type->kind != BERTH_TYPE_TENSOR || type->dtype == BERTH_DTYPE_NONE || type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; ++i)
        if (berth_dim_is_symbol(type->dims[i])) return false;
    return true;
}

uint64_t berth_type_size_bytes(const berth_module *module, berth_type_id id) {
    const berth_type *type = berth_type_get(module, id);
    berth_layout layout;
    berth_status status =
        berth_layout_parse(berth_module_str(module, type->layout), type->rank, &layout);
    if (status) {  // the verifier refuses such types
        berth_status_free(status);
        return 0;
    }
    return (uint64_t)berth_layout_element_count(&layout, type->dims) *
           berth_dtype_size_bytes(type->dtype);
}

static void print_fields(const berth_module *module, const berth_type_id *fields, uint32_t count,
                         berth_strbuf *buffer) {
    berth_strbuf_add(buffer, "(");
    for (uint32_t i = 0; i < count; ++i) {
        if (i) berth_strbuf_add(buffer, ", ");
        berth_type_print(module, fields[i], buffer);
    }
    berth_strbuf_add(buffer, ")");
}

void berth_shape_print(const berth_module *module, int rank, const int64_t *dims,
                       berth_str_id layout, berth_strbuf *buffer) {
    berth_strbuf_add(buffer, rank < 0 ? "[*" : "[");
    for (int i = 0; i < rank; ++i) {
        if (i) berth_strbuf_add(buffer, ",");
        if (dims[i] == BERTH_DIM_UNKNOWN)
            berth_strbuf_add(buffer, "?");
        else if (berth_dim_is_expression(module, dims[i]) &&
                 !strchr(berth_module_str(module, berth_dim_symbol_name(dims[i])), '\''))
            berth_dim_print(module, dims[i], buffer);
        else if (berth_dim_is_symbol(dims[i]))
            berth_text__add_name(buffer, berth_module_str(module, berth_dim_symbol_name(dims[i])));
        else
            berth_strbuf_addf(buffer, "%lld", (long long)dims[i]);
    }
    berth_strbuf_add(buffer, "]");
    if (!layout) return;
    berth_strbuf_add(buffer, "{");
    berth_text__add_name(buffer, berth_module_str(module, layout));
    berth_strbuf_add(buffer, "}");
}

static void print_tensor(const berth_module *module, const berth_type *type, berth_strbuf *buffer) {
    berth_strbuf_add(buffer, type->dtype == BERTH_DTYPE_NONE ? "?" : berth_dtype_name(type->dtype));
    berth_shape_print(module, type->rank, type->dims, type->layout, buffer);
}

void berth_type_print(const berth_module *module, berth_type_id id, berth_strbuf *buffer) {
    const berth_type *type = berth_type_get(module, id);
    switch (type->kind) {
    case BERTH_TYPE_TENSOR: print_tensor(module, type, buffer); break;
    case BERTH_TYPE_TUPLE: print_fields(module, type->fields, type->field_count, buffer); break;
    case BERTH_TYPE_FUNCTION:
        berth_strbuf_add(buffer, "fn");
        print_fields(module, type->fields, type->param_count, buffer);
        berth_strbuf_add(buffer, "->");
        print_fields(module, type->fields + type->param_count,
                     type->field_count - type->param_count, buffer);
        break;
    case BERTH_TYPE_STORAGE: berth_strbuf_add(buffer, "storage"); break;
    default: berth_strbuf_add(buffer, "?"); break;
    }
}

// ---- locations ----------------------------------------------------------------------------------

berth_loc_id berth_loc_add(berth_module *module, berth_loc loc) {
    loc.parts = berth_arena_copy(module->arena, loc.parts, loc.part_count * sizeof(*loc.parts));
    berth_vec_push(module->arena, &module->locs, loc);
    return module->locs.count - 1;
}

berth_loc_id berth_loc_node(berth_module *module, const char *file, const char *node,
                            const char *op_type) {
    return berth_loc_add(module, (berth_loc){.file = berth_module_intern(module, file),
                                             .node = berth_module_intern(module, node),
                                             .op_type = berth_module_intern(module, op_type)});
}

berth_loc_id berth_loc_text(berth_module *module, const char *file, uint32_t line,
                            uint32_t column) {
    return berth_loc_add(
        module,
        (berth_loc){.file = berth_module_intern(module, file), .line = line, .column = column});
}

berth_loc_id berth_loc_fuse(berth_module *module, const berth_loc_id *parts, uint32_t count) {
    BERTH_VEC(berth_loc_id) flat = {0};
    for (uint32_t i = 0; i < count; ++i) {
        const berth_loc *loc = berth_loc_get(module, parts[i]);
        uint32_t inner = loc->part_count ? loc->part_count : (parts[i] != 0);
        for (uint32_t j = 0; j < inner; ++j) {
            berth_loc_id part = loc->part_count ? loc->parts[j] : parts[i];
            bool seen = false;
            for (uint32_t k = 0; k < flat.count && !seen; ++k) seen = flat.data[k] == part;
            if (!seen) berth_vec_push(module->arena, &flat, part);
        }
    }
    if (flat.count == 0) return 0;
    if (flat.count == 1) return flat.data[0];
    return berth_loc_add(module, (berth_loc){.part_count = flat.count, .parts = flat.data});
}

const berth_loc *berth_loc_get(const berth_module *module, berth_loc_id id) {
    return &module->locs.data[id < module->locs.count ? id : 0];
}

const char *berth_loc_names(const berth_module *module, berth_loc_id id, bool operators,
                            berth_arena *arena) {
    const berth_loc *loc = berth_loc_get(module, id);
    if (!loc->part_count) return berth_module_str(module, operators ? loc->op_type : loc->node);
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < loc->part_count; ++i) {
        const berth_loc *part = berth_loc_get(module, loc->parts[i]);
        if (i) berth_strbuf_add(&text, "+");
        berth_strbuf_add(&text, berth_module_str(module, operators ? part->op_type : part->node));
    }
    return berth_strbuf_text(&text);
}

const char *berth_loc_label(const berth_module *module, berth_loc_id id, berth_arena *arena) {
    const berth_loc *loc = berth_loc_get(module, id);
    uint32_t count = loc->part_count ? loc->part_count : 1;
    if (count == 1 && loc->node) return berth_module_str(module, loc->node);
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_loc *part = loc->part_count ? berth_loc_get(module, loc->parts[i]) : loc;
        if (i) berth_strbuf_add(&text, "+");
        if (part->node)
            berth_strbuf_add(&text, berth_module_str(module, part->node));
        else if (part->line)
            berth_strbuf_addf(&text, "%u:%u", part->line, part->column);
    }
    return berth_strbuf_text(&text);
}

const char *berth_loc_describe(const berth_module *module, berth_loc_id id, berth_arena *arena) {
    const berth_loc *loc = berth_loc_get(module, id);
    if (loc->part_count) {
        const char *first = berth_loc_describe(module, loc->parts[0], arena);
        return berth_arena_printf(arena, "%s and %u more", first, loc->part_count - 1);
    }
    const char *file = berth_module_str(module, loc->file);
    if (loc->node || loc->op_type)
        return berth_arena_printf(
            arena, "node \"%s\" (%s)%s%s", berth_module_str(module, loc->node),
            berth_module_str(module, loc->op_type), *file ? " in " : "", file);
    if (loc->line) return berth_arena_printf(arena, "%s:%u:%u", file, loc->line, loc->column);
    return *file ? file : "unknown place";
}

// ---- attributes ---------------------------------------------------------------------------------

static berth_attr *find_attr(const berth_module *module, const berth_attrs *attrs,
                             const char *name) {
    for (uint32_t i = 0; i < attrs->items.count; ++i)
        if (strcmp(berth_module_str(module, attrs->items.data[i].name), name) == 0)
            return &attrs->items.data[i];
    return NULL;
}

const berth_attr *berth_attrs_find(const berth_module *module, const berth_attrs *attrs,
                                   const char *name) {
    return find_attr(module, attrs, name);
}

int64_t berth_attrs_int(const berth_module *module, const berth_attrs *attrs, const char *name,
                        int64_t fallback) {
    const berth_attr *attr = find_attr(module, attrs, name);
    return attr && attr->kind == BERTH_ATTR_INT ? attr->i : fallback;
}

double berth_attrs_float(const berth_module *module, const berth_attrs *attrs, const char *name,
                         double fallback) {
    const berth_attr *attr = find_attr(module, attrs, name);
    if (attr && attr->kind == BERTH_ATTR_INT) return (double)attr->i;
    return attr && attr->kind == BERTH_ATTR_FLOAT ? attr->f : fallback;
}

const char *berth_attrs_string(const berth_module *module, const berth_attrs *attrs,
                               const char *name, const char *fallback) {
    const berth_attr *attr = find_attr(module, attrs, name);
    return attr && attr->kind == BERTH_ATTR_STRING ? berth_module_str(module, attr->s) : fallback;
}

const int64_t *berth_attrs_ints(const berth_module *module, const berth_attrs *attrs,
                                const char *name, uint32_t *out_count) {
    const berth_attr *attr = find_attr(module, attrs, name);
    bool found = attr && attr->kind == BERTH_ATTR_INTS;
    *out_count = found ? attr->count : 0;
    return found ? attr->ints : NULL;
}

void berth_attrs_set(berth_module *module, berth_attrs *attrs, const char *name, berth_attr value) {
    value.name = berth_module_intern(module, name);
    berth_attr *held = find_attr(module, attrs, name);
    if (held)
        *held = value;
    else
        berth_vec_push(module->arena, &attrs->items, value);
}

void berth_attrs_set_int(berth_module *module, berth_attrs *attrs, const char *name,
                         int64_t value) {
    berth_attrs_set(module, attrs, name, (berth_attr){.kind = BERTH_ATTR_INT, .i = value});
}

void berth_attrs_set_float(berth_module *module, berth_attrs *attrs, const char *name,
                           double value) {
    berth_attrs_set(module, attrs, name, (berth_attr){.kind = BERTH_ATTR_FLOAT, .f = value});
}

void berth_attrs_set_string(berth_module *module, berth_attrs *attrs, const char *name,
                            const char *value) {
    berth_str_id text = berth_module_intern(module, value);
    berth_attrs_set(module, attrs, name, (berth_attr){.kind = BERTH_ATTR_STRING, .s = text});
}

void berth_attrs_set_ints(berth_module *module, berth_attrs *attrs, const char *name,
                          const int64_t *values, uint32_t count) {
    int64_t *copy = berth_arena_copy(module->arena, values, count * sizeof(*values));
    berth_attrs_set(module, attrs, name,
                    (berth_attr){.kind = BERTH_ATTR_INTS, .count = count, .ints = copy});
}

// A value whose kind nobody registered: its text, carried along.
typedef struct carried_text {
    const char *data;
    size_t length;
} carried_text;

static berth_status serialise_carried(const void *value, berth_strbuf *out) {
    const carried_text *text = value;
    berth_strbuf_add_n(out, text->data, text->length);
    return BERTH_OK;
}

berth_attr berth_attr_carried(berth_module *module, const char *kind, const char *text,
                              size_t length) {
    berth_opaque_ops *ops = berth_arena_new(module->arena, berth_opaque_ops);
    ops->kind = berth_arena_strdup(module->arena, kind);
    ops->serialise = serialise_carried;
    carried_text *carried = berth_arena_new(module->arena, carried_text);
    *carried = (carried_text){text, length};
    return (berth_attr){.kind = BERTH_ATTR_OPAQUE, .opaque = {ops, carried}};
}

void berth_attrs_remove(berth_module *module, berth_attrs *attrs, const char *name) {
    berth_attr *held = find_attr(module, attrs, name);
    if (!held) return;
    berth_attr *end = attrs->items.data + attrs->items.count;
    memmove(held, held + 1, (size_t)(end - held - 1) * sizeof(*held));
    attrs->items.count--;
}

// ---- functions ----------------------------------------------------------------------------------

berth_func_id berth_module_find_function(const berth_module *module, const char *name) {
    uint32_t id = 0;
    if (!berth_intern_find(module->strings, name, &id)) return BERTH_NONE;
    uint32_t last = id < module->function_of_name.count ? module->function_of_name.data[id] : 0;
    if (last == 0) return BERTH_NONE;
    if (!module->functions.data[last - 1].removed) return last - 1;
    for (uint32_t i = 0; i < module->functions.count; ++i)  // an older one of the same name
        if (!module->functions.data[i].removed && module->functions.data[i].name == id) return i;
    return BERTH_NONE;
}

berth_func_id berth_module_add_function(berth_module *module, const char *name,
                                        const berth_dialect *dialect, void *body,
                                        berth_loc_id loc) {
    const char *unique = name;
    for (uint32_t suffix = 1; berth_module_find_function(module, unique) != BERTH_NONE; ++suffix)
        unique = berth_arena_printf(module->arena, "%s.%u", name, suffix);
    berth_function function = {
        .name = berth_module_intern(module, unique), .dialect = dialect, .body = body, .loc = loc};
    berth_vec_push(module->arena, &module->functions, function);
    while (module->function_of_name.count <= function.name)
        berth_vec_push(module->arena, &module->function_of_name, 0);
    module->function_of_name.data[function.name] = module->functions.count;
    return module->functions.count - 1;
}

berth_function *berth_module_function(const berth_module *module, berth_func_id id) {
    return id < module->functions.count ? &module->functions.data[id] : NULL;
}
