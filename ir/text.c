#include "ir/text.h"

#include "ir/dialect.h"
#include "ir/external.h"
#include "ir/graph.h"
#include "ir/tensor_fn.h"
#include "target/virtual_device.h"

typedef struct printer {
    const berth_module *module;
    const berth_graph *graph;
    berth_strbuf *out;
} printer;

static void add_string(berth_strbuf *out, const char *text) {
    berth_strbuf_add(out, "\"");
    for (; *text; ++text) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            berth_strbuf_addf(out, "\\%c", c);
        else if (c < 0x20)
            berth_strbuf_addf(out, "\\x%02x", c);
        else
            berth_strbuf_add_n(out, text, 1);
    }
    berth_strbuf_add(out, "\"");
}

// Small literals in full, larger ones by type and size.
static void add_tensor(berth_strbuf *out, const berth_tensor *tensor) {
    enum { most_elements = 16 };
    berth_strbuf_addf(out, "%s[", berth_dtype_name(tensor->dtype));
    for (int d = 0; d < tensor->rank; ++d)
        berth_strbuf_addf(out, d ? ",%lld" : "%lld", (long long)tensor->dims[d]);
    berth_strbuf_add(out, "]");
    int64_t count = berth_tensor_element_count(tensor);
    if (count > most_elements) {
        berth_strbuf_addf(out, " %zu bytes", berth_tensor_size_bytes(tensor));
        return;
    }
    berth_strbuf_add(out, " (");
    for (int64_t i = 0; i < count; ++i) {
        char text[32];
        berth_format_f64(berth_tensor_get_f64(tensor, i), text);
        berth_strbuf_addf(out, i ? ", %s" : "%s", text);
    }
    berth_strbuf_add(out, ")");
}

static void add_list(printer *p, const berth_attr *attr) {
    berth_strbuf_add(p->out, "[");
    for (uint32_t i = 0; i < attr->count; ++i) {
        if (i) berth_strbuf_add(p->out, ", ");
        char text[32];
        switch (attr->kind) {
        case BERTH_ATTR_INTS: berth_strbuf_addf(p->out, "%lld", (long long)attr->ints[i]); break;
        case BERTH_ATTR_FLOATS:
            berth_format_f64(attr->floats[i], text);
            berth_strbuf_add(p->out, text);
            break;
        default: add_string(p->out, berth_module_str(p->module, attr->strings[i])); break;
        }
    }
    berth_strbuf_add(p->out, "]");
}

static void add_attr(printer *p, const berth_attr *attr) {
    char text[32];
    berth_strbuf_addf(p->out, "%s = ", berth_module_str(p->module, attr->name));
    switch (attr->kind) {
    case BERTH_ATTR_INT: berth_strbuf_addf(p->out, "%lld", (long long)attr->i); break;
    case BERTH_ATTR_FLOAT:
        berth_format_f64(attr->f, text);
        berth_strbuf_addf(p->out, "%s:f", text);
        break;
    case BERTH_ATTR_STRING: add_string(p->out, berth_module_str(p->module, attr->s)); break;
    case BERTH_ATTR_INTS:
    case BERTH_ATTR_FLOATS:
    case BERTH_ATTR_STRINGS: add_list(p, attr); break;
    case BERTH_ATTR_DTYPE: berth_strbuf_add(p->out, berth_dtype_name(attr->dtype)); break;
    case BERTH_ATTR_TENSOR: add_tensor(p->out, attr->tensor); break;
    case BERTH_ATTR_FUNCTION: {
        const berth_function *function = berth_module_function(p->module, attr->function);
        berth_strbuf_addf(p->out, "@%s",
                          function ? berth_module_str(p->module, function->name) : "?");
        break;
    }
    case BERTH_ATTR_DEVICE:
        berth_strbuf_add(p->out, berth_virtual_device_print(p->module->devices, attr->device));
        break;
    case BERTH_ATTR_TYPE: berth_type_print(p->module, attr->type, p->out); break;
    case BERTH_ATTR_OPAQUE: berth_strbuf_addf(p->out, "<%s>", attr->opaque.ops->kind); break;
    }
}

static void add_attrs(printer *p, const berth_attrs *attrs) {
    if (attrs->items.count == 0) return;
    berth_strbuf_add(p->out, " {");
    for (uint32_t i = 0; i < attrs->items.count; ++i) {
        if (i) berth_strbuf_add(p->out, ", ");
        add_attr(p, &attrs->items.data[i]);
    }
    berth_strbuf_add(p->out, "}");
}

static void add_values(printer *p, const berth_value_id *values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        if (i) berth_strbuf_add(p->out, ", ");
        if (values[i] == BERTH_NONE)
            berth_strbuf_add(p->out, "_");
        else
            berth_strbuf_addf(p->out, "%%%u", values[i]);
    }
}

static void add_params(printer *p, const berth_region *region) {
    berth_strbuf_add(p->out, "(");
    for (uint32_t i = 0; i < region->params.count; ++i) {
        const berth_value *value = &p->graph->values.data[region->params.data[i]];
        berth_strbuf_addf(p->out, "%s%%%u ", i ? ", " : "", region->params.data[i]);
        if (value->name) {
            add_string(p->out, berth_module_str(p->module, value->name));
            berth_strbuf_add(p->out, " ");
        }
        berth_strbuf_add(p->out, ": ");
        berth_type_print(p->module, value->type, p->out);
        if (value->device)
            berth_strbuf_addf(p->out, " on %s",
                              berth_virtual_device_print(p->module->devices, value->device));
    }
    berth_strbuf_add(p->out, ")");
}

static void indent(printer *p, int depth) {
    for (int i = 0; i < depth; ++i) berth_strbuf_add(p->out, "  ");
}

static void add_region(printer *p, berth_region_id id, int depth);

static void add_op(printer *p, berth_op_id id, int depth) {
    const berth_op *op = &p->graph->ops.data[id];
    indent(p, depth);
    if (op->output_count) {
        add_values(p, op->outputs, op->output_count);
        berth_strbuf_add(p->out, " = ");
    }
    berth_strbuf_addf(p->out, "%s(", berth_op_facts_get(op->kind)->name);
    add_values(p, op->inputs, op->input_count);
    berth_strbuf_add(p->out, ")");
    add_attrs(p, &op->attrs);
    for (uint32_t i = 0; i < op->output_count; ++i) {
        berth_strbuf_add(p->out, i ? ", " : ": ");
        berth_type_print(p->module, p->graph->values.data[op->outputs[i]].type, p->out);
    }
    if (op->device)
        berth_strbuf_addf(p->out, " on %s",
                          berth_virtual_device_print(p->module->devices, op->device));
    for (uint32_t i = 0; i < op->region_count; ++i) {
        berth_strbuf_add(p->out, " ");
        add_region(p, op->regions[i], depth);
    }
    if (op->loc)
        berth_strbuf_addf(p->out, " // %s", berth_loc_describe(p->module, op->loc, p->out->arena));
    berth_strbuf_add(p->out, "\n");
}

static void add_region(printer *p, berth_region_id id, int depth) {
    const berth_region *region = &p->graph->regions.data[id];
    add_params(p, region);
    berth_strbuf_add(p->out, " {\n");
    for (uint32_t i = 0; i < region->ops.count; ++i) add_op(p, region->ops.data[i], depth + 1);
    indent(p, depth + 1);
    berth_strbuf_add(p->out, "return ");
    add_values(p, region->results.data, region->results.count);
    berth_strbuf_add(p->out, "\n");
    indent(p, depth);
    berth_strbuf_add(p->out, "}");
}

void berth_module_print(const berth_module *module, berth_strbuf *out) {
    berth_strbuf_add(out, "module ");
    add_string(out, berth_module_str(module, module->name));
    berth_strbuf_add(out, "\n");
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        const berth_function *function = &module->functions.data[i];
        if (function->removed) continue;
        berth_strbuf_addf(out, "\n%s @%s", function->dialect->name,
                          berth_module_str(module, function->name));
        printer p = {module, berth_graph_get(module, i), out};
        const berth_external *external = berth_external_get(module, i);
        if (p.graph) {
            add_region(&p, 0, 0);
            add_attrs(&p, &function->attrs);
            berth_strbuf_add(out, "\n");
        } else if (berth_tfn_get(module, i)) {
            berth_tfn_print(berth_tfn_get(module, i), out);
        } else if (external) {
            berth_strbuf_addf(out, " %s, %llu bytes\n",
                              berth_module_str(module, external->language),
                              (unsigned long long)external->code_size_bytes);
        }
    }
}
