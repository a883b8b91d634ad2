#include "ir/text/printer.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "ir/string_literal.h"
#include "ir/text/literal.h"
#include "target/virtual_device.h"

// Literals of up to this many elements are written in place.
enum { inline_elements = 16 };

berth_text_printer berth_text__printer_make(const berth_module *module, berth_arena *scratch,
                                            const berth_text_options *options) {
    berth_text_printer p = {
        .module = module,
        .scratch = scratch,
        .doc = berth_doc_create(scratch),
        .quoted = berth_strbuf_make(scratch),
        .locs = berth_interner_create(scratch),
        .loc_numbers = berth_arena_new_array(scratch, uint32_t, module->locs.count),
        .types = berth_arena_new_array(scratch, const char *, module->types.count + 1),
        .devices = berth_arena_new_array(scratch, const char *,
                                         berth_virtual_device_count(module->devices)),
        .meta_keys = berth_interner_create(scratch)};
    if (options) p.options = *options;
    if (p.options.width <= 0) p.options.width = 100;
    return p;
}

static void fail(berth_text_printer *p, berth_status status) {
    if (p->status)
        berth_status_free(status);
    else
        p->status = status;
}

// ---- names --------------------------------------------------------------------------------------

static uint32_t *label_count(berth_text_printer *p, berth_text_labels *labels, const char *name) {
    if (!labels->names) labels->names = berth_interner_create(p->scratch);
    uint32_t id = berth_intern(labels->names, name);
    while (labels->counts.count <= id) berth_vec_push(p->scratch, &labels->counts, 0);
    return &labels->counts.data[id];
}

uint32_t berth_text_label_take(berth_text_printer *p, berth_text_labels *labels, const char *name) {
    return (*label_count(p, labels, name))++;
}

void berth_text_label_release(berth_text_printer *p, berth_text_labels *labels, const char *name) {
    uint32_t *count = label_count(p, labels, name);
    if (*count) (*count)--;
}

void berth_text_print_label(berth_text_printer *p, const char *name, uint32_t index) {
    berth_doc_text(p->doc, "%");
    if (!*name) {
        berth_doc_textf(p->doc, "%u", index);
        return;
    }
    berth_text_print_name(p, name);
    if (index) berth_doc_textf(p->doc, "~%u", index);
}

void berth_text_print_name(berth_text_printer *p, const char *name) {
    if (berth_text__is_name(name, strlen(name)))
        berth_doc_text(p->doc, name);
    else
        berth_text_print_string(p, name);
}

void berth_text_print_string(berth_text_printer *p, const char *text) {
    p->quoted.length = 0;
    berth_text__add_string(&p->quoted, text, strlen(text));
    berth_doc_text(p->doc, berth_strbuf_text(&p->quoted));
}

void berth_text_print_type(berth_text_printer *p, berth_type_id type) {
    if (type >= p->module->types.count) type = 0;
    if (!p->types[type]) {
        berth_strbuf out = berth_strbuf_make(p->scratch);
        berth_type_print(p->module, type, &out);
        p->types[type] = berth_strbuf_text(&out);
    }
    berth_doc_text(p->doc, p->types[type]);
}

static const char *device_name(berth_text_printer *p, berth_device_id device) {
    if (!p->devices[device])
        p->devices[device] = berth_virtual_device_name(
            p->scratch, berth_virtual_device_get(p->module->devices, device));
    return p->devices[device];
}

void berth_text_print_on_device(berth_text_printer *p, berth_device_id device) {
    if (!device) return;
    berth_doc_fill_line(p->doc);
    berth_doc_text(p->doc, "on ");
    berth_doc_text(p->doc, device_name(p, device));
}

void berth_text_print_function_ref(berth_text_printer *p, berth_func_id id) {
    const berth_function *function = berth_module_function(p->module, id);
    if (!function || function->removed) {
        berth_doc_text(p->doc, "no_function");
        return;
    }
    berth_doc_text(p->doc, "@");
    berth_text_print_name(p, berth_module_str(p->module, function->name));
}

// ---- locations ----------------------------------------------------------------------------------

static uint32_t loc_number(berth_text_printer *p, berth_loc_id id) {
    if (id == 0 || id >= p->module->locs.count) return 0;
    if (p->loc_numbers[id]) return p->loc_numbers[id];
    const berth_loc *loc = berth_loc_get(p->module, id);
    berth_strbuf out = berth_strbuf_make(p->scratch);
    const char *file = berth_module_str(p->module, loc->file);
    if (*file || loc->line || loc->column) {
        berth_text__add_string(&out, file, strlen(file));
        if (loc->line || loc->column) berth_strbuf_addf(&out, ":%u:%u", loc->line, loc->column);
    }
    const struct {
        const char *word;
        berth_str_id text;
    } parts[] = {{"node", loc->node}, {"op", loc->op_type}};
    for (int i = 0; i < 2; ++i) {
        if (!parts[i].text) continue;
        const char *text = berth_module_str(p->module, parts[i].text);
        berth_strbuf_addf(&out, "%s%s ", out.length ? " " : "", parts[i].word);
        berth_text__add_string(&out, text, strlen(text));
    }
    for (uint32_t i = 0; i < loc->part_count; ++i) {
        uint32_t part = loc->parts[i] < id ? loc_number(p, loc->parts[i]) : 0;
        berth_strbuf_add(&out, i ? ", " : out.length ? " fused(" : "fused(");
        berth_strbuf_addf(&out, "#%u", part);
    }
    if (loc->part_count) berth_strbuf_add(&out, ")");
    if (!out.length) berth_strbuf_add(&out, "unknown");
    return p->loc_numbers[id] = berth_intern(p->locs, berth_strbuf_text(&out));
}

void berth_text_print_loc(berth_text_printer *p, berth_loc_id loc) {
    uint32_t number = p->options.no_locations ? 0 : loc_number(p, loc);
    if (number) berth_doc_textf(p->doc, " #%u", number);
}

bool berth_text__same_loc(berth_text_printer *p, berth_loc_id a, berth_loc_id b) {
    return a == b || loc_number(p, a) == loc_number(p, b);
}

void berth_text__print_locations(berth_text_printer *p, berth_strbuf *out) {
    if (p->options.no_locations) return;
    berth_strbuf_add(out, "\nlocations {\n");
    for (uint32_t i = 1; *berth_interned(p->locs, i); ++i)
        berth_strbuf_addf(out, "  #%u = %s\n", i, berth_interned(p->locs, i));
    berth_strbuf_add(out, "}\n");
}

// ---- large values -------------------------------------------------------------------------------

// Names a value; the same data of the same shape is named once.
static void print_meta(berth_text_printer *p, berth_text_meta meta, const char *shape) {
    if (p->options.elide) {
        berth_doc_textf(p->doc, "elided %zu", meta.size_bytes);
        return;
    }
    char key[256];
    snprintf(key, sizeof(key), "%c%p %zu %s", meta.kind, (const void *)meta.data, meta.size_bytes,
             shape);
    uint32_t id = berth_intern(p->meta_keys, key);
    if (id > p->metas.count) berth_vec_push(p->scratch, &p->metas, meta);
    berth_doc_textf(p->doc, "meta(m%u)", id);
}

void berth_text_print_data(berth_text_printer *p, const void *data, size_t size_bytes,
                           bool is_text) {
    print_meta(
        p, (berth_text_meta){.kind = is_text ? 's' : 'b', .data = data, .size_bytes = size_bytes},
        "");
}

// Quoted lines of a long value, after "m1 = bytes".
static void add_base64(berth_strbuf *out, const void *data, size_t size_bytes) {
    enum { line_bytes = 66 };  // 88 characters
    if (size_bytes == 0) berth_strbuf_add(out, " \"\"");
    for (size_t at = 0; at < size_bytes; at += line_bytes) {
        size_t taken = size_bytes - at < line_bytes ? size_bytes - at : line_bytes;
        berth_strbuf_add(out, size_bytes > line_bytes ? "\n    \"" : " \"");
        berth_base64_encode((const char *)data + at, taken, out);
        berth_strbuf_add(out, "\"");
    }
    berth_strbuf_add(out, "\n");
}

static void add_lines(berth_strbuf *out, const char *text, size_t length) {
    if (length == 0) berth_strbuf_add(out, " \"\"");
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t taken = end ? (size_t)(end - text) + 1 - at : length - at;
        berth_strbuf_add(out, taken < length ? "\n    " : " ");
        berth_text__add_string(out, text + at, taken);
        at += taken;
    }
    berth_strbuf_add(out, "\n");
}

void berth_text__print_metas(berth_text_printer *p, berth_strbuf *out) {
    if (p->metas.count == 0) return;
    berth_strbuf_add(out, "\nmeta {\n");
    for (uint32_t i = 0; i < p->metas.count; ++i) {
        const berth_text_meta *meta = &p->metas.data[i];
        berth_strbuf_addf(out, "  m%u = ", i + 1);
        char shape[192] = "bytes";
        if (meta->kind == 't') berth_tensor_format_shape(meta->tensor, shape);
        berth_strbuf_add(out, meta->kind == 's' ? "text" : shape);
        if (meta->kind == 's')
            add_lines(out, meta->data, meta->size_bytes);
        else
            add_base64(out, meta->data, meta->size_bytes);
    }
    berth_strbuf_add(out, "}\n");
}

// ---- attributes ---------------------------------------------------------------------------------

static void print_strings(berth_text_printer *p, const berth_tensor *tensor, int64_t count) {
    berth_doc_text(p->doc, "(");
    berth_doc_open(p->doc, 0);
    for (int64_t i = 0; i < count; ++i) {
        berth_string string = berth_tensor_strings(tensor)[i];
        berth_strbuf text = berth_strbuf_make(p->scratch);
        berth_text__add_string(&text, string.length ? string.data : "", string.length);
        if (i) {
            berth_doc_text(p->doc, ",");
            berth_doc_fill_line(p->doc);
        }
        berth_doc_text(p->doc, berth_strbuf_text(&text));
    }
    berth_doc_close(p->doc);
    berth_doc_text(p->doc, ")");
}

// The elements in place, when they are few and read back exactly.
static bool print_elements(berth_text_printer *p, const berth_tensor *tensor) {
    int64_t count = berth_tensor_element_count(tensor);
    char text[inline_elements][40];
    if (count > inline_elements) return false;
    if (tensor->dtype == BERTH_DTYPE_STRING) {
        print_strings(p, tensor, count);
        return true;
    }
    for (int64_t i = 0; i < count; ++i)
        if (!berth_text__format_element(tensor, i, text[i])) return false;
    berth_doc_text(p->doc, "(");
    berth_doc_open(p->doc, 0);
    for (int64_t i = 0; i < count; ++i) {
        if (i) {
            berth_doc_text(p->doc, ",");
            berth_doc_fill_line(p->doc);
        }
        berth_doc_text(p->doc, text[i]);
    }
    berth_doc_close(p->doc);
    berth_doc_text(p->doc, ")");
    return true;
}

static void print_tensor(berth_text_printer *p, const berth_tensor *tensor) {
    char shape[192];
    berth_tensor_format_shape(tensor, shape);
    berth_doc_textf(p->doc, "%s ", shape);
    if (print_elements(p, tensor)) return;
    berth_strbuf bytes = berth_strbuf_make(p->scratch);
    if (tensor->dtype == BERTH_DTYPE_STRING) {
        berth_string_literal_pack(tensor, &bytes);
        print_meta(
            p,
            (berth_text_meta){
                .kind = 't', .tensor = tensor, .data = bytes.data, .size_bytes = bytes.length},
            shape);
    } else {
        print_meta(p,
                   (berth_text_meta){.kind = 't',
                                     .tensor = tensor,
                                     .data = tensor->data,
                                     .size_bytes = berth_tensor_size_bytes(tensor)},
                   shape);
    }
}

static void print_float(berth_text_printer *p, double value) {
    char text[40];
    berth_text__format_float(value, text);
    berth_doc_text(p->doc, text);
}

static void print_list(berth_text_printer *p, const berth_attr *attr) {
    if (attr->count == 0 && attr->kind != BERTH_ATTR_INTS)
        berth_doc_text(p->doc, attr->kind == BERTH_ATTR_FLOATS ? "floats " : "strings ");
    berth_doc_text(p->doc, "[");
    berth_doc_open(p->doc, 0);
    for (uint32_t i = 0; i < attr->count; ++i) {
        if (i) {
            berth_doc_text(p->doc, ",");
            berth_doc_fill_line(p->doc);
        }
        if (attr->kind == BERTH_ATTR_INTS)
            berth_doc_textf(p->doc, "%lld", (long long)attr->ints[i]);
        else if (attr->kind == BERTH_ATTR_FLOATS)
            print_float(p, attr->floats[i]);
        else
            berth_text_print_string(p, berth_module_str(p->module, attr->strings[i]));
    }
    berth_doc_close(p->doc);
    berth_doc_text(p->doc, "]");
}

static void print_opaque(berth_text_printer *p, const berth_attr *attr) {
    const berth_opaque_ops *ops = attr->opaque.ops;
    berth_doc_text(p->doc, "opaque(");
    berth_text_print_string(p, ops->kind);
    berth_doc_text(p->doc, ", ");
    if (ops->serialise) {
        berth_strbuf out = berth_strbuf_make(p->scratch);
        berth_status status = ops->serialise(attr->opaque.value, &out);
        if (status) fail(p, status);
        // A copy of its own per attribute: strings at one address may differ in time.
        berth_text_print_data(p, berth_strbuf_text(&out), out.length, true);
    } else {
        berth_doc_text(p->doc, "not_serialisable");
        fail(p, berth_status_make(BERTH_UNSUPPORTED,
                                  "attribute %s: a value of kind '%s' cannot be serialised",
                                  berth_module_str(p->module, attr->name), ops->kind));
    }
    berth_doc_text(p->doc, ")");
}

static void print_value(berth_text_printer *p, const berth_attr *attr) {
    switch (attr->kind) {
    case BERTH_ATTR_INT: berth_doc_textf(p->doc, "%lld", (long long)attr->i); break;
    case BERTH_ATTR_FLOAT: print_float(p, attr->f); break;
    case BERTH_ATTR_STRING: berth_text_print_string(p, berth_module_str(p->module, attr->s)); break;
    case BERTH_ATTR_INTS:
    case BERTH_ATTR_FLOATS:
    case BERTH_ATTR_STRINGS: print_list(p, attr); break;
    case BERTH_ATTR_DTYPE: berth_doc_text(p->doc, berth_dtype_name(attr->dtype)); break;
    case BERTH_ATTR_TENSOR: print_tensor(p, attr->tensor); break;
    case BERTH_ATTR_FUNCTION: berth_text_print_function_ref(p, attr->function); break;
    case BERTH_ATTR_DEVICE: berth_doc_text(p->doc, device_name(p, attr->device)); break;
    case BERTH_ATTR_TYPE: berth_text_print_type(p, attr->type); break;
    case BERTH_ATTR_OPAQUE: print_opaque(p, attr); break;
    }
}

void berth_text_print_attrs(berth_text_printer *p, const berth_attrs *attrs, uint32_t first) {
    if (attrs->items.count <= first) return;
    berth_doc_text(p->doc, " {");
    berth_doc_open(p->doc, 4);
    for (uint32_t i = first; i < attrs->items.count; ++i) {
        if (i > first) {
            berth_doc_text(p->doc, ",");
            berth_doc_fill_line(p->doc);
        }
        berth_text_print_name(p, berth_module_str(p->module, attrs->items.data[i].name));
        berth_doc_text(p->doc, " = ");
        print_value(p, &attrs->items.data[i]);
    }
    berth_doc_close(p->doc);
    berth_doc_text(p->doc, "}");
}
