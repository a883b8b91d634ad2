// Every spelling of a target, and that all of them meet in one canonical form.
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "support.h"

TestSuite(target_spellings, .init = test_arena_open, .fini = test_arena_close);

static const char example[] =
    "{\"kind\": \"multi\", \"name\": \"phone-soc\","
    " \"devices\": ["
    "  {\"name\": \"big\", \"target\": {\"kind\": \"cpu\", \"arch\": \"aarch64\", \"cpu\": "
    "\"cortex-a78\","
    "    \"features\": [\"neon\", \"dotprod\", \"fp16\"], \"cores\": 4, \"clock_hz\": 2400000000}},"
    "  {\"name\": \"gpu\", \"target\": {\"kind\": \"opencl\", \"compute_units\": 6,"
    "    \"local_memory_bytes\": 32768, \"peak_flops\": {\"f32\": 1.2e12, \"f16\": 2.4e12}}},"
    "  {\"name\": \"npu\", \"target\": {\"kind\": \"vta\", \"log_block\": 4, "
    "\"log_inp_buff_size\": 15,"
    "    \"clock_hz\": 300000000}}],"
    " \"default_device\": \"gpu\", \"host\": \"big\","
    " \"memories\": ["
    "  {\"name\": \"dram\", \"scope\": \"global\", \"capacity_bytes\": 4294967296,"
    "   \"bandwidth_bytes_per_s\": 2.5e10, \"latency_ns\": 100, \"alignment_bytes\": 64,"
    "   \"reached_by\": [\"big\", \"gpu\"]},"
    "  {\"name\": \"npu_ram\", \"scope\": \"global\", \"capacity_bytes\": 268435456,"
    "   \"bandwidth_bytes_per_s\": 4e9, \"latency_ns\": 300, \"alignment_bytes\": 4096,"
    "   \"reached_by\": [\"npu\"]},"
    "  {\"name\": \"npu_inp\", \"scope\": \"vta.inp\", \"capacity_bytes\": 32768, \"reached_by\": "
    "[\"npu\"]}],"
    " \"links\": [{\"from\": \"dram\", \"to\": \"npu_ram\", \"bandwidth_bytes_per_s\": 3.2e9,"
    "   \"latency_ns\": 5000, \"duplex\": false, \"bus\": \"axi0\"}],"
    " \"executor\": {\"kind\": \"graph\"}, \"runtime\": {\"kind\": \"hosted\"},"
    " \"pins\": [{\"match\": \"op:Softmax\", \"device\": \"big\"}, {\"match\": \"conv*\", "
    "\"device\": \"npu\"}],"
    " \"budgets\": {\"dram\": \"64MiB\"}}";

// Budgets of the command line, by memory, device, KIND:N and KIND, over those of the target.
Test(target_spellings, budgets_of_the_command_line) {
    static const struct {
        const char *budgets;
        uint64_t dram, npu_ram;
    } cases[] = {{"dram=1MiB", 1 << 20, 0},
                 {"big=2MiB,npu=4096", 2 << 20, 4096},
                 {"cpu:0=3MiB,vta=8KiB", 3 << 20, 8192},
                 {"npu_ram=6000", 64 << 20, 6000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        berth_multi_target *t = NULL;
        berth_target_options options = {.budgets = cases[i].budgets};
        berth_status status = berth_target_parse(test_arena, example, &options, &t);
        cr_assert_null(status, "%s: %s", cases[i].budgets, berth_status_message(status));
        cr_expect_eq(t->memories[0].budget_bytes, cases[i].dram, "%s", cases[i].budgets);
        uint64_t npu_ram = cases[i].npu_ram ? cases[i].npu_ram : t->memories[1].capacity_bytes;
        cr_expect_eq(t->memories[1].budget_bytes, npu_ram, "%s", cases[i].budgets);
        check_round_trip(t, cases[i].budgets);
    }
    static const char *const wrong[] = {
        "cuda=1MiB", "dram", "dram=0", "dram=999TiB", "=5", "npu=x", "npu_ram=5000,npu_ram=6000"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        berth_multi_target *t = NULL;
        berth_target_options options = {.budgets = wrong[i]};
        berth_status status = berth_target_parse(test_arena, example, &options, &t);
        cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%s", wrong[i]);
        cr_expect(strstr(berth_status_message(status), "target: memory: "), "%s",
                  berth_status_message(status));
        berth_status_free(status);
    }
}

Test(target_spellings, documented_example) {
    berth_multi_target *t = parse(example);
    check_invariants(t, "example");
    check_round_trip(t, "example");
    cr_assert_eq(t->device_count, 3u);
    cr_expect_str_eq(t->name, "phone-soc");
    cr_expect_eq(t->default_device, 1u);
    cr_expect_eq(t->host, 0u);
    cr_assert_eq(t->memory_count, 3u + 4u);  // of the npu's chip: those not listed
    cr_expect_eq(t->memories[0].reached_by.word, 3u);
    cr_expect_eq(t->memories[0].budget_bytes, 64u << 20);
    cr_expect_eq(t->memories[1].alignment_bytes, 4096u);
    cr_expect_str_eq(t->memories[2].scope, "vta.inp");
    cr_assert_eq(t->link_count, 1u);
    cr_expect_str_eq(t->links[0].bus, "axi0");
    cr_expect_not(t->links[0].duplex);
    cr_assert_eq(t->pin_count, 2u);
    cr_expect_eq(t->pins[1].device, 2u);
    cr_expect_str_eq(t->pins[1].source, "pins[1]");
    cr_expect_float_eq(t->devices[1].target->peak_flops[BERTH_DTYPE_F16], 2.4e12, 1);
    cr_expect_eq(berth_target_extra_get(t->devices[2].target, "log_block", -1), 4);
    // 2 x 1 x 16 x 16 operations per cycle at 300 MHz.
    cr_expect_float_eq(t->devices[2].target->peak_flops[BERTH_DTYPE_I8], 1.536e11, 1);
}

Test(target_spellings, one_name_is_enough) {
    static const char *const names[] = {"cpu", "opencl", "vulkan", "cuda", "vta", "npu", "null"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        berth_multi_target *t = parse(names[i]);
        check_invariants(t, names[i]);
        check_round_trip(t, names[i]);
        bool cpu = i == 0;
        cr_expect_eq(t->device_count, cpu ? 1u : 2u, "%s", names[i]);
        cr_expect_eq(t->host, cpu ? 0u : 1u);
        cr_expect_eq(t->devices[t->host].host_only, !cpu);
        cr_expect_eq(t->link_count, cpu ? 0u : 1u, "%s: a link to the host's memory", names[i]);
    }
}

Test(target_spellings, short_form_options) {
    berth_multi_target *t = parse("cuda -arch=sm_90 -libs=cublas,cudnn -compute-units=132 "
                                  "-peak_flops.f32=6.7e13 -memory_capacity_bytes=80GiB");
    check_round_trip(t, "cuda");
    const berth_target *gpu = t->devices[0].target;
    cr_expect_str_eq(gpu->arch, "sm_90");
    cr_assert_eq(gpu->libs.count, 2u);
    cr_expect(berth_target_has_lib(gpu, "cudnn"));
    cr_expect_not(berth_target_has_lib(gpu, "dnnl"));
    cr_expect_eq(gpu->compute_units, 132);
    cr_expect_float_eq(gpu->peak_flops[BERTH_DTYPE_F32], 6.7e13, 1e3);
    cr_expect_eq(gpu->memory_capacity_bytes, (int64_t)80 << 30);
}

// uname, Debian and compilers have names of their own for one architecture.
Test(target_spellings, names_of_an_architecture_are_one) {
    static const char *const rows[][2] = {
        {"x86-64", "x86_64"}, {"amd64", "x86_64"}, {"arm64", "aarch64"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        char text[64], same[64];
        snprintf(text, sizeof(text), "cpu -arch=%s -cores=2", rows[i][0]);
        snprintf(same, sizeof(same), "cpu -arch=%s -cores=2", rows[i][1]);
        berth_multi_target *a = parse(text), *b = parse(same);
        cr_expect_str_eq(a->devices[0].target->arch, rows[i][1]);
        cr_expect(berth_multi_target_equal(a, b), "%s", text);
        check_round_trip(a, text);
    }
}

Test(target_spellings, same_target_same_hash) {
    berth_multi_target *a = parse("cuda -arch=sm_90 -libs=cublas");
    berth_multi_target *b =
        parse("{\"libs\": [\"cublas\"], \"arch\": \"sm_90\", \"kind\": \"cuda\"}");
    berth_multi_target *c = parse("{\"kind\": \"multi\", \"devices\": [{\"target\": "
                                  "\"cuda -libs=cublas -arch=sm_90\"}]}");
    cr_expect(berth_multi_target_equal(a, b));
    cr_expect(berth_multi_target_equal(a, c));
    cr_expect(berth_hash128_equal(a->hash, c->hash));
    berth_multi_target *d = parse("cuda -arch=sm_80 -libs=cublas");
    cr_expect_not(berth_multi_target_equal(a, d));
    cr_expect_not(berth_hash128_equal(a->hash, d->hash));
}

Test(target_spellings, kernels_do_not_depend_on_execution) {
    berth_target_options vm = {.executor = "vm", .pins = (const char *const[]){"a*=cpu:0", NULL}};
    berth_multi_target *a = parse("opencl,cpu");
    berth_multi_target *b = parse_with("opencl,cpu", &vm);
    cr_expect_not(berth_hash128_equal(a->hash, b->hash));
    cr_expect(berth_hash128_equal(a->kernel_hash, b->kernel_hash));
    cr_expect(berth_hash128_equal(a->devices[0].target->hash, b->devices[0].target->hash));
}

Test(target_spellings, commas_list_devices_or_values) {
    berth_multi_target *t = parse("opencl -libs=a,b,cpu -cores=3 -libs=x,y , opencl");
    cr_assert_eq(t->device_count, 3u);
    cr_expect_str_eq(t->devices[0].name, "opencl:0");
    cr_expect_eq(t->devices[0].target->libs.count, 2u, "a comma before a kind ends the list");
    cr_expect_str_eq(t->devices[1].name, "cpu:0");
    cr_expect_eq(t->devices[1].target->cores, 3);
    cr_expect_eq(t->devices[1].target->libs.count, 2u);
    cr_expect_str_eq(t->devices[2].name, "opencl:1");
    cr_expect_eq(t->devices[2].virtual_id, 1u);
    cr_expect_eq(t->default_device, 0u);
    cr_expect_eq(t->host, 1u, "a listed CPU is the host");
}

Test(target_spellings, cpu_is_this_machine_in_short_form_only) {
    berth_target_options options = {.machine = test_machine()};
    berth_multi_target *t = parse_with("cpu", &options);
    cr_expect_eq(t->devices[0].target->cores, 8);
    cr_expect_eq(t->devices[0].target->vector_bits, 256);
    cr_expect_eq(t->devices[0].target->l3_bytes, 33554432);
    cr_expect(berth_target_has_feature(t->devices[0].target, "avx2"));
    check_round_trip(t, "machine's cpu");
    t = parse_with("cpu -cores=2", &options);
    cr_expect_eq(t->devices[0].target->cores, 2);
    cr_expect_eq(t->devices[0].target->threads, 2);
    cr_expect(berth_target_has_feature(t->devices[0].target, "avx2"));
    t = parse_with("cpu -arch=aarch64", &options);
    cr_expect_eq(t->devices[0].target->features.count, 0u, "another architecture is not ours");
    berth_multi_target *generic = parse("{\"kind\": \"cpu\"}");
    t = parse_with("{\"kind\": \"cpu\"}", &options);
    cr_expect(berth_multi_target_equal(t, generic), "JSON never depends on the machine");
    t = parse_with("{\"kind\": \"multi\", \"devices\": [{\"target\": \"cpu\"}]}", &options);
    cr_expect(berth_multi_target_equal(t, generic));
}

Test(target_spellings, hosts) {
    berth_target_options options = {.machine = test_machine()};
    berth_multi_target *t = parse_with("opencl -host=cpu", &options);
    cr_assert_eq(t->device_count, 2u);
    cr_expect(t->devices[1].host_only);
    cr_expect_eq(t->devices[1].target->cores, 8, "the short form's host is this machine's CPU");
    cr_expect(berth_multi_target_equal(t, parse_with("opencl", &options)), "and is implied");
    t = parse("opencl -host=\"cpu -arch=aarch64 -cores=6\"");
    cr_expect_str_eq(t->devices[t->host].target->arch, "aarch64");
    t = parse("{\"kind\": \"cuda\", \"host\": {\"kind\": \"cpu\", \"cores\": 12}}");
    cr_expect_eq(t->devices[t->host].target->cores, 12);
    cr_expect(t->devices[t->host].host_only);
    t = parse(
        "{\"kind\": \"multi\", \"devices\": [\"opencl\", \"cpu -cores=3\"], \"host\": \"cpu\"}");
    cr_expect_eq(t->host, 1u, "any CPU will do, and one is listed");
    t = parse("{\"kind\": \"multi\", \"devices\": [\"opencl\", \"cpu -cores=3\"],"
              " \"host\": {\"kind\": \"cpu\", \"cores\": 5}}");
    cr_expect_eq(t->host, 2u, "another CPU than the listed one");
    check_invariants(t, "second CPU as host");
    berth_target_options host = {.host = "cpu -cores=7"};
    t = parse_with("vulkan", &host);
    cr_expect_eq(t->devices[t->host].target->cores, 7);
    host.host = "little";
    t = parse_with("rockchip/rk3588", &host);
    cr_expect_str_eq(t->devices[t->host].name, "little");
}

Test(target_spellings, local_machine) {
    berth_target_options options = {.machine = test_machine()};
    berth_multi_target *t = parse_with("local", &options);
    check_invariants(t, "local");
    check_round_trip(t, "local");
    cr_assert_eq(t->device_count, 3u);
    cr_expect_str_eq(t->devices[0].name, "cpu:0");
    cr_expect_str_eq(t->devices[2].name, "opencl:1");
    cr_expect_eq(t->devices[1].target->compute_units, 20);
    cr_expect(berth_multi_target_share_memory(t, 0, 2, NULL), "the second GPU shares host memory");
    cr_expect_not(berth_multi_target_share_memory(t, 0, 1, NULL));
    berth_multi_target *none = NULL;
    berth_status status = berth_target_parse(test_arena, "local", NULL, &none);
    cr_expect_eq(berth_status_code(status), BERTH_UNAVAILABLE);
    berth_status_free(status);
}

Test(target_spellings, host_facts_of_this_machine) {
    berth_machine_facts facts;
    cr_assert_null(berth_machine_facts_host(test_arena, &facts));
    cr_expect_geq(facts.cores, 1);
    cr_expect_geq(facts.threads, facts.cores);
    cr_expect_str_not_empty(facts.arch);
    cr_expect_gt(facts.memory_capacity_bytes, 0);
    berth_target_options options = {.machine = &facts};
    berth_multi_target *t = parse_with("opencl,cpu", &options);
    check_invariants(t, "this machine");
    check_round_trip(t, "this machine");
}

// A device has the memory that its driver says, and not a usual one; but for processor cores, whose driver says what is free
// at the moment.
Test(target_spellings, memory_of_this_machines_devices) {
    berth_machine_facts facts = *test_machine();
    berth_machine_device device = facts.devices[0];
    berth_target_options options = {.machine = &facts};
    facts.devices = &device;
    facts.device_count = 1;
    for (int64_t gib = 2; gib <= 141; gib += 139) {
        device.memory_capacity_bytes = gib << 30;
        berth_multi_target *t = parse_with("opencl", &options);
        cr_expect_eq(t->devices[0].target->memory_capacity_bytes, gib << 30);
        cr_expect_eq(t->memories[t->devices[0].own_memory].capacity_bytes, (uint64_t)gib << 30);
        t = parse_with("opencl -memory_capacity_bytes=1GiB", &options);
        cr_expect_eq(t->devices[0].target->memory_capacity_bytes, (int64_t)1 << 30);
    }
    device.uses_host_cores = true;
    berth_multi_target *one = parse_with("opencl", &options);
    device.memory_capacity_bytes -= 12345;
    cr_expect(berth_multi_target_equal(one, parse_with("opencl", &options)));
}

Test(target_spellings, files) {
    char path[] = "/tmp/berth_target_XXXXXX.json";
    int file = mkstemps(path, 5);
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, example, sizeof(example) - 1), (ssize_t)sizeof(example) - 1);
    close(file);
    berth_multi_target *t = parse(path);
    cr_expect(berth_multi_target_equal(t, parse(example)));
    berth_target_options closed = {.no_files = true};
    berth_multi_target *none = NULL;
    berth_status status = berth_target_parse(test_arena, path, &closed, &none);
    cr_expect_eq(berth_status_code(status), BERTH_NOT_FOUND);
    berth_status_free(status);
    unlink(path);
    status = berth_target_parse(test_arena, path, NULL, &none);
    cr_expect_eq(berth_status_code(status), BERTH_NOT_FOUND);
    berth_status_free(status);
}

Test(target_spellings, overrides_and_options) {
    const char *const sets[] = {"devices[gpu].target.compute_units=12",
                                "devices[0].target.cores=6",
                                "memories[dram].capacity_bytes=8589934592",
                                "devices[1].target.peak_flops.i8=5e12",
                                "default_device=npu",
                                NULL};
    const char *const pins[] = {"op:Gemm=gpu", NULL};
    berth_target_options options = {.overrides = sets, .pins = pins, .executor = "vm"};
    berth_multi_target *t = parse_with(example, &options);
    cr_expect_eq(t->devices[1].target->compute_units, 12);
    cr_expect_eq(t->devices[0].target->cores, 6);
    cr_expect_eq(t->memories[0].capacity_bytes, 8589934592u);
    cr_expect_float_eq(t->devices[1].target->peak_flops[BERTH_DTYPE_I8], 5e12, 1);
    cr_expect_eq(t->default_device, 2u);
    cr_expect_eq(t->executor, BERTH_EXECUTOR_VM);
    cr_assert_eq(t->pin_count, 3u);
    cr_expect_str_eq(t->pins[0].match, "op:Gemm", "the command line's pins come first");
    cr_expect_str_eq(t->pins[0].source, "pin op:Gemm=gpu");
    const char *const single[] = {"cores=3", "peak_flops.f16=1e12", NULL};
    options = (berth_target_options){.overrides = single, .runtime = "bare"};
    t = parse_with("cpu", &options);
    cr_expect_eq(t->devices[0].target->cores, 3);
    cr_expect_eq(t->runtime, BERTH_RUNTIME_BARE);
    cr_expect_eq(t->executor, BERTH_EXECUTOR_AOT, "the only executor of a bare runtime");
}

Test(target_spellings, machines) {
    berth_multi_target *t =
        parse("{\"kind\": \"multi\", \"machines\": ["
              " {\"name\": \"a\", \"target\": \"opencl,cpu\"},"
              " {\"name\": \"b\", \"target\": {\"kind\": \"cuda\", \"host\": {\"kind\": \"cpu\", "
              "\"cores\": 8}}}],"
              " \"links\": [{\"from\": \"a.host\", \"to\": \"b.host\"}], \"pins\": ["
              " {\"match\": \"x*\", \"device\": \"b.cuda:0\"}]}");
    check_invariants(t, "machines");
    check_round_trip(t, "machines");
    cr_assert_eq(t->machine_count, 2u);
    cr_expect_str_eq(t->devices[0].name, "a.opencl:0");
    cr_expect_str_eq(t->devices[2].name, "b.cuda:0");
    cr_expect_eq(t->devices[2].machine, 1u);
    cr_expect_str_eq(t->devices[t->machines[0].host].name, "a.cpu:0");
    cr_expect_eq(t->devices[t->machines[1].host].target->cores, 8);
    // a's GPU -> a's host -> b's host -> b's GPU.
    berth_target_route route;
    cr_assert(berth_multi_target_route(t, test_arena, t->devices[0].own_memory,
                                       t->devices[2].own_memory, 4096, &route));
    cr_expect_eq(route.hop_count, 3u);
}

Test(target_spellings, short_print_for_logs) {
    const char *text = berth_target_print_short(test_arena, parse("opencl,cpu -arch=aarch64"));
    cr_expect_not_null(strstr(text, "opencl:0"));
    cr_expect_not_null(strstr(text, "-arch=aarch64"));
    cr_expect_not_null(strstr(text, "host=cpu:0"));
    berth_multi_target *t = parse(example);
    cr_expect_str_eq(berth_target_print_json(test_arena, t, 0), t->canonical);
    berth_multi_target *again = parse(berth_target_print_json(test_arena, t, 2));
    cr_expect(berth_multi_target_equal(t, again), "indented print reads back");
}

Test(target_spellings, differences_are_named) {
    static const struct {
        const char *left, *right, *text;
    } rows[] = {
        {"arm/rasp4b", "arm/rasp4b", ""},
        {"cpu -arch=x86_64 -cores=2 -clock_hz=1e9 -peak_flops.f32=1e9",
         "cpu -arch=x86_64 -cores=4 -clock_hz=1e9 -peak_flops.f32=1e9",
         "devices[0].target.cores: 2, not 4; devices[0].target.threads: 2, not 4"},
        {"cpu -features=avx2,fma -peak_flops.f32=1e9",
         "cpu -features=avx2,sse4.2 -peak_flops.f32=1e9",
         "devices[0].target.features: with fma, without sse4.2"},
        {"cpu -model=x", "cpu", "devices[0].target.model: \"x\", not nothing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const char *text = NULL;
        cr_assert_null(berth_target_difference(test_arena, parse(rows[i].left)->canonical,
                                               parse(rows[i].right)->canonical, &text));
        cr_expect_str_eq(text, rows[i].text, "%s", text);
    }
    const char *text = NULL;
    cr_assert_null(berth_target_difference(test_arena, parse("cpu,cpu")->canonical,
                                           parse("cpu")->canonical, &text));
    cr_expect_not_null(strstr(text, "devices: cpu:0, cpu:1, not cpu:0"), "%s", text);
    // Of long lists the first, by name: links by what they connect.
    cr_assert_null(berth_target_difference(test_arena, parse("cpu")->canonical,
                                           parse("nvidia/dgx-h100")->canonical, &text));
    cr_expect_not_null(strstr(text, "gpu7 and 2 more"), "%s", text);
    cr_expect_not_null(strstr(text, "links: nothing, not numa0 to numa1, "), "%s", text);
    cr_expect_lt(strlen(text), 1000u, "%s", text);
    berth_status status = berth_target_difference(test_arena, "{", "{}", &text);
    cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    berth_status_free(status);
}

// Flash beside RAM, in either order: nobody's own memory, but that of the constants.
Test(target_spellings, memories_that_hold_constants) {
    static const char flash[] = "{\"name\": \"flash\", \"holds\": \"constants\", "
                                "\"capacity_bytes\": 65536, \"reached_by\": [\"cpu:0\"]}";
    static const char ram[] =
        "{\"name\": \"ram\", \"capacity_bytes\": 16384, \"reached_by\": [\"cpu:0\"]}";
    for (int i = 0; i < 2; ++i) {
        berth_multi_target *t =
            parse(berth_arena_printf(test_arena, "{\"devices\": [\"cpu\"], \"memories\": [%s, %s]}",
                                     i ? flash : ram, i ? ram : flash));
        check_invariants(t, "flash");
        check_round_trip(t, "flash");
        cr_expect_str_eq(t->memories[t->devices[0].own_memory].name, "ram");
        cr_expect_str_eq(t->memories[t->devices[0].constant_memory].name, "flash");
    }
    // Alone it is no place for values: these get a memory that is implied.
    berth_multi_target *t = parse(
        berth_arena_printf(test_arena, "{\"devices\": [\"cpu\"], \"memories\": [%s]}", flash));
    cr_expect_str_eq(t->memories[t->devices[0].own_memory].name, "host");
    cr_expect_str_eq(t->memories[t->devices[0].constant_memory].name, "flash");
    t = parse("cuda,cpu");
    for (uint32_t d = 0; d < t->device_count; ++d)
        cr_expect_eq(t->devices[d].constant_memory, t->devices[d].own_memory);
}

static const berth_target_memory *in_scope(const berth_multi_target *t, uint32_t device,
                                           const char *scope) {
    uint32_t memory = berth_multi_target_memory_of(t, device, scope);
    cr_assert_neq(memory, BERTH_NO_INDEX, "%s", scope);
    return &t->memories[memory];
}

// What a device has on its chip is a memory of the target, as large as its attributes say.
Test(target_spellings, memories_on_chips) {
    berth_multi_target *t = parse("vta -log_wgt_buff_size=16,cpu");
    check_invariants(t, "vta");
    check_round_trip(t, "vta");
    cr_expect_eq(in_scope(t, 0, "vta.uop")->capacity_bytes, 32768);
    cr_expect_eq(in_scope(t, 0, "vta.inp")->capacity_bytes, 32768);
    cr_expect_eq(in_scope(t, 0, "vta.wgt")->capacity_bytes, 65536);
    cr_expect_eq(in_scope(t, 0, "vta.acc")->capacity_bytes, 131072);
    // 8 of the 32 bits of an accumulator.
    cr_expect_eq(in_scope(t, 0, "vta.out")->capacity_bytes, 32768);
    cr_expect(in_scope(t, 0, "vta.out")->implied);
    cr_expect_str_eq(t->memories[t->devices[0].own_memory].scope, "global");
    // The canonical form with other attributes: implied memories follow.
    static const char *const other[] = {"devices[0].target.log_wgt_buff_size=17", NULL};
    t = parse_with(t->canonical, &(berth_target_options){.overrides = other});
    cr_expect_eq(in_scope(t, 0, "vta.wgt")->capacity_bytes, 131072);
    t = parse("npu -sram_bytes=48KiB,cpu");
    check_round_trip(t, "npu");
    cr_expect_eq(in_scope(t, 0, "npu.sram")->capacity_bytes, 49152);
    // 2 x 16 x 16 operations in a cycle.
    cr_expect_float_eq(t->devices[0].target->peak_flops[BERTH_DTYPE_I8],
                       512.0 * (double)t->devices[0].target->clock_hz, 1);
    cr_expect_eq(t->devices[0].target->operators.count, 6);
}

// A declared one must be what the attributes say.
Test(target_spellings, declared_memories_on_chips) {
    static const char text[] =
        "{\"kind\": \"multi\", \"devices\": [{\"name\": \"n\", \"target\": {\"kind\": "
        "\"vta\"}}], \"memories\": [{\"name\": \"d\", \"capacity_bytes\": 1000000, "
        "\"reached_by\": [\"n\"]}, {\"name\": \"w\", \"scope\": \"vta.wgt\", "
        "\"capacity_bytes\": 1024, \"reached_by\": [\"n\"]}]}";
    berth_target_diagnostics found = diagnose(text, NULL);
    cr_expect(has_diagnostic(found, "memories[1]",
                             "the attributes of 'n' give 262144 bytes for vta.wgt, not 1024"));
    found = diagnose("npu,cpu", &(berth_target_options){.budgets = "npu:0.sram=1KiB"});
    cr_expect(has_diagnostic(found, "memory", "'npu:0.sram' is on the chip of 'npu:0'"));
}

// Further memories of a board, faster and slower than its own.
Test(target_spellings, a_board_has_fast_and_external_memory) {
    berth_target_options options = {.runtime = "bare",
                                    .budgets = "external=8MiB,sram=64KiB,dtcm=16KiB"};
    berth_multi_target *t = parse_with("cpu -arch=cortex-m4", &options);
    cr_assert_eq(t->memory_count, 3u);
    const berth_target_memory *own = &t->memories[t->devices[0].own_memory];
    const berth_target_memory *fast = &t->memories[berth_multi_target_memory(t, "dtcm")];
    const berth_target_memory *slow = &t->memories[berth_multi_target_memory(t, "external")];
    cr_expect_str_eq(own->name, "sram");
    cr_expect_eq(fast->budget_bytes, 16u << 10);
    cr_expect_eq(slow->budget_bytes, 8u << 20);
    cr_expect(!fast->holds_constants && !slow->holds_constants);
    cr_expect_gt(fast->bandwidth_bytes_per_s, own->bandwidth_bytes_per_s);
    cr_expect_lt(slow->bandwidth_bytes_per_s, own->bandwidth_bytes_per_s);
    cr_expect_leq(fast->latency_ns, own->latency_ns);
    cr_expect_geq(slow->latency_ns, own->latency_ns);
    check_round_trip(t, "a board with three memories");
    options.runtime = NULL;
    options.budgets = "dtcm=16KiB";
    cr_expect(has_diagnostic(diagnose("cpu", &options), "memory", "there is no memory"));
}

// A bare board's memories may be named without being declared; others have none of these names.
Test(target_spellings, a_board_has_sram_and_flash) {
    berth_target_options options = {.runtime = "bare", .budgets = "flash=1MiB,sram=64KiB"};
    berth_multi_target *t = parse_with("cpu -arch=cortex-m4", &options);
    const berth_target_memory *own = &t->memories[t->devices[0].own_memory];
    const berth_target_memory *flash = &t->memories[t->devices[0].constant_memory];
    cr_expect_str_eq(own->name, "sram");
    cr_expect_eq(own->budget_bytes, 64u << 10);
    cr_expect_str_eq(flash->name, "flash");
    cr_expect_eq(flash->budget_bytes, 1u << 20);
    cr_expect(flash->holds_constants && !own->holds_constants);
    check_round_trip(t, "board");
    options.budgets = "sram=64KiB";  // constants are not limited then
    t = parse_with("cpu -arch=cortex-m4", &options);
    cr_expect_eq(t->memory_count, 1u);
    cr_expect_eq(t->devices[0].constant_memory, t->devices[0].own_memory);
    options.budgets = "cpu=64KiB";
    t = parse_with("cpu -arch=cortex-m4", &options);
    cr_expect_str_eq(t->memories[0].name, "host");
    options.budgets = "crm=64KiB";
    cr_expect(has_diagnostic(diagnose("cpu -arch=cortex-m4", &options), "memory",
                             "there are sram, flash, dtcm, ccm, external, store, host, cpu:0"));
    options.budgets = "flash=0";
    cr_expect(
        has_diagnostic(diagnose("cpu -arch=cortex-m4", &options), "memory: flash", "out of range"));
    options.budgets = "sram=1KiB,flash=2KiB,sram=3KiB";
    cr_expect(has_diagnostic(diagnose("cpu -arch=cortex-m4", &options), "memory",
                             "a second budget of memory 'sram'"));
    options.budgets = "sram=1KiB,cpu:0=3KiB";  // by another name
    cr_expect(has_diagnostic(diagnose("cpu -arch=cortex-m4", &options), "memory",
                             "a second budget of memory 'sram'"));
    // A board may have more than a microcontroller has by default, but not than it says that it has.
    options.budgets = "sram=1MiB";
    t = parse_with("cpu -arch=cortex-m4", &options);
    cr_expect_eq(t->memories[0].budget_bytes, 1u << 20);
    check_round_trip(t, "a large board");
    cr_expect(has_diagnostic(diagnose("cpu -arch=cortex-m4 -memory_capacity_bytes=65536", &options),
                             "memory: sram", "allowed is 1 to 65536"));
    options.budgets = "sram=5GiB";
    cr_expect(has_diagnostic(diagnose("cpu -arch=cortex-m4", &options), "memory: sram",
                             "allowed is 1 to 4294967296"));
    options = (berth_target_options){.budgets = "sram=64KiB"};
    cr_expect(has_diagnostic(diagnose("cpu", &options), "memory", "there are host, cpu:0"));
}
