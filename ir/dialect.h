// A dialect: the hooks through which generic code (printer, parser, verifier, JSON) handles a kind
// of function body. The built-in ones are const structs in dialect.c; a vendor hands further ones
// to the parsers in a berth_dialect_registry (docs/ir.md).
#ifndef BERTH_IR_DIALECT_H_
#define BERTH_IR_DIALECT_H_

#include "base/limits.h"
#include "ir/module.h"

struct berth_text_printer;  // ir/text/printer.h
struct berth_text_parser;   // ir/text/parser.h
struct berth_json_writer;   // ir/json/writer.h
struct berth_json_reader;   // ir/json/reader.h
struct berth_c_emitter;     // ir/c/emitter.h
struct json_t;
struct berth_equal;  // ir/equal.h

struct berth_dialect {
    const char *name;  // keyword in the text form: "graph", "tensor", "external"
    // Checks the body; the first problem is reported with its location.
    berth_status (*verify)(const berth_module *module, berth_func_id function);
    // Text form: everything after "graph @name", without the function's attributes and location,
    // which come after what print_signature writes. Either may be NULL.
    void (*print_signature)(struct berth_text_printer *printer, berth_func_id function);
    void (*print_body)(struct berth_text_printer *printer, berth_func_id function);
    // The other way round, in the same order. parse_signature sets the function's body.
    berth_status (*parse_signature)(struct berth_text_parser *parser, berth_func_id function);
    berth_status (*parse_body)(struct berth_text_parser *parser, berth_func_id function);
    // JSON form: fills `object`, reads it. from_json sets the function's body.
    void (*to_json)(struct berth_json_writer *writer, berth_func_id function,
                    struct json_t *object);
    berth_status (*from_json)(struct berth_json_reader *reader, const struct json_t *object,
                              berth_func_id function);
    // (optional) The body for `module`, a copy of the module that holds it, with the same ids. Without it
    // copies of a module share the body: for bodies that no pass changes.
    void *(*copy)(berth_module *module, const void *body);
    // (optional) Statements of C that build the body, through ir/c/emitter.h. The constant of a
    // vendor's dialect is then called berth_dialect_NAME.
    void (*to_c)(struct berth_c_emitter *emitter, berth_func_id function);
    // True when the bodies are equal; otherwise says why through berth_equal_differ.
    bool (*equal)(struct berth_equal *state, berth_func_id a, berth_func_id b);
};

extern const berth_dialect berth_dialect_graph;     // body: berth_graph
extern const berth_dialect berth_dialect_tensor;    // body: berth_tfn
extern const berth_dialect berth_dialect_external;  // body: berth_external

// What parsers know beyond the built-in dialects. Both lists end in NULL; any member may
// be NULL.
typedef struct berth_dialect_registry {
    const berth_dialect *const *dialects;
    const berth_opaque_ops *const *opaque_ops;  // a value of an unknown kind is carried as text
    const struct berth_multi_target *target;    // whose devices may be called by their names
    const berth_limits *limits;                 // how much is read
} berth_dialect_registry;

// NULL when there is none of that name.
const berth_dialect *berth_dialect_find(const berth_dialect_registry *registry, const char *name);

#endif  // BERTH_IR_DIALECT_H_
