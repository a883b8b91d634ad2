// What `berth run` says of a result.
#ifndef BERTH_TOOLS_RUN_OUTPUT_H_
#define BERTH_TOOLS_RUN_OUTPUT_H_

#include <jansson.h>

#include "base/tensor.h"

// Shape, range, and the five largest elements: a line on stdout, or an object.
void berth_run_output_print(const char *name, const berth_tensor *tensor);
json_t *berth_run_output_json(const char *name, const berth_tensor *tensor);

#endif  // BERTH_TOOLS_RUN_OUTPUT_H_
