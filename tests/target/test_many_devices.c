// Machines of more than 64 devices, and the sets that hold their numbers.
#include <math.h>

#include "base/bits.h"
#include "base/str.h"
#include "support.h"
#include "target/change.h"
#include "target/route_memo.h"

TestSuite(many_devices, .init = test_arena_open, .fini = test_arena_close);

enum { most = 300 };

static uint64_t next_random(uint64_t *state) {  // xorshift64 (Marsaglia 2003)
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

typedef struct model {
    bool has[most];
} model;

static void expect_same(berth_bits set, const model *m) {
    uint32_t count = 0, at = berth_bits_first(set);
    for (uint32_t i = 0; i < most; ++i) {
        cr_assert_eq(berth_bits_has(set, i), m->has[i]);
        count += m->has[i];
        if (!m->has[i]) continue;
        cr_assert_eq(at, i);
        at = berth_bits_next(set, at);
    }
    cr_assert_eq(at, BERTH_BITS_END);
    cr_assert_eq(berth_bits_count(set), count);
    cr_assert_eq(berth_bits_is_empty(set), count == 0);
    cr_assert_eq(berth_bits_is_single(set), count == 1);
    cr_assert(!berth_bits_has(set, 100000));
}

// Sets of a few members and of many, below 64 and above, against arrays of flags.
Test(many_devices, sets_are_sets) {
    uint64_t random = 0x9e3779b97f4a7c15u;
    berth_bits sets[8] = {{0}};
    model models[8] = {{{false}}};
    for (int round = 0; round < 20000; ++round) {
        uint32_t to = next_random(&random) % 8, a = next_random(&random) % 8,
                 b = next_random(&random) % 8;
        uint32_t member = (uint32_t)(next_random(&random) % (round % 3 ? most : 70));
        model result = models[a];
        switch (next_random(&random) % 6) {
        case 0:
            sets[to] = berth_bits_with(test_arena, sets[a], member);
            result.has[member] = true;
            break;
        case 1:
            sets[to] = berth_bits_without(test_arena, sets[a], member);
            result.has[member] = false;
            break;
        case 2:
            sets[to] = berth_bits_and(test_arena, sets[a], sets[b]);
            for (int i = 0; i < most; ++i) result.has[i] &= models[b].has[i];
            break;
        case 3:
            sets[to] = berth_bits_or(test_arena, sets[a], sets[b]);
            for (int i = 0; i < most; ++i) result.has[i] |= models[b].has[i];
            break;
        case 4:
            sets[to] = berth_bits_below(test_arena, member);
            for (uint32_t i = 0; i < most; ++i) result.has[i] = i < member;
            break;
        default: {
            uint64_t words[most / 64 + 1] = {0};
            for (int i = 0; i < most; ++i) {
                result.has[i] = next_random(&random) % 64 < (unsigned)round % 40;
                if (result.has[i]) words[i / 64] |= (uint64_t)1 << i % 64;
            }
            sets[to] = berth_bits_from_words(test_arena, words, most / 64 + 1);
            cr_assert(berth_bits_is_of_words(sets[to], words, most / 64 + 1));
            words[member / 64] ^= (uint64_t)1 << member % 64;
            cr_assert(!berth_bits_is_of_words(sets[to], words, most / 64 + 1));
        }
        }
        models[to] = result;
        expect_same(sets[to], &models[to]);
        expect_same(berth_bits_copy(test_arena, sets[to]), &models[to]);
        bool meet = false;
        for (int i = 0; i < most; ++i) meet |= models[a].has[i] && models[b].has[i];
        cr_assert_eq(berth_bits_meet(sets[a], sets[b]), meet);
        cr_assert_eq(berth_bits_equal(sets[a], sets[b]),
                     memcmp(&models[a], &models[b], sizeof(model)) == 0);
    }
}

// cuda devices d0, d1, ... and a host.
static void add_devices(berth_strbuf *text, uint32_t count) {
    berth_strbuf_add(text, "{\"kind\": \"multi\", \"devices\": [");
    for (uint32_t i = 0; i < count; ++i)
        berth_strbuf_addf(text, "%s{\"name\": \"d%u\", \"target\": \"cuda\"}", i ? ", " : "", i);
    berth_strbuf_add(text, ", {\"name\": \"h\", \"target\": \"cpu\"}]");
}

Test(many_devices, a_machine_of_300) {
    berth_strbuf text = berth_strbuf_make(test_arena);
    add_devices(&text, 300);
    berth_strbuf_add(&text, ", \"memories\": [{\"name\": \"pooled\", \"capacity_bytes\": 4096, "
                            "\"reached_by\": [\"d5\", \"d70\", \"d299\"]}, {\"name\": \"ram\", "
                            "\"capacity_bytes\": 4096, \"reached_by\": [\"h\"]}], \"links\": "
                            "[{\"from\": \"ram\", \"to\": \"pooled\"}]}");
    berth_multi_target *t = parse(berth_strbuf_text(&text));
    check_invariants(t, "300 devices");
    check_round_trip(t, "300 devices");
    cr_expect_eq(t->device_count, 301u);
    cr_expect_eq(t->memory_count, 299u, "one for three, the host's, and one for each of 297");
    const uint32_t sharing[] = {5, 70, 299};
    for (int i = 0; i < 3; ++i) cr_expect_eq(t->devices[sharing[i]].own_memory, 0u);
    for (uint32_t d = 0; d < 300; ++d) {
        bool shared = d == 5 || d == 70 || d == 299;
        cr_expect_eq(berth_multi_target_share_memory(t, 299, d, NULL), shared, "d%u", d);
        cr_expect_eq(berth_bits_has(t->memories[0].reached_by, d), shared, "d%u", d);
    }
    cr_expect_eq(berth_multi_target_device(t, "cuda:299"), 299u);
    cr_expect_eq(berth_multi_target_device(t, "cuda:0299"), BERTH_NO_INDEX);
    berth_target_change change = {.kind = BERTH_CHANGE_TWIN, .index = 299};
    berth_multi_target *more = NULL;
    cr_assert_null(berth_multi_target_change(test_arena, t, &change, &more));
    cr_expect_eq(more->device_count, 302u);
    cr_expect_eq(berth_bits_count(more->memories[0].reached_by), 4u);
}

// Cheapest times by relaxing every link again and again (Bellman and Ford). All links of the machine
// below take about the same, so that no cheapest route has many.
static double *cheapest(const berth_multi_target *t, uint32_t from, double bytes) {
    double *ns = berth_arena_new_array(test_arena, double, t->memory_count);
    for (uint32_t i = 0; i < t->memory_count; ++i) ns[i] = i == from ? 0 : INFINITY;
    for (int round = 0; round < BERTH_TARGET_MAX_HOPS; ++round)
        for (uint32_t i = 0; i < t->link_count; ++i) {
            const berth_target_link *l = &t->links[i];
            double hop = (double)l->latency_ns + bytes / l->bandwidth_bytes_per_s * 1e9;
            ns[l->to] = fmin(ns[l->to], ns[l->from] + hop);
            ns[l->from] = fmin(ns[l->from], ns[l->to] + hop);
        }
    return ns;
}

Test(many_devices, routes_are_the_cheapest) {
    uint64_t random = 88172645463325252u;
    berth_strbuf text = berth_strbuf_make(test_arena);
    add_devices(&text, 120);
    berth_strbuf_add(&text, ", \"memories\": [");
    for (int i = 0; i < 120; ++i)
        berth_strbuf_addf(&text,
                          "%s{\"name\": \"m%d\", \"capacity_bytes\": 4096, \"reached_by\": "
                          "[\"d%d\"]}",
                          i ? ", " : "", i, i);
    berth_strbuf_add(&text, ", {\"name\": \"host\", \"capacity_bytes\": 4096, \"reached_by\": "
                            "[\"h\"]}], \"links\": [");
    for (int i = 0; i < 400; ++i)
        berth_strbuf_addf(&text,
                          "%s{\"from\": \"m%u\", \"to\": \"%s\", \"latency_ns\": %u, "
                          "\"bandwidth_bytes_per_s\": %u}",
                          i ? ", " : "",
                          i < 120 ? (unsigned)i : (unsigned)(next_random(&random) % 60),
                          i < 120 ? "host"
                                  : berth_arena_printf(test_arena, "m%u",
                                                       60 + (unsigned)(next_random(&random) % 60)),
                          50000 + (unsigned)(next_random(&random) % 50000),
                          1000000000 + (unsigned)(next_random(&random) % 1000000000));
    berth_strbuf_add(&text, "]}");
    berth_multi_target *t = parse(berth_strbuf_text(&text));
    static const uint64_t sizes[] = {0, 4096, 1 << 24};
    berth_route_memo *memo = berth_route_memo_create(test_arena, t);
    for (int s = 0; s < 3; ++s)
        for (uint32_t from = 0; from < t->memory_count; from += 7) {
            const double *ns = cheapest(t, from, (double)sizes[s]);
            const berth_target_routes *routes =
                berth_multi_target_routes(t, test_arena, from, sizes[s]);
            for (uint32_t to = 0; to < t->memory_count; ++to) {
                berth_target_route one, other, kept[2];
                cr_assert(berth_multi_target_route(t, test_arena, from, to, sizes[s], &one));
                cr_assert(berth_target_routes_get(routes, to, &other));
                cr_expect(fabs(one.time_ns - ns[to]) <= 1e-9 * ns[to], "%u to %u: %g, not %g", from,
                          to, one.time_ns, ns[to]);
                cr_expect_eq(memcmp(&one, &other, sizeof(one)), 0);
                for (int i = 0; i < 2; ++i) {  // more are kept than there is room for
                    cr_assert(berth_route_memo_get(memo, from, to, sizes[s], &kept[i]));
                    cr_expect_eq(memcmp(&one, &kept[i], sizeof(one)), 0);
                }
                cr_expect(one.hop_count == 0 ? from == to : one.hops[one.hop_count - 1].to == to);
            }
        }
}

Test(many_devices, more_than_can_be_meant_are_refused) {
    berth_strbuf text = berth_strbuf_make(test_arena);
    add_devices(&text, BERTH_TARGET_MAX_DEVICES);
    berth_strbuf_add(&text, "}");
    berth_target_diagnostics found = diagnose(berth_strbuf_text(&text), NULL);
    cr_expect(has_diagnostic(found, "devices", "at most 4095 devices are possible, not 4097"));
    text = berth_strbuf_make(test_arena);
    berth_strbuf_add(&text, "{\"kind\": \"multi\", \"devices\": [{\"target\": \"cpu\"}], "
                            "\"machines\": [{\"name\": \"a\"}");
    for (int i = 0; i < BERTH_TARGET_MAX_DEVICES; ++i)
        berth_strbuf_addf(&text, ", {\"name\": \"m%d\"}", i);
    berth_strbuf_add(&text, "]}");
    found = diagnose(berth_strbuf_text(&text), NULL);
    cr_expect(has_diagnostic(found, "machines", "at most 4096 machines are possible"));
}
