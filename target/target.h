// Targets: what machine a program is for. One notion, four spellings (a tag, a short form, JSON,
// `local`), one canonical form; a single device is a MultiTarget with one compute device, so that
// planner, compiler and executor only ever see berth_multi_target. The notation is in
// docs/target.md.
//
//   berth_machine_facts facts;
//   BERTH_TRY(berth_machine_facts_host(arena, &facts));
//   berth_target_options options = {.machine = &facts};
//   berth_multi_target *target;
//   BERTH_TRY(berth_target_parse(arena, "opencl -host=cpu", &options, &target));
//   for (uint32_t i = 0; i < target->device_count; ++i) puts(target->devices[i].name);
#ifndef BERTH_TARGET_TARGET_H_
#define BERTH_TARGET_TARGET_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status.h"
#include "target/virtual_device.h"

// Bounds on what text from outside can ask for. Sets of devices and tables grow with what there is.
#define BERTH_TARGET_MAX_DEVICES 4096  // in one MultiTarget, implied hosts included
#define BERTH_TARGET_MAX_MEMORIES 8192
#define BERTH_TARGET_MAX_LINKS 65536  // declared ones
#define BERTH_NO_INDEX UINT32_MAX

// ----------------------------------------------------------------------------------------------------
// one device

typedef enum berth_target_attribute_type {
    BERTH_TARGET_STRING,  // any text: for people, never part of a command or a source
    BERTH_TARGET_WORD,    // a letter or digit, then letters, digits and _ . - +
    BERTH_TARGET_LIST,    // of words
    BERTH_TARGET_INT,     // int64
    BERTH_TARGET_FLOAT,   // double
    BERTH_TARGET_BOOL,
    BERTH_TARGET_FLOPS,  // element type -> operations per second
} berth_target_attribute_type;

// A row of the attribute schema (kinds.def).
typedef struct berth_target_attribute_facts {
    const char *name;
    berth_target_attribute_type type;
    uint32_t kinds;             // bit (1 << berth_device_kind) for each kind that has it
    double least, most;         // of numbers, inclusive
#ifndef BERTH_NO_BUILT_IN_TAGS  // not in a library that only runs programs
    const char *doc;
#endif
} berth_target_attribute_facts;

const berth_target_attribute_facts *berth_target_attribute_table(uint32_t *out_count);

typedef struct berth_string_list {
    const char *const *data;
    uint32_t count;
} berth_string_list;

// An attribute that has no member of its own in berth_target.
typedef struct berth_target_extra {
    const char *name;
    int64_t value;
} berth_target_extra;

// One device's target, defaults filled in. Immutable after build; arena memory. Strings are ""
// where unknown; numbers that a kind does not have, or that are unknown and have no default, are 0.
// f32 of peak_flops is always > 0.
typedef struct berth_target {
    berth_device_kind kind;
    const char *arch;
    const char *cpu;
    const char *model;
    berth_string_list features;
    berth_string_list libs;
    const char *libs_policy;  // "measured", "always"; "" = measured
    int64_t cores;
    int64_t threads;
    berth_string_list cpuset;  // "0-3", "8" (target/topology.h, berth_processor_set_add_word)
    int64_t clock_hz;
    int64_t vector_bits;
    int64_t vector_registers;  // this and the caps of register tiles: 0 where there are no cores
    int64_t tile_rows;
    int64_t tile_own_rows;
    int64_t tile_page_rows;
    int64_t unrolled_terms;
    int64_t tile_singles;
    int64_t sums_in_flight;
    int64_t compute_units;
    int64_t subgroup_size;
    bool lacks_f64;
    bool lacks_i64;
    bool lacks_8bit;
    bool lacks_16bit;
    int64_t max_group_size;
    int64_t local_memory_bytes;
    int64_t max_bindings;  // 0 = not said; see berth_target_max_bindings
    int64_t item_rows;  // this and the next three: of tiles in local memory, 0 where there is none
    int64_t group_columns;
    int64_t group_rows;
    int64_t tile_depth;
    int64_t l1_bytes;
    int64_t l2_bytes;
    int64_t l3_bytes;
    int64_t cache_line_bytes;
    double peak_flops[BERTH_DTYPE_COUNT];  // operations/s by element type; 0 = unknown
    int64_t dispatch_ns;
    double power_watts;
    int64_t memory_capacity_bytes;
    bool capacity_is_assumed;  // nobody said it: a default of the kind
    int64_t memory_alignment_bytes;
    double memory_bandwidth_bytes_per_s;
    double core_bandwidth_bytes_per_s;  // 0 = not said
    double link_bandwidth_bytes_per_s;
    bool shares_host_memory;
    const char *resource;
    berth_string_list operators;      // npu: what it runs
    berth_string_list element_types;  // npu: of what
    const char *transport;            // how its driver reaches it; "" = as the driver chooses
    const berth_target_extra
        *extras;  // kind-specific numbers (vta: log_block, ...), sorted by name
    uint32_t extra_count;
    const char *canonical;  // canonical JSON of this device alone: no host, no executor, one line
    berth_hash128 hash;     // of `canonical`: the identity of a device-only target
} berth_target;

// Buffers of one kernel on any device: drivers have tables of this length.
#define BERTH_TARGET_MAX_BINDINGS 128u

// Processor cores, behind whichever interface: what runs at once are cores, and no work items run in
// step beside each other.
bool berth_target_is_cores(const berth_target *target);
// A device whose kernels are work-groups of several work items: GPUs, and processor cores behind Vulkan, where a
// subgroup is a vector. Behind OpenCL cores run register tiles, one work item at a time.
bool berth_target_has_groups(const berth_target *target);
// Work-items of a subgroup multiply together, by intrinsics for that, in the language of the kind's kernels.
bool berth_target_has_warps(const berth_target *target);
// Kernels are OpenCL C, which uses what the device's extensions offer (features), whatever its architecture is.
bool berth_target_takes_opencl_c(const berth_target *target);
// What a kernel may declare of local_memory_bytes; the rest, where there is more, comes with its launch.
int64_t berth_target_declared_local_bytes(const berth_target *target);
#define BERTH_CUDA_DECLARED_LOCAL_BYTES (48 << 10)  // CUDA C++ Programming Guide, "Shared Memory"
// Most buffers that one kernel takes: what the target says, at most BERTH_TARGET_MAX_BINDINGS.
uint32_t berth_target_max_bindings(const berth_target *target);
bool berth_target_has_feature(const berth_target *target, const char *feature);
// The feature of an opencl device that has subgroups in OpenCL C 2.0 and no OpenCL C 3.0.
#define BERTH_OPENCL_C_2 "opencl_c_2"
bool berth_target_has_lib(const berth_target *target, const char *lib);
// The kind-specific number called `name`, or `fallback`.
int64_t berth_target_extra_get(const berth_target *target, const char *name, int64_t fallback);
// The constraints among a device's attributes: what its kernels are made for and run on, as canonical
// JSON on one line. Records of measured kernels are keyed by it; figures that only predict (peaks,
// bandwidths), capacities and names are no part of it. Inside berth_arena_try.
const char *berth_target_culled(berth_arena *arena, const berth_target *target);
// A culled target that an earlier version of Berth wrote, as this one writes it: attributes that it does not
// have are what they are by default, which is how kernels were made before there were such attributes.
// An entry point, as berth_target_parse. The text lives in the arena.
//   errors: those of berth_target_parse: it has an attribute or a value that this version does not know
BERTH_MUST_USE berth_status berth_target_renew_culled(berth_arena *arena, const char *culled,
                                                      const char **out_culled);
// Peak of `dtype`, or the best guess from f32 (f16 as f32, f64 half of it, i8 as f32); never 0.
double berth_target_peak(const berth_target *target, berth_dtype dtype);

// ----------------------------------------------------------------------------------------------------
// many devices

typedef struct berth_target_device {
    const char *name;          // given, or "KIND:N"
    berth_target *target;      // device-only
    uint32_t virtual_id;       // among the devices of its kind, in order
    uint32_t own_memory;       // index of the memory its values live in by default (scope "global")
    uint32_t constant_memory;  // of the memory its constants live in: own_memory, or one that
                               // holds constants
    uint32_t machine;          // index into machines; 0 where there is one
    bool host_only;  // drives others (shapes, control, copies) but is no place for operations
} berth_target_device;

// Of storage that no kernel addresses, and an application reads (docs/bare.md).
#define BERTH_TARGET_SCOPE_STORE "store"

typedef struct berth_target_memory {
    const char *name;
    const char *scope;  // "global", "vta.inp", BERTH_TARGET_SCOPE_STORE, ...
    uint64_t capacity_bytes;
    uint64_t budget_bytes;  // limit for planned memory; equals capacity_bytes where none was set
    double bandwidth_bytes_per_s;
    uint64_t latency_ns;
    uint32_t alignment_bytes;  // power of two
    berth_bits reached_by;     // devices that read and write it directly
    bool holds_constants;      // these and nothing else (flash): nobody's own memory
    bool implied;              // not declared: stands for what the device's driver will say
} berth_target_memory;

// Both directions; duplex says whether both run at full bandwidth at once. Links of one bus
// contend.
typedef struct berth_target_link {
    uint32_t from, to;  // memories
    double bandwidth_bytes_per_s;
    uint64_t latency_ns;
    bool duplex;
    const char *bus;
} berth_target_link;

typedef struct berth_target_pin {
    const char *match;  // glob on a node's name, or "op:GLOB" on its operator
    uint32_t device;
    const char *
        source;  // where it was written, for messages: "pins[0]", "pin op:Conv=opencl:0" of the caller
    bool may_match_nothing;  // what is planned is a part of a model that was looked at as a whole
} berth_target_pin;

typedef struct berth_target_machine {
    const char *name;
    uint32_t host;  // device
} berth_target_machine;

typedef enum berth_executor_kind {
    BERTH_EXECUTOR_GRAPH,
    BERTH_EXECUTOR_VM,
    BERTH_EXECUTOR_AOT,
} berth_executor_kind;

typedef enum berth_runtime_kind {
    BERTH_RUNTIME_HOSTED,
    BERTH_RUNTIME_BARE,
} berth_runtime_kind;

const char *berth_executor_kind_name(berth_executor_kind kind);
const char *berth_runtime_kind_name(berth_runtime_kind kind);

// Immutable after build; arena memory; every index is in range; every device has a global memory of
// its own, every global memory is connected to the host's, and the host is a device (flag host_only
// when it was not listed).
typedef struct berth_multi_target {
    const char *name;  // "" where none was given
    berth_target_device *devices;
    uint32_t device_count;
    uint32_t default_device;  // never host_only
    uint32_t host;            // always valid
    berth_target_memory *memories;
    uint32_t memory_count;
    berth_target_link *links;
    uint32_t link_count;
    // Ranges of lists, ascending: the links at memory m are linked[link_start[m] .. link_start[m + 1]), the
    // memories that device d reaches are reached[reach_start[d] .. reach_start[d + 1]).
    const uint32_t *link_start, *linked;
    const uint32_t *reach_start, *reached;
    berth_target_machine *machines;  // at least one; named only where the target was written so
    uint32_t machine_count;
    berth_executor_kind executor;
    berth_runtime_kind runtime;
    berth_target_pin *pins;
    uint32_t pin_count;
    const char *canonical;      // canonical JSON, one line, defaults filled in, keys sorted
    berth_hash128 hash;         // of `canonical`
    berth_hash128 kernel_hash;  // of `canonical` without name, executor, runtime, pins and budgets:
                                // key of kernel logs
} berth_multi_target;

// ----------------------------------------------------------------------------------------------------
// this machine

// A device other than the CPU, as its driver describes it. Figures of 0 (and "") are unknown.
typedef struct berth_machine_device {
    berth_device_kind kind;
    const char *model;
    const char *arch;
    const char *features;  // that kernels may use, with commas between: "subgroup_arithmetic"
    int64_t compute_units;
    int64_t clock_hz;
    int64_t subgroup_size;
    int64_t max_group_size;
    int64_t local_memory_bytes;
    int64_t max_bindings;  // below BERTH_TARGET_MAX_BINDINGS, else 0
    int64_t memory_capacity_bytes;
    int64_t memory_bandwidth_bytes_per_s;
    int64_t memory_alignment_bytes;
    int64_t l2_bytes;  // of GPUs
    bool lacks_f64;
    bool lacks_i64;
    bool lacks_8bit;
    bool lacks_16bit;
    bool shares_host_memory;
    bool uses_host_cores;  // processor cores behind another interface: no faster beside the CPU
    // Of such a device, where it has fewer of the cores than there are: what it shares its threads with
    // other devices by ("pocl": one pool for all of them); NULL = it has all cores.
    const char *core_pool;
    bool in_host_memory;  // it could: its driver says so
} berth_machine_device;

// What a driver for a kind of device said when it was asked for its devices.
typedef struct berth_machine_asked {
    berth_device_kind kind;
    const char *missing;  // why there are none; NULL = it answered
} berth_machine_asked;

// Facts about the machine that `cpu` and `opencl` in a short form and `local` stand for. Figures of
// 0 (and "") are unknown.
typedef struct berth_machine_facts {
    const char *cpu_model;  // "Intel(R) Xeon(R) ..."
    const char *arch;       // "x86_64", "aarch64"
    const char *cpu;        // as compilers name it; "" = unknown
    berth_string_list features;
    int64_t cores;
    int64_t threads;
    int64_t clock_hz;
    int64_t l1_bytes, l2_bytes, l3_bytes;
    int64_t cache_line_bytes;
    int64_t memory_capacity_bytes;
    const berth_machine_device *devices;  // opencl, vulkan, cuda devices in driver order
    uint32_t device_count;
    const berth_machine_asked *asked;  // a driver each
    uint32_t asked_count;
} berth_machine_facts;

// Fills the CPU facts (no devices) from /proc/cpuinfo, CPU identification and sysconf. Strings go
// to the arena. What the system does not say stays 0. Errors: OUT_OF_MEMORY; IO it says, but reading
// failed.
BERTH_MUST_USE berth_status berth_machine_facts_host(berth_arena *arena,
                                                     berth_machine_facts *out_facts);

// ----------------------------------------------------------------------------------------------------
// parse, print

typedef struct berth_target_diagnostic {
    const char *path;     // "devices[1].target.kind"; "" for the whole text
    const char *message;  // what is wrong and what is allowed there
} berth_target_diagnostic;

typedef struct berth_target_diagnostics {
    berth_target_diagnostic *data;
    uint32_t count;
} berth_target_diagnostics;

// All optional; a zero struct is fine.
typedef struct berth_target_options {
    const char *tag_folder;              // users' own tags: FOLDER/VENDOR/NAME.json; NULL = none
    const berth_machine_facts *machine;  // NULL: `cpu` is a generic one, `local` an error
    const char *const
        *overrides;        // "PATH=VALUE" (--set), NULL-terminated; applied before anything else
    const char *host;      // short form, tag or JSON of the host (--host)
    const char *executor;  // "graph", "vm", "aot" (--executor)
    const char *runtime;   // "hosted", "bare" (--runtime)
    // "NAME=BYTES,..." (--memory): budgets of memories, by their names or those of devices that keep
    // their values there; before the target's own
    const char *budgets;
    const char *const *pins;  // "PATTERN=DEVICE" (--pin), NULL-terminated; before the target's own
    bool no_files;            // never read a file (untrusted text)
    berth_log log;            // warnings: what was assumed, as "opencl" without such a device here
} berth_target_options;

// Reads `text`: a tag, a short form, JSON, the path of a JSON file, or "local"; merges the options,
// fills defaults, validates and canonicalises. `options` may be NULL. Not inside berth_arena_try
// (it is an entry point).
//   ownership: the result lives in the arena and borrows nothing
//   errors:    INVALID_ARGUMENT with every diagnostic as "path: message", one per line; NOT_FOUND
//   tag or file; IO;
//              UNAVAILABLE `local` without facts; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_target_parse(berth_arena *arena, const char *text,
                                               const berth_target_options *options,
                                               berth_multi_target **out_target);

// As berth_target_parse, but problems of the text are listed (count 0 = valid) and only what is not
// about the text (I/O, memory) fails. *out_target is NULL where there are diagnostics; may be NULL
// itself.
BERTH_MUST_USE berth_status berth_target_validate(berth_arena *arena, const char *text,
                                                  const berth_target_options *options,
                                                  berth_target_diagnostics *out_diagnostics,
                                                  berth_multi_target **out_target);

// Canonical JSON: sorted keys, defaults filled in; indent 0 = one line (the same bytes as
// `canonical`). Parsing the result gives a target with the same canonical form. Inside
// berth_arena_try.
const char *berth_target_print_json(berth_arena *arena, const berth_multi_target *target,
                                    int indent);
// For logs: "opencl:0 cpu:0 host=cpu:0". Not meant to be read back. Inside berth_arena_try.
const char *berth_target_print_short(berth_arena *arena, const berth_multi_target *target);
bool berth_multi_target_equal(const berth_multi_target *a, const berth_multi_target *b);
// What two canonical forms differ in, field by field, as the first has it:
// "devices[0].target.cores: 4, not 2; devices[0].target.features: without avx512f". At most a few
// fields; "" when nothing. Errors: INVALID_ARGUMENT when one is not JSON.
BERTH_MUST_USE berth_status berth_target_difference(berth_arena *arena, const char *left,
                                                    const char *right, const char **out_text);

// ----------------------------------------------------------------------------------------------------
// tags

typedef struct berth_target_tag {
    const char *name;         // "arm/rasp4b"
    const char *description;  // one line
    const char *json;         // as written, not canonical
    const char *sources;      // where the figures come from, "; "-separated
    bool user;                // from the tag folder
} berth_target_tag;

// Built-in tags and those of the folder (NULL = none), sorted by name; a user's tag hides a
// built-in one of its name. Files that are no tags are not listed (parsing names them). Errors: IO,
// OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_target_list_tags(berth_arena *arena, const char *tag_folder,
                                                   berth_target_tag **out_tags,
                                                   uint32_t *out_count);
// The tag called `name` (without selector and overrides). Errors: NOT_FOUND with the closest name;
// IO.
BERTH_MUST_USE berth_status berth_target_find_tag(berth_arena *arena, const char *tag_folder,
                                                  const char *name, berth_target_tag *out_tag);

// ----------------------------------------------------------------------------------------------------
// planning facts

// The device called `name` (its given name, or "KIND:N"), or BERTH_NO_INDEX.
uint32_t berth_multi_target_device(const berth_multi_target *target, const char *name);
// The device of a kind and virtual id, or BERTH_NO_INDEX.
uint32_t berth_multi_target_device_of(const berth_multi_target *target, berth_device_kind kind,
                                      uint32_t virtual_id);
uint32_t berth_multi_target_memory(const berth_multi_target *target, const char *name);
// The memory of that name, else the own memory of the device that is called so, or whose kind alone it
// names; BERTH_NO_INDEX.
uint32_t berth_multi_target_memory_meant(const berth_multi_target *target, const char *name);
// (kind, virtual id, target hash, scope free) of a device.
berth_virtual_device berth_multi_target_virtual_device(const berth_multi_target *target,
                                                       uint32_t device);
// The device that a virtual device means: its kind must be set; a free id means the first of the
// kind that agrees with the target. BERTH_NO_INDEX if none.
uint32_t berth_multi_target_resolve(const berth_multi_target *target, berth_virtual_device device);
// The first memory of `scope` that the device reaches (its own for "global"), or BERTH_NO_INDEX.
uint32_t berth_multi_target_memory_of(const berth_multi_target *target, uint32_t device,
                                      const char *scope);
// The first device that computes with what `device` computes with; itself where it shares nothing.
uint32_t berth_multi_target_resource_of(const berth_multi_target *target, uint32_t device);
// Whether a change from device a to b is an alias: both reach a's own memory or both reach b's.
// Gives that memory in *out_memory (may be NULL).
bool berth_multi_target_share_memory(const berth_multi_target *target, uint32_t a, uint32_t b,
                                     uint32_t *out_memory);

#define BERTH_TARGET_MAX_HOPS 8

// What a transfer over a link, from its `from` (forth) or to it, has for itself meanwhile: a number below 2 *
// link_count. Both directions of a link that is not duplex have the same, and all links of one bus.
uint32_t berth_multi_target_link_way(const berth_multi_target *target, uint32_t link, bool forth);

// The bus that a link shares with others, "" = it shares none. O(links).
const char *berth_multi_target_bus(const berth_multi_target *target, uint32_t link);

// One hop of a route: over a link, or by a device that reaches both memories (link =
// BERTH_NO_INDEX).
typedef struct berth_target_hop {
    uint32_t from, to;  // memories
    uint32_t link;      // BERTH_NO_INDEX: copied by `device`
    uint32_t device;    // that copies; BERTH_NO_INDEX for a link
    double bandwidth_bytes_per_s;
    uint64_t latency_ns;
} berth_target_hop;

typedef struct berth_target_route {
    berth_target_hop hops[BERTH_TARGET_MAX_HOPS];
    uint32_t hop_count;  // 0: from == to
    double time_ns;      // sum over hops of latency + bytes / bandwidth
} berth_target_route;

// The cheapest route for `size_bytes`, through global memories only (ends may be of any scope);
// ties go to fewer hops, then to lower indices. Dijkstra with a heap, O((memories + hops) log memories)
// at most: it ends where `to` is reached. False: not connected (or only through more than MAX_HOPS).
// `arena`: for what it notes of many memories; freed again. Inside berth_arena_try.
bool berth_multi_target_route(const berth_multi_target *target, berth_arena *arena, uint32_t from,
                              uint32_t to, uint64_t size_bytes, berth_target_route *out_route);

// The cheapest routes from one memory to all others for `size_bytes`: the same ones, in one search. They
// live in the arena (40 bytes per memory). Inside berth_arena_try.
typedef struct berth_target_routes berth_target_routes;
const berth_target_routes *berth_multi_target_routes(const berth_multi_target *target,
                                                     berth_arena *arena, uint32_t from,
                                                     uint64_t size_bytes);
bool berth_target_routes_get(const berth_target_routes *routes, uint32_t to,
                             berth_target_route *out_route);

#endif  // BERTH_TARGET_TARGET_H_
