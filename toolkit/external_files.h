// Code of external functions that lies in files beside the module (docs/external.md).
#ifndef BERTH_TOOLKIT_EXTERNAL_FILES_H_
#define BERTH_TOOLKIT_EXTERNAL_FILES_H_

#include "ir/module.h"

// Reads the files that external functions of the module name, in the folder of `path` and below, in
// place of their names: the module holds its code then, wherever it is printed to. Names of shared
// libraries stay; those with a '/' become absolute paths. Inside berth_arena_try.
// Errors: NOT_FOUND, INVALID_ARGUMENT (leaves the folder), OUT_OF_RANGE (more than 256 MiB), IO; each
// names the function.
BERTH_MUST_USE berth_status berth_external_files_read(berth_module *module, const char *path);

#endif  // BERTH_TOOLKIT_EXTERNAL_FILES_H_
