// Whole models as plain C, compiled with all warnings as errors: natively, for aarch64, armv7 and
// riscv64 under qemu-user and for a Cortex-M4 under qemu-system, each with the sources' own example. Quantised models compute
// the very bits that the graph executor computes; what the data sets expect is ONNX Runtime's.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "executor/session.h"
#include "tests/bare/support.h"
#include "tests/check.h"
#include "toolkit/compare.h"
#include "toolkit/model.h"
#include "toolkit/tensor_file.h"

#define TARGET "cpu -arch=cortex-m4 -memory_capacity_bytes=16777216"
#define M4_FLAGS                                                                                   \
    "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -Os -ffunction-sections"

typedef struct model_row {
    const char *folder;  // below ../shared/models
    const char *name;
    int sets;
    bool integers;  // the same bits as the graph executor
} model_row;

static const model_row models[] = {
    {"mnist", "mnist", 3, false},
    {"mnist_quantized", "mnist_quantized", 2, false},
    {"tfl_helloworld", "helloworld", 2, false},
    {"mlperf_tiny/autoencoder", "autoencoder", 2, false},
    {"mlperf_tiny/autoencoder_int8", "autoencoder_int8", 2, true},
    {"mlperf_tiny/dscnn", "dscnn", 2, false},
    {"mlperf_tiny/dscnn_int8", "dscnn_int8", 2, true},
    {"mlperf_tiny/mobilenetv1", "mobilenetv1", 2, false},
    {"mlperf_tiny/mobilenetv1_int8", "mobilenetv1_int8", 2, true},
    {"mlperf_tiny/resnet8", "resnet8", 2, false},
    {"mlperf_tiny/resnet8_int8", "resnet8_int8", 2, true},
};

enum { model_count = sizeof(models) / sizeof(models[0]) };

typedef struct fixture {
    const model_row *row;
    berth_arena *arena;
    char model[128], folder[64];
    uint64_t arena_bytes;  // static memory: in the device's own memory,
    uint64_t fast_bytes;   // and in another one
    uint32_t inputs, outputs;
    const char *runner;  // in front of the program: "", "qemu-aarch64-static"
} fixture;

static bool load(const char *path, const char *target, const char *executor, berth_model **out) {
    berth_model_options options = {
        .target = target, .target_options = {.executor = executor}, .import = {.default_batch = 1}};
    if (!berth_file_exists(path)) return false;
    assert_ok(berth_model_load(path, &options, out));
    return true;
}

// What the sources should take: of the plan, arenas in each memory and private arrays after one of them.
static void count_bytes(fixture *f, const berth_program *program,
                        const berth_memory_report *memory) {
    uint64_t scratch_bytes = 0;
    bool fast_scratch = false;
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        if (pool->usage != BERTH_POOL_WORKSPACE) continue;
        *(strcmp(pool->scope, "global") == 0 ? &f->arena_bytes : &f->fast_bytes) +=
            pool->size_bytes;
    }
    for (uint32_t i = 0; i < program->kernel_count; ++i)
        if (program->kernels[i].scratch_bytes > scratch_bytes)
            scratch_bytes = program->kernels[i].scratch_bytes;
    for (uint32_t i = 0; i < memory->share_count; ++i)
        fast_scratch |= memory->shares[i].has_scratch && !memory->shares[i].is_own;
    f->arena_bytes = (f->arena_bytes + 7) / 8 * 8;
    f->fast_bytes = (f->fast_bytes + 7) / 8 * 8;
    *(fast_scratch ? &f->fast_bytes : &f->arena_bytes) += (scratch_bytes + 7) / 8 * 8;
}

// Writes the sources; skips the test where the models are not here.
static fixture begin_for(const model_row *row, const char *target) {
    fixture f = {.row = row, .runner = ""};
    berth_model *model = NULL;
    snprintf(f.model, sizeof(f.model), "../shared/models/%s/model.onnx", row->folder);
    if (!load(f.model, target, "aot", &model)) cr_skip_test("%s is not here", f.model);
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    make_folder(f.folder);
    berth_bare_options options = {.name = row->name, .memory = berth_model_memory(model)};
    const berth_program *program = berth_model_program(model);
    assert_ok(berth_bare_write(program, &options, f.folder));
    count_bytes(&f, program, berth_model_memory(model));
    f.inputs = program->input_count;
    f.outputs = program->output_count;
    berth_model_destroy(model);
    return f;
}

static fixture begin(const model_row *row) {
    return begin_for(row, TARGET);
}

static void end(fixture *f) {
    remove_tree(f->folder);
    berth_arena_destroy(f->arena);
}

// Tensor i of a data set: "input" or "output".
static berth_tensor read_tensor(const fixture *f, int set, const char *what, uint32_t i) {
    char path[192];
    berth_tensor tensor;
    snprintf(path, sizeof(path), "../shared/models/%s/test_data_set_%d/%s_%u.pb", f->row->folder,
             set, what, i);
    assert_ok(berth_tensor_file_read(f->arena, path, &tensor, NULL));
    return tensor;
}

// One of a batch, as a batch of one.
static berth_tensor one_of(const berth_tensor *batch, int64_t at) {
    berth_tensor one = *batch;
    one.dims[0] = 1;
    one.data = (char *)batch->data + (size_t)at * berth_tensor_size_bytes(&one);
    return one;
}

// Runs the example on one row of a set; outputs as in the file "out".
static void run_example(const fixture *f, const berth_tensor *inputs, berth_tensor *outputs) {
    char path[128];
    berth_strbuf bytes = berth_strbuf_make(f->arena);
    for (uint32_t i = 0; i < f->inputs; ++i)
        berth_strbuf_add_n(&bytes, inputs[i].data, berth_tensor_size_bytes(&inputs[i]));
    snprintf(path, sizeof(path), "%s/in", f->folder);
    write_bytes(path, bytes.data, bytes.length);
    shell("cd %s && %s ./program <in >out 2>err", f->folder, f->runner);
    snprintf(path, sizeof(path), "%s/out", f->folder);
    char *data = NULL;
    size_t size = 0, at = 0;
    assert_ok(berth_file_read(f->arena, path, 1 << 24, &data, &size));
    for (uint32_t i = 0; i < f->outputs; ++i) {
        outputs[i].data = data + at;
        at += berth_tensor_size_bytes(&outputs[i]);
    }
    cr_assert_eq(at, size, "%s: %zu bytes of outputs, expected %zu", f->row->name, size, at);
}

static void run_graph(const fixture *f, berth_session *session, const berth_tensor *inputs,
                      const berth_tensor *got) {
    for (uint32_t i = 0; i < f->inputs; ++i)
        memcpy(berth_session_input(session, i)->data, inputs[i].data,
               berth_tensor_size_bytes(&inputs[i]));
    assert_ok(berth_session_run(session, -1));
    for (uint32_t i = 0; i < f->outputs; ++i) {
        const berth_tensor *expected = berth_session_output(session, i);
        cr_expect_eq(memcmp(expected->data, got[i].data, berth_tensor_size_bytes(expected)), 0,
                     "%s: output %u has other bits than the graph executor's", f->row->name, i);
    }
}

// Rows [0, most) of every set; those of quantised models beside `session`.
static void check_sets(const fixture *f, int sets, int64_t most, berth_session *session) {
    enum { most_io = 4 };
    for (int set = 0; set < sets; ++set) {
        berth_tensor input[most_io], output[most_io], in[most_io], got[most_io];
        for (uint32_t i = 0; i < f->inputs; ++i) input[i] = read_tensor(f, set, "input", i);
        for (uint32_t i = 0; i < f->outputs; ++i) output[i] = read_tensor(f, set, "output", i);
        for (int64_t row = 0; row < input[0].dims[0] && row < most; ++row) {
            for (uint32_t i = 0; i < f->inputs; ++i) in[i] = one_of(&input[i], row);
            for (uint32_t i = 0; i < f->outputs; ++i) got[i] = one_of(&output[i], row);
            run_example(f, in, got);
            if (session) run_graph(f, session, in, got);
            for (uint32_t i = 0; i < f->outputs && !f->row->integers; ++i) {
                berth_tensor expected = one_of(&output[i], row);
                berth_compare_options compare = BERTH_COMPARE_DEFAULTS;
                berth_comparison result;
                assert_ok(berth_compare(&got[i], &expected, &compare, &result));
                cr_expect(result.pass, "%s, set %d, row %lld: %g instead of %g", f->row->name, set,
                          (long long)row, result.worst_got, result.worst_expected);
            }
        }
    }
}

static void check_all(const fixture *f, int sets, int64_t most) {
    berth_model *model = NULL;
    berth_session *session = NULL;
    if (f->row->integers) {
        cr_assert(load(f->model, "cpu", "graph", &model));
        assert_ok(berth_session_open(berth_allocator_system(), berth_model_program(model), NULL,
                                     &session));
    }
    check_sets(f, sets, most, session);
    berth_session_close(session);
    berth_model_destroy(model);
}

// ---- natively, with gcc and clang ---------------------------------------------------------------

ParameterizedTestParameters(bare_models, run_natively) {
    static int indices[model_count];
    for (int i = 0; i < model_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, model_count);
}

ParameterizedTest(int *index, bare_models, run_natively, .timeout = 300) {
    fixture f = begin(&models[*index]);
    shell("cd %s && gcc " BARE_WARNINGS " -O2 -o program *.c -lm", f.folder);
    check_all(&f, f.row->sets, 1000);
    shell("cd %s && clang " BARE_WARNINGS " -O1 -fsanitize=address,undefined "
          "-fno-sanitize-recover=all -o program *.c -lm",
          f.folder);
    check_sets(&f, 1, 1, NULL);
    end(&f);
}

// ---- Linux boards -------------------------------------------------------------------------------

typedef struct machine {
    const char *compiler, *runner;
} machine;

static const machine machines[] = {{"aarch64-linux-gnu-gcc", "qemu-aarch64-static"},
                                   {"arm-linux-gnueabihf-gcc", "qemu-arm-static"},
                                   {"riscv64-linux-gnu-gcc", "qemu-riscv64-static"}};

enum { machine_count = sizeof(machines) / sizeof(machines[0]) };

ParameterizedTestParameters(bare_models, run_on_other_machines) {
    static int indices[model_count];
    for (int i = 0; i < model_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, model_count);
}

ParameterizedTest(int *index, bare_models, run_on_other_machines, .timeout = 300) {
    fixture f = begin(&models[*index]);
    for (int i = 0; i < machine_count; ++i) {
        shell("cd %s && %s " BARE_WARNINGS " -O2 -static -o program *.c -lm", f.folder,
              machines[i].compiler);
        f.runner = machines[i].runner;
        check_sets(&f, 1, 1, NULL);
    }
    end(&f);
}

// ---- microcontrollers ---------------------------------------------------------------------------

typedef struct board {
    const char *flags, *script, *machine;
} board;

static const board cortex_m4 = {"-mcpu=cortex-m4 -mfpu=fpv4-sp-d16", "an386.ld", "mps2-an386"};
static const board cortex_m55 = {"-mcpu=cortex-m55 -mfpu=auto -DCLOCK_HZ=32000000u", "an547.ld",
                                 "mps3-an547"};

static void build_for_board(const fixture *f, const board *b) {
    char upper[64], here[256], flags[128];
    snprintf(flags, sizeof(flags), "%s -mthumb -mfloat-abi=hard -Os -ffunction-sections", b->flags);
    snprintf(upper, sizeof(upper), "%s", f->row->name);
    for (char *at = upper; *at; ++at)
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    cr_assert(realpath("tests/bare/board", here));
    shell("cd %s && arm-none-eabi-gcc " BARE_WARNINGS
          " %s '-D%s_RAM_ATTRIBUTE=__attribute__((section(\".model\")))' "
          "'-D%s_IN_DTCM_ATTRIBUTE=__attribute__((section(\".fast_model\")))' -c %s.c %s_weights.c "
          "main.c",
          f->folder, flags, upper, upper, f->row->name, f->row->name);
    shell("cd %s && arm-none-eabi-gcc %s -DMODEL_RUN=__wrap_%s_run -DMODEL_REAL=__real_%s_run "
          "-c %s/startup.c %s/measure.c",
          f->folder, flags, f->row->name, f->row->name, here, here);
    shell("cd %s && arm-none-eabi-gcc %s -nostartfiles --specs=rdimon.specs -L %s -T %s "
          "-Wl,--wrap=%s_run,--gc-sections -o program.elf %s.o %s_weights.o main.o startup.o "
          "measure.o -lm",
          f->folder, flags, here, b->script, f->row->name, f->row->name, f->row->name);
    // The runner is followed by "./program": a script of that name.
    char path[128], script[512];
    int size = snprintf(script, sizeof(script),
                        "#!/bin/sh\nexec qemu-system-arm -M %s -display none -serial none "
                        "-monitor none -icount shift=0 -semihosting-config "
                        "enable=on,target=native -kernel program.elf\n",
                        b->machine);
    snprintf(path, sizeof(path), "%s/program", f->folder);
    write_bytes(path, script, (size_t)size);
    shell("chmod +x %s", path);
}

// No call of the model's own code but to memcpy, memset and functions of <math.h>.
static void check_symbols(const fixture *f) {
    shell("cd %s && ! arm-none-eabi-nm -u %s.o %s_weights.o | grep -vE "
          "' (%s_c[0-9]+|mem(cpy|set)|__aeabi_[a-z0-9]+|(f(abs|loor|ma|mod)|ceil|rint|trunc|sqrt|"
          "exp|log|pow|tanh?|erf|cosh?|sinh?)f?)$|:$|^$'",
          f->folder, f->row->name, f->row->name, f->row->name);
}

// Of a section: used from its first to its last byte (but for the rounding of the last value to the
// alignment), and nothing beside it is touched.
static void check_section(const fixture *f, unsigned long planned, unsigned long bytes,
                          unsigned long first, unsigned long last, int guards) {
    cr_expect(guards, "%s: written beside its memory", f->row->name);
    cr_expect_eq(bytes, planned, "%s: %lu bytes of static memory, planned %lu", f->row->name, bytes,
                 planned);
    if (planned)
        cr_expect(first < 8 && last > bytes - 8 && last <= bytes, "%s: touched [%lu, %lu) of %lu",
                  f->row->name, first, last, bytes);
}

// Painted memory: what the static arrays are used for, and that the stack stays small.
// Returns the instructions of a run.
static unsigned long check_memory(const fixture *f, unsigned long most_stack) {
    char path[128], *text = NULL;
    size_t size = 0;
    unsigned long stack = 0, bytes = 0, first = 0, last = 0, instructions = 0, fast = 0;
    int guards = 0;
    snprintf(path, sizeof(path), "%s/err", f->folder);
    assert_ok(berth_file_read(f->arena, path, 4096, &text, &size));
    cr_assert_eq(sscanf(text, "stack %lu static %lu touched %lu %lu guards %d instructions %lu",
                        &stack, &bytes, &first, &last, &guards, &instructions),
                 6, "%s", text);
    check_section(f, f->arena_bytes, bytes, first, last, guards);
    cr_expect(stack <= most_stack, "%s: %lu bytes of stack", f->row->name, stack);
    printf("%-18s stack %4lu, arena %6lu, %10lu instructions\n", f->row->name, stack, bytes,
           instructions);
    const char *line = strstr(text, "fast ");
    cr_assert_eq(line != NULL, f->fast_bytes > 0, "%s: %s", f->row->name, text);
    if (!line) return instructions;
    cr_assert_eq(sscanf(line, "fast %lu touched %lu %lu guards %d", &fast, &first, &last, &guards),
                 4, "%s", text);
    check_section(f, f->fast_bytes, fast, first, last, guards);
    return instructions;
}

ParameterizedTestParameters(bare_models, run_on_cortex_m4) {
    static int indices[model_count];
    for (int i = 0; i < model_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, model_count);
}

ParameterizedTest(int *index, bare_models, run_on_cortex_m4, .timeout = 300) {
    fixture f = begin(&models[*index]);
    build_for_board(&f, &cortex_m4);
    check_symbols(&f);
    check_all(&f, 1, 1);
    check_memory(&f, 512);
    end(&f);
}

// What CMSIS-NN takes for the same layers there (scripts/bare_peers.sh, docs/bare.md).
static const struct {
    const char *name;
    unsigned long instructions;
} peers[] = {{"dscnn_int8", 2453875}, {"mobilenetv1_int8", 8490125}, {"resnet8_int8", 5298562}};

// The arithmetic of a Cortex-M55 with Helium: models whose constants fit its 512 KiB.
ParameterizedTestParameters(bare_models, run_on_cortex_m55) {
    static int indices[] = {0, 2, 5, 6, 8, 10};
    return cr_make_param_array(int, indices, sizeof(indices) / sizeof(indices[0]));
}

ParameterizedTest(int *index, bare_models, run_on_cortex_m55, .timeout = 300) {
    fixture f = begin_for(&models[*index], TARGET " -features=mve");
    build_for_board(&f, &cortex_m55);
    check_all(&f, 1, 1);
    unsigned long instructions = check_memory(&f, 640);  // vector registers are saved, too
    for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); ++i)
        if (strcmp(peers[i].name, f.row->name) == 0)
            cr_expect_leq(instructions, peers[i].instructions);
    end(&f);
}

// A fast memory of 16 KiB beside the board's own: values and private arrays are in both, in a section each, and the
// outputs are the same.
#define TWO_MEMORIES                                                                               \
    "{\"devices\": [{\"name\": \"mcu\", \"target\": {\"kind\": \"cpu\", \"arch\": "                \
    "\"cortex-m4\"}}], "                                                                           \
    "\"memories\": [{\"name\": \"sram\", \"capacity_bytes\": \"1MiB\", "                           \
    "\"bandwidth_bytes_per_s\": 1e8, "                                                             \
    "\"reached_by\": [\"mcu\"]}, {\"name\": \"dtcm\", \"capacity_bytes\": \"%dKiB\", "             \
    "\"bandwidth_bytes_per_s\": 8e8, \"reached_by\": [\"mcu\"]}]}"

static const struct {
    int model, fast_kib;
    bool own_is_used, fast_is_used;
} two_memories[] = {
    {0, 16, true, true}, {6, 16, false, true}, {9, 20, true, true}, {10, 10, true, true}};

ParameterizedTestParameters(bare_models, run_with_two_memories) {
    static int indices[] = {0, 1, 2, 3};
    return cr_make_param_array(int, indices, sizeof(indices) / sizeof(indices[0]));
}

ParameterizedTest(int *index, bare_models, run_with_two_memories, .timeout = 300) {
    static const board *const boards[] = {&cortex_m4, &cortex_m55};
    char target[512];
    snprintf(target, sizeof(target), TWO_MEMORIES, two_memories[*index].fast_kib);
    fixture f = begin_for(&models[two_memories[*index].model], target);
    cr_expect_eq(f.arena_bytes > 0, two_memories[*index].own_is_used, "%s", f.row->name);
    cr_expect_eq(f.fast_bytes > 0, two_memories[*index].fast_is_used, "%s", f.row->name);
    cr_expect_leq(f.fast_bytes, (uint64_t)two_memories[*index].fast_kib << 10, "%s", f.row->name);
    for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); ++i) {
        build_for_board(&f, boards[i]);
        check_all(&f, 1, 1);
        check_memory(&f, 640);
    }
    end(&f);
}

// ---- a shared library ---------------------------------------------------------------------------

// The executor aot on an operating system: libNAME.so beside the sources, with that one function. The
// example runs with it, here and on aarch64.
static void check_library(const char *target, const char *compiler, const char *nm,
                          const char *runner) {
    char folder[64];
    const char *out = "../shared/models/mnist/model.onnx";
    if (!berth_file_exists(out)) cr_skip_test("%s is not here", out);
    berth_model *model = NULL;
    berth_model_options options = {.target = target, .target_options = {.executor = "aot"}};
    assert_ok(berth_model_load(out, &options, &model));
    berth_compile_options compile = {0};
    berth_toolchain_options toolchain =
        berth_codegen_toolchain(&compile, berth_model_target(model)->devices[0].target);
    berth_bare_options bare = {.name = "mnist", .toolchain = &toolchain};
    make_folder(folder);
    assert_ok(berth_bare_write(berth_model_program(model), &bare, folder));
    berth_model_destroy(model);
    shell(
        "cd %s && %s -D --defined-only libmnist.so >symbols && grep -q ' T mnist_run$' symbols && "
        "! grep -v mnist_run symbols",
        folder, nm);
    shell("cd %s && %s -std=c99 main.c -L. -lmnist -Wl,-rpath,. -o program", folder, compiler);
    fixture f = {.row = &models[0], .runner = runner, .inputs = 1, .outputs = 1};
    memcpy(f.folder, folder, sizeof(folder));
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    check_sets(&f, models[0].sets, 1, NULL);
    end(&f);
}

Test(bare_models, become_a_shared_library, .timeout = 300) {
    check_library("cpu", "gcc", "nm", "");
    check_library("cpu -arch=aarch64", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-nm",
                  "qemu-aarch64-static -L /usr/aarch64-linux-gnu");
}
