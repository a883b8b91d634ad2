// Tags: all built-in ones are valid and sourced; selectors, overrides, users' own.
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "support.h"

static char folder[64];

static void open_folder(void) {
    test_arena_open();
    strcpy(folder, "/tmp/berth_tags_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void close_folder(void) {
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
    test_arena_close();
}

TestSuite(target_tags, .init = open_folder, .fini = close_folder);

static void write_tag(const char *vendor, const char *file, const char *content) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, vendor);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/%s/%s", folder, vendor, file);
    cr_assert_null(berth_file_write(path, content, strlen(content)));
}

Test(target_tags, built_in_ones_are_valid) {
    berth_target_tag *tags = NULL;
    uint32_t count = 0;
    cr_assert_null(berth_target_list_tags(test_arena, NULL, &tags, &count));
    cr_expect_geq(count, 40u);
    for (uint32_t i = 0; i < count; ++i) {
        const char *name = tags[i].name;
        if (i) cr_expect_lt(strcmp(tags[i - 1].name, name), 0, "%s: sorted, no repetition", name);
        cr_expect_str_not_empty(tags[i].description, "%s", name);
        cr_expect_not_null(strstr(tags[i].sources, "https://"), "%s has no source", name);
        cr_expect_not(tags[i].user);
        berth_multi_target *t = parse(name);
        check_invariants(t, name);
        check_round_trip(t, name);
        // Every device of a platform can be had alone, and is then the only one that computes.
        for (uint32_t d = 0; d < t->device_count && t->device_count > 1; ++d) {
            if (t->devices[d].host_only || t->machine_count > 1) continue;
            const char *one = berth_arena_printf(test_arena, "%s:%s", name, t->devices[d].name);
            if (strncmp(tags[i].json, "{\"kind\": \"multi\"", 16) != 0) continue;
            berth_multi_target *alone = parse(one);
            check_invariants(alone, one);
            check_round_trip(alone, one);
            cr_expect_str_eq(alone->devices[alone->default_device].name, t->devices[d].name);
            uint32_t computing = 0;
            for (uint32_t k = 0; k < alone->device_count; ++k)
                computing += !alone->devices[k].host_only;
            cr_expect_eq(computing, 1u, "%s", one);
        }
    }
}

Test(target_tags, selector_and_overrides) {
    berth_multi_target *t = parse("nvidia/jetson-nano:cuda");
    cr_assert_eq(t->device_count, 2u);
    cr_expect_eq(t->devices[t->default_device].target->kind, BERTH_DEVICE_CUDA);
    cr_expect(t->devices[t->host].host_only);
    cr_expect_str_eq(t->devices[t->host].target->cpu, "cortex-a57");
    cr_expect(berth_multi_target_share_memory(t, 0, 1, NULL), "one DRAM for both");
    t = parse("xilinx/pynq-z2:vta");
    cr_expect_eq(berth_target_extra_get(t->devices[t->default_device].target, "log_block", 0), 4);
    t = parse("aws/p4d.24xlarge:cuda:2");
    cr_expect_str_eq(t->devices[t->default_device].name, "gpu2");
    cr_assert_eq(t->device_count, 2u);
    cr_expect_eq(t->link_count, 1u, "the links between GPUs went with them");
    t = parse("arm/rasp4b{\"cores\": 2, \"l3_bytes\": 4096, \"features\": null}");
    cr_expect_eq(t->devices[0].target->cores, 2);
    cr_expect_eq(t->devices[0].target->l3_bytes, 4096);
    cr_expect_eq(t->devices[0].target->features.count, 0u);
    cr_expect_str_eq(t->devices[0].target->cpu, "cortex-a72");
    t = parse("nvidia/t4 {\"host\": {\"kind\": \"cpu\", \"cores\": 5}}");
    cr_expect_eq(t->devices[t->host].target->cores, 5);
    cr_expect_str_eq(t->devices[0].target->arch, "sm_75");
}

// A GPU at the second socket: both processors stay to drive it, with the way from one to the other.
Test(target_tags, behind_the_second_socket) {
    berth_multi_target *t = parse("nvidia/dgx-h100:gpu5");
    cr_assert_eq(t->device_count, 3u);
    cr_expect_str_eq(t->devices[t->default_device].name, "gpu5");
    berth_target_route route;
    cr_assert(berth_multi_target_route(t, test_arena, t->devices[t->host].own_memory,
                                       t->devices[t->default_device].own_memory, 1 << 20, &route));
    cr_expect_eq(route.hop_count, 2u);
    cr_expect(has_diagnostic(diagnose("nvidia/dgx-h100-x2:gpu5", NULL), "", "several machines"));
}

// Servers joined by InfiniBand: GPUs of one number directly, others over these.
Test(target_tags, two_servers) {
    berth_multi_target *t = parse("nvidia/dgx-h100-x2");
    cr_assert_eq(t->machine_count, 2u);
    berth_target_route route;
    uint32_t from = berth_multi_target_memory(t, "a.hbm3");
    cr_assert(berth_multi_target_route(t, test_arena, from, berth_multi_target_memory(t, "b.hbm3"),
                                       1 << 26, &route));
    cr_expect_eq(route.hop_count, 1u);
    cr_assert(berth_multi_target_route(t, test_arena, from, berth_multi_target_memory(t, "b.hbm6"),
                                       1 << 26, &route));
    cr_expect_eq(route.hop_count, 2u);
}

Test(target_tags, unknown_ones) {
    berth_multi_target *t = NULL;
    berth_status status = berth_target_parse(test_arena, "arm/rasp4", NULL, &t);
    cr_expect_eq(berth_status_code(status), BERTH_NOT_FOUND);
    cr_expect_not_null(strstr(berth_status_message(status), "did you mean 'arm/rasp4b'"));
    berth_status_free(status);
    berth_target_tag tag;
    status = berth_target_find_tag(test_arena, NULL, "no/such", &tag);
    cr_expect_eq(berth_status_code(status), BERTH_NOT_FOUND);
    berth_status_free(status);
}

Test(target_tags, users_own) {
    write_tag(
        "mine", "board.json",
        "{\"description\": \"My board\", \"sources\": \"its data sheet\", \"kind\": \"multi\","
        " \"devices\": [{\"target\": \"opencl -compute_units=3\"}, {\"target\": \"opencl\"},"
        " {\"target\": \"arm/rasp4b\"}], \"pins\": [{\"match\": \"a\", \"device\": "
        "\"opencl:1\"}]}");
    write_tag("arm", "rasp4b.json", "{\"kind\": \"cpu\", \"cores\": 1, \"arch\": \"aarch64\"}");
    write_tag("mine", "notes.txt", "not a tag");
    berth_target_options options = {.tag_folder = folder};
    berth_multi_target *t = parse_with("mine/board", &options);
    check_invariants(t, "mine/board");
    check_round_trip(t, "mine/board");
    cr_expect_eq(t->devices[0].target->compute_units, 3);
    cr_expect_eq(t->devices[2].target->cores, 1, "a user's tag hides the built-in one");
    // Left alone, the second OpenCL device is the first, and its pin follows it.
    t = parse_with("mine/board:opencl:1", &options);
    cr_expect_str_eq(t->devices[t->default_device].name, "opencl:0");
    cr_expect_eq(t->devices[t->default_device].target->compute_units, 8);
    cr_assert_eq(t->pin_count, 1u);
    cr_expect_eq(t->pins[0].device, t->default_device);
    berth_target_tag tag;
    cr_assert_null(berth_target_find_tag(test_arena, folder, "mine/board", &tag));
    cr_expect_str_eq(tag.description, "My board");
    cr_expect_str_eq(tag.sources, "its data sheet");
    cr_expect(tag.user);
    berth_target_tag *tags = NULL;
    uint32_t count = 0, mine = 0, all = 0;
    cr_assert_null(berth_target_list_tags(test_arena, NULL, &tags, &all));
    cr_assert_null(berth_target_list_tags(test_arena, folder, &tags, &count));
    for (uint32_t i = 0; i < count; ++i) mine += tags[i].user;
    cr_expect_eq(mine, 2u);
    cr_expect_eq(count, all + 1, "one new, one hidden");
}

Test(target_tags, users_own_gone_wrong) {
    write_tag("bad", "syntax.json", "{\"kind\": ");
    write_tag("bad", "list.json", "[1]");
    write_tag("bad", "loop.json",
              "{\"kind\": \"multi\", \"devices\": [{\"target\": \"bad/loop:cpu\"}]}");
    berth_target_options options = {.tag_folder = folder};
    cr_expect(has_diagnostic(diagnose("bad/syntax", &options), "", "line 1"));
    cr_expect(has_diagnostic(diagnose("bad/list", &options), "", "object"));
    berth_target_diagnostics loop = diagnose("bad/loop:cpu", &options);
    cr_expect_not_null(strstr(loop.data[0].path, "devices[0].target"), "%s", loop.data[0].path);
    cr_expect_not_null(strstr(loop.data[0].message, "too deeply"), "%s", loop.data[0].message);
    berth_multi_target *t = NULL;
    static const char *const escapes[] = {"../secret", "bad/../bad/list", "bad/.hidden",
                                          "/etc/passwd"};
    for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]); ++i) {
        berth_target_options closed = {.tag_folder = folder, .no_files = true};
        berth_status status = berth_target_parse(test_arena, escapes[i], &closed, &t);
        cr_expect_eq(berth_status_code(status), BERTH_NOT_FOUND, "%s", escapes[i]);
        berth_status_free(status);
    }
    berth_target_tag *tags = NULL;
    uint32_t count = 0;
    berth_status status = berth_target_list_tags(test_arena, "/no/such/folder", &tags, &count);
    cr_expect_eq(berth_status_code(status), BERTH_NOT_FOUND);
    berth_status_free(status);
}

// Several devices, each a kind, a tag or a file, with options after any of them.
Test(target_tags, lists) {
    berth_multi_target *t = parse("nvidia/t4,nvidia/t4");
    check_round_trip(t, "two tags");
    cr_assert_eq(t->device_count, 3u);
    cr_expect_str_eq(t->devices[0].name, "cuda:0");
    cr_expect_str_eq(t->devices[1].name, "cuda:1");
    cr_expect_str_eq(t->devices[1].target->arch, "sm_75");
    cr_expect(t->devices[2].host_only);
    cr_expect_neq(t->devices[0].own_memory, t->devices[1].own_memory);
    // A tag takes nothing from the machine that parses it, not even its host.
    const berth_target_options options = {.machine = test_machine(), .tag_folder = folder};
    t = parse_with("nvidia/t4,nvidia/t4", &options);
    cr_expect_eq(t->devices[t->host].target->cores, 4);

    t = parse_with("cpu,nvidia/t4 -clock_hz=1e9", &options);
    check_round_trip(t, "a kind and a tag");
    cr_assert_eq(t->device_count, 2u);
    cr_expect_eq(t->devices[0].target->cores, 8, "cpu is the machine's");
    cr_expect_eq(t->host, 0u);
    cr_expect_eq(t->devices[1].target->clock_hz, 1000000000);

    t = parse_with("nvidia/t4 {\"model\": \"a, b} \\\"c\"},opencl -libs=a,b,nvidia/v100-16gb",
                   &options);
    cr_assert_eq(t->device_count, 4u);
    cr_expect_str_eq(t->devices[0].target->model, "a, b} \"c");
    cr_expect_eq(t->devices[1].target->libs.count, 2u);
    cr_expect_eq(t->devices[t->host].target->cores, 8, "opencl is driven by the machine's CPU");

    write_tag("my", "board.json", "{\"kind\": \"vta\", \"description\": \"mine\"}");
    t = parse_with("cpu,my/board", &options);
    cr_expect_eq(t->devices[1].target->kind, BERTH_DEVICE_VTA);
    char text[128];
    snprintf(text, sizeof(text), "%s/my/board.json,cpu", folder);
    t = parse_with(text, &options);
    cr_expect_eq(t->devices[0].target->kind, BERTH_DEVICE_VTA);
}

// --set reaches below fields that are spelt as tags or short forms.
Test(target_tags, overrides_below_tags) {
    static const char text[] =
        "{\"kind\": \"multi\", \"devices\": [{\"name\": \"a\", \"target\": \"cpu\"}, "
        "{\"target\": \"nvidia/t4\"}, \"nvidia/t4\"], \"host\": \"arm/rasp4b\"}";
    const char *overrides[] = {"devices[1].target.clock_hz=1e9", "devices[cuda:1].target.model=x",
                               "host.cores=2", "devices[a].target.cores=3", NULL};
    const berth_target_options options = {.overrides = overrides};
    berth_multi_target *t = parse_with(text, &options);
    check_round_trip(t, "overridden");
    cr_assert_eq(t->device_count, 4u);
    cr_expect_eq(t->devices[0].target->cores, 3);
    cr_expect_eq(t->devices[1].target->clock_hz, 1000000000);
    cr_expect_str_eq(t->devices[1].target->arch, "sm_75");
    cr_expect_str_eq(t->devices[2].target->model, "x");
    cr_expect_str_eq(t->devices[t->host].target->cpu, "cortex-a72");
    cr_expect_eq(t->devices[t->host].target->cores, 2);

    overrides[0] = "devices[cuda:7].target.clock_hz=1e9";
    overrides[1] = NULL;
    cr_expect(has_diagnostic(diagnose(text, &options), overrides[0], "a, cuda:0, cuda:1"));
    overrides[0] = "host.cores=2";
    cr_expect(has_diagnostic(
        diagnose("{\"kind\": \"multi\", \"host\": \"a\", \"devices\": [{\"name\": \"a\", "
                 "\"target\": \"cpu\"}]}",
                 &options),
        overrides[0], "devices[a].target"));
}
