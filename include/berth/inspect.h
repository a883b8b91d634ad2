// What programs consist of, and what is behind models of the virtual machine (libberth-compiler). What `berth inspect` shows.
//
//   berth_contents *contents;
//   berth_status status = berth_contents_read(program, &contents);
//   for (uint32_t i = 0; !status && i < berth_contents_pool_count(contents); ++i)
//       printf("%llu bytes\n", (unsigned long long)berth_contents_pool(contents, i)->size_bytes);
//   berth_contents_free(contents);
//
// Contents do not change; texts and records live as long as they. Records may have more members at the end in later versions.
#ifndef BERTH_INSPECT_H_
#define BERTH_INSPECT_H_

#include <berth/compile.h>
#include <berth/dynamic.h>
#include <berth/program.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

// Reads a whole program file and checks everything, the content of constants too, which opening leaves unread so that it takes
// no time however large they are. Errors: as berth_program_open.
BERTH_API BERTH_MUST_USE berth_status berth_program_file_check_all(const char *path);

typedef struct berth_contents berth_contents;

// Of a program, or of one of its fallbacks. Keeps a reference of it. Errors: OUT_OF_MEMORY.
BERTH_API BERTH_MUST_USE berth_status berth_contents_read(berth_program *program,
                                                          berth_contents **out_contents);
BERTH_API void berth_contents_free(berth_contents *contents);  // NULL is fine

typedef struct berth_content_device {
    const char *name;
    int is_host_only;  // not 0: drives others
} berth_content_device;
// An allocation.
typedef struct berth_content_pool {
    const char *device, *scope;
    const char *usage;  // "workspace", "constants", "io", "store"
    uint64_t size_bytes;
} berth_content_pool;
// What a program of executor "vm" has for certain shapes.
typedef struct berth_content_variant {
    const char *piece;          // of the byte code: "s0", "h1"
    const char *op;             // what that is
    int is_results;             // not 0: results that are known, instead of code
    const char *const *inputs;  // [input_count] "f32[1,8]", "i64[2] of one value"
    uint32_t input_count;
    int is_any_run;  // not 0: the piece has no inputs
    // NULL, or what other shapes it serves (docs/vm.md): "for 8 shapes in all: v0 = dimension 0 of input 0, 1..8"
    const char *family;
} berth_content_variant;
// Code as it was compiled, or an attachment (sources that were kept), by a name that is a path inside of a folder:
// "image/0.so", and of a program of executor "vm" "variant/2/image/0.so", of variant 2.
typedef struct berth_content_file {
    const char *name;
    const void *data;
    uint64_t size_bytes;
    int is_attachment;
} berth_content_file;

BERTH_API uint32_t berth_contents_device_count(const berth_contents *contents);
BERTH_API uint32_t berth_contents_pool_count(const berth_contents *contents);
BERTH_API uint32_t berth_contents_variant_count(const berth_contents *contents);
BERTH_API uint32_t berth_contents_file_count(const berth_contents *contents);
BERTH_API uint32_t berth_contents_external_count(const berth_contents *contents);
// NULL when there is no such index.
BERTH_API const berth_content_device *berth_contents_device(const berth_contents *contents,
                                                            uint32_t index);
BERTH_API const berth_content_pool *berth_contents_pool(const berth_contents *contents,
                                                        uint32_t index);
BERTH_API const berth_content_variant *berth_contents_variant(const berth_contents *contents,
                                                              uint32_t index);
BERTH_API const berth_content_file *berth_contents_file(const berth_contents *contents,
                                                        uint32_t index);
// Code that the compiler did not make, which runs with the process's rights.
BERTH_API const char *berth_contents_external(const berth_contents *contents, uint32_t index);
// Types of inputs and outputs in words: "f32[1,1,8,8]".
BERTH_API const char *berth_contents_input_type(const berth_contents *contents, uint32_t index);
BERTH_API const char *berth_contents_output_type(const berth_contents *contents, uint32_t index);

// ---- models of the virtual machine, as berth_compiler_load_dynamic_file and _memory load them ----
// Errors of all: INVALID_ARGUMENT a model that berth_program_load_dynamic loaded, or a size that is none.

// Messages of what runs compile go to the compiler's callbacks from here on, and these may end it; the compiler outlives the
// model, or is taken away again with NULL.
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_follow(berth_dynamic *dynamic,
                                                           berth_compiler *compiler);

typedef struct berth_dynamic_port {
    const char *name;
    const char *type;  // as the model declares it: "f32[batch,3,224,224]"
    int is_tensor;     // 0: a sequence or an optional value
    berth_dtype dtype;
    int rank;                                             // -1 = any
    int64_t dims[BERTH_MAX_RANK];                         // -1 = any, or what lies within bounds:
    int64_t least[BERTH_MAX_RANK], most[BERTH_MAX_RANK];  // both 0: there are none
} berth_dynamic_port;
// Fills in the first `size_bytes` (sizeof(berth_dynamic_port)) of it. Errors: OUT_OF_RANGE no such input.
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_get_input(const berth_dynamic *dynamic,
                                                              uint32_t index,
                                                              berth_dynamic_port *out_port,
                                                              size_t size_bytes);

// What the last run did, and what runs compiled so far.
typedef struct berth_dynamic_report {
    const char *model;  // its name
    uint64_t instructions, segment_runs, host_operations;
    uint64_t
        host_data_operations;  // of host_operations, those that are no arithmetic on a few integers
    uint32_t compiled_count;   // segments, one per shape
    uint32_t kernel_count;
    int64_t compile_ns;
    uint32_t exact_count, generic_count,
        reused_count;  // functions for one size, for several, used again
    // Of a program for many shapes that the model makes for itself once shapes change (docs/vm.md): shapes that the latest
    // is for, runs that needed no compiler because of it, and why there is none (NULL; until the next run).
    uint32_t general_shape_count;
    uint64_t general_run_count;
    const char *general_refusal;
} berth_dynamic_report;
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_get_report(const berth_dynamic *dynamic,
                                                               berth_dynamic_report *out_report,
                                                               size_t size_bytes);

// As berth_program_check_devices (<berth/verify.h>), of what was compiled and ran so far.
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_check_devices(const berth_dynamic *dynamic,
                                                                  const char *devices);

// The byte code as text (docs/vm.md), which lives as long as the model.
BERTH_API BERTH_MUST_USE berth_status berth_dynamic_code(const berth_dynamic *dynamic,
                                                         const char **out_text);

BERTH_END

#endif  // BERTH_INSPECT_H_
