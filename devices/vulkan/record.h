// Recording of commands, for one submission (queue.c) or for many (list.c).
#ifndef BERTH_DEVICES_VULKAN_RECORD_H_
#define BERTH_DEVICES_VULKAN_RECORD_H_

#include "devices/vulkan/vulkan.h"

typedef struct vulkan_list vulkan_list;

// What a submission leaves behind to be finished.
typedef struct vulkan_record {
    VkCommandPool pool;  // of its own: a later submission may be recorded beside this one
    VkCommandBuffer commands;
    VkQueryPool queries;  // two times per command, when profiling
    uint32_t query_capacity;
    vulkan_block block;  // tables of addresses and patterns of fills
    uint64_t block_used;
    uint64_t value;  // of the timeline, 0 = nothing was submitted
    bool put_off;
    bool recording;
    uint32_t first;  // the first command of the part that is recorded
    VkCommandBufferUsageFlags usage;
    const vulkan_list *list;  // whose parts are submitted in place of what would be recorded
} vulkan_record;

#pragma GCC visibility push(hidden)

// A command list that is ready: what follows each other on the device is one command buffer.
typedef struct vulkan_part {
    uint32_t first, count;  // commands of the list
    VkCommandBuffer commands;
} vulkan_part;
struct vulkan_list {
    vulkan_record record;  // its pool and block are those of all parts
    bool for_host;         // some commands are not in parts
    uint32_t part_count;
    vulkan_part parts[];
};

bool berth_vulkan__is_timed(const vulkan_device *device, const berth_command *command);
bool berth_vulkan__is_empty(const berth_command *command);
// Whether the host does it: calls, copies from and to memory that is not the device's.
bool berth_vulkan__is_for_host(const berth_device *device, const berth_command *command);

// A failure of the command, with its label.
BERTH_MUST_USE berth_status berth_vulkan__named(berth_status status, const berth_command *command,
                                                uint32_t index);

// Makes the pool and the one command buffer of a record that has none yet.
BERTH_MUST_USE berth_status berth_vulkan__make_commands(const vulkan_device *device,
                                                        uint32_t family, vulkan_record *record);
// Room for what the commands need beside the command buffer.
BERTH_MUST_USE berth_status berth_vulkan__reserve_block(vulkan_device *device,
                                                        vulkan_record *record,
                                                        const berth_command *commands,
                                                        uint32_t count);
void berth_vulkan__copy(const vulkan_device *device, VkCommandBuffer commands, VkBuffer source,
                        uint64_t source_offset, VkBuffer destination, uint64_t destination_offset,
                        uint64_t size_bytes);
void berth_vulkan__barrier(const vulkan_device *device, VkCommandBuffer commands);
BERTH_MUST_USE berth_status berth_vulkan__begin(const vulkan_device *device, vulkan_record *record,
                                                uint32_t first);
BERTH_MUST_USE berth_status berth_vulkan__record_command(const vulkan_device *device,
                                                         vulkan_record *record,
                                                         const berth_command *command,
                                                         uint32_t index);
// Frees all of a record.
void berth_vulkan__record_free(vulkan_device *device, vulkan_record *record);

// list.c
BERTH_MUST_USE berth_status berth_vulkan__list_prepare(berth_command_list *list);
void berth_vulkan__list_destroy(berth_command_list *list);

// queue.c: the family of Vulkan's queue below one of ours.
uint32_t berth_vulkan__family(const berth_queue *queue);

#pragma GCC visibility pop

#endif  // BERTH_DEVICES_VULKAN_RECORD_H_
