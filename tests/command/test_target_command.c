// `berth target`: output, JSON and exit status, by running the command.
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct result {
    int exit_status;
    char output[1 << 17];  // stdout and stderr
} result;

static char command_path[4096];

// The command lies beside the folder of the tests; BERTH_COMMAND names another.
static void find_command(void) {
    const char *given = getenv("BERTH_COMMAND");
    if (given) {
        snprintf(command_path, sizeof(command_path), "%s", given);
        return;
    }
    char self[3072];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    cr_assert_gt(length, 0);
    self[length] = 0;
    *strrchr(self, '/') = 0;
    snprintf(command_path, sizeof(command_path), "%s/../berth", self);
    cr_assert_eq(access(command_path, X_OK), 0, "%s is missing: build the target berth first",
                 command_path);
}

TestSuite(target_command, .init = find_command);

static result *run(const char *arguments) {
    static result r;
    char line[8192];
    snprintf(line, sizeof(line), "%s target %s 2>&1", command_path, arguments);
    FILE *pipe = popen(line, "r");
    cr_assert_not_null(pipe);
    size_t length = fread(r.output, 1, sizeof(r.output) - 1, pipe);
    r.output[length] = 0;
    int status = pclose(pipe);
    cr_assert(WIFEXITED(status), "%s crashed", line);
    r.exit_status = WEXITSTATUS(status);
    return &r;
}

static void expect(const char *arguments, int exit_status, const char *part) {
    result *r = run(arguments);
    cr_expect_eq(r->exit_status, exit_status, "%s: exit status %d\n%s", arguments, r->exit_status,
                 r->output);
    cr_expect_not_null(strstr(r->output, part), "%s: no \"%s\" in\n%s", arguments, part, r->output);
}

Test(target_command, exit_status_and_messages) {
    expect("list", 0, "nvidia/jetson-nano");
    expect("list 'aws/g5.*'", 0, "aws/g5.48xlarge");
    expect("show arm/rasp4b", 0, "cortex-a72");
    expect("show 'opencl,cpu' --pin 'op:Softmax=cpu:0'", 0, "pin: op:Softmax on cpu:0");
    expect("show local", 0, "[default]");
    expect("show 'cpu -tile_singles=9'", 0, " -tile_singles=9");
    expect("show 'cuda -tile_depth=9 -item_rows=3'", 0, " -tile_depth=9");
    expect("show 'vta -log_batch=2'", 0, " -log_batch=2");
    expect("show cpu --runtime bare", 0, "executor: aot, runtime: bare");
    expect("show arm/rasp4", 1, "did you mean 'arm/rasp4b'");
    expect("show cpu --set coers=3", 1, "coers: unknown field");
    expect("validate cpu arm/rasp4b", 0, "arm/rasp4b: valid");
    expect("validate 'cpu -cores=-1' cpu", 1, "cores: -1 is out of range");
    expect("validate /no/such/file.json cpu", 1, "cpu: valid");
    expect("--help", 0, "Usage: berth target");
    expect("", 2, "list, show, validate or detect?");
    expect("lsit", 2, "not \"lsit\"");
    expect("show", 2, "show takes one target");
    expect("show cpu --format=xml", 2, "text, json or svg");
    expect("show cpu --no-such-option", 2, "no-such-option");
}

Test(target_command, json) {
    json_error_t error;
    json_t *list = json_loads(run("list --format=json")->output, 0, &error);
    cr_assert_not_null(list, "%s", error.text);
    cr_expect_geq(json_array_size(list), 40u);
    cr_expect_str_not_empty(json_string_value(json_object_get(json_array_get(list, 0), "sources")));
    json_decref(list);
    json_t *reports = json_loads(
        run("validate --format=json cpu '{\"kind\": \"multi\", \"devices\": [{\"target\": {}}]}'")
            ->output,
        0, &error);
    cr_assert_not_null(reports, "%s", error.text);
    cr_expect(json_is_true(json_object_get(json_array_get(reports, 0), "valid")));
    const json_t *bad = json_array_get(reports, 1);
    cr_expect(json_is_false(json_object_get(bad, "valid")));
    const json_t *first = json_array_get(json_object_get(bad, "diagnostics"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(first, "path")), "devices[0].target.kind");
    json_decref(reports);
}

// What show prints as JSON is a target file, and the same target.
Test(target_command, shown_json_is_a_target) {
    char path[] = "/tmp/berth_shown_XXXXXX.json";
    int file = mkstemps(path, 5);
    cr_assert_geq(file, 0);
    result *shown = run("show nvidia/jetson-nano --format=json");
    cr_assert_eq(shown->exit_status, 0);
    size_t length = strlen(shown->output);
    cr_assert_eq(write(file, shown->output, length), (ssize_t)length);
    close(file);
    char first[64] = "", arguments[128];
    const char *hash = strstr(run("validate nvidia/jetson-nano")->output, "hash ");
    cr_assert_not_null(hash);
    snprintf(first, sizeof(first), "%.37s", hash);
    snprintf(arguments, sizeof(arguments), "validate %s", path);
    expect(arguments, 0, first);
    unlink(path);
}
