// Attributes of opsets 1 to 5 as those of opset 6: other names, other kinds, other values by default.
#include <math.h>
#include <string.h>

#include "compiler/onnx/importer.h"

static bool is_op(const onnx_node *node, const char *op_type) {
    return !*node->domain && strcmp(node->op_type, op_type) == 0;
}

// "FLOAT" as the number of TensorProto.DataType; 0: it is none.
static int64_t element_of(const char *name) {
    static const char *const names[] = {"UNDEFINED", "FLOAT",  "UINT8",  "INT8",   "UINT16",
                                        "INT16",     "INT32",  "INT64",  "STRING", "BOOL",
                                        "FLOAT16",   "DOUBLE", "UINT32", "UINT64"};
    for (size_t i = 1; i < sizeof(names) / sizeof(names[0]); ++i)
        if (strcmp(names[i], name) == 0) return (int64_t)i;
    return 0;
}

static void add_default(onnx_importer *im, onnx_node *node, onnx_attr attr) {
    attr.reference = "";
    if (!onnx_attr_find(node, attr.name)) berth_vec_push(im->scratch, &node->attrs, attr);
}

static void renew(const onnx_importer *im, const onnx_node *node, onnx_attr *attr) {
    bool pools = is_op(node, "LpPool") || is_op(node, "GlobalLpPool");
    if (is_op(node, "Cast") && attr->type == ONNX_ATTR_STRING) {
        attr->i = element_of(attr->s);
        attr->type = ONNX_ATTR_INT;
    }
    if (im->opset < 2 && is_op(node, "Pad") && strcmp(attr->name, "paddings") == 0)
        attr->name = "pads";
    if (im->opset < 2 && pools && strcmp(attr->name, "p") == 0 && attr->type == ONNX_ATTR_FLOAT &&
        attr->f == floor(attr->f) && fabs(attr->f) < 1e6) {
        attr->i = (int64_t)attr->f;
        attr->type = ONNX_ATTR_INT;
    }
}

void onnx_renew_attrs(onnx_importer *im, onnx_node *node) {
    if (im->opset >= 6 || *node->domain) return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->attrs.count; ++i) {
        onnx_attr attr = node->attrs.data[i];
        if (strcmp(attr.name, "consumed_inputs") == 0) continue;  // what may be written over
        renew(im, node, &attr);
        node->attrs.data[kept++] = attr;
    }
    node->attrs.count = kept;
    if (im->opset < 4 && is_op(node, "Concat"))
        add_default(im, node, (onnx_attr){.name = "axis", .type = ONNX_ATTR_INT, .i = 1});
    if (is_op(node, "Selu")) {
        add_default(im, node, (onnx_attr){.name = "alpha", .type = ONNX_ATTR_FLOAT, .f = 1.6732});
        add_default(im, node, (onnx_attr){.name = "gamma", .type = ONNX_ATTR_FLOAT, .f = 1.0507});
    }
}
