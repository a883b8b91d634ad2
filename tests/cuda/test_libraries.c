// Products and convolutions that cuBLAS and cuDNN compute (docs/libraries.md), on the emulated device and beside emulated
// libraries (emulation/libcublaslt.c, libcudnn.c).
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "compiler/compile.h"
#include "devices/registry.h"
#include "executor/session.h"
#include "ir/text.h"
#include "tests/check.h"
#include "tests/cuda/emulated.h"
#include "tests/kernel_cache.h"
#include "tests/toolkit/library_problems.h"
#include "toolkit/model.h"

#define CUBLAS(arch) "cuda -arch=" arch " -libs=cublas -libs_policy=always"

Test(cuda_operators, products_of_cublas, .timeout = 300) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    library_family_try(
        &(library_family){"cublas", CUBLAS("sm_80"), false, BERTH_DTYPE_F32, 2e-6, 16, 1, false});
    library_family_try(
        &(library_family){"cublas", CUBLAS("sm_90a"), false, BERTH_DTYPE_F16, 1e-3, 8, 1, false});
    library_family_try(
        &(library_family){"cublas", CUBLAS("sm_90a"), false, BERTH_DTYPE_BF16, 8e-3, 8, 1, false});
}

// Of f32 with tf32: the emulation refuses what is not asked for so, and computes in f32.
Test(cuda_operators, products_of_cublas_in_tf32, .timeout = 300) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    library_family_try(&(library_family){"cublas", CUBLAS("sm_80") " -features=tf32", false,
                                         BERTH_DTYPE_F32, 2e-6, 4, 1, false});
}

Test(cuda_operators, convolutions_of_cudnn, .timeout = 300) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    library_family_try(&(library_family){"cudnn",
                                         "cuda -arch=sm_80 -libs=cublas,cudnn -libs_policy=always",
                                         true, BERTH_DTYPE_F32, 2e-6, 16, 2, true});
}

// ---- runs and failures --------------------------------------------------------------------------

// A product between two kernels of ours, so that all three are one graph.
static const char product[] = "module \"m\"\n"
                              "graph @main(%x: f32[24,40], %w: f32[40,16]) {\n"
                              "  %s = softmax(%x) {axis = 1}\n"
                              "  %y = matmul(%s, %w) #1\n"
                              "  %z = softmax(%y) {axis = 1}\n"
                              "  return %z\n"
                              "}\n"
                              "locations {\n  #1 = \"m\" node \"product\" op \"MatMul\"\n}\n";

// A convolution between two such kernels.
static const char convolution[] =
    "module \"m\"\n"
    "graph @main(%x: f32[1,3,12,12]) {\n"
    "  %w = constant() {value = f32[2,3,1,1] (0.5, -1.0, 2.0, 0.25, 1.0, -0.5)}\n"
    "  %s = softmax(%x) {axis = 1}\n"
    "  %y = conv(%s, %w) #1\n"
    "  %z = softmax(%y) {axis = 1}\n"
    "  return %z\n"
    "}\n"
    "locations {\n  #1 = \"m\" node \"window\" op \"Conv\"\n}\n";

typedef struct work {
    berth_arena *arena;
    berth_compile_result compiled;
} work;

static work build(const char *model, const char *wanted, const char *folder) {
    work w = {0};
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &w.arena));
    assert_ok(berth_module_parse(w.arena, model, strlen(model), "m", &module));
    assert_ok(berth_target_parse(w.arena, wanted, NULL, &target));
    berth_compile_options options = {.target = target, .cache_folder = folder, .verify = true};
    assert_ok(berth_compile(module, &options, &w.compiled));
    return w;
}

static int *counter(const char *name) {
    void *library = dlopen("libcublasLt.so.13", RTLD_NOW);
    cr_assert_not_null(library, "%s", dlerror());
    int *found = dlsym(library, name);
    cr_assert_not_null(found);
    return found;
}

// What opening the program and three runs say; "" = nothing.
static const char *outcome(const work *w, const char *variable, const char *value) {
    static char message[1024];
    berth_session *session = NULL;
    berth_session_options options = {0};
    setenv(variable, value, 1);
    berth_status status =
        berth_session_open(berth_allocator_system(), w->compiled.program, &options, &session);
    for (int i = 0; i < 3 && !status; ++i) status = berth_session_run(session, -1);
    snprintf(message, sizeof(message), "%s", status ? berth_status_message(status) : "");
    berth_status_free(status);
    unsetenv(variable);
    berth_session_close(session);
    return message;
}

// Captured once, when the session opens, and computed by each run.
Test(cuda_operators, cublas_is_in_graphs, .timeout = 120) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    kernel_cache kernels;
    kernel_cache_open(&kernels);
    work w = build(product, CUBLAS("sm_80"), kernels.folder);
    int *puts = counter("emulated_cublas_puts"), *products = counter("emulated_cublas_products");
    int puts_before = *puts, products_before = *products;
    cr_expect_str_empty(outcome(&w, "NOTHING", ""));
    cr_expect_eq(*puts - puts_before, 1, "%d", *puts - puts_before);
    cr_expect_eq(*products - products_before, 3, "%d", *products - products_before);
    berth_arena_destroy(w.arena);
    kernel_cache_close(&kernels);
}

typedef struct library_fault {
    const char *variable, *value, *text[3];
} library_fault;

// Each fault is said, and nothing of it stays.
static void check_faults(const work *w, const library_fault *faults, size_t count) {
    cr_expect_str_empty(outcome(w, "NOTHING", ""));
    for (size_t i = 0; i < count; ++i) {
        const char *message = outcome(w, faults[i].variable, faults[i].value);
        for (int k = 0; k < 3 && faults[i].text[k]; ++k)
            cr_expect(strstr(message, faults[i].text[k]), "%s: \"%s\"", faults[i].value, message);
        message = outcome(w, "NOTHING", "");
        cr_expect_str_empty(message, "%s: nothing stays: \"%s\"", faults[i].value, message);
    }
}

// Device and step of a product that cannot be put into a stream; what is wrong of one that cannot be prepared.
Test(cuda_faults, of_cublas, .timeout = 120) {
    static const library_fault faults[] = {
        {"BERTH_EMULATION_FAIL",
         "cublasLtMatmul:0:13",
         {"CUBLAS_STATUS_EXECUTION_FAILED", "cuda device 0 (emulated GPU 0", "product"}},
        {"BERTH_EMULATION_FAIL",
         "cublasLtCreate:0:1",
         {"CUBLAS_STATUS_NOT_INITIALIZED", "install cuBLAS"}},
        {"BERTH_EMULATION_FAIL", "cublasLtMatmulDescCreate:0:3", {"CUBLAS_STATUS_ALLOC_FAILED"}},
        {"BERTH_EMULATION_FAIL", "cublasLtMatrixLayoutCreate:0:7", {"CUBLAS_STATUS_INVALID_VALUE"}},
        {"BERTH_EMULATION_FAIL",
         "cublasLtMatmulAlgoGetHeuristic:0:15",
         {"CUBLAS_STATUS_NOT_SUPPORTED"}},
        {"BERTH_EMULATION_NO_ALGORITHM", "1", {"has no algorithm for this product"}}};
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    kernel_cache kernels;
    kernel_cache_open(&kernels);
    work w = build(product, CUBLAS("sm_80"), kernels.folder);
    check_faults(&w, faults, sizeof(faults) / sizeof(faults[0]));
    berth_arena_destroy(w.arena);
    kernel_cache_close(&kernels);
}

// The same of a convolution: each function that cuDNN's form of it calls.
Test(cuda_faults, of_cudnn, .timeout = 120) {
#define FAULT "BERTH_EMULATION_FAIL"
    static const library_fault faults[] = {
        {FAULT,
         "cudnnConvolutionForward:0:5000",
         {"CUDNN_STATUS_EXECUTION_FAILED", "cuda device 0 (emulated GPU 0", "window"}},
        {FAULT, "cudnnCreate:0:1001", {"CUDNN_STATUS_NOT_INITIALIZED", "install cuDNN"}},
        {FAULT, "cudnnCreateTensorDescriptor:0:4000", {"CUDNN_STATUS_INTERNAL_ERROR"}},
        {FAULT, "cudnnSetConvolutionMathType:0:2000", {"CUDNN_STATUS_BAD_PARAM"}},
        {FAULT, "cudnnGetConvolutionForwardAlgorithm_v7:0:3000", {"CUDNN_STATUS_NOT_SUPPORTED"}}};
#undef FAULT
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    kernel_cache kernels;
    kernel_cache_open(&kernels);
    work w = build(convolution, "cuda -arch=sm_80 -libs=cudnn -libs_policy=always", kernels.folder);
    check_faults(&w, faults, sizeof(faults) / sizeof(faults[0]));
    berth_arena_destroy(w.arena);
    kernel_cache_close(&kernels);
}

// ---- what the driver says -----------------------------------------------------------------------

// Clocks, widths and the cache are those of the emulation: 1 GHz; 2 GHz x 2 x 256 bits; 1 MiB. A figure that is given counts.
Test(cuda_operators, figures_of_the_driver) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    berth_arena *arena = NULL;
    berth_machine_facts facts;
    berth_multi_target *target = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_machine_facts_for(arena, "cuda", &facts));
    const berth_target_options options = {.machine = &facts};
    assert_ok(berth_target_parse(arena, "cuda", &options, &target));
    const berth_target *gpu = target->devices[0].target;
    cr_expect_eq(gpu->clock_hz, 1000000000);
    cr_expect_eq(gpu->memory_bandwidth_bytes_per_s, 128e9);
    cr_expect_eq(gpu->l2_bytes, 1 << 20);
    cr_expect_eq(gpu->compute_units, 2);
    assert_ok(berth_target_parse(arena, "cuda -clock_hz=2e9 -l2_bytes=50MiB", &options, &target));
    cr_expect_eq(target->devices[0].target->clock_hz, 2000000000);
    cr_expect_eq(target->devices[0].target->l2_bytes, 50 << 20);
    berth_arena_destroy(arena);
}

// ---- the command --------------------------------------------------------------------------------

static char folder[] = "/tmp/berth-cublas-XXXXXX";

static void put(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void make_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
    setenv("F", folder, 1);
    setenv("B", BERTH_COMMAND, 1);
}

static bool shell(const char *script) {
    int result = system(script);
    return WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

// Nothing takes its place: where its files do not load, the program does not open.
Test(cuda_faults, without_cublas, .timeout = 120) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    make_folder();
    put("m.txt", product);
    cr_expect(shell(
        "for l in libcuda.so.1 libnvrtc.so.13; do for d in $(echo \"$LD_LIBRARY_PATH\" | tr : ' "
        "'); do "
        "test -e $d/$l && ln -sf $(realpath $d/$l) \"$F\"/$l; done; done; cd \"$F\"; "
        "for v in 13 12 11; do : >libcublasLt.so.$v; done; "
        "LD_LIBRARY_PATH=\"$F\" \"$B\" run m.txt --target 'cuda -libs=cublas -libs_policy=always' "
        ">out 2>&1 && exit 2; grep -q "
        "'cuBLAS is not here: libcublasLt.so.13, libcublasLt.so.12, libcublasLt.so.11' out && "
        "grep -q 'install cuBLAS' out || { cat out; false; }"));
    cr_expect(shell("rm -rf \"$F\""));
}

// Both sides are measured on the device. Then the figures are edited: a library that takes a nanosecond is taken, one that takes an
// hour is not; and none takes a product of an attention that is one kernel of ours.
Test(cuda_operators, the_faster_one_computes, .timeout = 300) {
    if (!berth_test_is_emulated()) cr_skip("the device is not the emulated one");
    make_folder();
    put("a.txt", "module \"m\"\n"
                 "graph @main(%q: f32[2,32,16], %k: f32[2,16,32], %v: f32[2,32,16]) {\n"
                 "  %s = matmul(%q, %k)\n  %p = softmax(%s) {axis = 2}\n  %y = matmul(%p, %v)\n"
                 "  return %y\n}\n");
    put("b.txt", "module \"m\"\ngraph @main(%q: f32[2,32,16], %k: f32[2,16,32]) {\n"
                 "  %s = matmul(%q, %k)\n  return %s\n}\n");
    put("plan.sh",
        "\"$B\" plan $1 --target 'cuda -arch=sm_80 -libs=cublas' --costs $2 --why >out 2>log\n"
        "grep -q \"$3\" out || { cat out log; false; }\n");
    cr_expect(shell(
        "cd \"$F\" && \"$B\" calibrate b.txt --target 'cuda -arch=sm_80 -libs=cublas' --duration "
        "1ms -q "
        "-o c.jsonl >out 2>&1 && test $(grep -c '\"class\": \"library\"' c.jsonl) = 2 && "
        "sed -e '/\"work\": \"cublas: /s/\"ns\": [0-9.e+]*/\"ns\": 1/' c.jsonl >fast.jsonl && "
        "sed -e '/\"work\": \"cublas: /s/\"ns\": [0-9.e+]*/\"ns\": 3.6e12/' c.jsonl >slow.jsonl && "
        "sh plan.sh b.txt fast.jsonl 'computed by cublas: matmul f32 2 x .32,16...16,32., "
        "measured' && "
        "sh plan.sh b.txt slow.jsonl 'not by cublas: matmul f32 2 x .32,16...16,32., measured' && "
        "sh plan.sh a.txt fast.jsonl 'not by cublas: matmul.* our kernel computes the attention as "
        "a whole'"));
    cr_expect(shell("rm -rf \"$F\""));
}
