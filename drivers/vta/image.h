// Executables of VTA: instruction streams whose buffers get their addresses when they run.
//
// An image holds kernels. A kernel is a stream, the constants that it brings along (micro-ops, and
// any other data), and relocations: "dram_base of instruction I is the address of buffer B plus so
// many bytes". All numbers are little-endian, offsets count from the image's first byte.
//
//   u32 magic "BVTA", u32 version (1)
//   u32 x 9    configuration, in the order of config.def
//   u32        kernels, then for each 96 bytes:
//     char x 48  name, filled up with 0
//     u32 x 2    stream: offset, instructions
//     u32 x 2    constants: offset, bytes
//     u32 x 2    relocations: offset, count
//     u32 x 2    bindings: offset, count
//     u32 x 4    0
//   a relocation: u32 instruction, u32 buffer (0xffffffff = the constants), u32 bytes added
//   a binding: u64 bytes that it has at least, u32 access (berth_access), u32 0
//
// Every LOAD and STORE that moves something has one relocation, in the order of instructions;
// micro-ops come from the constants.
#ifndef BERTH_DRIVERS_VTA_IMAGE_H_
#define BERTH_DRIVERS_VTA_IMAGE_H_

#include "artifact/kernel_abi.h"
#include "drivers/vta/run.h"

#define BERTH_VTA_FORMAT "vta-stream"  // berth_executable_image.format

enum {
    BERTH_VTA_IMAGE_NAME_BYTES = 48,
    BERTH_VTA_MOST_KERNELS = 4096,
    BERTH_VTA_MOST_KERNEL_BINDINGS = 128,
    BERTH_VTA_ALIGNMENT = 4096,  // of buffers and constants: a page, as upstream's allocator
};
#define BERTH_VTA_CONSTANTS UINT32_MAX  // a relocation's buffer

typedef struct berth_vta_relocation {
    uint32_t instruction;
    uint32_t buffer;
    uint32_t added_bytes;
} berth_vta_relocation;

// What a kernel is made of; the arrays are borrowed.
typedef struct berth_vta_kernel {
    char name[BERTH_VTA_IMAGE_NAME_BYTES];
    const uint8_t *stream;
    uint32_t instruction_count;
    const uint8_t *constants;
    uint32_t constant_bytes;
    const berth_vta_relocation *relocations;
    uint32_t relocation_count;
    const berth_kernel_binding *bindings;
    uint32_t binding_count;
} berth_vta_kernel;

// Writes an image. Inside berth_arena_try of the arena. Errors: OUT_OF_RANGE beyond the limits above
// or 2^31 bytes. What the kernels say is not checked here.
BERTH_MUST_USE berth_status berth_vta_image_write(berth_arena *arena,
                                                  const berth_vta_config *config,
                                                  const berth_vta_kernel *kernels, uint32_t count,
                                                  uint8_t **out_data, size_t *out_size_bytes);

// An image that was read: kernels whose streams and constants point into `data`, which must stay.
typedef struct berth_vta_image {
    berth_allocator allocator;
    berth_vta_config config;
    berth_vta_kernel *kernels;
    uint32_t kernel_count;
    void *tables;  // relocations and bindings
    size_t table_bytes;
} berth_vta_image;

// Reads an image of any bytes: every table lies in it, and every relocation is of an instruction and
// a buffer that exist.
//   errors: INVALID_ARGUMENT no image, or a damaged one; UNSUPPORTED a newer version; OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_vta_image_read(berth_allocator allocator, const void *data,
                                                 size_t size_bytes, berth_vta_image *out_image);
void berth_vta_image_free(berth_vta_image *image);  // a zeroed one is fine

// The address of each buffer and of the constants, in bytes.
typedef struct berth_vta_addresses {
    uint64_t constants;
    uint64_t bindings[BERTH_VTA_MOST_KERNEL_BINDINGS];
} berth_vta_addresses;

// Writes the stream with addresses filled in to `out`, 16 bytes an instruction.
// Errors: INVALID_ARGUMENT an address that is no multiple of its element.
BERTH_MUST_USE berth_status berth_vta_relocate(const berth_vta_isa *isa,
                                               const berth_vta_kernel *kernel,
                                               const berth_vta_addresses *addresses, uint8_t *out);

// Follows a kernel from its first instruction to its last without data: refuses what would fail in a
// run, a race, work that FINISH does not wait for, a transfer outside of the bytes of its binding or
// against its access, and addresses that no relocation gives. For `boards`, also what only
// simulators do.
//   errors: the faults of faults.def; INVALID_ARGUMENT; OUT_OF_MEMORY
//   cost:   O(instructions + micro-ops executed), at most 2^28 micro-ops
BERTH_MUST_USE berth_status berth_vta_kernel_check(berth_allocator allocator,
                                                   const berth_vta_config *config,
                                                   const berth_vta_kernel *kernel, bool boards);

// How long a kernel takes by the timing model: report->cycles and its units. Of `options`, `timing`,
// `observe` and `user` count. It is checked as above, but for races and what boards do.
BERTH_MUST_USE berth_status berth_vta_kernel_time(berth_allocator allocator,
                                                  const berth_vta_config *config,
                                                  const berth_vta_kernel *kernel,
                                                  const berth_vta_run_options *options,
                                                  berth_vta_report *out_report);

// Why boards do something else than simulators with an instruction, or NULL (what only values show
// apart: shifts by registers, stores of what was only loaded).
const char *berth_vta_not_portable(const berth_vta_instruction *instruction);

#endif  // BERTH_DRIVERS_VTA_IMAGE_H_
