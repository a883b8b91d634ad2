// Buffers of Vulkan devices. A buffer that the host sees is mapped once and for all; what it does
// not see is reached through staging memory.
#include <inttypes.h>
#include <string.h>

#include "devices/vulkan/vulkan.h"

static berth_status create_handle(vulkan_device *device, uint64_t size_bytes, const void *next,
                                  VkBuffer *out_handle) {
    const vulkan_facts *facts = device->facts;
    uint32_t families[] = {facts->compute_family, facts->transfer_family};
    bool several = families[0] != families[1];
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = next,
        .size = size_bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
        .sharingMode = several ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
        .queueFamilyIndexCount = several ? 2 : 0,
        .pQueueFamilyIndices = several ? families : NULL};
    return berth_vulkan__check_on(
        device, device->vk.vkCreateBuffer(device->handle, &info, NULL, out_handle),
        "create a buffer");
}

// The wanted type where the buffer can be there, else any that the host sees as the wanted one does.
static uint32_t choose_type(const vulkan_device *device, uint32_t type, uint32_t bits) {
    const VkPhysicalDeviceMemoryProperties *memories = &device->facts->memories;
    if (bits >> type & 1) return type;
    for (uint32_t i = 0; i < memories->memoryTypeCount; ++i)
        if ((bits >> i & 1) &&
            memories->memoryTypes[i].propertyFlags == memories->memoryTypes[type].propertyFlags)
            return i;
    return UINT32_MAX;
}

static berth_status allocate_memory(vulkan_device *device, uint64_t size_bytes, uint32_t type,
                                    const void *next, VkDeviceMemory *out_memory) {
    uint32_t most = device->facts->limits.maxMemoryAllocationCount;
    if (atomic_fetch_add(&device->allocation_count, 1) >= most) {
        atomic_fetch_sub(&device->allocation_count, 1);
        return berth_status_make(BERTH_OUT_OF_MEMORY, "%s allows %u allocations at once",
                                 device->base.info.name, most);
    }
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .pNext = next,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = &flags,
                                 .allocationSize = size_bytes,
                                 .memoryTypeIndex = type};
    VkResult result = device->vk.vkAllocateMemory(device->handle, &info, NULL, out_memory);
    if (result != VK_SUCCESS) atomic_fetch_sub(&device->allocation_count, 1);
    return berth_vulkan__check_on(device, result, "allocate");
}

static void free_memory(vulkan_device *device, VkDeviceMemory memory) {
    if (!memory) return;
    device->vk.vkFreeMemory(device->handle, memory, NULL);
    atomic_fetch_sub(&device->allocation_count, 1);
}

static VkDeviceAddress address_of(const vulkan_device *device, VkBuffer buffer) {
    VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                      .buffer = buffer};
    return device->vk.vkGetBufferDeviceAddress(device->handle, &info);
}

// Memory for a buffer that exists; maps it where the host sees it.
static berth_status back(vulkan_device *device, uint32_t type, vulkan_block *block) {
    VkMemoryRequirements needs;
    device->vk.vkGetBufferMemoryRequirements(device->handle, block->handle, &needs);
    type = choose_type(device, type, needs.memoryTypeBits);
    if (type == UINT32_MAX)
        return berth_status_make(BERTH_UNSUPPORTED, "%s keeps no buffers in that memory",
                                 device->base.info.name);
    BERTH_TRY(allocate_memory(device, needs.size, type, NULL, &block->memory));
    BERTH_TRY(berth_vulkan__check_on(
        device, device->vk.vkBindBufferMemory(device->handle, block->handle, block->memory, 0),
        "bind memory"));
    block->address = address_of(device, block->handle);
    VkMemoryPropertyFlags flags = device->facts->memories.memoryTypes[type].propertyFlags;
    bool seen = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) &&
                (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    if (!seen) return BERTH_OK;
    void *host = NULL;
    BERTH_TRY(berth_vulkan__check_on(
        device, device->vk.vkMapMemory(device->handle, block->memory, 0, VK_WHOLE_SIZE, 0, &host),
        "map"));
    block->host = host;
    return BERTH_OK;
}

berth_status berth_vulkan__block_create(vulkan_device *device, uint64_t size_bytes, uint32_t type,
                                        vulkan_block *out_block) {
    memset(out_block, 0, sizeof(*out_block));
    if (size_bytes > device->facts->max_allocation_bytes)
        return berth_status_make(
            BERTH_OUT_OF_MEMORY, "%s allows %" PRIu64 " bytes in one allocation, not %" PRIu64,
            device->base.info.name, device->facts->max_allocation_bytes, size_bytes);
    BERTH_TRY(create_handle(device, size_bytes, NULL, &out_block->handle));
    berth_status status = back(device, type, out_block);
    out_block->size_bytes = size_bytes;
    if (status) berth_vulkan__block_destroy(device, out_block);
    return status;
}

void berth_vulkan__block_destroy(vulkan_device *device, vulkan_block *block) {
    if (!atomic_load(&device->is_lost)) {
        if (block->handle) device->vk.vkDestroyBuffer(device->handle, block->handle, NULL);
        free_memory(device, block->memory);
    }
    memset(block, 0, sizeof(*block));
}

static berth_status wrap(vulkan_device *device, vulkan_block *block, berth_buffer **out_buffer) {
    vulkan_buffer *buffer = berth_calloc(device->base.allocator, 1, sizeof(*buffer));
    if (!buffer) {
        berth_vulkan__block_destroy(device, block);
        return berth_status_oom();
    }
    buffer->handle = block->handle;
    buffer->memory = block->memory;
    buffer->address = block->address;
    buffer->base.host = block->host;
    *out_buffer = &buffer->base;
    return BERTH_OK;
}

berth_status berth_vulkan__buffer_allocate(berth_device *base, uint32_t memory, uint64_t size_bytes,
                                           berth_buffer **out_buffer) {
    vulkan_device *device = (vulkan_device *)base;
    vulkan_block block;
    uint32_t type = memory == 0 ? device->facts->device_memory : device->facts->host_memory;
    BERTH_TRY(berth_vulkan__block_create(device, size_bytes, type, &block));
    // Memory of the device that the host happens to see stays the device's.
    if (!base->info.memories[memory].host_visible) block.host = NULL;
    return wrap(device, &block, out_buffer);
}

berth_status berth_vulkan__buffer_view(berth_buffer *root, uint64_t offset_bytes,
                                       uint64_t size_bytes, berth_buffer **out_view) {
    (void)size_bytes;
    const vulkan_buffer *from = berth_vulkan__buffer(root);
    vulkan_buffer *view = berth_calloc(root->device->allocator, 1, sizeof(*view));
    if (!view) return berth_status_oom();
    view->handle = from->handle;
    view->address = from->address + offset_bytes;
    view->offset_bytes = from->offset_bytes + offset_bytes;
    if (root->host) view->base.host = berth_devices__host_at(root, offset_bytes);
    *out_view = &view->base;
    return BERTH_OK;
}

// The pages that hold the caller's bytes become memory of the device; the buffer begins in the first
// of them.
berth_status berth_vulkan__buffer_import(berth_device *base, void *data, uint64_t size_bytes,
                                         berth_buffer **out_buffer) {
    vulkan_device *device = (vulkan_device *)base;
    uint64_t page = device->facts->pointer_alignment_bytes;
    if (!device->facts->shared || page == 0 || !device->vk.vkGetMemoryHostPointerPropertiesEXT)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "%s cannot use memory of the host's as it is "
                                 "(VK_EXT_external_memory_host): give it a memory of its own in "
                                 "the target",
                                 base->info.name);
    if (size_bytes == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "import: there are no bytes");
    const VkExternalMemoryHandleTypeFlagBits kind =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    uint64_t before = (uintptr_t)data % page;
    uint64_t length = (before + size_bytes + page - 1) / page * page;
    VkMemoryHostPointerPropertiesEXT properties = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    void *first = (unsigned char *)data - before;
    BERTH_TRY(berth_vulkan__check_on(
        device,
        device->vk.vkGetMemoryHostPointerPropertiesEXT(device->handle, kind, first, &properties),
        "use memory of the host"));
    VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kind};
    VkImportMemoryHostPointerInfoEXT pointer = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = kind,
        .pHostPointer = first};
    vulkan_block block = {.size_bytes = length};
    BERTH_TRY(create_handle(device, length, &external, &block.handle));
    VkMemoryRequirements needs;
    device->vk.vkGetBufferMemoryRequirements(device->handle, block.handle, &needs);
    uint32_t type = choose_type(device, device->facts->host_memory,
                                properties.memoryTypeBits & needs.memoryTypeBits);
    berth_status status = BERTH_OK;
    if (type == UINT32_MAX)
        status = berth_status_make(BERTH_UNSUPPORTED, "%s cannot use this memory of the host's",
                                   base->info.name);
    if (!status) status = allocate_memory(device, length, type, &pointer, &block.memory);
    if (!status)
        status = berth_vulkan__check_on(
            device, device->vk.vkBindBufferMemory(device->handle, block.handle, block.memory, 0),
            "bind memory");
    if (status) {
        berth_vulkan__block_destroy(device, &block);
        return status;
    }
    block.address = address_of(device, block.handle) + before;
    block.host = data;
    BERTH_TRY(wrap(device, &block, out_buffer));
    ((vulkan_buffer *)*out_buffer)->offset_bytes = before;
    return BERTH_OK;
}

void berth_vulkan__buffer_free(berth_buffer *base) {
    vulkan_device *device = (vulkan_device *)base->device;
    vulkan_buffer *buffer = (vulkan_buffer *)base;
    vulkan_block block = {.handle = buffer->handle, .memory = buffer->memory};
    if (buffer->memory) berth_vulkan__block_destroy(device, &block);  // else it is a view
    berth_free(device->base.allocator, buffer, sizeof(*buffer));
}
