// What a model takes and gives, before it is compiled (libberth-compiler).
//
//   berth_model_info *info;
//   berth_status status = berth_model_info_read("digits.onnx", &info);
//   for (uint32_t i = 0; i < berth_model_info_input_count(info); ++i) {
//       const berth_value_info *input = berth_model_info_input(info, i);
//       for (int d = 0; d < input->rank; ++d) puts(input->dims[d].name ? input->dims[d].name : "fixed");
//   }
//   berth_model_info_free(info);
#ifndef BERTH_MODEL_H_
#define BERTH_MODEL_H_

#include <berth/compile.h>
#include <berth/status.h>
#include <berth/tensor.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_model_info berth_model_info;

// A dimension: a number, or a name that stands for one until berth_compiler_set_dim gives it ("batch",
// or "image.0" = input "image", axis 0, where the model has no name for it).
typedef struct berth_dim_info {
    int64_t extent;    // -1 = not fixed
    const char *name;  // NULL = none
} berth_dim_info;

// An input or output. Later versions may add members at the end.
typedef struct berth_value_info {
    const char *name;
    berth_dtype dtype;           // NONE = unknown (of an output)
    int rank;                    // -1 = unknown
    const berth_dim_info *dims;  // [rank]
    const char *type;            // in words: "f32[batch,1,8,8]", "sequence<...>"
} berth_value_info;

// Reads a model (ONNX, or a module as `berth opt` prints it) from a file, or an ONNX model from memory,
// which is only looked at during the call; `folder` is where its external data lies, NULL = it has
// none.
//   ownership: the caller frees it, and with it all that it gave
//   errors:    NOT_FOUND; IO; INVALID_ARGUMENT no readable model (says where); UNSUPPORTED operators
//   threads:   thread-safe; an info does not change
BERTH_API BERTH_MUST_USE berth_status berth_model_info_read(const char *path,
                                                            berth_model_info **out_info);
BERTH_API BERTH_MUST_USE berth_status berth_model_info_parse(const void *data, size_t size_bytes,
                                                             const char *folder,
                                                             berth_model_info **out_info);
// The same of a file with the compiler's extents of dimensions, limits and messages (<berth/compile.h>).
BERTH_API BERTH_MUST_USE berth_status berth_compiler_read_model(berth_compiler *compiler,
                                                                const char *path,
                                                                berth_model_info **out_info);
// The same of an ONNX model in memory, as berth_model_info_parse.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_parse_model(berth_compiler *compiler,
                                                                 const void *data,
                                                                 size_t size_bytes,
                                                                 const char *folder,
                                                                 berth_model_info **out_info);
BERTH_API void berth_model_info_free(berth_model_info *info);  // NULL is fine

BERTH_API uint32_t berth_model_info_input_count(const berth_model_info *info);
BERTH_API uint32_t berth_model_info_output_count(const berth_model_info *info);
// NULL when there is no such index.
BERTH_API const berth_value_info *berth_model_info_input(const berth_model_info *info,
                                                         uint32_t index);
BERTH_API const berth_value_info *berth_model_info_output(const berth_model_info *info,
                                                          uint32_t index);

// Initializers that the model (of ONNX's IR version 4 or later) lists among its inputs: values of its own, in whose
// place a caller may give others. They are no inputs unless berth_compiler_set_input names them. NULL when there is no such
// index.
BERTH_API uint32_t berth_model_info_overridable_count(const berth_model_info *info);
BERTH_API const berth_value_info *berth_model_info_overridable(const berth_model_info *info,
                                                               uint32_t index);

// What a model consists of. Later versions may add members at the end.
typedef struct berth_model_facts {
    const char *name;  // "" = none
    uint32_t weight_count;
    uint64_t weight_bytes;
} berth_model_facts;
BERTH_API const berth_model_facts *berth_model_info_facts(const berth_model_info *info);

// A node of the model, in its order, or a function in a module that is code of somebody's own, which would run with the
// process's rights. Later versions may add members at the end.
typedef struct berth_node_info {
    const char *name, *op;
} berth_node_info;
typedef struct berth_external_info {
    const char *name, *language;
} berth_external_info;
BERTH_API uint32_t berth_model_info_node_count(const berth_model_info *info);
BERTH_API uint32_t berth_model_info_external_count(const berth_model_info *info);
// NULL when there is no such index.
BERTH_API const berth_node_info *berth_model_info_node(const berth_model_info *info,
                                                       uint32_t index);
BERTH_API const berth_external_info *berth_model_info_external(const berth_model_info *info,
                                                               uint32_t index);

BERTH_END

#endif  // BERTH_MODEL_H_
