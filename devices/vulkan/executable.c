// Kernels on Vulkan devices: SPIR-V modules (artifact/kernel_abi.h), each made into a pipeline when
// it is looked for. What a module needs and the device lacks is said by name.
#include <stdlib.h>
#include <string.h>

#include "devices/vulkan/matrices.h"

enum {
    SPIRV_MAGIC = 0x07230203,
    SPIRV_HEADER_WORDS = 5,
    SPIRV_OP_STRING = 7,
    SPIRV_OP_ENTRY_POINT = 15,
    SPIRV_OP_EXECUTION_MODE = 16,
    SPIRV_OP_CAPABILITY = 17,
    SPIRV_OP_FUNCTION = 54,
    SPIRV_MODEL_COMPUTE = 5,
    SPIRV_MODE_LOCAL_SIZE = 17,
    SPIRV_CAPABILITY_MATRIX = 6022,
};

static berth_status broken(const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "the SPIR-V image is broken: %s", what);
}

// ---- modules ----

// Text in words, which ends within them; NULL: it does not.
static const char *text_at(const uint32_t *words, uint32_t count) {
    const char *text = (const char *)words;
    return memchr(text, 0, 4 * (size_t)count) ? text : NULL;
}

static berth_status lacks(const vulkan_device *device, const char *what) {
    return berth_status_make(BERTH_UNSUPPORTED, "a kernel needs %s, which %s lacks", what,
                             device->base.info.name);
}

// A capability (mode and bits 0), or an execution mode of floats of `bits`.
static berth_status check_feature(const vulkan_device *device, uint32_t capability, uint32_t mode,
                                  uint32_t bits) {
    for (int i = 0; i < VULKAN_FEATURE_COUNT; ++i) {
        const vulkan_feature *feature = &berth_vulkan__features[i];
        bool is_it = feature->mode ? feature->mode == mode && feature->bits == bits
                                   : feature->capability == capability;
        if (is_it && !device->facts->has[i]) return lacks(device, berth_vulkan__feature_name(i));
    }
    return BERTH_OK;
}

static berth_status read_instruction(const vulkan_device *device, const uint32_t *at,
                                     uint32_t length, vulkan_kernel *kernel,
                                     const char **out_entry) {
    const char *text = NULL;
    switch (at[0] & 0xffff) {
    case SPIRV_OP_CAPABILITY:
        if (length != 2) return BERTH_OK;
        if (at[1] == SPIRV_CAPABILITY_MATRIX) kernel->has_matrices = true;
        return check_feature(device, at[1], 0, 0);
    case SPIRV_OP_ENTRY_POINT:
        if (length < 4 || at[1] != SPIRV_MODEL_COMPUTE || *out_entry)
            return broken("a module has not one entry point for compute");
        *out_entry = text_at(at + 3, length - 3);
        return *out_entry ? BERTH_OK : broken("the name of an entry point has no end");
    case SPIRV_OP_EXECUTION_MODE:
        if (length == 6 && at[2] == SPIRV_MODE_LOCAL_SIZE)
            memcpy(kernel->local_size, at + 3, sizeof(kernel->local_size));
        return length == 4 ? check_feature(device, 0, at[2], at[3]) : BERTH_OK;
    case SPIRV_OP_STRING:
        text = length > 2 ? text_at(at + 2, length - 2) : NULL;
        if (!text) return broken("a string has no end");
        if (strncmp(text, BERTH_DECLARATION_PREFIX, strlen(BERTH_DECLARATION_PREFIX)) == 0)
            kernel->declaration = text + strlen(BERTH_DECLARATION_PREFIX);
        if (strncmp(text, BERTH_SPIRV_ROUNDS_PREFIX, strlen(BERTH_SPIRV_ROUNDS_PREFIX)) == 0)
            kernel->rounds = strtod(text + strlen(BERTH_SPIRV_ROUNDS_PREFIX), NULL);
        if (strncmp(text, BERTH_SPIRV_MATRIX_PREFIX, strlen(BERTH_SPIRV_MATRIX_PREFIX)) == 0 &&
            !berth_vulkan__has_matrices(device->facts, text + strlen(BERTH_SPIRV_MATRIX_PREFIX)))
            return lacks(device, strchr(text, 'c'));  // cooperative_...
        return BERTH_OK;
    default: return BERTH_OK;
    }
}

// Reads what comes before the functions; the rest is for the device's compiler.
static berth_status read_module(const vulkan_device *device, vulkan_kernel *kernel) {
    const uint32_t *words = kernel->words;
    const char *entry = NULL;
    if (words[0] != SPIRV_MAGIC) return broken("a module does not begin as one");
    for (uint32_t i = SPIRV_HEADER_WORDS; i < kernel->word_count;) {
        uint32_t length = words[i] >> 16;
        if (length == 0 || length > kernel->word_count - i)
            return broken("an instruction is cut off");
        if ((words[i] & 0xffff) == SPIRV_OP_FUNCTION) break;
        BERTH_TRY(read_instruction(device, words + i, length, kernel, &entry));
        i += length;
    }
    if (!entry) return broken("a module has no entry point");
    kernel->entry = entry;
    return BERTH_OK;
}

static void free_modules(vulkan_executable *executable, berth_allocator allocator) {
    for (uint32_t i = 0; i < executable->module_count; ++i)
        berth_free(allocator, executable->modules[i].words,
                   4 * (size_t)executable->modules[i].word_count);
    berth_free(allocator, executable->modules,
               executable->module_count * sizeof(*executable->modules));
}

static berth_status copy_modules(const vulkan_device *device, const uint32_t *words, uint32_t count,
                                 vulkan_executable *executable) {
    berth_allocator allocator = device->base.allocator;
    uint32_t modules = 0;
    for (uint32_t i = 0; i < count; i += 1 + words[i]) {
        if (words[i] < SPIRV_HEADER_WORDS || words[i] > count - i - 1)
            return broken("a module's length");
        modules++;
    }
    if (modules == 0) return broken("it holds no module");
    executable->modules = berth_calloc(allocator, modules, sizeof(*executable->modules));
    if (!executable->modules) return berth_status_oom();
    executable->module_count = modules;
    for (uint32_t i = 0, k = 0; i < count; i += 1 + words[i], ++k) {
        vulkan_kernel *kernel = &executable->modules[k];
        kernel->words = berth_alloc(allocator, 4 * (size_t)words[i]);
        if (!kernel->words) return berth_status_oom();
        kernel->word_count = words[i];
        memcpy(kernel->words, words + i + 1, 4 * (size_t)words[i]);
        BERTH_TRY(read_module(device, kernel));
    }
    return BERTH_OK;
}

berth_status berth_vulkan__executable_load(berth_device *base, const berth_executable_image *image,
                                           berth_executable **out_executable) {
    const vulkan_device *device = (const vulkan_device *)base;
    if (strcmp(image->format, BERTH_FORMAT_SPIRV) != 0)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "vulkan devices load \"%s\" images, not \"%s\"",
                                 BERTH_FORMAT_SPIRV, image->format);
    if (image->size_bytes % 4 != 0 || image->size_bytes / 4 > UINT32_MAX)
        return broken("its size is no number of words");
    uint32_t *words = NULL;  // the image may begin anywhere
    vulkan_executable *executable = berth_calloc(base->allocator, 1, sizeof(*executable));
    if (!executable) return berth_status_oom();
    size_t size_bytes = (size_t)image->size_bytes;
    berth_status status = BERTH_OK;
    words = berth_alloc(base->allocator, size_bytes ? size_bytes : 1);
    if (!words) status = berth_status_oom();
    if (!status) {
        memcpy(words, image->data, size_bytes);
        status = copy_modules(device, words, (uint32_t)(size_bytes / 4), executable);
    }
    berth_free(base->allocator, words, size_bytes ? size_bytes : 1);
    if (status) {
        free_modules(executable, base->allocator);
        berth_free(base->allocator, executable, sizeof(*executable));
        return status;
    }
    *out_executable = &executable->base;
    return BERTH_OK;
}

void berth_vulkan__executable_destroy(berth_executable *base) {
    vulkan_executable *executable = (vulkan_executable *)base;
    const vulkan_device *device = (const vulkan_device *)base->device;
    for (uint32_t i = 0; i < executable->pipeline_count && !atomic_load(&device->is_lost); ++i) {
        device->vk.vkDestroyPipeline(device->handle, executable->pipelines[i].handle, NULL);
        device->vk.vkDestroyPipelineLayout(device->handle, executable->pipelines[i].layout, NULL);
    }
    berth_free(device->base.allocator, executable->pipelines,
               executable->pipeline_capacity * sizeof(*executable->pipelines));
    free_modules(executable, device->base.allocator);
    berth_free(device->base.allocator, executable, sizeof(*executable));
}

// ---- kernels ----

static berth_status reserve_pipeline(vulkan_executable *executable) {
    struct vulkan_pipeline *pipelines = berth_devices__reserve_one(
        executable->base.device->allocator, executable->pipelines, executable->pipeline_count,
        &executable->pipeline_capacity, sizeof(*pipelines));
    if (!pipelines) return berth_status_oom();
    executable->pipelines = pipelines;
    return BERTH_OK;
}

static berth_status check_limits(const vulkan_device *device, const vulkan_kernel *kernel) {
    const VkPhysicalDeviceLimits *limits = &device->facts->limits;
    uint64_t items = 1;
    if (device->facts->max_rounds && kernel->rounds > device->facts->max_rounds)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "kernel \"%s\" makes %.0f rounds in loops, and %s ends them after "
                                 "%u: pin the operation to another device",
                                 kernel->entry, kernel->rounds, device->base.info.name,
                                 device->facts->max_rounds);
    for (int i = 0; i < 3; ++i) {
        items *= kernel->local_size[i];
        if (kernel->local_size[i] > limits->maxComputeWorkGroupSize[i]) items = UINT32_MAX;
    }
    if (items <= limits->maxComputeWorkGroupInvocations) return BERTH_OK;
    return berth_status_make(BERTH_OUT_OF_RANGE,
                             "kernel \"%s\" has groups of %u x %u x %u work-items, more than %s "
                             "runs",
                             kernel->entry, kernel->local_size[0], kernel->local_size[1],
                             kernel->local_size[2], device->base.info.name);
}

static berth_status create_pipeline(const vulkan_device *device, const vulkan_kernel *kernel,
                                    uint32_t value_count, struct vulkan_pipeline *out) {
    bool pushed = value_count <= BERTH_SPIRV_PUSHED_MAX;
    VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                 .size = pushed ? 8 * value_count : 8};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .pushConstantRangeCount = range.size ? 1 : 0,
                                         .pPushConstantRanges = &range};
    VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                     .codeSize = 4 * (size_t)kernel->word_count,
                                     .pCode = kernel->words};
    VkShaderModule module = VK_NULL_HANDLE;
    *out = (struct vulkan_pipeline){.value_count = value_count};
    BERTH_TRY(berth_vulkan__check_on(
        device, device->vk.vkCreateShaderModule(device->handle, &code, NULL, &module),
        kernel->entry));
    berth_status status = berth_vulkan__check_on(
        device, device->vk.vkCreatePipelineLayout(device->handle, &layout, NULL, &out->layout),
        kernel->entry);
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroups = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = VULKAN_MATRIX_SUBGROUP};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = kernel->entry},
        .layout = out->layout};
    if (kernel->has_matrices) {
        info.stage.pNext = &subgroups;
        info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
    }
    if (!status)
        status =
            berth_vulkan__check_on(device,
                                   device->vk.vkCreateComputePipelines(
                                       device->handle, device->cache, 1, &info, NULL, &out->handle),
                                   kernel->entry);
    device->vk.vkDestroyShaderModule(device->handle, module, NULL);
    if (status && out->layout)
        device->vk.vkDestroyPipelineLayout(device->handle, out->layout, NULL);
    return status;
}

static berth_status check_declaration(const vulkan_device *device, const vulkan_kernel *module,
                                      const berth_program_kernel *kernel) {
    size_t name_bytes = strlen(kernel->entry);
    const char *text = module->declaration;
    if (!text || strncmp(text, kernel->entry, name_bytes) != 0 ||
        strncmp(text + name_bytes, ": ", 2) != 0)
        return BERTH_OK;
    text += name_bytes + 2;
    return berth_devices__check_declaration(device->base.allocator, kernel, text, strlen(text));
}

berth_status berth_vulkan__executable_find(berth_executable *base,
                                           const berth_program_kernel *kernel,
                                           uint32_t *out_kernel) {
    vulkan_executable *executable = (vulkan_executable *)base;
    const vulkan_device *device = (const vulkan_device *)base->device;
    const vulkan_kernel *module = NULL;
    for (uint32_t i = 0; i < executable->module_count && !module; ++i)
        if (strcmp(executable->modules[i].entry, kernel->entry) == 0)
            module = &executable->modules[i];
    if (!module)
        return berth_status_make(BERTH_NOT_FOUND, "the SPIR-V image has no kernel \"%s\"",
                                 kernel->entry);
    BERTH_TRY(check_declaration(device, module, kernel));
    BERTH_TRY(check_limits(device, module));
    BERTH_TRY(reserve_pipeline(executable));
    BERTH_TRY(create_pipeline(device, module, kernel->binding_count + kernel->constant_count,
                              &executable->pipelines[executable->pipeline_count]));
    *out_kernel = executable->pipeline_count++;
    return BERTH_OK;
}
