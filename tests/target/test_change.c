// Changes of targets: what they make is a target like any other, and the one that one would write.
#include "support.h"
#include "target/change.h"

TestSuite(target_change, .init = test_arena_open, .fini = test_arena_close);

static berth_multi_target *changed(const berth_multi_target *t, berth_target_change change) {
    berth_multi_target *out = NULL;
    berth_status status = berth_multi_target_change(test_arena, t, &change, &out);
    cr_assert_null(status, "%s", status ? berth_status_message(status) : "");
    return out;
}

static void expect_same(const berth_multi_target *t, const char *text) {
    cr_expect_str_eq(t->canonical, parse(text)->canonical);
}

#define TWO_GPUS                                                                                   \
    "{\"kind\": \"multi\", \"devices\": [{\"target\": {\"kind\": \"cuda\"}}, {\"target\": "        \
    "{\"kind\": \"cuda\"}}, {\"target\": {\"kind\": \"cpu\", \"arch\": \"x86_64\"}}]%s}"

static const char *two_gpus(const char *rest) {
    return berth_arena_printf(test_arena, TWO_GPUS, rest);
}

Test(target_change, pins_go_one_by_one) {
    const char *pins =
        ", \"pins\": [{\"match\": \"a\", \"device\": \"cuda:1\"}, {\"match\": \"b\", "
        "\"device\": \"cuda:0\"}]";
    const berth_multi_target *t = parse(two_gpus(pins));
    t = changed(t, (berth_target_change){.kind = BERTH_CHANGE_WITHOUT_PIN, .index = 0});
    expect_same(t, two_gpus(", \"pins\": [{\"match\": \"b\", \"device\": \"cuda:0\"}]"));
    t = changed(t, (berth_target_change){.kind = BERTH_CHANGE_WITHOUT_PIN, .index = 0});
    expect_same(t, two_gpus(""));
}

// The second GPU becomes cuda:0; a host stays, and computes no more.
Test(target_change, devices_go) {
    const berth_multi_target *t = parse(two_gpus(
        ", \"pins\": [{\"match\": \"a\", \"device\": \"cuda:0\"}, {\"match\": \"b\", \"device\": "
        "\"cuda:1\"}]"));
    const berth_multi_target *one =
        changed(t, (berth_target_change){.kind = BERTH_CHANGE_WITHOUT_DEVICE, .index = 0});
    cr_assert_eq(one->device_count, 2u);
    cr_expect_str_eq(one->devices[0].name, "cuda:0");
    cr_assert_eq(one->pin_count, 1u);
    cr_expect_str_eq(one->pins[0].match, "b");
    cr_expect_eq(one->link_count, 1u);
    const berth_multi_target *driven =
        changed(t, (berth_target_change){.kind = BERTH_CHANGE_WITHOUT_DEVICE, .index = 2});
    cr_expect_eq(driven->device_count, 3u);
    cr_expect(driven->devices[2].host_only);
}

// What is added without links or memories of its own making is what one would list.
Test(target_change, one_more) {
    const berth_multi_target *t = parse(two_gpus(""));
    const berth_multi_target *three =
        changed(t, (berth_target_change){.kind = BERTH_CHANGE_TWIN, .index = 0});
    cr_assert_eq(three->device_count, 4u);
    cr_expect_str_eq(three->devices[3].name, "cuda:2");
    cr_expect_neq(three->devices[3].own_memory, three->devices[0].own_memory);
    cr_assert_eq(three->link_count, 3u, "a link to the host's memory of its own");
    cr_expect_str_neq(three->links[2].bus, three->links[0].bus);
    // Processors of one host work in one memory.
    const berth_multi_target *cpus =
        changed(t, (berth_target_change){.kind = BERTH_CHANGE_TWIN, .index = 2});
    cr_expect_eq(cpus->devices[3].own_memory, cpus->devices[2].own_memory);
    cr_expect_eq(cpus->link_count, t->link_count);
}

// GPUs with links between them: one more has them, too, also to the one that it is like.
Test(target_change, one_more_with_links_to_its_like) {
    const berth_multi_target *t = parse("aws/p4d.24xlarge");
    const berth_multi_target *nine =
        changed(t, (berth_target_change){.kind = BERTH_CHANGE_TWIN, .index = 0});
    cr_expect_eq(nine->device_count, t->device_count + 1);
    cr_expect_eq(nine->link_count, t->link_count + 1 + 8, "to the host and to eight GPUs");
    uint32_t own = nine->devices[9].own_memory;
    berth_target_route route;
    cr_expect(berth_multi_target_route(nine, test_arena, nine->devices[0].own_memory, own, 1 << 20,
                                       &route));
    cr_expect_eq(route.hop_count, 1u);
}

Test(target_change, figures) {
    const berth_multi_target *t = parse("aws/p4d.24xlarge");
    berth_target_change change = {.kind = BERTH_CHANGE_LINKS, .factor = 2};
    while (t->links[change.index].bandwidth_bytes_per_s != 3e11) ++change.index;
    const berth_multi_target *fast = changed(t, change);
    uint32_t doubled = 0;
    for (uint32_t i = 0; i < t->link_count; ++i) {
        double factor = fast->links[i].bandwidth_bytes_per_s / t->links[i].bandwidth_bytes_per_s;
        cr_expect(factor == 1 || factor == 2);
        doubled += factor == 2;
    }
    cr_expect_eq(doubled, 28u, "those between the eight GPUs");
    uint32_t memory = t->devices[3].own_memory;
    const berth_multi_target *half = changed(
        t, (berth_target_change){.kind = BERTH_CHANGE_CAPACITY, .index = memory, .factor = 0.5});
    for (uint32_t d = 0; d < 8; ++d) {
        const berth_target_memory *m = &half->memories[half->devices[d].own_memory];
        cr_expect_eq(m->capacity_bytes, (uint64_t)20 << 30);
        cr_expect_eq(m->budget_bytes, m->capacity_bytes);
    }
}

// The memory's budget scales with it.
Test(target_change, budgets) {
    const berth_multi_target *t =
        parse(two_gpus(", \"memories\": [{\"name\": \"hbm\", \"capacity_bytes\": \"8GiB\", "
                       "\"reached_by\": [\"cuda:0\"]}], \"links\": [{\"from\": \"host\", \"to\": "
                       "\"hbm\"}], \"budgets\": {\"hbm\": \"2GiB\"}"));
    t = changed(t, (berth_target_change){.kind = BERTH_CHANGE_CAPACITY, .index = 0, .factor = 2});
    cr_expect_eq(t->memories[0].capacity_bytes, (uint64_t)16 << 30);
    cr_expect_eq(t->memories[0].budget_bytes, (uint64_t)4 << 30);
}

// One of two machines is what it would be alone.
Test(target_change, to_one_machine) {
    const berth_multi_target *t = parse(
        "{\"kind\": \"multi\", \"machines\": [{\"name\": \"a\", \"target\": \"cpu\"}, {\"name\": "
        "\"b\", \"target\": \"opencl,cpu\"}], \"links\": [{\"from\": \"a.host\", \"to\": "
        "\"b.host\"}]}");
    const berth_multi_target *b =
        changed(t, (berth_target_change){.kind = BERTH_CHANGE_TO_MACHINE, .index = 1});
    cr_assert_eq(b->machine_count, 1);
    cr_assert_eq(b->device_count, 2);
    cr_expect_str_eq(b->devices[0].name, "b.opencl:0");
    cr_expect_eq(b->devices[1].virtual_id, 0, "the second processor of both, the first of its own");
    cr_expect_eq(b->host, 1);
    cr_expect_eq(b->link_count, 1, "to the GPU; that to the other machine is gone");
    cr_expect_eq(b->memory_count, 2);
}

static void expect_error(const berth_multi_target *t, berth_target_change change, berth_code code) {
    berth_multi_target *out = NULL;
    berth_status status = berth_multi_target_change(test_arena, t, &change, &out);
    cr_expect_eq(berth_status_code(status), code);
    cr_expect_null(out);
    berth_status_free(status);
}

Test(target_change, mistakes) {
    const berth_multi_target *t = parse("cpu");
    expect_error(t, (berth_target_change){.kind = BERTH_CHANGE_WITHOUT_PIN, .index = 0},
                 BERTH_INVALID_ARGUMENT);
    expect_error(t, (berth_target_change){.kind = BERTH_CHANGE_LINKS, .index = 0, .factor = 2},
                 BERTH_INVALID_ARGUMENT);
    expect_error(t, (berth_target_change){.kind = BERTH_CHANGE_CAPACITY, .index = 0},
                 BERTH_INVALID_ARGUMENT);
    expect_error(t, (berth_target_change){.kind = BERTH_CHANGE_WITHOUT_DEVICE, .index = 0},
                 BERTH_FAILED_PRECONDITION);
}

// Every change of every platform that comes with Berth keeps what target.h promises.
Test(target_change, of_all_tags) {
    berth_target_tag *tags = NULL;
    uint32_t count = 0;
    cr_assert_null(berth_target_list_tags(test_arena, NULL, &tags, &count));
    for (uint32_t i = 0; i < count; ++i) {
        const berth_multi_target *t = parse(tags[i].name);
        const uint32_t counts[] = {t->pin_count,     t->device_count, t->device_count,
                                   t->machine_count, t->link_count,   t->memory_count,
                                   t->memory_count};
        for (uint32_t kind = 0; kind < sizeof(counts) / sizeof(counts[0]); ++kind)
            for (uint32_t k = 0; k < counts[kind]; k += 1 + counts[kind] / 4) {
                berth_target_change change = {
                    .kind = (berth_target_change_kind)kind, .index = k, .factor = 2};
                berth_multi_target *out = NULL;
                berth_status status = berth_multi_target_change(test_arena, t, &change, &out);
                if (status)
                    cr_expect_eq(berth_status_code(status), BERTH_FAILED_PRECONDITION, "%s, %u, %u",
                                 tags[i].name, kind, k);
                else
                    check_invariants(out, tags[i].name);
                if (out) check_round_trip(out, tags[i].name);
                berth_status_free(status);
            }
    }
}
