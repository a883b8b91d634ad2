// A dialect: the hooks through which generic code (printer, parser, verifier, JSON) handles a kind
// of function body. The built-in ones are const structs in their own files; a vendor registers
// another through berth_dialect_registry.
#ifndef BERTH_IR_DIALECT_H_
#define BERTH_IR_DIALECT_H_

#include "ir/module.h"

struct berth_doc;
struct berth_text_parser;
struct json_t;

struct berth_dialect {
    const char *name;  // keyword in the text form: "graph", "tensor", "external"
    // Checks the body; the first problem is reported with its location.
    berth_status (*verify)(const berth_module *module, berth_func_id function);
    // Text form: signature and body behind "graph @name".
    void (*print)(const berth_module *module, berth_func_id function, struct berth_doc *doc);
    berth_status (*parse)(struct berth_text_parser *parser, berth_module *module,
                          berth_func_id function);
    // JSON form.
    struct json_t *(*to_json)(const berth_module *module, berth_func_id function);
    berth_status (*from_json)(const struct json_t *json, berth_module *module,
                              berth_func_id function);
};

extern const berth_dialect berth_dialect_graph;     // body: berth_graph
extern const berth_dialect berth_dialect_tensor;    // body: berth_tfn
extern const berth_dialect berth_dialect_external;  // body: berth_external

#endif  // BERTH_IR_DIALECT_H_
