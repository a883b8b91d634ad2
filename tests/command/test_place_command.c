// `berth place`: output, JSON, the picture and exit status, by running the command.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct result {
    int exit_status;
    char output[1 << 16];
} result;

static char command_path[4096];
static char problem_path[64];

// Three nodes of 4 bytes in a row on two accelerators of 8 bytes, and a CPU that takes 10 times as
// long. Two on an accelerator and one on the other: 1 + 1 + 0.5, and 1 + 0.5 (a transfer each).
static const char problem[] =
    "{\"maxSizePerFPGA\": 8, \"maxFPGAs\": 2, \"maxCPUs\": 1, \"nodes\": ["
    "{\"id\": 5, \"cpuLatency\": 10, \"fpgaLatency\": 1, \"size\": 4, \"supportedOnFpga\": 1, "
    "\"isBackwardNode\": 0},"
    "{\"id\": 6, \"cpuLatency\": 10, \"fpgaLatency\": 1, \"size\": 4, \"supportedOnFpga\": 1, "
    "\"isBackwardNode\": 0},"
    "{\"id\": 7, \"cpuLatency\": 10, \"fpgaLatency\": 1, \"size\": 4, \"supportedOnFpga\": 1, "
    "\"isBackwardNode\": 0}],"
    "\"edges\": [{\"sourceId\": 5, \"destId\": 6, \"cost\": 0.5},"
    "{\"sourceId\": 6, \"destId\": 7, \"cost\": 0.5}]}";

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void setup(void) {
    const char *given = getenv("BERTH_COMMAND");
    if (given) {
        snprintf(command_path, sizeof(command_path), "%s", given);
    } else {
        char self[3072];
        ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
        cr_assert_gt(length, 0);
        self[length] = 0;
        *strrchr(self, '/') = 0;
        snprintf(command_path, sizeof(command_path), "%s/../berth", self);
    }
    cr_assert_eq(access(command_path, X_OK), 0, "build the target berth first");
    snprintf(problem_path, sizeof(problem_path), "/tmp/berth_place_%ld.json", (long)getpid());
    write_file(problem_path, problem);
}

static void teardown(void) {
    unlink(problem_path);
}

TestSuite(place_command, .init = setup, .fini = teardown);

static result *run(const char *file, const char *arguments, bool errors) {
    static result r;
    char line[8192];
    snprintf(line, sizeof(line), "%s place %s %s %s", command_path, file, arguments,
             errors ? "2>&1" : "2>/dev/null");
    FILE *pipe = popen(line, "r");
    cr_assert_not_null(pipe);
    size_t length = fread(r.output, 1, sizeof(r.output) - 1, pipe);
    r.output[length] = 0;
    int status = pclose(pipe);
    cr_assert(WIFEXITED(status), "%s crashed", line);
    r.exit_status = WEXITSTATUS(status);
    return &r;
}

static void expect(const char *file, const char *arguments, int exit_status, const char *part) {
    result *r = run(file, arguments, true);
    cr_expect_eq(r->exit_status, exit_status, "%s: exit status %d\n%s", arguments, r->exit_status,
                 r->output);
    cr_expect_not_null(strstr(r->output, part), "%s: no \"%s\" in\n%s", arguments, part, r->output);
}

Test(place_command, exit_status_and_messages) {
    expect(problem_path, "", 0, "throughput 2.5 ms, proven optimal");
    expect(problem_path, "--contiguous --nodes 100000", 0, "throughput 2.5 ms, proven optimal");
    // acc0 {5, 6}: 2.5; acc1 reads, computes: 1.5.
    expect(problem_path, "--objective latency --time-budget 5s", 0, "latency 4 ms, proven optimal");
    // Two on one accelerator (memory), done at 2; 0.5 out, 0.5 in, and the third.
    expect(problem_path, "-O latency --model list", 0, "latency 4 ms, proven optimal");
    expect(problem_path, "-O throughput --model list", 2, "is for the objective latency");
    expect(problem_path, "-O memory", 0, "memory 4 bytes, proven optimal");
    expect(problem_path, "--strategy greedy", 0, "found by greedy");
    expect(problem_path, "--strategy gredy", 2, "did you mean \"greedy\"?");
    expect(problem_path, "--objective speed", 2, "throughput, latency or memory, not \"speed\"");
    expect(problem_path, "-O latency --contiguous", 2, "for the objective throughput");
    expect(problem_path, "--format xml", 2, "text, json or svg, not \"xml\"");
    expect(problem_path, "--nodes 0", 2, "--nodes takes a number from 1");
    expect(problem_path, "--time-budget soon", 2, "such as 500ms, 10s or 2m");
    expect(problem_path, problem_path, 2, "only one problem");
    expect("", "", 2, "which problem?");
    expect("/no/such/file.json", "", 1, "/no/such/file.json");
    expect("--help", "", 0, "greedy");
}

Test(place_command, infeasible) {
    char path[80];
    snprintf(path, sizeof(path), "%s.none", problem_path);
    write_file(path,
               "{\"maxSizePerFPGA\": 3, \"maxFPGAs\": 2, \"maxCPUs\": 0, \"nodes\": [{\"id\": "
               "5, \"cpuLatency\": 10, \"fpgaLatency\": 1, \"size\": 4}], \"edges\": []}");
    expect(path, "", 1, "no device can hold node 5");
    unlink(path);
}

Test(place_command, json_and_check) {
    json_error_t error;
    json_t *json = json_loads(run(problem_path, "-f json", false)->output, 0, &error);
    cr_assert_not_null(json, "%s", error.text);
    cr_assert_str_eq(json_string_value(json_object_get(json, "objective")), "throughput");
    cr_assert_eq(json_real_value(json_object_get(json, "value")), 2.5);
    cr_assert_eq(json_real_value(json_object_get(json, "lower_bound")), 2.5);
    cr_assert_eq(json_real_value(json_object_get(json, "gap")), 0);
    cr_assert(json_is_true(json_object_get(json, "reproducible")));
    cr_assert(json_is_number(json_object_get(json, "seconds")));
    cr_assert(json_is_string(json_object_get(json, "strategy")));
    const json_t *assignment = json_object_get(json, "assignment");
    cr_assert_eq(json_object_size(assignment), 3);
    const char *five = json_string_value(json_object_get(assignment, "5"));
    cr_assert(strcmp(five, "acc0") == 0 || strcmp(five, "acc1") == 0, "%s", five);
    json_decref(json);

    char answer[80];
    char arguments[256];
    snprintf(answer, sizeof(answer), "%s.answer", problem_path);
    snprintf(arguments, sizeof(arguments), "-f json -o %s", answer);
    cr_assert_str_eq(run(problem_path, arguments, true)->output, "");
    snprintf(arguments, sizeof(arguments), "--check %s", answer);
    expect(problem_path, arguments, 0, "throughput 2.5 ms, all limits are kept");
    write_file(answer, "{\"5\": \"acc0\", \"6\": \"acc0\", \"7\": \"acc0\"}");
    expect(problem_path, arguments, 1, "device 0 (acc) holds 12 bytes, its capacity is 8");
    write_file(answer, "{\"5\": \"acc0\", \"6\": \"acc1\", \"7\": \"acc0\"}");
    expect(problem_path, arguments, 0, "throughput 3 ms");
    snprintf(arguments, sizeof(arguments), "--contiguous --check %s", answer);
    expect(problem_path, arguments, 1, "not contiguous");
    snprintf(arguments, sizeof(arguments), "-O latency --check %s", answer);
    expect(problem_path, arguments, 1, "cannot run as one subgraph");
    unlink(answer);
}

Test(place_command, picture) {
    static const char *const objectives[] = {"throughput", "latency", "memory"};
    for (int i = 0; i < 3; ++i) {
        char arguments[64];
        snprintf(arguments, sizeof(arguments), "-f svg -O %s", objectives[i]);
        const result *r = run(problem_path, arguments, false);
        cr_assert_eq(r->exit_status, 0);
        cr_assert_eq(strncmp(r->output, "<svg ", 5), 0);
        cr_assert_not_null(strstr(r->output, "</svg>\n"));
        cr_assert_not_null(strstr(r->output, ">acc0</text>"));
        cr_assert_not_null(strstr(r->output, "<title>6: "));
        cr_assert(i == 2 || strstr(r->output, "<title>writes: 0.5 ms"));
        cr_assert_null(strstr(r->output, "nan"));
    }
}

// Figures at the ends of what a file may say: the picture ends, and is one.
Test(place_command, picture_of_extreme_figures) {
    static const char *const figures[] = {"5e-324", "1e-310", "0", "1e18"};
    static const char *const objectives[] = {"throughput", "latency", "memory"};
    char path[80];
    snprintf(path, sizeof(path), "%s.extreme", problem_path);
    for (int i = 0; i < 4; ++i) {
        char text[1024];
        snprintf(text, sizeof(text),
                 "{\"maxSizePerFPGA\": 1e300, \"maxFPGAs\": 1, \"maxCPUs\": 1, \"nodes\": ["
                 "{\"id\": 0, \"cpuLatency\": %s, \"fpgaLatency\": %s, \"size\": %s},"
                 "{\"id\": 1, \"cpuLatency\": %s, \"fpgaLatency\": %s, \"size\": %s}],"
                 "\"edges\": [{\"sourceId\": 0, \"destId\": 1, \"cost\": %s}]}",
                 figures[i], figures[i], figures[i], figures[i], figures[i], figures[i],
                 figures[i]);
        write_file(path, text);
        for (int j = 0; j < 3; ++j) {
            char arguments[64];
            snprintf(arguments, sizeof(arguments), "-f svg -O %s", objectives[j]);
            const result *r = run(path, arguments, false);
            cr_assert_eq(r->exit_status, 0, "%s %s", figures[i], objectives[j]);
            cr_assert_not_null(strstr(r->output, "</svg>\n"));
            cr_assert_null(strstr(r->output, "nan"));
        }
    }
    unlink(path);
}
