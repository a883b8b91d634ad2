// Planning facts: devices and memories by name, sharing, routes; and every allocation failing once.
#include "support.h"

TestSuite(target_facts, .init = test_arena_open, .fini = test_arena_close);

// host -- gpu0, host -- gpu1 (slow, low latency), gpu0 == gpu1 (fast, high latency), and a scoped
// memory of gpu1.
static const char square[] =
    "{\"kind\": \"multi\", \"devices\": ["
    "{\"name\": \"gpu0\", \"target\": {\"kind\": \"cuda\"}}, {\"name\": \"gpu1\", \"target\": "
    "{\"kind\": \"cuda\"}},"
    "{\"name\": \"cpu\", \"target\": {\"kind\": \"cpu\"}}],"
    "\"memories\": ["
    "{\"name\": \"m0\", \"capacity_bytes\": 1024, \"reached_by\": [\"gpu0\"]},"
    "{\"name\": \"m1\", \"capacity_bytes\": 1024, \"reached_by\": [\"gpu1\"]},"
    "{\"name\": \"ram\", \"capacity_bytes\": 1024, \"reached_by\": [\"cpu\"]},"
    "{\"name\": \"sram\", \"scope\": \"local\", \"capacity_bytes\": 64, \"bandwidth_bytes_per_s\": "
    "1e9,"
    " \"latency_ns\": 5, \"reached_by\": [\"gpu1\"]}],"
    "\"links\": ["
    "{\"from\": \"ram\", \"to\": \"m0\", \"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": 100},"
    "{\"from\": \"m1\", \"to\": \"ram\", \"bandwidth_bytes_per_s\": 1e9, \"latency_ns\": 100},"
    "{\"from\": \"m0\", \"to\": \"m1\", \"bandwidth_bytes_per_s\": 1e11, \"latency_ns\": 1000}]}";

Test(target_facts, routes_depend_on_size) {
    berth_multi_target *t = parse(square);
    uint32_t m0 = berth_multi_target_memory(t, "m0"), m1 = berth_multi_target_memory(t, "m1");
    berth_target_route r;
    cr_assert(berth_multi_target_route(t, test_arena, m0, m1, 10, &r));
    cr_expect_eq(r.hop_count, 2u, "10 bytes: 2 x (100 + 10) ns through the host beat 1000 ns");
    cr_expect_float_eq(r.time_ns, 220, 1e-9);
    cr_expect_eq(r.hops[0].to, berth_multi_target_memory(t, "ram"));
    cr_expect_eq(r.hops[0].link, 0u);
    cr_expect_eq(r.hops[1].link, 1u, "links work in both directions");
    cr_assert(berth_multi_target_route(t, test_arena, m0, m1, 1000000, &r));
    cr_expect_eq(r.hop_count, 1u, "1 MB: 1000 + 10000 ns over the fast link");
    cr_expect_float_eq(r.time_ns, 11000, 1e-6);
    cr_assert(berth_multi_target_route(t, test_arena, m1, m1, 1000, &r));
    cr_expect_eq(r.hop_count, 0u);
    cr_expect_float_eq(r.time_ns, 0, 0);
}

Test(target_facts, scoped_memories_are_ends_only) {
    berth_multi_target *t = parse(square);
    uint32_t sram = berth_multi_target_memory(t, "sram");
    berth_target_route r;
    cr_assert(
        berth_multi_target_route(t, test_arena, berth_multi_target_memory(t, "m0"), sram, 0, &r));
    cr_expect_eq(r.hops[r.hop_count - 1].link, BERTH_NO_INDEX);
    cr_expect_eq(r.hops[r.hop_count - 1].device, 1u, "gpu1 moves it into its own local memory");
    cr_expect_float_eq(r.hops[r.hop_count - 1].bandwidth_bytes_per_s, 1e9, 1, "the slower of both");
    cr_expect_eq(berth_multi_target_memory_of(t, 1, "local"), sram);
    cr_expect_eq(berth_multi_target_memory_of(t, 0, "local"), BERTH_NO_INDEX);
    cr_expect_eq(berth_multi_target_memory_of(t, 1, "global"), t->devices[1].own_memory);
    cr_expect_eq(t->reach_start[2] - t->reach_start[1], 2u);
    cr_expect_eq(t->reached[t->reach_start[1]], 1u);
    cr_expect_eq(t->reached[t->reach_start[1] + 1], sram);
}

Test(target_facts, names) {
    berth_multi_target *t = parse(square);
    cr_expect_eq(berth_multi_target_device(t, "gpu1"), 1u);
    cr_expect_eq(berth_multi_target_device(t, "cuda:1"), 1u, "KIND:N works beside a given name");
    cr_expect_eq(berth_multi_target_device(t, "cuda:2"), BERTH_NO_INDEX);
    cr_expect_eq(berth_multi_target_device(t, "cuda"), BERTH_NO_INDEX);
    cr_expect_eq(berth_multi_target_memory(t, "nothing"), BERTH_NO_INDEX);
    berth_virtual_device any = BERTH_VIRTUAL_DEVICE_FREE;
    cr_expect_eq(berth_multi_target_resolve(t, any), BERTH_NO_INDEX);
    any.device_type = BERTH_DEVICE_CUDA;
    cr_expect_eq(berth_multi_target_resolve(t, any), 0u, "a free id: the first of the kind");
    any.virtual_id = 1;
    cr_expect_eq(berth_multi_target_resolve(t, any), 1u);
    any.has_target = true;
    cr_expect_eq(berth_multi_target_resolve(t, any), BERTH_NO_INDEX, "another target");
}

// The triangle inequality holds for the cheapest routes: no detour over global memory is cheaper.
Test(target_facts, routes_are_cheapest) {
    static const char *const texts[] = {square, "aws/p4d.24xlarge", "rockchip/rk3588",
                                        "aws/g4dn.12xlarge"};
    static const uint64_t sizes[] = {0, 1, 4096, 1 << 20, (uint64_t)1 << 32};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        berth_multi_target *t = parse(texts[i]);
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s)
            for (uint32_t a = 0; a < t->memory_count; ++a)
                for (uint32_t b = 0; b < t->memory_count; ++b)
                    for (uint32_t c = 0; c < t->memory_count; ++c) {
                        if (strcmp(t->memories[b].scope, "global") != 0) continue;
                        berth_target_route ab, bc, ac;
                        cr_assert(berth_multi_target_route(t, test_arena, a, b, sizes[s], &ab));
                        cr_assert(berth_multi_target_route(t, test_arena, b, c, sizes[s], &bc));
                        cr_assert(berth_multi_target_route(t, test_arena, a, c, sizes[s], &ac));
                        cr_assert(ac.time_ns <= (ab.time_ns + bc.time_ns) * (1 + 1e-12));
                        double sum = 0;
                        for (uint32_t h = 0; h < ac.hop_count; ++h) {
                            cr_assert_eq(ac.hops[h].from, h ? ac.hops[h - 1].to : a);
                            sum += (double)ac.hops[h].latency_ns +
                                   (double)sizes[s] / ac.hops[h].bandwidth_bytes_per_s * 1e9;
                        }
                        if (ac.hop_count) cr_assert_eq(ac.hops[ac.hop_count - 1].to, c);
                        cr_assert_float_eq(sum, ac.time_ns, ac.time_ns * 1e-9 + 1e-9);
                    }
    }
}

Test(target_facts, peaks) {
    const berth_target *t =
        parse("cpu -peak_flops.f32=1e11 -peak_flops.i8=8e11")->devices[0].target;
    cr_expect_float_eq(berth_target_peak(t, BERTH_DTYPE_F32), 1e11, 1);
    cr_expect_float_eq(berth_target_peak(t, BERTH_DTYPE_I8), 8e11, 1);
    cr_expect_float_eq(berth_target_peak(t, BERTH_DTYPE_F64), 5e10, 1);
    cr_expect_float_eq(berth_target_peak(t, BERTH_DTYPE_F16), 1e11, 1);
    cr_expect_float_eq(berth_target_peak(t, BERTH_DTYPE_U8), 8e11, 1);
}

// An instruction of four products per lane in place of one.
Test(target_facts, dot_products_make_peaks_of_integers) {
    const berth_target *with = parse("cpu -features=avx512f,fma,avx512vnni")->devices[0].target;
    const berth_target *without = parse("cpu -features=avx512f,fma")->devices[0].target;
    double f32 = berth_target_peak(with, BERTH_DTYPE_F32);
    cr_expect_float_eq(berth_target_peak(without, BERTH_DTYPE_F32), f32, 1);
    cr_expect_float_eq(berth_target_peak(without, BERTH_DTYPE_I8), f32, 1);
    cr_expect_float_eq(berth_target_peak(with, BERTH_DTYPE_I8), 4 * f32, 1);
}

// Every allocation of a parse fails once: out-of-memory is reported, nothing leaks, nothing is half
// built.
static void fail_at_each(const char *text) {
    berth_target_options options = {.machine = test_machine()};
    for (int64_t n = 1;; ++n) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        atomic_store(&counting.fail_at, n);
        berth_arena *arena = NULL;
        berth_multi_target *target = NULL;
        berth_status status = berth_arena_create(berth_counting_allocator_get(&counting), &arena);
        if (!status) status = berth_target_parse(arena, text, &options, &target);
        bool done = status == NULL || berth_status_code(status) != BERTH_OUT_OF_MEMORY;
        if (!done) cr_expect_null(target);
        berth_status_free(status);
        berth_arena_destroy(arena);
        cr_assert_eq(atomic_load(&counting.live_count), 0, "leak at allocation %lld of %s",
                     (long long)n, text);
        if (done) {
            cr_expect_gt(n, 3, "the parse allocates");
            return;
        }
    }
}

// Registers by the manuals of the architectures; only what may be processor cores has tiles.
Test(target_facts, registers_and_tiles) {
    static const struct {
        const char *target;
        int64_t registers;
    } rows[] = {{"cpu -arch=x86_64 -features=avx,avx2,fma", 16},
                {"cpu -arch=x86_64 -features=avx512f", 32},
                {"cpu -arch=x86_64 -features=avx512f,avx512vl -vector_bits=256", 32},
                {"cpu -arch=i686", 8},
                {"cpu -arch=aarch64", 32},
                {"cpu -arch=armv7-a -features=neon", 16},
                {"cpu -arch=armv8.1-m.main -features=mve", 8},
                {"cpu -arch=riscv64 -features=v", 32},
                {"cpu -arch=x86_64 -vector_registers=12", 12},
                {"opencl -arch=x86_64 -features=avx512f -host=cpu", 32},
                {"opencl -arch=gfx906 -host=cpu", 0},
                {"vulkan -host=cpu", 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_multi_target *t = parse(rows[i].target);
        const berth_target *device = t->devices[t->default_device].target;
        cr_expect_eq(device->vector_registers, rows[i].registers, "%s: %lld", rows[i].target,
                     (long long)device->vector_registers);
        cr_expect_eq(device->tile_rows > 0, rows[i].registers > 0, "%s", rows[i].target);
        cr_expect_eq(strstr(device->canonical, "\"tile_rows\"") != NULL, rows[i].registers > 0);
        cr_expect_eq(device->tile_singles > 0, rows[i].registers > 0, "%s", rows[i].target);
        cr_expect_eq(device->sums_in_flight > 0, rows[i].registers > 0, "%s", rows[i].target);
        bool gpu = berth_device_kind_is_gpu(device->kind);
        cr_expect_eq(device->item_rows > 0, gpu, "%s", rows[i].target);
        cr_expect_eq(device->group_columns > 0 && device->group_rows > 0, gpu);
        cr_expect_eq(device->tile_depth > 0, gpu, "%s", rows[i].target);
        check_round_trip(t, rows[i].target);
    }
    // Kernels differ by them, so records of measured ones do.
    const berth_target *a = parse("cpu -arch=x86_64")->devices[0].target;
    const berth_target *b = parse("cpu -arch=x86_64 -tile_page_rows=9")->devices[0].target;
    cr_expect_str_neq(berth_target_culled(test_arena, a), berth_target_culled(test_arena, b));
    a = parse("cuda -item_rows=9")->devices[0].target;
    b = parse("cuda -tile_depth=32")->devices[0].target;
    cr_expect_str_neq(berth_target_culled(test_arena, a), berth_target_culled(test_arena, b));
}

// The culled form is that of a target, so that it is read as one: nothing that it leaves out matters to it.
Test(target_facts, culled_targets_renew_to_themselves) {
    berth_target_tag *tags = NULL;
    uint32_t count = 0;
    cr_assert_null(berth_target_list_tags(test_arena, NULL, &tags, &count));
    for (uint32_t i = 0; i < count; ++i) {
        const berth_multi_target *t = parse(tags[i].name);
        for (uint32_t d = 0; d < t->device_count; ++d) {
            const char *culled = berth_target_culled(test_arena, t->devices[d].target),
                       *again = NULL;
            berth_status status = berth_target_renew_culled(test_arena, culled, &again);
            cr_expect_null(status, "%s: %s", tags[i].name,
                           status ? berth_status_message(status) : "");
            if (!status) cr_expect_str_eq(again, culled, "%s: %s, %s", tags[i].name, again, culled);
            berth_status_free(status);
        }
    }
}

// What an earlier version wrote lacks attributes; what a later one wrote may have others.
Test(target_facts, culled_targets_of_other_versions) {
    static const char old[] =
        "{\"arch\": \"x86_64\", \"cores\": 2, \"features\": [\"avx2\", \"fma\"], \"kind\": "
        "\"cpu\", "
        "\"l1_bytes\": 32768, \"l2_bytes\": 262144, \"threads\": 2, \"vector_bits\": 256}";
    static const char later[] = "{\"arch\": \"x86_64\", \"kind\": \"cpu\", \"horns\": 2}";
    const char *now = NULL;
    cr_assert_null(berth_target_renew_culled(test_arena, old, &now));
    const char *same = "cpu -arch=x86_64 -cores=2 -features=avx2,fma";
    cr_expect_str_eq(now, berth_target_culled(test_arena, parse(same)->devices[0].target));
    berth_status status = berth_target_renew_culled(test_arena, later, &now);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(berth_status_message(status), "horns"), "%s",
                       berth_status_message(status));
    berth_status_free(status);
}

Test(target_facts, every_allocation_fails_once) {
    fail_at_each("opencl,cpu -libs=a,b");
    fail_at_each("local");
    fail_at_each(square);
    fail_at_each("nvidia/jetson-nano:cuda");
    fail_at_each("arm/rasp4");
    fail_at_each("{\"kind\": \"cpu\", \"coers\": 1}");
    fail_at_each("aws/p4d.24xlarge");
}
