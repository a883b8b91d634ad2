// What the graph executor itself costs on the cpu device: the time of a run with 0, 1, 100 and 1000
// steps whose kernels do next to nothing. One JSON line per case; the last line of each setting
// gives the two figures the requirements name: the fixed cost of a run and the cost of one more
// step. Then what the thread pool costs with two threads: an empty loop while the worker is awake
// and after it fell asleep, the time until a worker that was asleep works, and what a second thread
// brings to work that only computes (2 where both have a core of their own).
//
//   bench_executor [seconds per case]
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "devices/cpu/thread_pool.h"
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
    return (berth_executable_image){"cpu", BERTH_FORMAT_CPU_ELF, "", data, size_bytes, ""};
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
    static const berth_kernel_binding declared[] = {{4, BERTH_ACCESS_READ},
                                                    {4, BERTH_ACCESS_WRITE}};
    berth_program_kernel *kernels = berth_arena_new_array(arena, berth_program_kernel, 1);
    kernels[0] = (berth_program_kernel){.entry = "touch",
                                        .binding_count = 2,
                                        .bindings = declared,
                                        .groups = {groups, 1, 1},
                                        .group_size = {1, 1, 1}};
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

// ---- thread pool ----

enum { loop_samples = 101, loop_iterations = 64, asleep_after_us = 2000 };

static void do_nothing(void *user, uint32_t thread, int64_t begin, int64_t end) {
    (void)user, (void)thread, (void)begin, (void)end;
}

// About a microsecond per iteration: a chain of additions that depend on each other.
static void compute(void *user, uint32_t thread, int64_t begin, int64_t end) {
    (void)thread;
    for (int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (int k = 0; k < 1000; ++k) sum += 1e-3 * (double)i;
        ((volatile double *)user)[i * 8] = sum;
    }
}

// The caller's iteration waits for the worker's.
typedef struct meeting {
    atomic_bool came;
    int64_t came_ns;
} meeting;

static void meet(void *user, uint32_t thread, int64_t begin, int64_t end) {
    meeting *m = user;
    (void)begin, (void)end;
    if (thread == 0) {
        while (!atomic_load(&m->came)) continue;
        return;
    }
    m->came_ns = berth_clock_ns();
    atomic_store(&m->came, true);
}

static double median_loop(berth_thread_pool *pool, int64_t count, berth_thread_pool_body body,
                          void *user, bool asleep) {
    double samples[loop_samples];
    for (int s = 0; s < loop_samples; ++s) {
        if (asleep) usleep(asleep_after_us);
        if (!asleep) berth_thread_pool_run(pool, loop_iterations, 0, do_nothing, NULL);
        int64_t start_ns = berth_clock_ns();
        berth_thread_pool_run(pool, count, 0, body, user);
        samples[s] = (double)(berth_clock_ns() - start_ns);
    }
    qsort(samples, loop_samples, sizeof(samples[0]), compare_times);
    return samples[loop_samples / 2];
}

static double median_wake(berth_thread_pool *pool) {
    double samples[loop_samples];
    for (int s = 0; s < loop_samples; ++s) {
        meeting m = {.came = false};
        usleep(asleep_after_us);
        int64_t start_ns = berth_clock_ns();
        berth_thread_pool_run(pool, 2, 1000000, meet, &m);
        samples[s] = (double)(m.came_ns - start_ns);
    }
    qsort(samples, loop_samples, sizeof(samples[0]), compare_times);
    return samples[loop_samples / 2];
}

static void measure_pool(const char *machine) {
    berth_thread_pool *pools[2];
    double compute_ns[2];
    static double results[loop_iterations * 8];
    for (uint32_t i = 0; i < 2; ++i) {
        const berth_thread_pool_options options = {.thread_count = i + 1, .spin_ns = 20000};
        must("pool", berth_thread_pool_create(berth_allocator_system(), &options, &pools[i]));
        compute_ns[i] = median_loop(pools[i], loop_iterations, compute, results, false);
    }
    print_facts(machine, 2, false);
    printf(",\"empty_loop_ns\":%.0f,\"empty_loop_asleep_ns\":%.0f,\"wake_ns\":%.0f,"
           "\"compute_1_ns\":%.0f,\"compute_2_ns\":%.0f}\n",
           median_loop(pools[1], loop_iterations, do_nothing, NULL, false),
           median_loop(pools[1], loop_iterations, do_nothing, NULL, true), median_wake(pools[1]),
           compute_ns[0], compute_ns[1]);
    for (int i = 0; i < 2; ++i) berth_thread_pool_destroy(pools[i]);
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
    measure_pool(machine);
    berth_arena_destroy(arena);
    return 0;
}
