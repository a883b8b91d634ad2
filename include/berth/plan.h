// Plans: where a model's operations would run and why, without compiling kernels (libberth-compiler).
//
//   berth_plan_info *plan;
//   berth_status status = berth_compiler_plan_file(compiler, "digits.onnx", &plan);
//   if (!status) fputs(berth_plan_info_svg(plan), picture);
//   berth_plan_info_free(plan);
//
// Immutable; any thread may look at it. Texts live as long as it.
#ifndef BERTH_PLAN_H_
#define BERTH_PLAN_H_

#include <berth/compile.h>
#include <berth/program.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_plan_info berth_plan_info;

// Plans a model with the compiler's options, as berth_compiler_compile_file and _memory would.
//   errors: those of compiling up to the plan; INVALID_ARGUMENT a program, which is planned already
BERTH_API BERTH_MUST_USE berth_status berth_compiler_plan_file(berth_compiler *compiler,
                                                               const char *path,
                                                               berth_plan_info **out_plan);
BERTH_API BERTH_MUST_USE berth_status berth_compiler_plan_memory(berth_compiler *compiler,
                                                                 const void *data,
                                                                 size_t size_bytes,
                                                                 const char *folder,
                                                                 berth_plan_info **out_plan);
BERTH_API void berth_plan_info_free(berth_plan_info *plan);  // NULL is fine

// Time of one request as the cost model predicts it; 0 = unknown.
BERTH_API double berth_plan_info_predicted_ns(const berth_plan_info *plan);

BERTH_API uint32_t berth_plan_info_placement_count(const berth_plan_info *plan);
// NULL when there is no such index.
BERTH_API const berth_placement *berth_plan_info_placement_at(const berth_plan_info *plan,
                                                              uint32_t index);

// The predicted schedule of one request, a row for each device and link against time, as an SVG document.
BERTH_API const char *berth_plan_info_svg(const berth_plan_info *plan);
// The graph, coloured by device, for Graphviz.
BERTH_API const char *berth_plan_info_dot(const berth_plan_info *plan);

BERTH_END

#endif  // BERTH_PLAN_H_
