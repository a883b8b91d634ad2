// Shared by the core and the drivers of devices/; no caller includes this.
#ifndef BERTH_DEVICES_INTERNAL_H_
#define BERTH_DEVICES_INTERNAL_H_

#include "devices/driver.h"

// OUT_OF_RANGE unless [offset, +size) lies in the buffer; `what` starts the message.
BERTH_MUST_USE berth_status berth_devices__check_range(const char *what, const berth_buffer *buffer,
                                                       uint64_t offset_bytes, uint64_t size_bytes);

// Whether berth_device_open_peer was done for the two.
bool berth_devices__is_peer(const berth_device *device, const berth_device *peer);

// An array with room for one element more than the `count` that it holds: `data`, or what takes its place, and *capacity elements
// are allocated then. NULL: no memory, and nothing has changed.
void *berth_devices__reserve_one(berth_allocator allocator, void *data, uint32_t count,
                                 uint32_t *capacity, size_t element_bytes);

// Compares the program's record of a kernel with what its code declares (artifact/kernel_abi.h):
// `declared` is that text, `length` bytes of it, NULL = the code says nothing. Errors:
// INCOMPATIBLE.
BERTH_MUST_USE berth_status berth_devices__check_declaration(berth_allocator allocator,
                                                             const berth_program_kernel *kernel,
                                                             const char *declared, size_t length);

// declared_lines.c: declarations in source text, a line "// berth_declares_ENTRY: TEXT" each.
typedef struct berth_declared_lines {
    char *text;  // the lines with their newlines; NULL = none
    size_t size_bytes;
} berth_declared_lines;
// Copies them from the source. Free `text` with the same allocator.
BERTH_MUST_USE berth_status berth_devices__keep_declarations(berth_allocator allocator,
                                                             const char *source, size_t size_bytes,
                                                             berth_declared_lines *out_lines);
// berth_devices__check_declaration with the kernel's line; fine where it has none.
BERTH_MUST_USE berth_status berth_devices__check_declared_line(berth_allocator allocator,
                                                               const berth_program_kernel *kernel,
                                                               const berth_declared_lines *lines);
// The number in a line "// berth_declares_ENTRYSUFFIX: NUMBER", less than 2^31. 0: there is none; UINT64_MAX: it is
// no such number.
uint64_t berth_devices__declared_number(const berth_declared_lines *lines, const char *entry,
                                        const char *suffix);

// Keep every buffer and executable that the commands name alive, and let go of them again: what a
// queue does around a submission that outlives submit. Allocate nothing.
void berth_devices__retain_commands(const berth_command *commands, uint32_t count);
void berth_devices__release_commands(const berth_command *commands, uint32_t count);

// What the device has for callers and kernels becomes more or less (berth_device_peak_bytes).
// Buffers are counted by the core.
void berth_devices__count_memory(berth_device *device, uint64_t more_bytes, uint64_t less_bytes);

// One allocation of the device's allocator with an aligned pointer inside; alignment is a power of
// two. Zero-initialise; free with the same allocator.
typedef struct berth_aligned_block {
    void *data;  // aligned
    void *base;
    size_t base_bytes;
} berth_aligned_block;
BERTH_MUST_USE berth_status berth_devices__aligned_alloc(berth_allocator allocator,
                                                         uint64_t size_bytes, size_t alignment,
                                                         berth_aligned_block *out_block);
void berth_devices__aligned_free(berth_allocator allocator, berth_aligned_block *block);

// Copy and fill on host pointers, for drivers whose memory is the host's.
void berth_devices__host_copy(const berth_command *command);
void berth_devices__host_fill(const berth_command *command);

// features.c: the text at `index` of those that lie one after the other ("shaderInt8\0shaderInt64\0").
const char *berth_devices__text_at(const char *texts, size_t index);

// features.c: puts features behind `text`, those that are there and those that are not: "; shaderInt64; lacks shaderInt8, ...". `names`
// are texts one after the other ("shaderInt8\0shaderInt64\0"), `has` in their order.
void berth_devices__put_features(char *text, size_t capacity, const char *names, const bool *has);

// timeout.c: how long a device may take to answer: "timeout_ms=N", the one attribute (berth_device_options) of such
// kinds; ten minutes without it. Errors: INVALID_ARGUMENT there is another attribute, or a number that is none.
BERTH_MUST_USE berth_status berth_devices__read_timeout(const char *kind, const char *attributes,
                                                        int64_t *out_timeout_ns);
// DEADLINE_EXCEEDED: the device did not answer in that time, and is given up.
BERTH_MUST_USE berth_status berth_devices__no_answer(const berth_device *device, const char *what,
                                                     int64_t timeout_ns);
// UNAVAILABLE: the device was given up before `what`.
BERTH_MUST_USE berth_status berth_devices__given_up(const berth_device *device, const char *what);

// Host pointer of a command's buffer at an offset. The buffer must be host-visible.
static inline unsigned char *berth_devices__host_at(const berth_buffer *buffer,
                                                    uint64_t offset_bytes) {
    return (unsigned char *)buffer->host + offset_bytes;
}

#endif  // BERTH_DEVICES_INTERNAL_H_
