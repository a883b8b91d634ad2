// Host memory for drivers whose memory is the host's: aligned blocks, copies, fills.
#include <string.h>

#include "devices/internal.h"

berth_status berth_devices__aligned_alloc(berth_allocator allocator, uint64_t size_bytes,
                                          size_t alignment, berth_aligned_block *out_block) {
    *out_block = (berth_aligned_block){0};
    if (size_bytes > PTRDIFF_MAX - alignment)
        return berth_status_make(BERTH_OUT_OF_MEMORY, "%llu bytes are more than an address space",
                                 (unsigned long long)size_bytes);
    size_t base_bytes = (size_t)size_bytes + alignment - 1;
    void *base = berth_alloc(allocator, base_bytes);
    if (!base) return berth_status_oom();
    uintptr_t address = ((uintptr_t)base + alignment - 1) & ~(uintptr_t)(alignment - 1);
    *out_block = (berth_aligned_block){
        .data = (unsigned char *)base + (address - (uintptr_t)base),
        .base = base,
        .base_bytes = base_bytes,
    };
    return BERTH_OK;
}

void berth_devices__aligned_free(berth_allocator allocator, berth_aligned_block *block) {
    if (block->base) berth_free(allocator, block->base, block->base_bytes);
    *block = (berth_aligned_block){0};
}

void berth_devices__host_copy(const berth_command *command) {
    memcpy(
        berth_devices__host_at(command->copy.destination, command->copy.destination_offset_bytes),
        berth_devices__host_at(command->copy.source, command->copy.source_offset_bytes),
        command->copy.size_bytes);
}

// Writes one pattern, then doubles what is there.
void berth_devices__host_fill(const berth_command *command) {
    size_t size = command->fill.size_bytes;
    size_t done = command->fill.pattern_bytes;
    if (size == 0) return;
    unsigned char *data = berth_devices__host_at(command->fill.buffer, command->fill.offset_bytes);
    uint32_t pattern = command->fill.pattern;
    for (size_t i = 0; i < done; ++i) data[i] = (unsigned char)(pattern >> (8 * i));
    while (done < size) {
        size_t more = done < size - done ? done : size - done;
        memcpy(data + done, data, more);
        done += more;
    }
}
