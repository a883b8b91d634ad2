#include "support.h"

berth_arena *test_arena;

void test_arena_open(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &test_arena));
}

void test_arena_close(void) {
    berth_arena_destroy(test_arena);
}

const berth_machine_facts *test_machine(void) {
    static const char *const features[] = {"avx", "avx2", "fma"};
    static const berth_machine_device devices[] = {
        {.kind = BERTH_DEVICE_OPENCL,
         .model = "first GPU",
         .arch = "",
         .compute_units = 20,
         .clock_hz = 1500000000,
         .local_memory_bytes = 65536,
         .memory_capacity_bytes = (int64_t)8 << 30},
        {.kind = BERTH_DEVICE_OPENCL,
         .model = "second GPU",
         .arch = "",
         .compute_units = 4,
         .shares_host_memory = true},
    };
    static const berth_machine_facts facts = {
        .cpu_model = "Test CPU",
        .arch = "x86_64",
        .cpu = "",
        .features = {features, 3},
        .cores = 8,
        .threads = 16,
        .clock_hz = 3000000000,
        .l1_bytes = 49152,
        .l2_bytes = 1048576,
        .l3_bytes = 33554432,
        .cache_line_bytes = 64,
        .memory_capacity_bytes = (int64_t)32 << 30,
        .devices = devices,
        .device_count = 2,
    };
    return &facts;
}

berth_multi_target *parse_with(const char *text, const berth_target_options *options) {
    berth_multi_target *target = NULL;
    berth_status status = berth_target_parse(test_arena, text, options, &target);
    cr_assert_null(status, "%s: %s", text, berth_status_message(status));
    cr_assert_not_null(target);
    return target;
}

berth_multi_target *parse(const char *text) {
    return parse_with(text, NULL);
}

berth_target_diagnostics diagnose(const char *text, const berth_target_options *options) {
    berth_target_diagnostics diagnostics;
    berth_multi_target *target = NULL;
    berth_status status = berth_target_validate(test_arena, text, options, &diagnostics, &target);
    cr_assert_null(status, "%s: %s", text, berth_status_message(status));
    cr_assert_gt(diagnostics.count, 0u, "accepted: %s", text);
    cr_assert_null(target);
    return diagnostics;
}

bool has_diagnostic(berth_target_diagnostics diagnostics, const char *path, const char *part) {
    for (uint32_t i = 0; i < diagnostics.count; ++i)
        if (strcmp(diagnostics.data[i].path, path) == 0 &&
            strstr(diagnostics.data[i].message, part))
            return true;
    return false;
}

void check_round_trip(const berth_multi_target *target, const char *label) {
    berth_multi_target *again = parse(target->canonical);
    cr_expect_str_eq(again->canonical, target->canonical, "%s", label);
    cr_expect(berth_hash128_equal(again->hash, target->hash), "%s", label);
    cr_expect(berth_hash128_equal(again->kernel_hash, target->kernel_hash), "%s", label);
    for (uint32_t i = 0; i < target->device_count; ++i)
        cr_expect(
            berth_hash128_equal(again->devices[i].target->hash, target->devices[i].target->hash),
            "%s", label);
}

static void check_device(const berth_multi_target *t, uint32_t i, const char *label) {
    const berth_target_device *d = &t->devices[i];
    cr_expect(d->target->peak_flops[BERTH_DTYPE_F32] > 0, "%s: %s", label, d->name);
    cr_expect(d->target->memory_bandwidth_bytes_per_s > 0, "%s: %s", label, d->name);
    cr_expect(d->target->clock_hz > 0, "%s: %s", label, d->name);
    cr_assert_lt(d->own_memory, t->memory_count, "%s: %s", label, d->name);
    const berth_target_memory *own = &t->memories[d->own_memory];
    cr_expect_str_eq(own->scope, "global");
    cr_expect(berth_bits_has(own->reached_by, i), "%s: %s does not reach its memory", label,
              d->name);
    cr_assert_lt(d->machine, t->machine_count);
    cr_expect_eq(berth_multi_target_device(t, d->name), i, "%s: name %s", label, d->name);
    cr_expect_eq(berth_multi_target_device_of(t, d->target->kind, d->virtual_id), i);
    cr_expect_eq(berth_multi_target_resolve(t, berth_multi_target_virtual_device(t, i)), i);
}

void check_invariants(const berth_multi_target *t, const char *label) {
    cr_assert_gt(t->device_count, 0u);
    cr_assert_lt(t->default_device, t->device_count, "%s", label);
    cr_assert_lt(t->host, t->device_count, "%s", label);
    cr_expect_not(t->devices[t->default_device].host_only, "%s", label);
    cr_expect_eq(t->devices[t->host].target->kind, BERTH_DEVICE_CPU, "%s", label);
    for (uint32_t i = 0; i < t->device_count; ++i) check_device(t, i, label);
    uint32_t home = t->devices[t->host].own_memory;
    for (uint32_t i = 0; i < t->memory_count; ++i) {
        const berth_target_memory *m = &t->memories[i];
        cr_expect(!berth_bits_is_empty(m->reached_by), "%s: %s", label, m->name);
        cr_expect_gt(m->capacity_bytes, 0u);
        cr_expect_leq(m->budget_bytes, m->capacity_bytes);
        cr_expect(m->bandwidth_bytes_per_s > 0);
        cr_expect_eq(m->alignment_bytes & (m->alignment_bytes - 1), 0u);
        berth_target_route route;
        cr_expect(berth_multi_target_route(t, test_arena, home, i, 1 << 20, &route),
                  "%s: no route to %s", label, m->name);
    }
    for (uint32_t i = 0; i < t->link_count; ++i) {
        cr_assert_lt(t->links[i].from, t->memory_count);
        cr_assert_lt(t->links[i].to, t->memory_count);
        cr_expect_neq(t->links[i].from, t->links[i].to);
        cr_expect(t->links[i].bandwidth_bytes_per_s > 0);
        cr_expect_str_not_empty(t->links[i].bus);
    }
}
