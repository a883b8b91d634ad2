// A module from a file in any of its forms: an ONNX model, or a module as text or JSON as `berth
// opt` prints it, which may be planned or compiled in part.
#ifndef BERTH_TOOLKIT_MODULE_FILE_H_
#define BERTH_TOOLKIT_MODULE_FILE_H_

#include "compiler/onnx/import.h"
#include "target/target.h"

typedef enum berth_module_form {
    BERTH_MODULE_ONNX,
    BERTH_MODULE_TEXT,  // begins with "module", "graph", "tensor", "external" or a comment
    BERTH_MODULE_JSON,  // begins with a brace
} berth_module_form;

// Reads the module into `arena` and, but for ONNX, verifies it.
//   options: of the import; of a text or JSON extents of symbolic dimensions (module_dims.h)
//   target:  whose devices a text or JSON may call by their names; NULL = names are errors
//   errors:  those of the importer and of the readers; INVALID_ARGUMENT a built program, or options
//            that the form does not take; IO
BERTH_MUST_USE berth_status berth_module_load(berth_arena *arena, const char *path,
                                              const berth_import_options *options,
                                              const berth_multi_target *target,
                                              berth_module **out_module);
BERTH_MUST_USE berth_status berth_module_form_of(const char *path, berth_module_form *out_form);

// The target for which the module was planned or compiled (JSON); NULL = none yet.
const char *berth_module_target(const berth_module *module);

#endif  // BERTH_TOOLKIT_MODULE_FILE_H_
