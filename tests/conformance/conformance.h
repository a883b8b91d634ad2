// One suite for every driver. A case is written once and runs for each row of drivers.c:
//
//   CONFORMANCE(copy, odd_offsets) { conformance_fixture *f = ...; ... }
//
// becomes the Criterion tests null/copy__odd_offsets, cpu/copy__odd_offsets, ... At the end of the
// run a driver x group matrix is printed (matrix.c).
#ifndef BERTH_TESTS_CONFORMANCE_H_
#define BERTH_TESTS_CONFORMANCE_H_

#include <criterion/criterion.h>
#include <string.h>

#include "devices/device.h"
#include "devices/registry.h"

// Rows of drivers.c, in its order. A new driver adds its name here and a row there.
#define CONFORMANCE_DRIVERS(X, group, name)                                                        \
    X(null, 0, group, name)                                                                        \
    X(cpu, 1, group, name)                                                                         \
    X(cpu_1_thread, 2, group, name)                                                                \
    X(opencl, 3, group, name)                                                                      \
    X(opencl_pair, 4, group, name)                                                                 \
    X(library_null, 5, group, name)                                                                \
    X(library_cpu, 6, group, name)                                                                 \
    X(vulkan, 7, group, name)                                                                      \
    X(vulkan_apart, 8, group, name)                                                                \
    X(library_vta, 9, group, name)                                                                 \
    X(cuda, 10, group, name)                                                                       \
    X(cuda_pair, 11, group, name)                                                                  \
    X(vulkan_pair, 12, group, name)                                                                \
    X(vulkan_pair_apart, 13, group, name)
#define CONFORMANCE_DRIVER_COUNT 14

// A case that a driver does not take part in, by "group__name" with * and ?.
typedef struct conformance_exception {
    const char *pattern;
    const char *reason;
} conformance_exception;

typedef struct conformance_driver {
    const char *name;  // of the row
    const char *kind;
    const char *library;           // a driver that is loaded (devices/library.h), or NULL
    uint32_t device_count;         // that the row needs
    const char *environment[2];    // name and value to set before the driver is opened, or NULL
    berth_device_options options;  // of all its devices
    bool synchronous;              // submit runs what can run, in host memory
    bool host_memory;              // memory 0 is the host's at any time (always so if synchronous)
    const char *format;            // of images
    uint32_t group_size;           // items per group in dispatches of the kernels below
    // Kernels for the dispatch cases, as one image in the arena: see kernels.h in drivers.c.
    void (*kernel_image)(berth_arena *arena, berth_executable_image *out_image);
    const void *broken_image;                        // text that does not build or load
    const conformance_exception *unsupported;        // skipped; ends with a NULL pattern
    const conformance_exception *expected_failures;  // must fail; ends with a NULL pattern
} conformance_driver;

// vulkan_kernels.c
void conformance_vulkan_image(berth_arena *arena, berth_executable_image *out_image);

extern const conformance_driver conformance_drivers[CONFORMANCE_DRIVER_COUNT];

// The exception that names the case, or NULL.
const conformance_exception *conformance_find(const conformance_exception *list, const char *name);

// What a case works with: two devices of the row (the first twice where there is one), a cpu device
// as host, one queue each. Everything allocates through `counting`.
typedef struct conformance_fixture {
    const conformance_driver *row;
    berth_counting_allocator counting;
    berth_allocator allocator;
    berth_arena *arena;
    berth_driver *driver;
    berth_device *devices[2];
    berth_queue *queues[2];
    berth_driver *host_driver;
    berth_device *host_device;
    berth_executable *executable;  // with conformance_kernels
} conformance_fixture;

// Runs the body with a fixture and checks that nothing is left allocated; skips where the driver is
// not available (fails when BERTH_REQUIRE_DRIVERS names its kind) or the case is unsupported.
void conformance_run(int row, const char *name, void (*body)(conformance_fixture *f));

#define CONFORMANCE_TEST(driver, row, group, name)                                                 \
    Test(driver, group##__##name, .timeout = 120) {                                                \
        conformance_run(row, #group "__" #name, body_##group##_##name);                            \
    }
#define CONFORMANCE(group, name)                                                                   \
    static void body_##group##_##name(conformance_fixture *f);                                     \
    CONFORMANCE_DRIVERS(CONFORMANCE_TEST, group, name)                                             \
    static void body_##group##_##name(conformance_fixture *f)

// ---- helpers ----

void check_ok_at(berth_status status, const char *file, int line);
#define check_ok(expression) check_ok_at((expression), __FILE__, __LINE__)
void check_code_at(berth_status status, berth_code code, const char *file, int line);
#define check_code(expression, code) check_code_at((expression), (code), __FILE__, __LINE__)

berth_buffer *make_buffer(berth_device *device, uint64_t size_bytes);
void write_buffer(berth_buffer *buffer, const void *data, uint64_t size_bytes);
void read_buffer(berth_buffer *buffer, void *data, uint64_t size_bytes);
berth_semaphore *make_semaphore(conformance_fixture *f, uint64_t value);

berth_command copy_command(berth_buffer *source, uint64_t source_offset_bytes,
                           berth_buffer *destination, uint64_t destination_offset_bytes,
                           uint64_t size_bytes);
berth_command fill_command(berth_buffer *buffer, uint64_t offset_bytes, uint64_t size_bytes,
                           uint32_t pattern, uint32_t pattern_bytes);
// Submits with at most one wait and one signal; semaphores may be NULL.
berth_command hand_over_command(berth_command_kind kind, berth_buffer *const *buffers,
                                uint32_t count);
berth_status submit(berth_queue *queue, const berth_command *commands, uint32_t count,
                    berth_semaphore *wait, uint64_t wait_value, berth_semaphore *signal,
                    uint64_t signal_value);

// The kernels of every row:
//   scale    (int32 *in, int32 *out; factor, count)  out[i] = factor * in[i] + i
//   add_one  (int32 *data; count)                    data[i] += 1
//   spin     (int32 *data; count, rounds)            data[i] = rounds steps of x = x * 3 + 1
// scale goes through scratch memory where the driver has it.
enum { SCALE_SCRATCH_BYTES = 256 };
uint32_t find_kernel(conformance_fixture *f, const char *entry, uint32_t bindings,
                     uint32_t constants);
// A dispatch over `count` items; buffers and constants are borrowed.
berth_command dispatch_command(conformance_fixture *f, uint32_t kernel,
                               berth_buffer *const *buffers, uint32_t buffer_count,
                               const int64_t *constants, uint32_t constant_count, uint32_t count);
void load_kernels(conformance_fixture *f);  // fills f->executable

#endif  // BERTH_TESTS_CONFORMANCE_H_
