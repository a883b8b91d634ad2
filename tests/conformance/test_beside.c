// Host access beside kernels, on OpenCL devices that are processor cores: a map does not wait for kernels that work on other
// things, though these have all cores.
#include <stdint.h>

#include "tests/conformance/conformance.h"

// data: a word that the host sets, one that an item sets which has looked too long, how many groups have begun.
enum { GO, GAVE_UP, BEGUN, WORDS };

static const char source[] = "__kernel void await(__global volatile int *data, long rounds) {\n"
                             "    if (get_local_id(0) == 0) atomic_inc(&data[2]);\n"
                             "    long k = 0;\n"
                             "    while (!atomic_or(&data[0], 0) && !atomic_or(&data[1], 0))\n"
                             "        if (++k == rounds) atomic_or(&data[1], 1);\n"
                             "}\n";

static void load(conformance_fixture *f, uint32_t *out_kernel) {
    const berth_executable_image image = {.device_kind = f->row->kind,
                                          .format = f->row->format,
                                          .options = "",
                                          .data = source,
                                          .size_bytes = sizeof(source) - 1};
    check_ok(berth_executable_load(f->devices[0], &image, &f->executable));
    *out_kernel = find_kernel(f, "await", 1, 1);
}

// One look at the words by a map; sets the first when all cores are in the kernel. True: it is over.
static bool look(berth_buffer *buffer, int core_count, int *out_gave_up) {
    void *mapped = NULL;
    check_ok(berth_buffer_map(buffer, 0, WORDS * sizeof(int), false, &mapped));
    int *words = mapped;
    *out_gave_up = __atomic_load_n(&words[GAVE_UP], __ATOMIC_SEQ_CST);
    const bool all = __atomic_load_n(&words[BEGUN], __ATOMIC_SEQ_CST) >= core_count;
    if (all) __atomic_store_n(&words[GO], 1, __ATOMIC_SEQ_CST);
    check_ok(berth_buffer_unmap(buffer, mapped));
    return all || *out_gave_up;
}

// The kernel ends when the host has written to the buffer, or after some seconds of looking.
CONFORMANCE(beside, the_host_writes_while_kernels_have_all_cores) {
    const berth_device_info *info = berth_device_get_info(f->devices[0]);
    const bool alone = strcmp(f->row->name, "opencl") == 0;  // in its context
    if (!alone || !info->is_cpu || !info->unified) return;
    enum { GROUPS_PER_CORE = 4 };
    static const int zeros[WORDS] = {0};
    const int64_t rounds = INT64_C(1) << 28;
    const uint32_t cores = info->compute_units;
    uint32_t kernel = 0;
    load(f, &kernel);
    berth_buffer *root =
        make_buffer(f->devices[0], 4 * (uint64_t)info->memories[0].alignment_bytes);
    berth_buffer *buffer = NULL;
    check_ok(berth_buffer_view(root, 2 * (uint64_t)info->memories[0].alignment_bytes, sizeof(zeros),
                               &buffer));
    write_buffer(buffer, zeros, sizeof(zeros));
    const berth_command run = dispatch_command(f, kernel, &buffer, 1, &rounds, 1,
                                               GROUPS_PER_CORE * cores * f->row->group_size);
    berth_semaphore *done = make_semaphore(f, 0);
    check_ok(submit(f->queues[0], &run, 1, NULL, 0, done, 1));
    check_ok(berth_queue_flush(f->queues[0]));
    int gave_up = 0;
    while (!look(buffer, (int)cores, &gave_up)) continue;
    check_ok(berth_semaphore_wait(done, 1, -1));
    cr_assert_not(gave_up, "a map has waited for the kernel");
    berth_semaphore_release(done);
    berth_buffer_free(buffer);
    berth_buffer_free(root);
}
