// The driver as programs meet it: loaded from its library, with kernels that are streams; and a board
// that is a file with a thread behind it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "devices/device.h"
#include "devices/library.h"
#include "devices/registry.h"
#include "drivers/vta/image.h"
#include "tests/vta/programs.h"

enum { ELEMENTS = 40, LANES = 16 };

// Adds 5 to ELEMENTS * 16 numbers of 32 bits and keeps their low bytes: buffer 0 to buffer 1.
typedef struct kernel_parts {
    program p;
    berth_vta_relocation relocations[3];
    berth_kernel_binding bindings[2];
    uint8_t constants[4];
    berth_vta_kernel kernel;
} kernel_parts;

static void make_parts(kernel_parts *k, berth_vta_config config) {
    memset(k, 0, sizeof(*k));
    begin_program(&k->p, config, 16, 1);
    uint32_t lanes = k->p.shape.batch * k->p.shape.block, n = ELEMENTS * LANES / lanes;
    const berth_vta_instruction list[] = {
        {.y_size = 1, .x_size = 1, .x_stride = 1},
        {.memory_type = BERTH_VTA_ACC, .y_size = 1, .x_size = n, .x_stride = n},
        {.opcode = BERTH_VTA_ALU,
         .push_next = 1,
         .uop_end = 1,
         .iter_out = 1,
         .iter_in = n,
         .dst_factor_in = 1,
         .src_factor_in = 1,
         .alu_opcode = BERTH_VTA_ADD,
         .use_imm = 1,
         .imm = 5},
        {.opcode = BERTH_VTA_STORE,
         .memory_type = BERTH_VTA_OUT,
         .pop_prev = 1,
         .push_prev = 1,
         .y_size = 1,
         .x_size = n,
         .x_stride = n},
        {.pop_next = 1},
        {.opcode = BERTH_VTA_FINISH}};
    for (int i = 0; i < 6; ++i) add_instruction(&k->p, list[i]);
    k->relocations[0] = (berth_vta_relocation){0, BERTH_VTA_CONSTANTS, 0};
    k->relocations[1] = (berth_vta_relocation){1, 0, 0};
    k->relocations[2] = (berth_vta_relocation){3, 1, 0};
    k->bindings[0] = (berth_kernel_binding){ELEMENTS * LANES * 4, BERTH_ACCESS_READ};
    k->bindings[1] = (berth_kernel_binding){ELEMENTS * LANES, BERTH_ACCESS_WRITE};
    k->kernel = (berth_vta_kernel){.name = "add_five",
                                   .stream = k->p.dram.data + (k->p.address - PROGRAM_BASE),
                                   .instruction_count = k->p.count,
                                   .constants = k->constants,
                                   .constant_bytes = 4,
                                   .relocations = k->relocations,
                                   .relocation_count = 3,
                                   .bindings = k->bindings,
                                   .binding_count = 2};
}

static void change(kernel_parts *k, uint32_t index, const berth_vta_instruction *instruction) {
    assert_ok(berth_vta_encode(&k->p.isa, instruction,
                               k->p.dram.data + (k->p.address - PROGRAM_BASE) + 16 * index));
}

typedef struct bench {
    berth_arena *arena;
    berth_driver *driver;
    berth_device *device;
    berth_queue *queue;
    berth_executable_image image;
} bench;

static void open_bench(bench *b, berth_allocator allocator, const char *attributes) {
    const char *kind = NULL;
    assert_ok(berth_driver_load(BERTH_LIBRARY_VTA, &kind));
    cr_assert_str_eq(kind, "vta");
    assert_ok(berth_arena_create(berth_allocator_system(), &b->arena));
    assert_ok(berth_driver_open("vta", allocator, &b->driver));
    berth_device_options options = {.attributes = attributes};
    assert_ok(berth_device_open(b->driver, 0, &options, &b->device));
    assert_ok(berth_queue_open(b->device, BERTH_QUEUE_COMPUTE, &b->queue));
}

static void close_bench(bench *b) {
    berth_queue_destroy(b->queue);
    berth_device_close(b->device);
    berth_driver_close(b->driver);
    berth_arena_destroy(b->arena);
}

static void write_image(bench *b, const kernel_parts *k) {
    uint8_t *data = NULL;
    size_t size_bytes = 0;
    assert_ok(berth_vta_image_write(b->arena, &k->p.config, &k->kernel, 1, &data, &size_bytes));
    b->image = (berth_executable_image){.device_kind = "vta",
                                        .format = BERTH_VTA_FORMAT,
                                        .options = "",
                                        .data = data,
                                        .size_bytes = size_bytes};
}

// Loads the image and runs its kernel on parts of two buffers.
static berth_status run_on_views(bench *b, const kernel_parts *k) {
    berth_executable *executable = NULL;
    berth_buffer *roots[2] = {NULL, NULL}, *views[2] = {NULL, NULL};
    int32_t numbers[ELEMENTS * LANES];
    uint32_t kernel = 0;
    void *mapped = NULL;
    BERTH_TRY(berth_executable_load(b->device, &b->image, &executable));
    berth_program_kernel record = {
        .entry = "add_five", .binding_count = 2, .bindings = k->bindings};
    assert_ok(berth_executable_find(executable, &record, &kernel));
    for (int i = 0; i < 2; ++i) {
        assert_ok(berth_buffer_allocate(b->device, 0, 3 * 8192, &roots[i]));
        assert_ok(berth_buffer_view(roots[i], 8192, 8192, &views[i]));
        assert_ok(berth_buffer_map(roots[i], 0, 3 * 8192, true, &mapped));
        memset(mapped, 0x77, 3 * 8192);
        assert_ok(berth_buffer_unmap(roots[i], mapped));
    }
    for (int i = 0; i < ELEMENTS * LANES; ++i) numbers[i] = i * 1000003 - 123456789;
    assert_ok(berth_buffer_map(views[0], 0, sizeof(numbers), true, &mapped));
    memcpy(mapped, numbers, sizeof(numbers));
    assert_ok(berth_buffer_unmap(views[0], mapped));
    berth_command command = {.kind = BERTH_COMMAND_DISPATCH,
                             .dispatch = {.executable = executable,
                                          .kernel = kernel,
                                          .buffers = views,
                                          .buffer_count = 2,
                                          .groups = {1, 1, 1},
                                          .group_size = {1, 1, 1}}};
    berth_status status = berth_queue_run(b->queue, &command, 1);
    assert_ok(berth_buffer_map(roots[1], 0, 3 * 8192, false, &mapped));
    for (int i = 0; !status && i < 3 * 8192; ++i) {
        int at = i - 8192;
        uint8_t expected =
            at >= 0 && at < ELEMENTS * LANES ? (uint8_t)((uint32_t)numbers[at] + 5u) : 0x77;
        cr_assert_eq(((uint8_t *)mapped)[i], expected, "byte %d", at);
    }
    assert_ok(berth_buffer_unmap(roots[1], mapped));
    for (int i = 0; i < 2; ++i) {
        berth_buffer_free(views[i]);
        berth_buffer_free(roots[i]);
    }
    berth_executable_destroy(executable);
    return status;
}

Test(vta_driver, runs_kernels) {
    bench b;
    kernel_parts k;
    berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    open_bench(&b, berth_counting_allocator_get(&counting), NULL);
    make_parts(&k, configuration(0));
    write_image(&b, &k);
    for (int i = 0; i < 3; ++i) assert_ok(run_on_views(&b, &k));
    end_program(&k.p);
    close_bench(&b);
    cr_assert_eq(counting.live_count, 0);
}

// The device has the configuration that it is opened with, and no kernel of another one.
Test(vta_driver, configurations) {
    bench b;
    kernel_parts k;
    open_bench(&b, berth_allocator_system(),
               "log_batch=2 log_block=3  log_uop_buff_size=12 log_inp_buff_size=13 "
               "log_wgt_buff_size=14 log_acc_buff_size=14 memory_bytes=1048576");
    make_parts(&k, configuration(2));
    write_image(&b, &k);
    assert_ok(run_on_views(&b, &k));
    end_program(&k.p);
    make_parts(&k, configuration(0));
    write_image(&b, &k);
    assert_fails(run_on_views(&b, &k), BERTH_INCOMPATIBLE, "1x16_i8w8a32_15_15_18_17");
    berth_buffer *buffer = NULL;
    assert_ok(berth_buffer_allocate(b.device, 0, 1048576 - 4096, &buffer));
    berth_buffer *second = NULL;
    assert_fails(berth_buffer_allocate(b.device, 0, 4097, &second), BERTH_OUT_OF_MEMORY, "left");
    assert_ok(berth_buffer_allocate(b.device, 0, 4096, &second));
    berth_buffer_free(buffer);
    berth_buffer_free(second);
    static const char *const wrong[] = {
        "transport=magic", "log_block=77",        "colour=blue",
        "log_block",       "memory_bytes=x",      "memory_base=100",
        "memory_bytes=1",  "transport=registers", "memory_base=0xfffff000"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        berth_device *device = NULL;
        berth_device_options options = {.attributes = wrong[i]};
        berth_status status = berth_device_open(b.driver, 0, &options, &device);
        cr_assert_not_null(status, "%s", wrong[i]);
        berth_status_free(status);
    }
    end_program(&k.p);
    close_bench(&b);
}

static void refuse(bench *b, kernel_parts *k, const char *part) {
    write_image(b, k);
    berth_executable *executable = NULL;
    berth_status status = berth_executable_load(b->device, &b->image, &executable);
    cr_assert_not_null(status, "loaded in spite of: %s", part);
    cr_assert_not_null(strstr(berth_status_message(status), part), "%s instead of %s",
                       berth_status_message(status), part);
    berth_status_free(status);
    end_program(&k->p);
    make_parts(k, configuration(0));
}

// What would go wrong in a run, or reach beyond what the kernel says, does not load.
Test(vta_driver, kernels_that_do_not_load) {
    bench b;
    kernel_parts k;
    open_bench(&b, berth_allocator_system(), NULL);
    make_parts(&k, configuration(0));
    k.kernel.relocation_count = 2;
    refuse(&b, &k, "instruction 3: an address that no relocation gives");
    k.relocations[2].instruction = 4;
    refuse(&b, &k, "an address that no relocation gives");
    k.relocations[0].instruction = 1;
    refuse(&b, &k, "out of order");
    k.relocations[1].buffer = 2;
    refuse(&b, &k, "names an instruction or buffer that is not there");
    k.bindings[0].size_bytes -= 1;
    refuse(&b, &k, "dram-range: bytes up to 2560 of a buffer of 2559");
    k.relocations[2].added_bytes = 16;
    refuse(&b, &k, "dram-range: bytes up to 656 of a buffer of 640");
    k.bindings[1].access = BERTH_ACCESS_READ;
    refuse(&b, &k, "otherwise than the kernel's bindings say");
    k.relocations[2].buffer = BERTH_VTA_CONSTANTS;
    k.kernel.constants = k.p.dram.data;
    k.kernel.constant_bytes = 640;
    refuse(&b, &k, "writes its own constants");
    k.relocations[0].buffer = 0;
    refuse(&b, &k, "micro-ops that are not constants");
    k.bindings[0].size_bytes += 64;
    k.relocations[1].added_bytes = 4;
    refuse(&b, &k, "no multiple of an element's 64 bytes");
    static const berth_vta_instruction pause = {0};
    change(&k, 4, &pause);
    refuse(&b, &k, "tokens-left");
    static const berth_vta_instruction wait = {.pop_prev = 1};
    change(&k, 4, &wait);
    refuse(&b, &k, "deadlock: no unit can go on");
    k.bindings[0].size_bytes = (uint64_t)1 << 33;
    refuse(&b, &k, "32 bits can address");
    end_program(&k.p);
    close_bench(&b);
}

// Any bit of an image may be wrong: it does not load, or it runs within its buffers or fails.
Test(vta_driver, damaged_images, .timeout = 120) {
    bench b;
    kernel_parts k;
    open_bench(&b, berth_allocator_system(), "memory_bytes=4194304");
    make_parts(&k, configuration(0));
    write_image(&b, &k);
    uint8_t *data = berth_arena_copy(b.arena, b.image.data, b.image.size_bytes);
    b.image.data = data;
    uint32_t refused = 0;
    for (size_t bit = 0; bit < 8 * b.image.size_bytes; ++bit) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        berth_executable *executable = NULL;
        berth_status status = berth_executable_load(b.device, &b.image, &executable);
        cr_assert_eq(status != NULL, executable == NULL);
        refused += status != NULL;
        berth_status_free(status);
        berth_executable_destroy(executable);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    cr_assert_gt(refused, b.image.size_bytes);
    for (size_t size_bytes = 1; size_bytes < b.image.size_bytes; ++size_bytes) {
        berth_executable_image cut = b.image;
        cut.size_bytes = size_bytes;
        berth_executable *executable = NULL;
        assert_fails(berth_executable_load(b.device, &cut, &executable), BERTH_INVALID_ARGUMENT,
                     "image");
    }
    end_program(&k.p);
    close_bench(&b);
}

static berth_status try_all(berth_allocator allocator, const berth_executable_image *image) {
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    berth_buffer *buffer = NULL, *view = NULL;
    berth_executable *executable = NULL;
    berth_status status = berth_driver_open("vta", allocator, &driver);
    if (!status) status = berth_device_open(driver, 0, NULL, &device);
    if (!status) status = berth_buffer_allocate(device, 0, 8192, &buffer);
    if (!status) status = berth_buffer_view(buffer, 0, 64, &view);
    if (!status) status = berth_executable_load(device, image, &executable);
    berth_executable_destroy(executable);
    berth_buffer_free(view);
    berth_buffer_free(buffer);
    berth_device_close(device);
    berth_driver_close(driver);
    return status;
}

Test(vta_driver, every_allocation_may_fail) {
    bench b;
    kernel_parts k;
    open_bench(&b, berth_allocator_system(), NULL);
    make_parts(&k, configuration(0));
    write_image(&b, &k);
    for (int64_t fail_at = 1;; ++fail_at) {
        berth_counting_allocator failing;
        berth_counting_allocator_init(&failing, berth_allocator_system());
        failing.fail_at = fail_at;
        berth_status status = try_all(berth_counting_allocator_get(&failing), &b.image);
        cr_assert_eq(failing.live_count, 0, "allocation %lld", (long long)fail_at);
        if (!status) {
            cr_assert_gt(fail_at, 20);
            break;
        }
        cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "%s",
                     berth_status_message(status));
        berth_status_free(status);
    }
    end_program(&k.p);
    close_bench(&b);
}

// ---- a board ----

// Plays upstream's design behind two files: begins when fetch and the three units are started as the
// hardware wants it. As there, the flag is 0 from compute's first instruction of a stream on, and 1
// from FINISH on.
typedef struct board {
    volatile uint32_t *registers;
    uint8_t *memory;
    uint64_t base, size_bytes;
    atomic_bool stop, hangs;
    atomic_uint runs, pauses;
    pthread_t thread;
} board;

static void run_board(board *d, berth_vta_model *model) {
    volatile uint32_t *r = d->registers;
    uint32_t count = r[0x10 / 4], address = r[0x18 / 4];
    r[0] = 0;  // fetch has all instructions
    nanosleep(&(struct timespec){0, 300000}, NULL);
    r[2 * 1024 + 0x18 / 4] = 0;
    berth_vta_dram dram = {d->memory, d->base, d->size_bytes};
    berth_vta_run_options options = {.order = BERTH_VTA_ORDER_STORE_FIRST};
    berth_vta_report report;
    berth_status status = berth_vta_run(model, &dram, address, count, &options, &report);
    if (report.fault == BERTH_VTA_FAULT_NO_FINISH) {  // a pause, by which the flag is cleared
        berth_status_free(status);
        atomic_fetch_add(&d->pauses, 1);
        return;
    }
    assert_ok(status);
    atomic_fetch_add(&d->runs, 1);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    r[2 * 1024 + 0x18 / 4] = 1;
}

static void *board_thread(void *user) {
    board *d = user;
    berth_vta_model *model = NULL;
    berth_vta_config config = configuration(0);
    assert_ok(berth_vta_model_create(berth_allocator_system(), &config, &model));
    volatile uint32_t *r = d->registers;
    while (!atomic_load(&d->stop)) {
        bool started = r[0] == 1 && r[1024] == 0x81 && r[2 * 1024] == 0x81 && r[3 * 1024] == 0x81;
        // The bases: inp, wgt, uop, acc, out.
        bool bases = r[1024 + 4] == 0 && r[1024 + 6] == 0 && r[2 * 1024 + 8] == 0 &&
                     r[2 * 1024 + 10] == 0 && r[3 * 1024 + 4] == 0;
        if (started && bases && !atomic_load(&d->hangs)) run_board(d, model);
        nanosleep(&(struct timespec){0, 20000}, NULL);
    }
    berth_vta_model_destroy(model);
    return NULL;
}

static void *map_file(const char *path, size_t size_bytes) {
    FILE *file = fopen(path, "w+");
    cr_assert_not_null(file);
    cr_assert_eq(ftruncate(fileno(file), (off_t)size_bytes), 0);
    void *data = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    cr_assert_neq(data, MAP_FAILED);
    fclose(file);
    memset(data, 0xee, size_bytes);
    return data;
}

enum { BOARD_MEMORY = 1 << 20 };

typedef struct board_files {
    char folder[32], registers[64], memory[64];
    char where[400];  // what the driver has to know of them
} board_files;

static void start_board(board *d, board_files *f) {
    strcpy(f->folder, "/tmp/berth-vta-XXXXXX");
    cr_assert_not_null(mkdtemp(f->folder));
    snprintf(f->registers, sizeof(f->registers), "%s/registers", f->folder);
    snprintf(f->memory, sizeof(f->memory), "%s/memory", f->folder);
    *d = (board){.registers = map_file(f->registers, 8 * 4096),
                 .memory = map_file(f->memory, BOARD_MEMORY + 4096),
                 .base = 0x10000000,
                 .size_bytes = BOARD_MEMORY};
    d->registers += 4 * 1024;  // registers_at
    d->memory += 4096;         // memory_at
    snprintf(f->where, sizeof(f->where),
             "registers=%s registers_at=0x4000 memory=%s memory_at=4096 "
             "memory_base=0x10000000 memory_bytes=%d timeout_ms=2000",
             f->registers, f->memory, BOARD_MEMORY);
    cr_assert_eq(pthread_create(&d->thread, NULL, board_thread, d), 0);
}

static void stop_board(board *d) {
    atomic_store(&d->stop, true);
    pthread_join(d->thread, NULL);
}

// `berth run` with a board: the target says that registers reach it, the options where. Results are
// those of the processor, and the board made them.
Test(vta_driver, the_command_runs_on_a_fake_board, .timeout = 120) {
    static const char *const lines[] = {
        "python3 tests/vta/make_models.py digits $FOLDER/m.onnx",
        "'" BERTH_COMMAND "' run $FOLDER/m.onnx --target cpu -q -o softmax70=$FOLDER/cpu.npy",
        "'" BERTH_COMMAND "' run $FOLDER/m.onnx --target 'vta -transport=registers,cpu' --plugin "
        "'" BERTH_PLUGIN_VTA "' --driver '" BERTH_LIBRARY_VTA "' -q --require vta:0,cpu:0 "
        "--device-options \"vta:0=$WHERE\" -o softmax70=$FOLDER/board.npy",
        "cmp $FOLDER/cpu.npy $FOLDER/board.npy",
        // It is measured there, not modelled.
        "'" BERTH_COMMAND "' calibrate $FOLDER/m.onnx --target 'vta -transport=registers,cpu' "
        "--plugin '" BERTH_PLUGIN_VTA "' --driver '" BERTH_LIBRARY_VTA "' -q --duration 10ms "
        "--device-options \"vta:0=$WHERE\" -o $FOLDER/c.jsonl && grep -q 'vta.*work.*qlinear_conv' "
        "$FOLDER/c.jsonl && ! grep -q '\"by\"' $FOLDER/c.jsonl",
        "rm $FOLDER/c.jsonl $FOLDER/m.onnx $FOLDER/cpu.npy $FOLDER/board.npy"};
    board d;
    board_files f;
    start_board(&d, &f);
    setenv("FOLDER", f.folder, 1);
    setenv("WHERE", f.where, 1);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); ++i) {
        cr_assert_eq(system(lines[i]), 0, "%s", lines[i]);
        if (i < 4) cr_expect_eq(atomic_load(&d.runs), i < 2 ? 0 : 6);  // its kernels
    }
    stop_board(&d);
    unlink(f.registers);
    unlink(f.memory);
    rmdir(f.folder);
}

Test(vta_driver, runs_on_a_fake_board, .timeout = 60) {
    char attributes[440];
    board d;
    board_files f;
    start_board(&d, &f);
    snprintf(attributes, sizeof(attributes), "transport=registers %s", f.where);
    bench b;
    kernel_parts k;
    open_bench(&b, berth_allocator_system(), attributes);
    make_parts(&k, configuration(0));
    write_image(&b, &k);
    for (int i = 0; i < 3; ++i) assert_ok(run_on_views(&b, &k));
    cr_assert_eq(atomic_load(&d.runs), 3);
    cr_assert_geq(atomic_load(&d.pauses), 2);
    // What boards do otherwise does not load there: MUL, stores of what was only loaded.
    berth_vta_instruction i = {.opcode = BERTH_VTA_ALU,
                               .push_next = 1,
                               .uop_end = 1,
                               .iter_out = 1,
                               .iter_in = ELEMENTS,
                               .dst_factor_in = 1,
                               .alu_opcode = BERTH_VTA_MUL};
    change(&k, 2, &i);
    refuse(&b, &k, "MUL, which boards lack");
    i = (berth_vta_instruction){.push_next = 1};
    change(&k, 2, &i);
    refuse(&b, &k, "no GEMM or ALU operation wrote last");
    // A board that hangs is an error, and is not used again.
    write_image(&b, &k);
    atomic_store(&d.hangs, true);
    assert_fails(run_on_views(&b, &k), BERTH_DEADLINE_EXCEEDED, "did not finish");
    assert_fails(run_on_views(&b, &k), BERTH_UNAVAILABLE, "earlier run");
    close_bench(&b);
    stop_board(&d);
    // Files that are not there, or too short.
    berth_driver *driver = NULL;
    berth_device *device = NULL;
    assert_ok(berth_driver_open("vta", berth_allocator_system(), &driver));
    cr_assert_eq(truncate(f.memory, 4096 + BOARD_MEMORY - 1), 0);
    berth_device_options options = {.attributes = attributes};
    assert_fails(berth_device_open(driver, 0, &options, &device), BERTH_UNAVAILABLE, "/memory");
    unlink(f.registers);
    assert_fails(berth_device_open(driver, 0, &options, &device), BERTH_UNAVAILABLE, "/registers");
    berth_driver_close(driver);
    unlink(f.memory);
    rmdir(f.folder);
    end_program(&k.p);
}
