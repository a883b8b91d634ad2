// The JSON form of modules, for programs; docs/ir.md describes it. It carries what the text form
// carries: from_json(to_json(m)) equals m (ir/equal.h) and is written as the same bytes.
#ifndef BERTH_IR_JSON_H_
#define BERTH_IR_JSON_H_

#include "ir/dialect.h"

// *out_text = the module as JSON in `arena`, NUL-terminated; indent 0 = one line.
// An entry point: not inside berth_arena_try. O(size of the module).
// Errors: UNSUPPORTED opaque values that cannot be serialised, dialects without a JSON form.
BERTH_MUST_USE berth_status berth_module_to_json_text(berth_arena *arena,
                                                      const berth_module *module, int indent,
                                                      const char **out_text);

// Reads text[0, length) into a new module in `arena`. `registry` as in berth_module_parse_with, may
// be NULL. The module is not verified. An entry point: not inside berth_arena_try.
// Errors: INVALID_ARGUMENT "file:line:column: ..." where it is not JSON, "file: functions[0].body:
// what was expected" where it is no module.
BERTH_MUST_USE berth_status berth_module_from_json_text(berth_arena *arena, const char *text,
                                                        size_t length, const char *file_name,
                                                        const berth_dialect_registry *registry,
                                                        berth_module **out_module);

#endif  // BERTH_IR_JSON_H_
