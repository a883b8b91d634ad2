// Targets: what machine a model is compiled for (libberth-compiler; docs/target.md). Which there are by name, what one
// says with all defaults filled in, what is wrong with one, and this machine as one.
//
//   berth_target_info *target;
//   berth_status status = berth_compiler_read_target(compiler, "nvidia/jetson-nano", &target);
//   for (uint32_t i = 0; !status && i < berth_target_info_device_count(target); ++i)
//       puts(berth_target_info_device(target, i)->name);
//   berth_target_info_free(target);
//
// What was read does not change, any thread may look at it, and texts and facts live as long as it.
#ifndef BERTH_TARGET_H_
#define BERTH_TARGET_H_

#include <berth/compile.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

// ---- names ----

typedef struct berth_tag_list berth_tag_list;

// A target by name. Later versions may add members at the end.
typedef struct berth_tag_facts {
    const char *name;         // "arm/rasp4b"
    const char *description;  // one line
    const char *sources;      // where its figures come from
    int is_users;             // not 0: from the tag folder, not built in
} berth_tag_facts;

// Built-in tags and those of the folder (NULL = none), FOLDER/VENDOR/NAME.json, sorted by name. Errors: IO.
BERTH_API BERTH_MUST_USE berth_status berth_tag_list_create(const char *tag_folder,
                                                            berth_tag_list **out_list);
BERTH_API void berth_tag_list_free(berth_tag_list *list);  // NULL is fine
BERTH_API uint32_t berth_tag_list_count(const berth_tag_list *list);
// NULL when there is no such index.
BERTH_API const berth_tag_facts *berth_tag_list_at(const berth_tag_list *list, uint32_t index);

// ---- targets ----

typedef struct berth_target_info berth_target_info;

// Reads a target in any of its spellings, with the compiler's host, executor, runtime, memory, overrides, pins and tag
// folder. `text` NULL = the compiler's option target, or "cpu".
//   ownership: the caller frees it; the compiler may go before it
//   errors:    INVALID_ARGUMENT with all that is wrong, a line each; NOT_FOUND no such tag or file; IO
BERTH_API BERTH_MUST_USE berth_status berth_compiler_read_target(berth_compiler *compiler,
                                                                 const char *text,
                                                                 berth_target_info **out_target);
// The same, but what is wrong with the text is no error and stands in the info's problems; there are no devices then.
BERTH_API BERTH_MUST_USE berth_status berth_compiler_check_target(berth_compiler *compiler,
                                                                  const char *text,
                                                                  berth_target_info **out_target);
BERTH_API void berth_target_info_free(berth_target_info *target);  // NULL is fine

// Something wrong. Later versions may add members at the end.
typedef struct berth_target_problem {
    const char *path;     // of the field: "devices[1].target.kind"; "" for the whole text
    const char *message;  // what is wrong and what is allowed there
} berth_target_problem;

// 0 = it is valid.
BERTH_API uint32_t berth_target_info_problem_count(const berth_target_info *target);
BERTH_API const berth_target_problem *berth_target_info_problem(const berth_target_info *target,
                                                                uint32_t index);

// The whole of it. Later versions may add members at the end.
typedef struct berth_target_facts {
    const char *hash;      // of its canonical form, hexadecimal
    const char *executor;  // "graph"
    const char *runtime;   // "hosted"
    uint32_t default_device, host;
} berth_target_facts;

// Later versions may add members at the end, here and below. Figures of 0 and texts of "" are unknown.
typedef struct berth_target_device_facts {
    const char *name;  // "opencl:0"
    const char *kind;
    const char *arch;  // "x86_64"
    const char *cpu;   // as compilers call it
    int64_t cores;
    int64_t compute_units;
    int64_t clock_hz;
    double f32_flops;  // per second, at most
    uint32_t memory;   // where its values live, and its constants
    uint32_t constant_memory;
    int host_only;  // not 0: it drives others, and computes nothing
} berth_target_device_facts;

typedef struct berth_target_memory_facts {
    const char *name;
    const char *scope;  // "global"
    uint64_t capacity_bytes;
    uint64_t budget_bytes;  // that programs may use
    double bandwidth_bytes_per_s;
    uint64_t latency_ns;
    int holds_constants;  // not 0: these and nothing else
    int is_implied;       // not 0: not written in the target
} berth_target_memory_facts;

typedef struct berth_target_link_facts {
    uint32_t from, to;  // memories
    int is_duplex;      // not 0: both directions at once
    double bandwidth_bytes_per_s;
    uint64_t latency_ns;
    const char *bus;  // links of one bus wait for each other
} berth_target_link_facts;

typedef struct berth_target_pin_facts {
    const char *match;  // of nodes' names, or "op:" and of operators
    uint32_t device;
} berth_target_pin_facts;

// NULL for what is not valid.
BERTH_API const berth_target_facts *berth_target_info_facts(const berth_target_info *target);
BERTH_API uint32_t berth_target_info_device_count(const berth_target_info *target);
BERTH_API uint32_t berth_target_info_memory_count(const berth_target_info *target);
BERTH_API uint32_t berth_target_info_link_count(const berth_target_info *target);
BERTH_API uint32_t berth_target_info_pin_count(const berth_target_info *target);
// NULL when there is no such index.
BERTH_API const berth_target_device_facts *berth_target_info_device(const berth_target_info *target,
                                                                    uint32_t index);
BERTH_API const berth_target_memory_facts *berth_target_info_memory(const berth_target_info *target,
                                                                    uint32_t index);
// Whether a device reaches a memory directly: 0 or 1; 0 when there is no such memory or device.
BERTH_API int berth_target_info_reaches(const berth_target_info *target, uint32_t memory,
                                        uint32_t device);
BERTH_API const berth_target_link_facts *berth_target_info_link(const berth_target_info *target,
                                                                uint32_t index);
BERTH_API const berth_target_pin_facts *berth_target_info_pin(const berth_target_info *target,
                                                              uint32_t index);

// All fields with defaults filled in, as JSON that is a target again; and a picture of the machine as an SVG document. ""
// for what is not valid.
BERTH_API const char *berth_target_info_json(const berth_target_info *target);
BERTH_API const char *berth_target_info_svg(const berth_target_info *target);

// ---- this machine ----

typedef struct berth_target_description berth_target_description;

// Zero everything, set size_bytes, then what should not be the default. Later versions may add members at
// the end.
typedef struct berth_detect_settings {
    size_t size_bytes;     // sizeof(berth_detect_settings)
    const char *name;      // of the target; NULL = made of what the machine is called
    const char *topology;  // another machine, from an XML export of hwloc (a file); NULL = this one
    int no_measure;        // not 0: measure nothing; else about a second for each device
    const char *cache_folder;  // of the kernels that measure; NULL = they are not kept
    void (*on_begin)(void *user, const char *what);  // what is measured now; may be NULL
    berth_level_callback on_message;                 // what could not be measured; may be NULL
    void *user;
} berth_detect_settings;

// A machine as a target: what hwloc and the drivers say of it, and what is measured. `settings` NULL = defaults.
//   ownership: the caller frees it
//   errors:    NOT_FOUND, IO, INVALID_ARGUMENT of the topology; UNAVAILABLE
BERTH_API BERTH_MUST_USE berth_status berth_target_detect(
    const berth_detect_settings *settings, berth_target_description **out_description);
BERTH_API void
berth_target_description_free(berth_target_description *description);  // NULL is fine
// A target file: JSON, with "sources", which says of each figure whether it was measured, reported or assumed.
BERTH_API const char *berth_target_description_json(const berth_target_description *description);

BERTH_END

#endif  // BERTH_TARGET_H_
