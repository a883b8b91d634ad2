#include "devices/vulkan/matrices.h"

#include <string.h>

void berth_vulkan__want_matrices(vulkan_matrix_features *out_features, VkBool32 wanted) {
    *out_features = (vulkan_matrix_features){
        .subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
                      .subgroupSizeControl = wanted,
                      .computeFullSubgroups = wanted},
        .matrices = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR,
                     .pNext = &out_features->subgroups,
                     .cooperativeMatrix = wanted}};
}

// A product of 16 x 16 results. Vendors have their 8-bit integers in steps of 32 or of 16 terms, and some of one
// signedness alone.
typedef struct product {
    char name[11];
    uint8_t a, b, sum;  // VkComponentTypeKHR
    uint8_t terms;
} product;

#define F16 VK_COMPONENT_TYPE_FLOAT16_KHR
#define F32 VK_COMPONENT_TYPE_FLOAT32_KHR
#define I8 VK_COMPONENT_TYPE_SINT8_KHR
#define U8 VK_COMPONENT_TYPE_UINT8_KHR
#define I32 VK_COMPONENT_TYPE_SINT32_KHR
#define U32 VK_COMPONENT_TYPE_UINT32_KHR
static const product shapes[] = {
    {"matrix_f16", F16, F16, F32, 16}, {"i8_k32", I8, I8, I32, 32}, {"u8_k32", U8, U8, U32, 32},
    {"u8_i8_k32", U8, I8, I32, 32},    {"i8_k16", I8, I8, I32, 16}, {"u8_k16", U8, U8, U32, 16},
    {"u8_i8_k16", U8, I8, I32, 16},
};
enum { shape_count = sizeof(shapes) / sizeof(shapes[0]), lines = 16 };

const char *berth_vulkan__matrix_name(uint32_t shape) {
    return shape < shape_count ? shapes[shape].name : NULL;
}

// The bit of what a device lists; 0: kernels do not use it.
static uint32_t bit_of(const VkCooperativeMatrixPropertiesKHR *p) {
    if (p->MSize != lines || p->NSize != lines || p->scope != VK_SCOPE_SUBGROUP_KHR ||
        p->CType != p->ResultType || p->saturatingAccumulation)
        return 0;
    for (uint32_t i = 0; i < shape_count; ++i)
        if (p->KSize == shapes[i].terms && p->AType == shapes[i].a && p->BType == shapes[i].b &&
            p->CType == shapes[i].sum)
            return 1u << i;
    return 0;
}

uint32_t berth_vulkan__matrix_shapes(const vulkan_api *api, VkPhysicalDevice physical) {
    enum { most = 64 };
    VkCooperativeMatrixPropertiesKHR list[most];
    uint32_t count = most, found = 0;
    for (uint32_t i = 0; i < most; ++i) {
        list[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
        list[i].pNext = NULL;
    }
    PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR get =
        (PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR)api->vkGetInstanceProcAddr(
            api->instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    if (!get || get(physical, &count, list) < 0) return 0;
    while (count-- > 0) found |= bit_of(&list[count]);
    return found;
}

bool berth_vulkan__has_matrices(const vulkan_facts *facts, const char *name) {
    for (uint32_t i = 0; i < shape_count; ++i)
        if (strcmp(shapes[i].name, name) == 0) return facts->matrix_shapes >> i & 1;
    return false;
}
