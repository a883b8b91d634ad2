// Static memory allocation: the tables of docs/memory.md.
//
//   bench_memory FOLDER [--minimize SECONDS]   the instances X.CAPACITY.csv of a folder
//   bench_memory --generated COUNT             heuristics on generated problems of that many
//   buffers
//   --peer PROGRAM                             runs the published program (MiniMalloc's command)
//   side by side
//
// Prints JSON lines. Seconds are processor time of one thread.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "memory/exact.h"
#include "memory/greedy.h"
#include "memory/problem.h"
#include "memory/validator.h"

// Seconds of MiniMalloc in the paper (Moffitt, "MiniMalloc: A Lightweight Memory Allocator for
// Hardware-Accelerated Machine Learning", ASPLOS 2023, doi 10.1145/3623278.3624752), for comparison
// where the program is not at hand.
static const struct {
    char instance;
    double paper_seconds;
} published[] = {{'A', 4.91}, {'C', 0.64}, {'D', 2.67}, {'F', 5.36}, {'H', 1.81}, {'J', 0.88}};

typedef struct bench {
    berth_arena *arena;
    const char *peer;
    double minimize_seconds;
    double total_seconds, total_peer_seconds;
    int instances, solved;
} bench;

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static _Noreturn void fail(berth_status status) {
    fprintf(stderr, "%s\n", berth_status_message(status));
    exit(1);
}

static void must(berth_status status) {
    if (status) fail(status);
}

// Processor seconds of the other program on one instance; negative when it does not end well.
static double run_peer(const char *program, const char *path, uint64_t capacity) {
    struct rusage before;
    struct rusage after;
    char input[4200];
    char limit[64];
    snprintf(input, sizeof(input), "--input=%s", path);
    snprintf(limit, sizeof(limit), "--capacity=%llu", (unsigned long long)capacity);
    getrusage(RUSAGE_CHILDREN, &before);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(127);
        execl(program, program, limit, input, "--output=/dev/null", "--timeout=120s", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
        return -1;
    getrusage(RUSAGE_CHILDREN, &after);
    return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
                    before.ru_stime.tv_sec) +
           (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
                    before.ru_stime.tv_usec) *
               1e-6;
}

static void print_heuristics(bench *b, const berth_memory_problem *problem, double bound) {
    uint64_t *offsets = berth_arena_new_array(b->arena, uint64_t, problem->buffer_count);
    printf(", \"heuristics\": {");
    for (uint32_t h = 0; h < berth_memory_greedy_count(); ++h) {
        double start = cpu_seconds();
        uint64_t height =
            berth_memory_greedy(b->arena, problem->intervals, problem->buffer_count, h, offsets);
        double seconds = cpu_seconds() - start;
        printf("%s\"%s\": ", h ? ", " : "", berth_memory_greedy_name(h));
        if (height == UINT64_MAX)
            printf("null");
        else
            printf("{\"height_over_bound\": %.4f, \"seconds\": %.4f}", (double)height / bound,
                   seconds);
        if (height != UINT64_MAX)
            must(berth_memory_validate(b->arena, problem, offsets, NULL, NULL));
    }
    printf("}");
}

static void minimize(bench *b, const berth_memory_problem *problem) {
    uint64_t *offsets = berth_arena_new_array(b->arena, uint64_t, problem->buffer_count);
    const char *name = NULL;
    double start = cpu_seconds();
    (void)berth_memory_greedy_best(b->arena, problem->intervals, problem->buffer_count, offsets,
                                   &name);
    berth_memory_budget budget = {.deadline_ns =
                                      berth_clock_ns() + (int64_t)(b->minimize_seconds * 1e9)};
    uint64_t height = 0;
    uint64_t bound = 0;
    must(berth_memory_exact_minimize(b->arena, problem->intervals, problem->buffer_count, &budget,
                                     offsets, &height, &bound));
    uint64_t checked = 0;
    must(berth_memory_validate(b->arena, problem, offsets, NULL, &checked));
    printf(
        ", \"least\": {\"height\": %llu, \"lower_bound\": %llu, \"proven\": %s, \"seconds\": %.3f}",
        (unsigned long long)checked, (unsigned long long)bound, checked == bound ? "true" : "false",
        cpu_seconds() - start);
}

static void bench_instance(bench *b, const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    const char *dot = strchr(name, '.');
    uint64_t capacity = strtoull(dot + 1, NULL, 10);
    berth_memory_problem *problem = NULL;
    must(berth_memory_problem_read(b->arena, path, NULL, &problem));
    uint64_t *offsets = berth_arena_new_array(b->arena, uint64_t, problem->buffer_count);
    uint64_t bound =
        berth_memory_live_peak(b->arena, problem->intervals, problem->buffer_count).size_bytes;
    berth_memory_budget budget = {.deadline_ns = berth_clock_ns() + (int64_t)60000000000};
    berth_memory_verdict verdict;
    double start = cpu_seconds();
    must(berth_memory_exact_fit(b->arena, problem->intervals, problem->buffer_count, capacity,
                                &budget, offsets, &verdict));
    double seconds = cpu_seconds() - start;
    if (verdict == BERTH_MEMORY_FITS)
        must(berth_memory_validate(b->arena, problem, offsets, &capacity, NULL));
    printf(
        "{\"instance\": \"%.*s\", \"buffers\": %u, \"capacity\": %llu, \"largest_live_sum\": %llu, "
        "\"verdict\": \"%s\", \"nodes\": %llu, \"seconds\": %.4f",
        (int)(dot - name), name, problem->buffer_count, (unsigned long long)capacity,
        (unsigned long long)bound,
        verdict == BERTH_MEMORY_FITS         ? "fits"
        : verdict == BERTH_MEMORY_CANNOT_FIT ? "cannot fit"
                                             : "unknown",
        (unsigned long long)budget.nodes, seconds);
    for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); ++i)
        if (dot == name + 1 && name[0] == published[i].instance && capacity == 1048576)
            printf(", \"minimalloc_paper_seconds\": %.2f", published[i].paper_seconds);
    if (b->peer) {
        double peer = run_peer(b->peer, path, capacity);
        printf(", \"minimalloc_seconds\": %.4f", peer);
        b->total_peer_seconds += peer;
    }
    print_heuristics(b, problem, (double)bound);
    if (b->minimize_seconds > 0) minimize(b, problem);
    printf("}\n");
    fflush(stdout);
    b->instances++;
    b->solved += verdict != BERTH_MEMORY_UNKNOWN;
    b->total_seconds += seconds;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void bench_folder(bench *b, const char *path) {
    char *names[256];
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder) {
        fprintf(stderr, "cannot open %s\n", path);
        exit(1);
    }
    for (struct dirent *entry; (entry = readdir(folder)) && count < 256;) {
        size_t length = strlen(entry->d_name);
        const char *dot = strchr(entry->d_name, '.');
        if (length > 4 && strcmp(entry->d_name + length - 4, ".csv") == 0 && dot[1] >= '0' &&
            dot[1] <= '9')
            names[count++] = berth_arena_strdup(b->arena, entry->d_name);
    }
    closedir(folder);
    qsort(names, (size_t)count, sizeof(*names), compare_names);
    for (int i = 0; i < count; ++i) bench_instance(b, path, names[i]);
    printf("{\"instances\": %d, \"decided\": %d, \"total_seconds\": %.4f", b->instances, b->solved,
           b->total_seconds);
    if (b->peer) printf(", \"minimalloc_total_seconds\": %.4f", b->total_peer_seconds);
    printf("}\n");
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Lifetimes like those of a network: most short, some long; or any (half of the buffers live at
// every moment).
static void bench_generated(bench *b, uint32_t count, bool any_lifetime) {
    uint64_t state = 88172645463325252u;
    berth_memory_problem problem = {
        .buffer_count = count,
        .ids = berth_arena_new_array(b->arena, const char *, count),
        .intervals = berth_arena_new_array(b->arena, berth_memory_interval, count),
        .pools = berth_arena_new_array(b->arena, uint32_t, count),
        .pool_count = 1};
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t length = next_random(&state) % 100 == 0 ? 1 + next_random(&state) % 1000
                                                         : 1 + next_random(&state) % 20;
        int64_t lower = (int64_t)(next_random(&state) % count);
        int64_t upper = any_lifetime ? lower + 1 + (int64_t)(next_random(&state) % count)
                                     : lower + (int64_t)length;
        problem.ids[i] = "generated";
        problem.intervals[i] = (berth_memory_interval){
            lower, upper,
            64 * (1 + next_random(&state) % ((uint64_t)1 << next_random(&state) % 14)), 64};
    }
    uint64_t *offsets = berth_arena_new_array(b->arena, uint64_t, count);
    const char *name = NULL;
    double start = cpu_seconds();
    uint64_t height = berth_memory_greedy_best(b->arena, problem.intervals, count, offsets, &name);
    double seconds = cpu_seconds() - start;
    must(berth_memory_validate(b->arena, &problem, offsets, NULL, NULL));
    uint64_t bound = berth_memory_live_peak(b->arena, problem.intervals, count).size_bytes;
    printf("{\"generated\": %u, \"lifetimes\": \"%s\", \"best\": \"%s\", \"height_over_bound\": "
           "%.4f, \"seconds\": %.3f",
           count, any_lifetime ? "any" : "network", name, (double)height / (double)bound, seconds);
    print_heuristics(b, &problem, (double)bound);
    printf("}\n");
}

typedef struct arguments {
    int argc;
    char **argv;
    bench *b;
} arguments;

static berth_status run(void *user) {
    arguments *a = user;
    for (int i = 1; i < a->argc; ++i) {
        if (strcmp(a->argv[i], "--peer") == 0 && i + 1 < a->argc)
            a->b->peer = a->argv[++i];
        else if (strcmp(a->argv[i], "--minimize") == 0 && i + 1 < a->argc)
            a->b->minimize_seconds = atof(a->argv[++i]);
    }
    for (int i = 1; i < a->argc; ++i) {
        if (strcmp(a->argv[i], "--peer") == 0 || strcmp(a->argv[i], "--minimize") == 0) {
            ++i;
        } else if (strcmp(a->argv[i], "--generated") == 0 && i + 1 < a->argc) {
            uint32_t count = (uint32_t)strtoul(a->argv[++i], NULL, 10);
            bench_generated(a->b, count, false);
            bench_generated(a->b, count, true);
        } else {
            bench_folder(a->b, a->argv[i]);
        }
    }
    return BERTH_OK;
}

int main(int argc, char **argv) {
    bench b = {0};
    must(berth_arena_create(berth_allocator_system(), &b.arena));
    arguments a = {argc, argv, &b};
    must(berth_arena_try(b.arena, run, &a));
    berth_arena_destroy(b.arena);
    return 0;
}
