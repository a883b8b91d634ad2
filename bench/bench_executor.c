// What the graph executor itself costs on the cpu device: the time of a run with 0, 1, 100 and 1000
// steps whose kernels do next to nothing. One JSON line per case; the last line gives the two
// figures the requirements name: the fixed cost of a run and the cost of one more step.
//
//   bench_executor [seconds per case]
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "executor/session.h"

static const char source[] =
    "#include <stdint.h>\n"
    "void touch(void *const *b, const int64_t *c, int64_t begin, int64_t end, void *s) {\n"
    "    (void)c; (void)begin; (void)end; (void)s;\n"
    "    *(volatile float *)b[1] = *(volatile float *)b[0];\n"
    "}\n";

extern char **environ;

static void fail(const char *what, berth_status status) {
    fprintf(stderr, "bench_executor: %s: %s\n", what, berth_status_message(status));
    berth_status_free(status);
    exit(1);
}

static void must(const char *what, berth_status status) {
    if (status) fail(what, status);
}

// The kernel as a shared object, compiled now.
static berth_executable_image compile(berth_arena *arena) {
    char folder[] = "/tmp/berth-bench-XXXXXX";
    if (!mkdtemp(folder)) fail("mkdtemp", NULL);
    char *code = berth_arena_printf(arena, "%s/kernel.c", folder);
    char *object = berth_arena_printf(arena, "%s/kernel.so", folder);
    must("kernel source", berth_file_write(code, source, sizeof(source) - 1));
    char *arguments[] = {"cc", "-O2", "-shared", "-fPIC", "-o", object, code, NULL};
    pid_t child = 0;
    int exit_status = 1;
    if (posix_spawnp(&child, "cc", NULL, NULL, arguments, environ) != 0 ||
        waitpid(child, &exit_status, 0) != child || exit_status != 0)
        fail("cc does not compile the kernel", NULL);
    char *data = NULL;
    size_t size_bytes = 0;
    must("kernel", berth_file_read(arena, object, (size_t)1 << 24, &data, &size_bytes));
    unlink(code);
    unlink(object);
    rmdir(folder);
    return (berth_executable_image){"cpu", BERTH_FORMAT_CPU_ELF, "", data, size_bytes};
}

// `step_count` dispatches, each reading what the one before wrote.
static const berth_program *make_program(berth_arena *arena, const berth_executable_image *image,
                                         uint32_t step_count, uint32_t groups) {
    static const berth_program_device devices[] = {{"cpu:0", "cpu", 0, false, "{}"}};
    static const berth_program_pool pools[] = {{.scope = "global",
                                                .usage = BERTH_POOL_WORKSPACE,
                                                .size_bytes = 256,
                                                .alignment_bytes = 128}};
    static const uint32_t bindings[2][2] = {{0, 1}, {1, 0}};
    berth_program_tensor *tensors = berth_arena_new_array(arena, berth_program_tensor, 2);
    for (uint32_t i = 0; i < 2; ++i)
        tensors[i] = (berth_program_tensor){.name = "t",
                                            .offset_bytes = i * 128,
                                            .size_bytes = 4,
                                            .dtype = BERTH_DTYPE_F32,
                                            .layout = ""};
    berth_program_kernel *kernels = berth_arena_new_array(arena, berth_program_kernel, 1);
    kernels[0] = (berth_program_kernel){
        .entry = "touch", .binding_count = 2, .groups = {groups, 1, 1}, .group_size = {1, 1, 1}};
    berth_program_step *steps = berth_arena_new_array(arena, berth_program_step, step_count);
    for (uint32_t i = 0; i < step_count; ++i)
        steps[i] =
            (berth_program_step){.bindings = bindings[i % 2], .name = "touch", .op = "touch"};
    berth_program *program = berth_arena_new(arena, berth_program);
    *program = (berth_program){.name = "bench",
                               .target_json = "{}",
                               .executor = "graph",
                               .devices = devices,
                               .device_count = 1,
                               .pools = pools,
                               .pool_count = 1,
                               .tensors = tensors,
                               .tensor_count = 2,
                               .executables = image,
                               .executable_count = 1,
                               .kernels = kernels,
                               .kernel_count = 1,
                               .steps = steps,
                               .step_count = step_count};
    return program;
}

static int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { sample_count = 200 };

// Median nanoseconds per run, of samples of several runs each.
static double measure(berth_session *session, double seconds) {
    double samples[sample_count];
    for (int i = 0; i < 100; ++i) must("warm-up", berth_session_run(session, -1));
    int64_t start_ns = berth_clock_ns();
    for (int i = 0; i < 20; ++i) must("run", berth_session_run(session, -1));
    double once_ns = (double)(berth_clock_ns() - start_ns) / 20;
    int runs = (int)(seconds * 1e9 / sample_count / once_ns) + 1;
    for (int s = 0; s < sample_count; ++s) {
        start_ns = berth_clock_ns();
        for (int i = 0; i < runs; ++i) must("run", berth_session_run(session, -1));
        samples[s] = (double)(berth_clock_ns() - start_ns) / runs;
    }
    qsort(samples, sample_count, sizeof(samples[0]), compare_times);
    return samples[sample_count / 2];
}

static void print_facts(const char *machine, uint32_t threads, bool profile) {
    struct utsname system;
    uname(&system);
    printf("{\"bench\":\"executor\",\"cpu\":\"%s\",\"cores\":%ld,\"system\":\"%s "
           "%s\",\"threads\":%u,\"profile\":%s",
           machine, sysconf(_SC_NPROCESSORS_ONLN), system.sysname, system.release, threads,
           profile ? "true" : "false");
}

static double run_case(berth_arena *arena, const berth_executable_image *image, uint32_t step_count,
                       uint32_t threads, bool profile, double seconds, char machine[128]) {
    berth_session *session = NULL;
    const berth_session_options options = {.thread_count = threads, .profile = profile};
    must("open",
         berth_session_open(berth_allocator_system(),
                            make_program(arena, image, step_count, threads), &options, &session));
    berth_session_report report;
    berth_session_get_report(session, &report);
    snprintf(machine, 128, "%s", report.devices[0].physical_name);
    double run_ns = measure(session, seconds);
    print_facts(machine, threads, profile);
    printf(",\"steps\":%u,\"run_ns\":%.0f}\n", step_count, run_ns);
    fflush(stdout);
    berth_session_close(session);
    return run_ns;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    berth_arena *arena = NULL;
    must("arena", berth_arena_create(berth_allocator_system(), &arena));
    const berth_executable_image image = compile(arena);
    static const uint32_t counts[] = {0, 1, 100, 1000};
    char machine[128] = "";
    for (uint32_t setting = 0; setting < 3; ++setting) {
        uint32_t threads = setting == 1 ? 2 : 1;
        bool profile = setting == 2;
        double run_ns[4];
        for (int i = 0; i < 4; ++i)
            run_ns[i] = run_case(arena, &image, counts[i], threads, profile, seconds, machine);
        print_facts(machine, threads, profile);
        printf(",\"fixed_ns_per_run\":%.0f,\"ns_per_step\":%.1f}\n", run_ns[1],
               (run_ns[3] - run_ns[1]) / 999);
    }
    berth_arena_destroy(arena);
    return 0;
}
