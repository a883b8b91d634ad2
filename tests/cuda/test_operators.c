// Every operator case of tests/lower, scheduled and printed for cuda, runs on the first cuda device
// and gives what the reference interpreter gives. In the test run that device is the emulated one.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "devices/device.h"
#include "devices/registry.h"
#include "tests/cuda/kernels.h"
#include "tests/lower/op_case.h"

enum { most_buffers = 64 };

static struct {
    berth_driver *driver;
    berth_device *device;
    berth_queue *queue;
    berth_executable *executables[MOST_IMAGES];
    int current;       // case
    double tolerance;  // 0 = that of the cases
} here;

static uint64_t bytes_of(const berth_tfn *fn, berth_buf buf) {
    const berth_buf_info *info = &fn->bufs.data[buf];
    berth_type_id type =
        berth_type_tensor_layout(fn->module, info->dtype, info->rank, info->dims, info->layout);
    uint64_t bytes = berth_type_size_bytes(fn->module, type);
    return bytes ? bytes : 1;
}

static berth_status copy(berth_buffer *buffer, void *data, uint64_t bytes, bool back) {
    void *mapped = NULL;
    BERTH_TRY(berth_buffer_map(buffer, 0, bytes, !back, &mapped));
    memcpy(back ? data : mapped, back ? mapped : data, bytes);
    return berth_buffer_unmap(buffer, mapped);
}

static berth_status dispatch(const berth_kernel_source *kernel, berth_buffer *const *all) {
    berth_buffer *bound[most_buffers];
    for (uint32_t i = 0; i < kernel->buffer_count; ++i) bound[i] = all[kernel->buffers[i]];
    berth_program_kernel facts = berth_kernel_source_record(kernel);
    berth_command command = {
        .kind = BERTH_COMMAND_DISPATCH,
        .dispatch = {.executable = here.executables[here.current / CASES_PER_IMAGE],
                     .buffers = bound,
                     .buffer_count = kernel->buffer_count}};
    memcpy(command.dispatch.groups, kernel->groups, sizeof(kernel->groups));
    memcpy(command.dispatch.group_size, kernel->group_size, sizeof(kernel->group_size));
    BERTH_TRY(berth_executable_find(command.dispatch.executable, &facts, &command.dispatch.kernel));
    return berth_queue_run(here.queue, &command, 1);
}

static berth_status run_with(const berth_tfn *fn, void *const *data, berth_buffer **buffers,
                             berth_arena *arena) {
    berth_codegen_result code;
    BERTH_TRY(
        berth_codegen_cuda.print(fn, NULL, cuda_images_prefix(here.current, arena), arena, &code));
    for (berth_buf b = 0; b < fn->bufs.count && b < most_buffers; ++b) {
        const berth_buf_info *info = &fn->bufs.data[b];
        if (info->scope != BERTH_SCOPE_PARAM && info->scope != BERTH_SCOPE_WORKSPACE) continue;
        BERTH_TRY(berth_buffer_allocate(here.device, 0, bytes_of(fn, b), &buffers[b]));
        if (b < fn->param_count) BERTH_TRY(copy(buffers[b], data[b], bytes_of(fn, b), false));
    }
    for (uint32_t k = 0; k < code.kernel_count; ++k) BERTH_TRY(dispatch(&code.kernels[k], buffers));
    for (berth_buf b = 0; b < fn->param_count; ++b)
        if (fn->bufs.data[b].role != BERTH_ROLE_IN)
            BERTH_TRY(copy(buffers[b], data[b], bytes_of(fn, b), true));
    return BERTH_OK;
}

static berth_status run(const berth_tfn *fn, void *const *data, berth_arena *arena) {
    berth_buffer *buffers[most_buffers] = {NULL};
    if (fn->bufs.count > most_buffers)
        return berth_status_make(BERTH_OUT_OF_RANGE, "%u buffers", fn->bufs.count);
    berth_status status = run_with(fn, data, buffers, arena);
    for (int b = 0; b < most_buffers; ++b) berth_buffer_free(buffers[b]);
    return status;
}

static berth_status load(const cuda_images *images) {
    BERTH_TRY(berth_device_open(here.driver, 0, NULL, &here.device));
    BERTH_TRY(berth_queue_open(here.device, BERTH_QUEUE_COMPUTE, &here.queue));
    for (int i = 0; i < images->count; ++i) {
        berth_executable_image image = {.device_kind = "cuda",
                                        .format = BERTH_FORMAT_CUDA_C,
                                        .options = "",
                                        .data = images->sources[i],
                                        .size_bytes = strlen(images->sources[i]) + 1};
        BERTH_TRY(berth_executable_load(here.device, &image, &here.executables[i]));
    }
    return BERTH_OK;
}

static void run_images(const berth_target *target, cuda_images images) {
    berth_arena *arena = NULL;
    int failed = 0;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = cuda_images_print(target, arena, &images);
    cr_assert(!status, "%s", berth_status_message(status));
    cr_expect_leq(images.refused, images.case_count / 20, "%d cases refused", images.refused);
    status = load(&images);
    cr_assert(!status, "%s", berth_status_message(status));
    op_case_set_runner(run);
    for (int i = 0; i < images.case_count; ++i) {
        berth_arena *scratch = NULL;
        cr_assert_null(berth_arena_create(berth_allocator_system(), &scratch));
        here.current = i;
        const char *problem =
            here.tolerance > 0 ? op_case_compare(images.cases[i], target, here.tolerance, scratch)
                               : op_case_run(images.cases[i], target, scratch);
        if (problem) cr_log_error("%s\n    %s", images.cases[i], problem);
        failed += problem != NULL;
        berth_arena_destroy(scratch);
    }
    op_case_set_runner(NULL);
    cr_expect_eq(failed, images.refused, "%d of %d cases differ", failed, images.case_count);
    for (int i = 0; i < images.count; ++i) berth_executable_destroy(here.executables[i]);
    berth_queue_destroy(here.queue);
    berth_device_close(here.device);
    berth_arena_destroy(arena);
}

static void run_operators(const berth_target *target) {
    run_images(target, cuda_images_of_operators());
}

static void run_matrices(const berth_target *target) {
    run_images(target, cuda_images_of_matrices(NULL));
}

static void with_driver(const char *text, void (*body)(const berth_target *target)) {
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    berth_status status = berth_driver_open("cuda", berth_allocator_system(), &here.driver);
    if (status && required && strstr(required, "cuda"))
        cr_assert_fail("cuda is required: %s", berth_status_message(status));
    if (status) {
        berth_status_free(status);
        cr_skip("there is no cuda device");
    }
    with_target(text, body);
    berth_driver_close(here.driver);
}

Test(cuda_operators, all_cases, .timeout = 600) {
    with_driver("cuda -arch=sm_80", run_operators);  // as devices say it, with their instructions
}

// The emulation computes each instruction from the registers of all threads of a warp.
Test(cuda_operators, matrix_units, .timeout = 600) {
    with_driver("cuda -arch=sm_80", run_matrices);
}

static bool prints(const char *text, const berth_target *target, const char *what) {
    berth_arena *arena = NULL;
    const berth_tfn *fn = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = op_case_schedule(text, target, arena, &fn);
    cr_assert(!status, "%s: %s", text, berth_status_message(status));
    berth_strbuf printed = berth_strbuf_make(arena);
    berth_tfn_print(fn, &printed);
    bool found = strstr(berth_strbuf_text(&printed), what);
    berth_arena_destroy(arena);
    return found;
}

static bool uses(const char *text, const berth_target *target, const char *intrinsic) {
    char call[64];
    (void)snprintf(call, sizeof(call), " %s(", intrinsic);
    return prints(text, target, call);
}

static const char *first_image(const berth_target *target, cuda_images *images,
                               berth_arena *arena) {
    berth_status status = cuda_images_print(target, arena, images);
    cr_assert(!status, "%s", berth_status_message(status));
    return images->sources[0];
}

static int count_of(const char *text, const char *what) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); ++at) ++count;
    return count;
}

static void run_copies(const berth_target *target, const char *barrier, const char *other) {
    cuda_images images = cuda_images_of_copies();
    for (int i = 0; i < images.case_count; ++i) {
        cr_expect(prints(images.cases[i], target, barrier), "%s: no %s", images.cases[i], barrier);
        cr_expect(!prints(images.cases[i], target, other), "%s: %s", images.cases[i], other);
    }
    run_images(target, images);
}

static void run_three_stages(const berth_target *target) {
    run_copies(target, "barrier pending 1", "barrier\n");
}

static void run_two_stages(const berth_target *target) {
    run_copies(target, "barrier pending 0", "barrier pending 1");
}

// Nothing that a copy brings is there before the wait for it in the emulation. Two tiles alone: where the
// memory of a group has no room for three.
Test(cuda_operators, tiles_in_flight, .timeout = 600) {
    with_driver("cuda -arch=sm_80", run_three_stages);
    with_driver("cuda -arch=sm_80 -local_memory_bytes=10800", run_two_stages);
}

// What nvcc is told of the registers of tiles of 128 x 128 results and 256 threads, of as many cases.
static void expect_large(const berth_target *target, int expected) {
    berth_arena *arena = NULL;
    int count = 0;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cuda_images images = cuda_images_of_large();
    const char *first = first_image(target, &images, arena);
    for (int i = 0; i < images.count; ++i)
        count += count_of(images.sources[i], "__launch_bounds__(256, 2)");
    cr_expect_eq(count, expected, "%d of %d", count, images.case_count);
    // Steps as many as there are tiles in turns, and the copy that reads nothing where padding is.
    cr_expect(strstr(first, expected ? "#pragma unroll 2\n" : "#pragma unroll 3\n"));
    cr_expect(strstr(first, "berth_copy_where<4>("));
    berth_arena_destroy(arena);
}

static void run_large(const berth_target *target) {
    expect_large(target, cuda_images_of_large().case_count);
    run_images(target, cuda_images_of_large());
}

static void expect_small(const berth_target *target) {
    expect_large(target, 0);
}

// On a device of one multiprocessor the largest tiles leave none idle.
Test(cuda_operators, large_tiles_of_floats, .timeout = 600) {
    with_driver("cuda -arch=sm_80 -compute_units=1", run_large);
    with_target("cuda -arch=sm_80 -compute_units=132", expect_small);
}

static void expect_no_copies(const berth_target *target) {
    cuda_images images = cuda_images_of_copies();
    for (int i = 0; i < images.case_count; ++i)
        cr_expect(!prints(images.cases[i], target, "pending"), "%s", images.cases[i]);
}

static void expect_copies(const berth_target *target) {
    static const char *const copies[] = {"berth_copy_async<16>(",    "berth_copy_async<16, 8>(",
                                         "berth_copy_async<16, 4>(", "berth_copy_async<8>(",
                                         "berth_copy_where<4>(",     "berth_copies_wait<1>();"};
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cuda_images images = cuda_images_of_copies();
    berth_status status = cuda_images_print(target, arena, &images);
    cr_assert(!status, "%s", berth_status_message(status));
    for (size_t i = 0; i < sizeof(copies) / sizeof(*copies); ++i)
        cr_expect(strstr(images.sources[0], copies[i]), "no %s", copies[i]);
    berth_arena_destroy(arena);
}

// cp.async is there from sm_80 on; it takes 4, 8 or 16 bytes that lie at a multiple of as many.
Test(cuda_operators, copies_as_wide_as_they_are_aligned) {
    with_target("cuda -arch=sm_75", expect_no_copies);
    with_target("cuda -arch=sm_80", expect_copies);
}

static void expect_launched_memory(const berth_target *target, bool expected) {
    berth_arena *arena = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    cuda_images images = cuda_images_of_wide();
    const char *text = first_image(target, &images, arena);
    int wanted = expected ? images.case_count : 0;
    cr_expect_eq(count_of(text, "/shared: "), wanted);
    cr_expect_eq(count_of(text, "    BERTH_SHARED;"), wanted);
    berth_arena_destroy(arena);
}

static void run_wide(const berth_target *target) {
    expect_launched_memory(target, true);
    run_images(target, cuda_images_of_wide());
}

static void run_narrow(const berth_target *target) {
    expect_launched_memory(target, false);
    run_images(target, cuda_images_of_wide());
}

// Three tiles of 128 x 128 take more than the 48 KiB that a kernel may declare. Its registers leave a multiprocessor two such
// blocks at once, for whose memory those of sm_80 have room (164 KiB), and those of sm_86 (100 KiB) have not.
Test(cuda_operators, memory_that_a_launch_gives, .timeout = 600) {
    with_driver("cuda -arch=sm_80 -compute_units=1", run_wide);
    with_driver("cuda -arch=sm_86 -compute_units=1", run_narrow);
    with_driver("cuda -arch=sm_80 -compute_units=1 -local_memory_bytes=49152", run_narrow);
}

static void run_tf32(const berth_target *target) {
    cuda_images images = cuda_images_of_tf32();
    for (int i = 0; i < images.case_count; ++i)
        cr_expect(uses(images.cases[i], target, "mma_tf32"), "%s", images.cases[i]);
    here.tolerance = 0.02;  // sums of up to 144 products, each within 2^-9
    run_images(target, images);
    here.tolerance = 0;
}

static void expect_no_tf32(const berth_target *target) {
    cuda_images images = cuda_images_of_tf32();
    for (int i = 0; i < images.case_count; ++i)
        cr_expect(!uses(images.cases[i], target, "mma_tf32"), "%s", images.cases[i]);
    run_images(target, images);
}

// f32 is f32 unless the target says that tf32 will do.
Test(cuda_operators, matrix_units_in_tf32, .timeout = 600) {
    with_driver("cuda -arch=sm_80", expect_no_tf32);
    with_driver("cuda -arch=sm_80 -features=tf32", run_tf32);
}

// The interpreter runs the references of the intrinsics, of one case in `step`; every product uses its instruction.
static void interpret(const berth_target *target, cuda_images images,
                      const char *const *instructions, int step) {
    for (int i = 0; i < images.case_count; ++i) {
        berth_arena *arena = NULL;
        cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
        const char *problem = i % step ? NULL : op_case_run(images.cases[i], target, arena);
        cr_expect(!problem, "%s: %s", images.cases[i], problem);
        cr_expect(uses(images.cases[i], target, instructions[i]), "%s does not use %s",
                  images.cases[i], instructions[i]);
        berth_arena_destroy(arena);
    }
}

static void interpret_matrices(const berth_target *target) {
    const char *const *instructions = NULL;
    cuda_images images = cuda_images_of_matrices(&instructions);
    interpret(target, images, instructions, 1);
}

Test(cuda_operators, matrix_units_by_their_references, .timeout = 600) {
    with_target("cuda -arch=sm_80", interpret_matrices);
}

static void interpret_warpgroups(const berth_target *target) {
    const char *const *instructions = NULL;
    cuda_images images = cuda_images_of_warpgroups(&instructions);
    interpret(target, images, instructions, 3);  // a work-item has up to 256 columns: seconds each
}

Test(cuda_operators, warpgroups_by_their_references, .timeout = 600) {
    with_target("cuda -arch=sm_90a -compute_units=1", interpret_warpgroups);
}

// What the devices of one generation alone have is not used for others.
static void expect_warps(const berth_target *target) {
    const char *const *instructions = NULL;
    cuda_images images = cuda_images_of_warpgroups(&instructions);
    for (int i = 0; i < images.case_count; ++i)
        cr_expect(!prints(images.cases[i], target, "wgmma"), "%s", images.cases[i]);
}

static void run_warpgroups(const berth_target *target) {
    run_images(target, cuda_images_of_warpgroups(NULL));
}

// The emulation decodes descriptors and swizzle, and fails where an operand is overwritten while it is read, or a
// fence is missing.
Test(cuda_operators, warpgroups, .timeout = 600) {
    with_target("cuda -arch=sm_90", expect_warps);
    with_target("cuda -arch=sm_100", expect_warps);
    with_driver("cuda -arch=sm_90a -compute_units=1", run_warpgroups);
    with_driver("cuda -arch=sm_90a -compute_units=64",
                run_warpgroups);  // tiles as small as they get
}

static void run_panels(const berth_target *target) {
    run_images(target, cuda_images_of_panels());
}

static void run_whole_panels(const berth_target *target) {
    cuda_images all = cuda_images_of_panels();
    for (int i = 0; i < all.case_count; ++i) {
        berth_arena *arena = NULL;
        cuda_images one = {.cases = all.cases + i, .case_count = 1};
        cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
        const char *text = first_image(target, &one, arena);
        cr_expect_gt(count_of(text, "    berth_bulk_copy<"), 0, "%s", all.cases[i]);
        berth_arena_destroy(arena);
    }
    run_panels(target);
}

// What comes by bulk copies is there when the phase of its mbarrier ends, and no sooner in the emulation.
Test(cuda_operators, panels, .timeout = 600) {
    with_driver("cuda -arch=sm_90a -compute_units=1", run_whole_panels);
    with_driver("cuda -arch=sm_90a -compute_units=64", run_panels);  // some sums in parts
}

// Of 132 units. 13 x 2 tiles of 128 x 256 leave most of them idle, and 25 x 8 of 64 x 64 give some two: 2 * (64 + 64) lines of
// operands, of which 13 x 8 of 128 x 64 read 192. One tile of 128 x 256 each is less than two of 128 x 128.
static void expect_tiles(const berth_target *target) {
    cr_expect(prints("matmul | f16[1568,128] f16[128,512] |", target,
                     "group_row in 13 {\n    group.x %group_column in 8 {"));
    cr_expect(prints("matmul | f16[6272,128] f16[128,512] |", target,
                     "group_row in 49 {\n    group.x %group_column in 2 {"));
}

Test(cuda_operators, the_busiest_unit_reads_least) {
    with_target("cuda -arch=sm_90a -compute_units=132", expect_tiles);
}

static void run_in_flight(const berth_target *target) {
    cuda_images images = cuda_images_of_long_sums();
    for (int i = 0; i < images.case_count; ++i)
        cr_expect(prints(images.cases[i], target, "barrier pending 1 products 1"), "%s",
                  images.cases[i]);
    run_images(target, images);
}

// Of four tiles in turns, one is read by the products of the step before: the emulation fails where it is overwritten.
Test(cuda_operators, products_in_flight, .timeout = 600) {
    with_driver("cuda -arch=sm_90a -compute_units=1 -local_memory_bytes=232448", run_in_flight);
}

// The first case in a process of its own, with other text in place of each `from`, which is as long: the emulation
// stops it.
static void expect_stop(const berth_target *target, const char *from, const char *to) {
    berth_arena *arena = NULL;
    berth_device_info info;
    cuda_images images = cuda_images_of_warpgroups(NULL);
    cr_assert_null(berth_driver_device_info(here.driver, 0, &info));
    if (!strstr(info.name, "emulated")) cr_skip("the device is not the emulated one");
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    images.case_count = 1;
    char *text = berth_arena_strdup(arena, first_image(target, &images, arena));
    cr_assert_gt(count_of(text, from), 1);
    for (char *at = text; (at = strstr(at, from)); ++at) memcpy(at, to, strlen(to));
    images.sources[0] = text;
    pid_t child = fork();
    if (child == 0) {
        here.current = 0;
        op_case_set_runner(run);
        if (!load(&images)) (void)op_case_run(images.cases[0], target, arena);
        _exit(0);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL, "without %s: status %d", from,
              status);
    berth_arena_destroy(arena);
}

// What hardware would let pass with wrong results: no fence behind copies, none in front of the products.
static void run_without_fences(const berth_target *target) {
    expect_stop(target, "berth_units_see();", "                 ;");
    expect_stop(target, "berth_units_begin(b", "(void)           (b");
}

Test(cuda_operators, warpgroups_without_fences, .timeout = 60) {
    with_driver("cuda -arch=sm_90a -compute_units=1", run_without_fences);
}
