// Extents for symbolic dimensions of a module as text or JSON, as the importer gives them to those of
// an ONNX model (private to toolkit/).
#ifndef BERTH_TOOLKIT_MODULE_DIMS_H_
#define BERTH_TOOLKIT_MODULE_DIMS_H_

#include "compiler/onnx/import.h"

// Replaces symbols that stand alone in the parameters of @main, in all of @main's types: `dims`, the shapes of
// `inputs`, `bounds` and `default_batch` of the options, as import.h has them. Symbols of other functions are
// their own: each call binds them. A module without a graph function @main has no symbols.
//   path:   for messages
//   errors: INVALID_ARGUMENT a dimension that @main does not have, two extents for one symbol, one outside
//           its bounds, or relations, which are given when a model is imported
// Inside berth_arena_try of the module's arena. Verify afterwards.
BERTH_MUST_USE berth_status berth_module_fix_dims(berth_module *module, const char *path,
                                                  const berth_import_options *options);

#endif  // BERTH_TOOLKIT_MODULE_DIMS_H_
