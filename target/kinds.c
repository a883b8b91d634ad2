#include <stddef.h>
#include <string.h>

#include "target/internal.h"

#define K_BIT(kind) (1u << BERTH_DEVICE_##kind)
#define K_ALL ((1u << BERTH_DEVICE_KIND_COUNT) - 2u)
#define K_CPU K_BIT(CPU)
#define K_NOT_CPU (K_ALL & ~K_CPU)
#define K_GPU (K_BIT(OPENCL) | K_BIT(VULKAN) | K_BIT(CUDA))
#define K_CORES (K_BIT(CPU) | K_BIT(OPENCL))
#define K_LIBRARIES (K_BIT(CPU) | K_BIT(CUDA))
#define K_VTA K_BIT(VTA)
#define K_NPU K_BIT(NPU)

static const char *const kind_names[] = {
#define KIND(enum_name, name, traits, doc) name,
#include "target/kinds.def"
    NULL};

static const char *const kind_docs[] = {
#define KIND(enum_name, name, traits, doc) doc,
#include "target/kinds.def"
};

enum { T_HOST = 1, T_GPU = 2, T_SHIFTS = 4 };
static const unsigned kind_traits[] = {
#define KIND(enum_name, name, traits, doc) traits,
#include "target/kinds.def"
};

#ifdef BERTH_NO_BUILT_IN_TAGS  // a library that only runs programs: nothing in it describes targets to people
#define DOC(doc)
#else
#define DOC(doc) doc
#endif
static const berth_target_attribute_facts attributes[] = {
#define ATTRIBUTE(name, type, kinds, least, most, doc)                                             \
    {#name, BERTH_TARGET_##type, kinds, least, most, DOC(doc)},
#include "target/kinds.def"
};

#define NO_OFFSET UINT16_MAX
_Static_assert(sizeof(berth_target) < NO_OFFSET, "offsets of members in 16 bits");
static const uint16_t offsets[] = {
#define ATTRIBUTE(name, type, kinds, least, most, doc) NO_OFFSET,
#define FIELD(name, type, kinds, least, most, doc) offsetof(berth_target, name),
#include "target/kinds.def"
};

enum { attribute_count = sizeof(attributes) / sizeof(attributes[0]) };

const char *berth_device_kind_name(berth_device_kind kind) {
    if (kind <= BERTH_DEVICE_FREE || kind >= BERTH_DEVICE_KIND_COUNT) return "*";
    return kind_names[kind - 1];
}

const char *berth_device_kind_doc(berth_device_kind kind) {
    if (kind <= BERTH_DEVICE_FREE || kind >= BERTH_DEVICE_KIND_COUNT) return "not known yet";
    return kind_docs[kind - 1];
}

static bool has_trait(berth_device_kind kind, unsigned trait) {
    if (kind <= BERTH_DEVICE_FREE || kind >= BERTH_DEVICE_KIND_COUNT) return false;
    return (kind_traits[kind - 1] & trait) != 0;
}

bool berth_device_kind_is_host(berth_device_kind kind) {
    return has_trait(kind, T_HOST);
}

bool berth_device_kind_is_gpu(berth_device_kind kind) {
    return has_trait(kind, T_GPU);
}

bool berth_device_kind_shifts(berth_device_kind kind) {
    return has_trait(kind, T_SHIFTS);
}

berth_device_kind berth_device_kind_from_name(const char *name) {
    for (int i = 0; kind_names[i]; ++i)
        if (strcmp(kind_names[i], name) == 0) return (berth_device_kind)(i + 1);
    return BERTH_DEVICE_FREE;
}

const char *const *berth_device_kind_names(void) {
    return kind_names;
}

const berth_target_attribute_facts *berth_target_attribute_table(uint32_t *out_count) {
    *out_count = attribute_count;
    return attributes;
}

const berth_target_attribute_facts *berth_target__attribute(const char *name) {
    for (size_t i = 0; i < attribute_count; ++i)
        if (strcmp(attributes[i].name, name) == 0) return &attributes[i];
    return NULL;
}

size_t berth_target__attribute_offset(const berth_target_attribute_facts *facts) {
    uint16_t offset = offsets[facts - attributes];
    return offset == NO_OFFSET ? BERTH_TARGET__NO_MEMBER : offset;
}

int64_t *berth_target__int_member(berth_target *target, const berth_target_attribute_facts *facts) {
    size_t offset = berth_target__attribute_offset(facts);
    if (facts->type != BERTH_TARGET_INT || offset == BERTH_TARGET__NO_MEMBER) return NULL;
    return (int64_t *)(void *)((char *)target + offset);
}

const char *berth_executor_kind_name(berth_executor_kind kind) {
    return berth_target__executor_names[kind];
}

const char *berth_runtime_kind_name(berth_runtime_kind kind) {
    return berth_target__runtime_names[kind];
}

static uint64_t power_of_two(int64_t log) {
    return log < 0 || log > 62 ? 1 : (uint64_t)1 << log;
}

uint64_t berth_target__on_chip(const berth_target *target, uint32_t index, const char **out_scope) {
    uint32_t at = 0;
    *out_scope = NULL;
#define A(name) berth_target_extra_get(target, #name, 1)
#define P2(log) power_of_two(log)
#define ON_CHIP(kind_name, scope_name, bytes)                                                      \
    if (target->kind == BERTH_DEVICE_##kind_name && at++ == index) {                               \
        *out_scope = scope_name;                                                                   \
        return bytes;                                                                              \
    }
#include "target/kinds.def"
#undef A
#undef P2
    return 0;
}

const char *const berth_target__executor_names[] = {"graph", "vm", "aot", "auto", NULL};
const char *const berth_target__runtime_names[] = {"hosted", "bare", NULL};

// ------------------------------------------------------------------------------------------------
// one target

bool berth_target__list_has(berth_string_list list, const char *text) {
    for (uint32_t i = 0; i < list.count; ++i)
        if (strcmp(list.data[i], text) == 0) return true;
    return false;
}

bool berth_target_is_cores(const berth_target *target) {
    return berth_device_kind_is_host(target->kind) ||
           (berth_device_kind_is_gpu(target->kind) && target->subgroup_size == 1);
}

bool berth_target_has_groups(const berth_target *target) {
    return berth_device_kind_is_gpu(target->kind) &&
           (target->kind != BERTH_DEVICE_OPENCL || !berth_target_is_cores(target));
}

bool berth_target_has_warps(const berth_target *target) {
    return target->kind == BERTH_DEVICE_CUDA;
}

bool berth_target_takes_opencl_c(const berth_target *target) {
    return target->kind == BERTH_DEVICE_OPENCL;
}

int64_t berth_target_declared_local_bytes(const berth_target *target) {
    bool more = target->kind == BERTH_DEVICE_CUDA &&
                target->local_memory_bytes > BERTH_CUDA_DECLARED_LOCAL_BYTES;
    return more ? BERTH_CUDA_DECLARED_LOCAL_BYTES : target->local_memory_bytes;
}

uint32_t berth_target_max_bindings(const berth_target *target) {
    int64_t most = target->max_bindings;
    return most > 0 && most < BERTH_TARGET_MAX_BINDINGS ? (uint32_t)most
                                                        : BERTH_TARGET_MAX_BINDINGS;
}

bool berth_target_has_feature(const berth_target *target, const char *feature) {
    return berth_target__list_has(target->features, feature);
}

bool berth_target_has_lib(const berth_target *target, const char *lib) {
    return berth_target__list_has(target->libs, lib);
}

int64_t berth_target_extra_get(const berth_target *target, const char *name, int64_t fallback) {
    for (uint32_t i = 0; i < target->extra_count; ++i)
        if (strcmp(target->extras[i].name, name) == 0) return target->extras[i].value;
    return fallback;
}

double berth_target_peak(const berth_target *target, berth_dtype dtype) {
    double f32 = target->peak_flops[BERTH_DTYPE_F32];
    if (dtype > BERTH_DTYPE_NONE && dtype < BERTH_DTYPE_COUNT && target->peak_flops[dtype] > 0)
        return target->peak_flops[dtype];
    if (dtype == BERTH_DTYPE_U8 && target->peak_flops[BERTH_DTYPE_I8] > 0)
        return target->peak_flops[BERTH_DTYPE_I8];
    size_t size_bytes = berth_dtype_size_bytes(dtype);
    return size_bytes == 8 ? f32 / 2 : f32;
}
