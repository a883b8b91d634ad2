// The text form of modules, for people to read and write. docs/ir.md describes it.
//
//   module "example"
//
//   graph @main(%image: f32[1,1,8,8], %weights: f32[16,1,3,3]) {
//     %conv = conv(%image, %weights, _) {pads = [1, 1, 1, 1]} on opencl:0: f32[1,16,8,8] #1
//     return %conv
//   }
//
//   locations {
//     #1 = "model.onnx" node "conv1" op "Conv"
//   }
//
// parse(print(m)) equals m (ir/equal.h) and prints as the same bytes.
#ifndef BERTH_IR_TEXT_H_
#define BERTH_IR_TEXT_H_

#include "ir/module.h"

struct berth_dialect_registry;

typedef struct berth_text_options {
    int width;   // columns that lines aim to stay within; 0 = 100
    bool elide;  // large literals and code by type and size only: for reading, not for parsing
    bool no_locations;  // leave locations out
} berth_text_options;

// Appends the module's text. `options` may be NULL. Inside berth_arena_try of out's arena.
// Errors: UNSUPPORTED when the module holds an opaque value that cannot be serialised, or a
// function of a dialect without a text form. O(size of the module).
BERTH_MUST_USE berth_status berth_module_to_text(const berth_module *module,
                                                 const berth_text_options *options,
                                                 berth_strbuf *out);

// The same with default options, for dumps: what cannot be serialised is printed as such (and does
// not parse). Inside berth_arena_try of out's arena.
void berth_module_print(const berth_module *module, berth_strbuf *out);

// Reads text[0, length), which need not be NUL-terminated, into a new module in `arena`. Results
// written without a type get the one that inference finds (ir/infer.h); the module is not verified
// otherwise (berth_module_verify). Operations of a text without a `locations` section are located
// at their lines. `file_name` is for those and for messages. An entry point: not inside
// berth_arena_try.
// Errors: INVALID_ARGUMENT "file:line:column: what was expected, what was found".
BERTH_MUST_USE berth_status berth_module_parse(berth_arena *arena, const char *text, size_t length,
                                               const char *file_name, berth_module **out_module);

// The same with further dialects and opaque attributes (ir/dialect.h); NULL = none.
BERTH_MUST_USE berth_status berth_module_parse_with(berth_arena *arena, const char *text,
                                                    size_t length, const char *file_name,
                                                    const struct berth_dialect_registry *registry,
                                                    berth_module **out_module);

#endif  // BERTH_IR_TEXT_H_
