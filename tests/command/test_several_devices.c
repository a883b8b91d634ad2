// Models on several devices by the command: two GPUs whose copies go through the host, and devices
// that share a memory, which copy nothing. The results are those of the CPU alone.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define MODEL "examples/digits/digits.onnx --dim batch=1 --format=json"

// The command's JSON; NULL where it failed.
static json_t *berth_json(const char *command, const char *arguments) {
    char text[2048];
    snprintf(text, sizeof(text), "POCL_DEVICES='pthread pthread' %s %s " MODEL " %s 2>/dev/null",
             BERTH_COMMAND, command, arguments);
    FILE *pipe = popen(text, "r");
    cr_assert_not_null(pipe);
    json_error_t error;
    json_t *json = json_loadf(pipe, 0, &error);
    int status = pclose(pipe);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        cr_assert_not_null(json, "%s: %s", text, error.text);
        return json;
    }
    json_decref(json);
    return NULL;
}

// A run on OpenCL devices; skips the test where there are none.
static json_t *run_json(const char *arguments) {
    json_t *json = berth_json("run", arguments);
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    if (!json && !(required && strstr(required, "opencl"))) cr_skip("skipped: this needs OpenCL");
    cr_assert_not_null(json, "run %s", arguments);
    return json;
}

static json_int_t integer(const json_t *json, const char *name) {
    return json_integer_value(json_object_get(json, name));
}

static void expect_same_results(const json_t *a, const json_t *b) {
    const char *const names[] = {"max", "min"};
    for (int i = 0; i < 2; ++i) {
        double x = json_real_value(
            json_object_get(json_array_get(json_object_get(a, "outputs"), 0), names[i]));
        double y = json_real_value(
            json_object_get(json_array_get(json_object_get(b, "outputs"), 0), names[i]));
        cr_expect(fabs(x - y) <= 1e-5 * fabs(x) + 1e-7, "%s: %g, %g", names[i], x, y);
    }
}

// No machine here has 512 cores: the report says how many were wanted.
Test(several_devices, fewer_cores_than_the_target_has_are_named) {
    json_t *json = berth_json("run", "--target 'cpu -cores=512'");
    cr_assert_not_null(json);
    const json_t *device = json_object_get(json_object_get(json, "devices"), "cpu:0");
    const char *name = json_string_value(json_object_get(device, "physical"));
    cr_assert_not_null(name);
    cr_expect(strstr(name, " of 512 wanted)"), "%s", name);
    json_decref(json);
}

// A loop's counter decides a slice: the host's, unless the device is required.
Test(several_devices, a_required_device_takes_what_a_counter_decides, .timeout = 300) {
    static const char arguments[] =
        "run /usr/share/libonnx-testdata/data/node/test_loop11/model.onnx --target opencl "
        "--input trip_count=/usr/share/libonnx-testdata/data/node/test_loop11/test_data_set_0/"
        "input_0.pb --seed 1";
    char text[2048], output[4096];
    json_decref(run_json("--target opencl"));  // or the test is skipped
    for (int i = 0; i < 2; ++i) {
        snprintf(text, sizeof(text), "%s %s %s 2>&1", BERTH_COMMAND, arguments,
                 i ? "--require opencl:0" : "");
        FILE *pipe = popen(text, "r");
        cr_assert_not_null(pipe);
        output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
        cr_expect_eq(pclose(pipe), 0, "%s", output);
        cr_expect_eq(strstr(output, "(0 of them on data)") != NULL, i == 1, "%s", output);
    }
}

// Compilers of OpenCL C print what they have to say of a kernel themselves: there is nothing to be said of ours.
Test(several_devices, kernels_compile_without_warnings, .timeout = 300) {
    char folder[] = "/tmp/berth-warnings-XXXXXX", text[1024], output[4096];
    json_decref(run_json("--target opencl"));  // or the test is skipped
    cr_assert_not_null(mkdtemp(folder));
    snprintf(text, sizeof(text),
             "mkdir %s/pocl && POCL_CACHE_DIR=%s/pocl %s run " MODEL
             " --target opencl --cache-dir %s/berth 2>&1 >/dev/null",
             folder, folder, BERTH_COMMAND, folder);
    FILE *pipe = popen(text, "r");
    cr_assert_not_null(pipe);
    output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
    cr_expect_eq(pclose(pipe), 0, "%s", output);
    cr_expect_null(strstr(output, "warning"), "%s", output);
    snprintf(text, sizeof(text), "rm -rf %s", folder);
    cr_assert_eq(system(text), 0);
}

Test(several_devices, copies_between_gpus_go_through_the_host, .timeout = 300) {
    static const char target[] = "--target opencl,opencl,cpu --pin op:MaxPool=opencl:1";
    json_t *plan = berth_json("plan", target);
    json_t *run = run_json(target), *alone = berth_json("run", "");
    cr_assert_not_null(plan);
    size_t index;
    json_t *copy;
    json_int_t planned_bytes = 0;
    int down = 0, up = 0;
    json_array_foreach(json_object_get(plan, "copies"), index, copy) {
        const char *from = json_string_value(json_object_get(copy, "from"));
        const char *to = json_string_value(json_object_get(copy, "to"));
        cr_expect(strcmp(from, "cpu:0") == 0 || strcmp(to, "cpu:0") == 0, "%s > %s", from, to);
        cr_expect_gt(integer(copy, "bytes"), 0);
        planned_bytes += integer(copy, "bytes");
        down += strcmp(from, "opencl:1") == 0;
        up += strcmp(to, "opencl:1") == 0;
    }
    cr_expect_eq(down, 2, "the results of two MaxPool");
    cr_expect_eq(up, 2, "their operands");
    cr_expect_eq(planned_bytes, integer(run, "copied_bytes"));
    expect_same_results(run, alone);
    json_decref(plan);
    json_decref(run);
    json_decref(alone);
}

Test(several_devices, a_shared_memory_needs_no_copies, .timeout = 300) {
    static const char *const targets[] = {
        "--target 'opencl -shares_host_memory=true,cpu' --pin op:MaxPool=cpu:0",
        "--target 'opencl -shares_host_memory=true,opencl -shares_host_memory=true,cpu' "
        "--pin op:MaxPool=opencl:1 --pin op:Relu=cpu:0 --no-fusion",
        "--target 'opencl -shares_host_memory=true -host=cpu'",
        // Of Vulkan's the driver finds it.
        "--target vulkan,cpu --pin op:MaxPool=cpu:0",
        "--target 'vulkan -host=cpu'",
        // Two kinds, no kernel of the host's.
        "--target 'opencl -shares_host_memory=true,vulkan -host=cpu' --pin op:MaxPool=vulkan:0",
        // A memory of the target's own, with an alignment that no device here asks for.
        "--target '{\"kind\": \"multi\", \"devices\": [{\"name\": \"gpu\", \"target\": "
        "\"opencl\"}, "
        "{\"name\": \"big\", \"target\": \"cpu\"}], \"memories\": [{\"name\": \"dram\", "
        "\"capacity_bytes\": \"1GiB\", \"alignment_bytes\": 4096, \"reached_by\": [\"gpu\", "
        "\"big\"]}]}' --pin op:MaxPool=big",
    };
    static const char *const with_copies[] = {
        "--target opencl,cpu --pin op:MaxPool=cpu:0",
        "--target 'vulkan -shares_host_memory=false,cpu' --pin op:MaxPool=cpu:0",
        // A copy to and from the memory that only one kind shares with the host.
        "--target 'opencl,vulkan -host=cpu' --pin op:MaxPool=vulkan:0",
        ("--target 'opencl -shares_host_memory=true,vulkan -shares_host_memory=false -host=cpu' "
         "--pin op:MaxPool=vulkan:0"),
    };
    json_t *alone = berth_json("run", "");
    for (size_t i = 0; i < sizeof(with_copies) / sizeof(with_copies[0]); ++i) {
        json_t *run = run_json(with_copies[i]);
        cr_expect_gt(integer(run, "copied_bytes"), 0, "%s", with_copies[i]);
        expect_same_results(run, alone);
        json_decref(run);
    }
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); ++i) {
        json_t *run = run_json(targets[i]);
        cr_expect_eq(integer(run, "copied_bytes"), 0, "%s", targets[i]);
        expect_same_results(run, alone);
        json_decref(run);
    }
    json_decref(alone);
}

// Two GPUs with a link between their memories.
#define LINKED                                                                                     \
    "--target '{\"kind\":\"multi\",\"devices\":[{\"target\":{\"kind\":\"opencl\"}},"               \
    "{\"target\":{\"kind\":\"opencl\"}}],\"memories\":["                                           \
    "{\"name\":\"host\",\"capacity_bytes\":\"1GiB\",\"reached_by\":[\"cpu:0\"]},"                  \
    "{\"name\":\"m0\",\"capacity_bytes\":\"1GiB\",\"alignment_bytes\":128,"                        \
    "\"reached_by\":[\"opencl:0\"]},"                                                              \
    "{\"name\":\"m1\",\"capacity_bytes\":\"1GiB\",\"alignment_bytes\":128,"                        \
    "\"reached_by\":[\"opencl:1\"]}],\"links\":["                                                  \
    "{\"from\":\"m0\",\"to\":\"m1\",\"bandwidth_bytes_per_s\":5e10},"                              \
    "{\"from\":\"host\",\"to\":\"m0\",\"bandwidth_bytes_per_s\":1e10},"                            \
    "{\"from\":\"host\",\"to\":\"m1\",\"bandwidth_bytes_per_s\":1e10}]}' "

// Copies go over the link, and are steps of the run.
Test(several_devices, copies_between_gpus_go_over_their_link, .timeout = 300) {
    static const char target[] = LINKED "--pin op:MaxPool=opencl:1";
    char trace[] = "/tmp/berth-trace-XXXXXX", arguments[1536], line[65536];
    cr_assert_geq(mkstemp(trace), 0);
    snprintf(arguments, sizeof(arguments), "%s --trace=%s", target, trace);
    json_t *plan = berth_json("plan", target);
    json_t *run = run_json(arguments), *alone = berth_json("run", "");
    cr_assert_not_null(plan);
    size_t index;
    json_t *copy;
    int direct = 0, traced = 0;
    json_array_foreach(json_object_get(plan, "copies"), index, copy) {
        const char *from = json_string_value(json_object_get(copy, "from"));
        const char *to = json_string_value(json_object_get(copy, "to"));
        direct += strncmp(from, "opencl", 6) == 0 && strncmp(to, "opencl", 6) == 0;
    }
    cr_expect_eq(direct, 4, "operands and results of two MaxPool");
    FILE *file = fopen(trace, "r");
    while (fgets(line, sizeof(line), file))
        for (const char *at = line; (at = strstr(at, " opencl:")); ++at)
            traced += strncmp(at, " opencl:0>opencl:1", 18) == 0 ||
                      strncmp(at, " opencl:1>opencl:0", 18) == 0;
    fclose(file);
    remove(trace);
    cr_expect_eq(traced, 4);
    expect_same_results(run, alone);
    json_decref(plan);
    json_decref(run);
    json_decref(alone);
}

// Every way to use two devices gives the same; in parts, both compute.
Test(several_devices, ways_to_use_them_give_the_same, .timeout = 300) {
    static const char *const ways[] = {"none", "tensor", "pipeline", "auto"};
    json_t *alone = berth_json("run", "");
    for (int i = 0; i < 4; ++i) {
        char arguments[1536];
        snprintf(arguments, sizeof(arguments), LINKED "--parallel %s", ways[i]);
        json_t *run = run_json(arguments);
        expect_same_results(run, alone);
        json_t *second = json_object_get(json_object_get(run, "devices"), "opencl:1");
        cr_assert_not_null(second);
        if (i == 1) cr_expect_gt(integer(second, "kernels"), 0);
        if (i == 0) cr_expect_eq(integer(second, "kernels"), 0);
        json_decref(run);
    }
    json_decref(alone);
    cr_assert_null(berth_json("plan", "--target cpu --parallel tensor"), "there is one device");
}

static json_int_t of_device(const json_t *run, const char *device, const char *name) {
    return integer(json_object_get(json_object_get(run, "devices"), device), name);
}

// The first five classes, in order, and their values.
static void expect_same_classes(const json_t *a, const json_t *b) {
    const json_t *one = json_object_get(json_array_get(json_object_get(a, "outputs"), 0), "top");
    const json_t *two = json_object_get(json_array_get(json_object_get(b, "outputs"), 0), "top");
    cr_assert_geq(json_array_size(one), 5);
    cr_assert_eq(json_array_size(one), json_array_size(two));
    for (size_t i = 0; i < json_array_size(one); ++i) {
        const json_t *x = json_array_get(one, i), *y = json_array_get(two, i);
        double is = json_real_value(json_object_get(x, "value"));
        double wanted = json_real_value(json_object_get(y, "value"));
        cr_expect_eq(integer(x, "index"), integer(y, "index"));
        cr_expect(fabs(is - wanted) <= 1e-5 * fabs(wanted) + 1e-7, "%g, %g", is, wanted);
    }
}

// Memories that hold the model, that hold it if constants are read again, and of which only both together do: a way that cannot be
// planned there is none of those that are compared, and no limit is exceeded.
Test(several_devices, the_way_that_is_chosen_keeps_to_the_memories, .timeout = 300) {
    static const struct {
        int kib;
        bool needs_both;
    } cases[] = {{64, false}, {24, false}, {16, true}};
    json_t *alone = berth_json("run", "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        char arguments[256];
        snprintf(arguments, sizeof(arguments),
                 "--target opencl,opencl --parallel auto --memory opencl:0=%dKiB,opencl:1=%dKiB",
                 cases[i].kib, cases[i].kib);
        json_t *run = run_json(arguments);
        expect_same_results(run, alone);
        expect_same_classes(run, alone);
        for (int d = 0; d < 2; ++d) {
            const char *device = d ? "opencl:1" : "opencl:0";
            cr_expect_leq(of_device(run, device, "peak_bytes"), cases[i].kib * 1024, "%s", device);
            if (cases[i].needs_both) cr_expect_gt(of_device(run, device, "kernels"), 0);
        }
        json_decref(run);
    }
    json_decref(alone);
    cr_assert_null(berth_json("plan", "--target opencl --memory opencl:0=16KiB"),
                   "one device has too little");
}
