// Every complaint of the validator: the path of the field, and what would be right.
#include "support.h"

TestSuite(target_errors, .init = test_arena_open, .fini = test_arena_close);

typedef struct error_case {
    const char *text;
    const char *path;
    const char *part;  // of the message
} error_case;

#define MULTI(rest) "{\"kind\": \"multi\", \"devices\": [\"opencl\", \"cpu\"]" rest "}"
#define DEVICES(list) "{\"kind\": \"multi\", \"devices\": [" list "]}"
#define MEMORY(fields) MULTI(", \"memories\": [{" fields "}]")
#define HOST_MEMORY "{\"name\": \"h\", \"capacity_bytes\": 1024, \"reached_by\": [\"cpu:0\"]}"

static const error_case cases[] = {
    {"", "", "empty"},
    {"   ", "", "empty"},
    {"opncl", "", "did you mean 'opencl'"},
    {"cpu -model=\xff\xfe", "", "not UTF-8"},
    {"cpu -model=\xed\xa0\x80", "", "not UTF-8"},
    {"cpu gpu", "", "not understood"},
    {"cpu,", "", "no target kind"},
    {"cpu -", "", "option name"},
    {"cpu -arch=\"x", "", "quote"},
    {"cuda -host=cuda", "", "one cpu"},
    {"cuda -host=\"cpu,cpu\"", "", "one cpu"},
    {"cuda -host=aws/graviton", "", "a tag is given apart from the device"},
    {"cuda -host=\"cpu -host=cpu\"", "", "no host of its own"},
    {"cpu -kind.a=b", "", "-kind is no option"},
    {"cpu -kind=opencl", "", "the word in front, here 'cpu'"},
    {"cuda -host=\"cpu -kind.a=b\"", "", "-kind is no option"},
    {"cpu,local", "", "stands alone"},
    {"cpu,nvidia/t4 cuda", "", "not understood"},
    {"cpu,aws/g4dn.xlarge", "", "under \"machines\""},
    {"cpu,raspberrypi/pico", "", "a target by itself"},
    {"arm/mps2-an385,cpu", "", "a target by itself"},
    {"aws/g4dn.xlarge:cuda,cpu", "", "under \"machines\""},
    {"aws/g4dn.xlarge -clock_hz=1e9", "", "the field devices[0].target.FIELD"},
    {"nvidia/t4,nvidia/t4 -coers=4", "devices[1].target.coers", "unknown field"},
    {MULTI(", \"memories\": [" HOST_MEMORY ", {\"name\": \"f\", \"capacity_bytes\": 9, "
           "\"reached_by\": [\"cpu:0\"], \"holds\": \"weights\"}]"),
     "memories[1].holds", "allowed are everything, constants"},
    {MULTI(", \"memories\": [" HOST_MEMORY ", {\"name\": \"f\", \"capacity_bytes\": 9, \"scope\": "
           "\"x\", \"reached_by\": [\"cpu:0\"], \"holds\": \"constants\"}]"),
     "memories[1].holds", "the scope global, not 'x'"},
    {"{\"devices\": [\"cpu\", \"cpu\"], \"memories\": [{\"name\": \"r\", \"capacity_bytes\": 9, "
     "\"reached_by\": [\"cpu:0\", \"cpu:1\"]}, {\"name\": \"f\", \"capacity_bytes\": 9, "
     "\"reached_by\": [\"cpu:0\"], \"holds\": \"constants\"}]}",
     "memories[1]", "but 'cpu:1' works in the same memory 'r'"},
    {MULTI(", \"cores\": 3"), "cores", "devices[0].target.cores"},
    {DEVICES("{\"target\": \"cpu\", \"cores\": 3}"), "devices[0].cores", "a device's target"},
    {"cpu -coers=4", "coers", "did you mean 'cores'"},
    {"opencl -cores=4", "cores", "belongs to cpu, not to opencl"},
    {"cpu -cores=four", "cores", "whole number"},
    {"cpu -cores=1.5", "cores", "whole number"},
    {"cpu -cores=-4", "cores", "out of range"},
    {"cpu -cores=1e30", "cores", "out of range"},
    {"cpu -cores=4 -threads=2", "threads", "fewer than 4 cores"},
    {"cpu -l1_bytes=lots", "l1_bytes", "4096 or \"4KiB\""},
    {"{", "", "line 1"},
    {"{\"kind\": \"cpu\", \"kind\": \"cpu\"}", "", "not JSON"},
    {"{\"kind\": \"cpu\"} x", "", "not JSON"},
    {"{}", "kind", "kinds are cpu, opencl"},
    {"{\"kind\": 3}", "kind", "a string is wanted"},
    {"{\"kind\": \"gpu\"}", "kind", "allowed are cpu, opencl, vulkan, cuda, vta, npu, null"},
    {"{\"kind\": \"cpu\", \"arch\": 5}", "arch", "a string is wanted"},
    {"{\"kind\": \"cpu\", \"features\": \"avx\"}", "features", "list of words"},
    {"{\"kind\": \"cpu\", \"features\": [3]}", "features[0]", "a string is wanted"},
    {"{\"kind\": \"cpu\", \"features\": [\"a b\"]}", "features[0]", "not a word"},
    // What may reach a command line or a source is of a small alphabet.
    {"{\"kind\": \"cpu\", \"arch\": \"./evil\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"arch\": \"/bin/sh\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"arch\": \"-x\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"arch\": \"a b\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"arch\": \"a;b\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"arch\": \"$(a)\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"arch\": \"a\\nb\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"arch\": \"\\u00e9\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"arch\": \"\"}", "arch", "not a word"},
    {"{\"kind\": \"cuda\", \"arch\": \"sm_90/x\"}", "arch", "not a word"},
    {"{\"kind\": \"cpu\", \"cpu\": \"native -o x\"}", "cpu", "not a word"},
    {"{\"kind\": \"cpu\", \"features\": [\"avx2\", \"../x\"]}", "features[1]", "not a word"},
    {"{\"kind\": \"cpu\", \"libs\": [\"/tmp/x\"]}", "libs[0]", "not a word"},
    {"cuda -host=\"cpu -arch=a;b\"", "host.arch", "not a word"},
    {DEVICES("{\"target\": {\"kind\": \"cpu\", \"arch\": \"a/b\"}}"), "devices[0].target.arch",
     "not a word"},
    {"{\"kind\": \"cpu\", \"peak_flops\": 3}", "peak_flops", "object"},
    {"{\"kind\": \"cpu\", \"peak_flops\": {\"float\": 3}}", "peak_flops.float", "element type"},
    {"{\"kind\": \"cpu\", \"peak_flops\": {\"f32\": -1}}", "peak_flops.f32", "out of range"},
    {"{\"kind\": \"cpu\", \"peak_flops\": {\"f32\": \"x\"}}", "peak_flops.f32", "a number"},
    {"{\"kind\": \"cuda\", \"shares_host_memory\": 1}", "shares_host_memory", "true or false"},
    {"{\"kind\": \"cuda\", \"host\": 5}", "host", "object"},
    {"{\"kind\": \"cuda\", \"host\": \"vta\"}", "host", "a host is a cpu"},
    {"{\"kind\": \"cuda\", \"host\": {\"kind\": \"cpu\", \"host\": {\"kind\": \"cpu\"}}}",
     "host.host", "no host of its own"},
    {"{\"kind\": \"cuda\", \"host\": {\"kind\": \"cpu\", \"cores\": 0}}", "host.cores",
     "out of range"},
    {"{\"kind\": \"vta\", \"log_block\": 99}", "log_block", "out of range"},
    {"{\"kind\": \"multi\"}", "devices", "at least one device"},
    {DEVICES(""), "devices", "at least one device"},
    {DEVICES("3"), "devices[0]", "object"},
    {DEVICES("{}"), "devices[0].target", "is missing"},
    {DEVICES("{\"target\": 3}"), "devices[0].target", "object"},
    {DEVICES("\"cpu\", {\"target\": {\"kind\": \"cpuu\"}}"), "devices[1].target.kind",
     "did you mean 'cpu'"},
    {DEVICES("\"cpu\", \"cpuu\""), "devices[1]", "did you mean 'cpu'"},
    {DEVICES("{\"target\": {\"kind\": \"multi\"}}"), "devices[0].target.kind",
     "cannot be one device"},
    {DEVICES("{\"target\": \"cpu\", \"nmae\": \"x\"}"), "devices[0].nmae", "did you mean 'name'"},
    {DEVICES("{\"target\": \"cpu\", \"name\": \"\"}"), "devices[0].name", "not a name"},
    {DEVICES("{\"target\": \"cpu\", \"name\": \"a\"}, {\"target\": \"cpu\", \"name\": \"a\"}"),
     "devices[1].name", "already that of device 0"},
    {DEVICES("{\"target\": \"cpu\", \"name\": \"opencl:0\"}"), "devices[0].name",
     "would name another"},
    {DEVICES("{\"target\": \"cpu\", \"host_only\": true}"), "devices", "none can compute"},
    {DEVICES("{\"target\": \"cpu\", \"host_only\": 1}"), "devices[0].host_only", "true or false"},
    {DEVICES("{\"target\": {\"kind\": \"opencl\", \"host\": {\"kind\": \"cpu\", \"cores\": 2}}},"
             "{\"target\": {\"kind\": \"cuda\", \"host\": {\"kind\": \"cpu\", \"cores\": 4}}}"),
     "devices[1].target.host", "disagrees with the host that devices[0].target.host gives"},
    {MULTI(", \"hots\": \"cpu:0\""), "hots", "did you mean 'host'"},
    {MULTI(", \"host\": \"cpu:9\""), "host", "did you mean 'cpu:0'"},
    {MULTI(", \"host\": \"opencl:0\""), "host", "a host is a cpu"},
    {MULTI(", \"host\": []"), "host", "object"},
    {MULTI(", \"default_device\": \"gpu\""), "default_device", "devices are opencl:0, cpu:0"},
    {MULTI(", \"default_device\": 0"), "default_device", "a string is wanted"},
    {"{\"kind\": \"multi\", \"devices\": [\"opencl\"], \"default_device\": \"cpu:0\"}",
     "default_device", "host_only"},
    {MULTI(", \"executor\": \"grph\""), "executor",
     "allowed are graph, vm, aot, auto; did you mean 'graph'"},
    {MULTI(", \"executor\": {}"), "executor.kind", "allowed are graph, vm, aot, auto"},
    {MULTI(", \"executor\": {\"kind\": 3}"), "executor.kind", "a string is wanted"},
    {MULTI(", \"executor\": {\"kind\": \"vm\", \"x\": 1}"), "executor.x", "unknown field"},
    {MULTI(", \"executor\": 3"), "executor", "object"},
    {MULTI(", \"runtime\": \"bear\""), "runtime", "allowed are hosted, bare"},
    {MULTI(", \"runtime\": \"bare\", \"executor\": \"vm\""), "executor", "allowed is aot"},
    {MULTI(", \"pins\": {}"), "pins", "list of pins"},
    {MULTI(", \"pins\": [3]"), "pins[0]", "object"},
    {MULTI(", \"pins\": [{\"match\": \"x\"}]"), "pins[0].device", "is missing"},
    {MULTI(", \"pins\": [{\"device\": \"cpu:0\"}]"), "pins[0].match", "is missing"},
    {MULTI(", \"pins\": [{\"match\": \"x\", \"device\": \"npu\"}]"), "pins[0].device",
     "no device 'npu'"},
    {MULTI(", \"pins\": [{\"match\": \"\", \"device\": \"cpu:0\"}]"), "pins[0].match",
     "matches nothing"},
    {MULTI(", \"pins\": [{\"match\": \"op:\", \"device\": \"cpu:0\"}]"), "pins[0].match",
     "matches nothing"},
    {MULTI(", \"pins\": [{\"match\": \"x\", \"device\": \"cpu:0\"},"
           "{\"match\": \"x\", \"device\": \"opencl:0\"}]"),
     "pins[1]", "contradicts pins[0]"},
    {"{\"kind\": \"opencl\", \"pins\": [{\"match\": \"x\", \"device\": \"cpu:0\"}]}",
     "pins[0].device", "host_only"},
    {MULTI(", \"memories\": {}"), "memories", "a list"},
    {MULTI(", \"memories\": [1]"), "memories[0]", "object"},
    {MEMORY("\"capacity_bytes\": 1, \"reached_by\": [\"cpu:0\"]"), "memories[0].name",
     "is missing"},
    {MEMORY("\"name\": \"m\", \"reached_by\": [\"cpu:0\"]"), "memories[0].capacity_bytes",
     "is missing"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": 0, \"reached_by\": [\"cpu:0\"]"),
     "memories[0].capacity_bytes", "out of range"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": \"1 parsec\", \"reached_by\": [\"cpu:0\"]"),
     "memories[0].capacity_bytes", "number of bytes"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": 1"), "memories[0].reached_by",
     "no device reaches"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": 1, \"reached_by\": []"), "memories[0].reached_by",
     "no device reaches"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": 1, \"reached_by\": [\"npu\"]"),
     "memories[0].reached_by[0]", "no device 'npu'"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": 1, \"reached_by\": [\"cpu:0\"], \"size\": 1"),
     "memories[0].size", "unknown field"},
    {MEMORY(
         "\"name\": \"m\", \"capacity_bytes\": 1, \"reached_by\": [\"cpu:0\"], \"latency_ns\": -1"),
     "memories[0].latency_ns", "out of range"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": 1, \"reached_by\": [\"cpu:0\"], "
            "\"bandwidth_bytes_per_s\": 0"),
     "memories[0].bandwidth_bytes_per_s", "out of range"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": 1, \"reached_by\": [\"cpu:0\"], "
            "\"alignment_bytes\": 3"),
     "memories[0].alignment_bytes", "power of two"},
    {MEMORY("\"name\": \"m\", \"capacity_bytes\": 1, \"reached_by\": [\"opencl:0\"]"),
     "memories[0]", "no way leads from the host's memory 'host' to 'm'"},
    {MULTI(", \"memories\": [" HOST_MEMORY "," HOST_MEMORY "]"), "memories[1].name",
     "already that of memory 0"},
    {MULTI(", \"links\": 1"), "links", "a list"},
    {MULTI(", \"links\": [1]"), "links[0]", "object"},
    {MULTI(", \"links\": [{\"from\": \"host\"}]"), "links[0].to", "is missing"},
    {MULTI(", \"links\": [{\"from\": \"hots\", \"to\": \"opencl:0\"}]"), "links[0].from",
     "did you mean 'host'"},
    {MULTI(", \"links\": [{\"from\": \"host\", \"to\": \"host\"}]"), "links[0]", "to itself"},
    {MULTI(", \"links\": [{\"from\": \"host\", \"to\": \"opencl:0\", \"speed\": 1}]"),
     "links[0].speed", "unknown field"},
    {MULTI(", \"links\": [{\"from\": \"host\", \"to\": \"opencl:0\", \"duplex\": 1}]"),
     "links[0].duplex", "true or false"},
    {MULTI(", \"links\": [{\"from\": \"host\", \"to\": \"opencl:0\", \"bandwidth_bytes_per_s\": "
           "-5}]"),
     "links[0].bandwidth_bytes_per_s", "out of range"},
    {MULTI(", \"budgets\": []"), "budgets", "object"},
    {MULTI(", \"budgets\": {\"dram\": 1}"), "budgets.dram", "memories are host, opencl:0"},
    {MULTI(", \"budgets\": {\"host\": \"999TiB\"}"), "budgets.host", "out of range"},
    {MULTI(", \"budgets\": {\"host\": 0}"), "budgets.host", "out of range"},
    {MULTI(", \"machines\": 3"), "machines", "list of machines"},
    {MULTI(", \"machines\": [{\"name\": \"a\"}, {\"name\": \"b\"}]"), "devices[0].machine",
     "is missing"},
    {MULTI(", \"machines\": [{\"name\": \"a\", \"target\": \"cpu\"}]"), "devices",
     "remove this list"},
    {"{\"kind\": \"multi\", \"machines\": [{\"target\": \"cpu\"}]}", "machines[0].name",
     "is missing"},
    {"{\"kind\": \"multi\", \"machines\": [{\"name\": \"a\", \"target\": \"cpu\"},"
     "{\"name\": \"b\", \"target\": \"cpu\"}]}",
     "links", "no way leads"},
    {"{\"kind\": \"multi\", \"machines\": [{\"name\": \"a\", \"target\": {\"kind\": \"cpu\", "
     "\"cores\": 0}}]}",
     "machines[0].target.cores", "out of range"},
    {"arm/rasp4b:gpu", "", "no device 'gpu'"},
    {"nvidia/jetson-nano:npu", "", "no device 'npu'"},
    {"arm/rasp4b{", "", "not JSON"},
    {"arm/rasp4b{\"cores\": 0}", "cores", "out of range"},
};

Test(target_errors, every_field_is_named) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_target_diagnostics d = diagnose(cases[i].text, NULL);
        cr_expect(has_diagnostic(d, cases[i].path, cases[i].part),
                  "%s\n  wanted %s: ...%s...\n  got %s: %s", cases[i].text, cases[i].path,
                  cases[i].part, d.data[0].path, d.data[0].message);
    }
}

// Machines without a name: what their devices say of them is not held against them.
Test(target_errors, a_machine_that_is_wrong_is_said_once) {
    berth_target_diagnostics d =
        diagnose("{\"kind\": \"multi\", \"machines\": [\"a\"], \"devices\": [{\"target\": "
                 "\"cpu\", \"machine\": \"a\"}]}",
                 NULL);
    cr_expect(has_diagnostic(d, "machines[0]", "an object"));
    cr_expect_not(has_diagnostic(d, "devices[0].machine", ""), "%s", d.data[0].message);
}

Test(target_errors, status_lists_them_all) {
    berth_multi_target *target = NULL;
    berth_status status = berth_target_parse(
        test_arena, "{\"kind\": \"cpu\", \"cores\": -1, \"archh\": \"x\", \"features\": 3}", NULL,
        &target);
    cr_expect_null(target);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    const char *message = berth_status_message(status);
    cr_expect_not_null(strstr(message, "cores: -1"), "%s", message);
    cr_expect_not_null(strstr(message, "archh: "), "%s", message);
    cr_expect_not_null(strstr(message, "features: "), "%s", message);
    berth_status_free(status);
}

Test(target_errors, options) {
    const char *const bad_sets[] = {
        "cores", "devices[3].target.cores=1", "x[0]=1", "kind.a=1", "devices[0=1", NULL};
    for (int i = 0; bad_sets[i]; ++i) {
        const char *const one[] = {bad_sets[i], NULL};
        berth_target_options options = {.overrides = one};
        berth_target_diagnostics d = diagnose(MULTI(""), &options);
        cr_expect_str_eq(d.data[0].path, bad_sets[i]);
    }
    const char *const pins[] = {"nonsense", "x=npu", NULL};
    berth_target_options options = {.pins = pins};
    berth_target_diagnostics d = diagnose("opencl,cpu", &options);
    cr_expect(has_diagnostic(d, "pin nonsense", "PATTERN=DEVICE"));
    const char *const broken[] = {"model=\xc0\x80", NULL};
    berth_target_options not_text = {.overrides = broken};
    cr_expect(has_diagnostic(diagnose("cpu", &not_text), "model", "not UTF-8"));
    const char *const lost[] = {"x=npu", NULL};
    options.pins = lost;
    d = diagnose("opencl,cpu", &options);
    cr_expect(has_diagnostic(d, "pin x=npu", "no device 'npu'"));
    options = (berth_target_options){.executor = "fast"};
    cr_expect(has_diagnostic(diagnose("cpu", &options), "executor", "graph, vm, aot, auto"));
    options = (berth_target_options){.runtime = "fast"};
    cr_expect(has_diagnostic(diagnose("cpu", &options), "runtime", "hosted, bare"));
    options = (berth_target_options){.host = "opencl"};
    cr_expect(has_diagnostic(diagnose("cuda", &options), "host", "a host is a cpu"));
    options = (berth_target_options){.host = "nobody"};
    cr_expect(has_diagnostic(diagnose("cuda", &options), "host", "no device 'nobody'"));
}

Test(target_errors, limits) {
    char *text = berth_arena_alloc(test_arena, 4 * BERTH_TARGET_MAX_DEVICES + 8);
    strcpy(text, "cpu");
    for (int i = 0; i < BERTH_TARGET_MAX_DEVICES; ++i) strcpy(text + 3 + 4 * i, ",cpu");
    cr_expect(has_diagnostic(diagnose(text, NULL), "devices", "at most"));
    char deep[1024];
    memset(deep, '[', sizeof(deep));
    memcpy(deep, "{\"a\":", 5);
    deep[sizeof(deep) - 1] = 0;
    diagnose(deep, NULL);
    char *nested = berth_arena_alloc(test_arena, 4096);
    strcpy(nested, "{\"kind\": \"cpu\", \"arch\": ");
    for (int i = 0; i < 200; ++i) strcat(nested, "[");
    for (int i = 0; i < 200; ++i) strcat(nested, "]");
    strcat(nested, "}");
    cr_expect(has_diagnostic(diagnose(nested, NULL), "", "nested deeper"));
}
