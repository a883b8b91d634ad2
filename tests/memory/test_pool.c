// Memory that is taken while programs run: what is taken against a model that knows every block.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "memory/bump.h"
#include "memory/pool.h"
#include "memory/tlsf.h"
#include "tests/check.h"

// A block that the model knows: its bytes are all of one number, which no other block's writes change.
typedef struct block {
    unsigned char *data;
    size_t size_bytes;
    unsigned char mark;
} block;

typedef struct model {
    block blocks[256];
    uint32_t count;
    uint64_t live_bytes, random;
} model;

static uint64_t next_random(model *m) {
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return m->random >> 33;
}

// Mostly small ones, some up to a megabyte: all size classes, and what lies between them.
static size_t random_size(model *m) {
    static const uint32_t most[] = {64, 300, 1100, 5000, 70000, 1000000};
    return 1 + next_random(m) % most[next_random(m) % 6];
}

static void add(model *m, void *data, size_t size_bytes) {
    cr_assert_not_null(data);
    cr_assert_eq((uintptr_t)data % 16, 0);
    for (uint32_t i = 0; i < m->count; ++i) {
        const block *other = &m->blocks[i];
        cr_assert((unsigned char *)data + size_bytes <= other->data ||
                      other->data + other->size_bytes <= (unsigned char *)data,
                  "two live blocks overlap");
    }
    block *made = &m->blocks[m->count++];
    *made = (block){data, size_bytes, (unsigned char)next_random(m)};
    memset(data, made->mark, size_bytes);
    m->live_bytes += size_bytes;
}

static block take_out(model *m, uint32_t index) {
    const block taken = m->blocks[index];
    bool same = true;
    for (size_t i = 0; i < taken.size_bytes; ++i) same &= taken.data[i] == taken.mark;
    cr_assert(same, "somebody else wrote into a live block");
    m->blocks[index] = m->blocks[--m->count];
    m->live_bytes -= taken.size_bytes;
    return taken;
}

static bool adds(model *m) {
    return m->count == 0 || (m->count < 256 && next_random(m) % 100 < 55);
}

// ---- two-level segregated fit -------------------------------------------------------------------

Test(tlsf, blocks_are_apart_and_become_one_again) {
    enum { region_count = 3, region_bytes = 8 << 20 };
    for (uint64_t seed = 1; seed <= 8; ++seed) {
        berth_tlsf tlsf = {0};
        model m = {.random = seed};
        void *regions[region_count];
        for (int i = 0; i < region_count; ++i) {
            regions[i] = aligned_alloc(16, region_bytes);
            berth_tlsf_add(&tlsf, regions[i], region_bytes);
        }
        for (int step = 0; step < 4000; ++step) {
            if (adds(&m)) {
                const size_t size = random_size(&m);
                void *taken = berth_tlsf_take(&tlsf, size);
                if (!taken) continue;  // 24 MiB are full
                cr_assert_geq(berth_tlsf_size(taken), size);
                add(&m, taken, size);
            } else {
                berth_tlsf_give(&tlsf, take_out(&m, (uint32_t)next_random(&m) % m.count).data);
            }
        }
        size_t size = 0;
        while (m.count > 0) berth_tlsf_give(&tlsf, take_out(&m, m.count - 1).data);
        // All free: of each region one block is left, and the whole of it can be taken as one.
        for (int i = 0; i < region_count; ++i) {
            cr_assert_not_null(berth_tlsf_remove_empty(&tlsf, &size));
            cr_assert_eq(size, region_bytes);
        }
        cr_assert_null(berth_tlsf_remove_empty(&tlsf, &size));
        cr_assert_null(berth_tlsf_take(&tlsf, 1), "no memory is left");
        for (int i = 0; i < region_count; ++i) free(regions[i]);
    }
}

// What berth_tlsf_region_bytes says is enough, for every size near a class's ends.
Test(tlsf, a_region_of_the_size_that_is_said_holds_the_block) {
    for (size_t power = 16; power <= (size_t)1 << 24; power *= 2)
        for (size_t more = 0; more < 3; ++more)
            for (size_t part = 0; part < 32; part += 5) {
                const size_t size = power + power / 32 * part + more - 1;
                const size_t bytes = berth_tlsf_region_bytes(size);
                berth_tlsf tlsf = {0};
                void *memory = aligned_alloc(16, (bytes + 15) / 16 * 16);
                cr_assert_leq(bytes, size + size / 32 + 128, "little more than the block");
                berth_tlsf_add(&tlsf, memory, bytes);
                char *taken = berth_tlsf_take(&tlsf, size);
                cr_assert_not_null(taken, "%zu", size);
                memset(taken, 1, size);
                size_t found = 0;
                cr_assert_null(berth_tlsf_remove_empty(&tlsf, &found));
                berth_tlsf_give(&tlsf, taken);
                cr_assert_eq(berth_tlsf_remove_empty(&tlsf, &found), memory);
                free(memory);
            }
    cr_assert_eq(berth_tlsf_region_bytes(BERTH_TLSF_MOST_BYTES + 1), 0);
}

// ---- bump ---------------------------------------------------------------------------------------

Test(bump, what_was_given_back_is_taken_again) {
    berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    berth_bump bump = {.allocator = berth_counting_allocator_get(&counting)};
    model m = {.random = 5};
    berth_bump_mark marks[16];
    uint32_t kept[16], depth = 0;
    for (int step = 0; step < 4000; ++step) {
        const uint64_t kind = next_random(&m) % 8;
        if (kind == 0 && depth < 16) {
            marks[depth] = berth_bump_at(&bump);
            kept[depth++] = m.count;
        } else if ((kind == 1 && depth > 0) || m.count == 256) {
            while (depth > 1 && m.count == 256 && kept[depth - 1] == 256) --depth;
            const berth_bump_mark none = {0};
            berth_bump_back(&bump, depth ? marks[depth - 1] : none);
            while (m.count > (depth ? kept[depth - 1] : 0)) (void)take_out(&m, m.count - 1);
            if (depth) --depth;
        } else {
            const size_t size = 1 + next_random(&m) % 20000;
            add(&m, berth_bump_take(&bump, size), size);
        }
    }
    berth_bump_back(&bump, (berth_bump_mark){0});
    const int_fast64_t before = atomic_load(&counting.allocation_count);
    for (int i = 0; i < 100; ++i) {
        cr_assert_not_null(berth_bump_take(&bump, 4000));
        berth_bump_back(&bump, (berth_bump_mark){0});
    }
    cr_assert_eq(atomic_load(&counting.allocation_count), before, "the chunks are kept");
    cr_assert_null(berth_bump_take(&bump, SIZE_MAX - 8));
    berth_bump_close(&bump);
    cr_assert_eq(atomic_load(&counting.live_count), 0);
}

// ---- the pool -----------------------------------------------------------------------------------

static void check_facts(const berth_pool *pool_of, const model *m, uint64_t most_live) {
    berth_pool_facts facts;
    berth_pool_get_facts((berth_pool *)(uintptr_t)pool_of, &facts);
    cr_assert_eq(facts.live_count, m->count);
    cr_assert_eq(facts.live_bytes, m->live_bytes);
    cr_assert_eq(facts.most_live_bytes, most_live);
    cr_assert_geq(facts.reserved_bytes, facts.live_bytes);
    cr_assert_geq(facts.most_reserved_bytes, facts.reserved_bytes);
}

Test(pool, it_keeps_count_of_random_blocks) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        berth_pool *pool = NULL;
        assert_ok(berth_pool_create(berth_counting_allocator_get(&counting), &pool));
        const berth_allocator allocator = berth_pool_allocator(pool);
        model m = {.random = seed};
        uint64_t most_live = 0;
        for (int step = 0; step < 3000; ++step) {
            if (adds(&m)) {
                const size_t size = random_size(&m);
                add(&m, berth_alloc(allocator, size), size);
            } else {
                block b = take_out(&m, (uint32_t)next_random(&m) % m.count);
                const size_t size = random_size(&m);
                if (next_random(&m) % 4 == 0) {  // it grows or shrinks, and keeps its bytes
                    unsigned char *moved = berth_resize(allocator, b.data, b.size_bytes, size);
                    bool same = true;
                    for (size_t i = 0; i < b.size_bytes && i < size; ++i)
                        same &= moved[i] == b.mark;
                    cr_assert(same, "a block keeps its bytes");
                    if (m.live_bytes + size + b.size_bytes > most_live)
                        most_live = m.live_bytes + size + b.size_bytes;
                    add(&m, moved, size);
                } else {
                    berth_free(allocator, b.data, b.size_bytes);
                }
            }
            if (m.live_bytes > most_live) most_live = m.live_bytes;
            if (step % 100 == 0) berth_pool_end_run(pool);
            check_facts(pool, &m, most_live);
        }
        berth_pool_close(pool);  // blocks outlive it
        while (m.count > 0) {
            const block b = take_out(&m, m.count - 1);
            berth_free(allocator, b.data, b.size_bytes);
        }
        cr_assert_eq(atomic_load(&counting.live_count), 0, "all went with the last block");
        cr_assert_eq(atomic_load(&counting.live_bytes), 0);
    }
}

static void run_like(berth_pool *pool, const size_t *sizes, uint32_t count) {
    const berth_allocator allocator = berth_pool_allocator(pool);
    void *taken[8];
    for (uint32_t i = 0; i < count; ++i)
        cr_assert_not_null(taken[i] = berth_alloc(allocator, sizes[i]));
    for (uint32_t i = 0; i < count; ++i) berth_free(allocator, taken[i], sizes[i]);
    berth_pool_end_run(pool);
}

Test(pool, a_run_like_the_one_before_asks_the_system_for_nothing) {
    static const size_t sizes[] = {8, 300, 5000, 40 << 20, 2000000, 40 << 20};
    berth_pool_facts first, last;
    berth_pool *pool = NULL;
    assert_ok(berth_pool_create(berth_allocator_system(), &pool));
    run_like(pool, sizes, 6);
    berth_pool_get_facts(pool, &first);
    for (int i = 0; i < 50; ++i) run_like(pool, sizes, 6);
    berth_pool_get_facts(pool, &last);
    cr_assert_eq(last.system_count, first.system_count);
    cr_assert_eq(last.reserved_bytes, first.reserved_bytes);
    cr_assert_eq(last.allocation_count, 51 * 6);
    berth_pool_close(pool);
}

Test(pool, what_later_runs_do_not_need_goes_back) {
    static const size_t large[] = {100 << 20, 50 << 20}, small[] = {100, 3000};
    berth_pool_facts facts;
    berth_pool *pool = NULL;
    assert_ok(berth_pool_create(berth_allocator_system(), &pool));
    run_like(pool, large, 2);
    berth_pool_get_facts(pool, &facts);
    cr_assert_geq(facts.reserved_bytes, (uint64_t)150 << 20);
    for (int i = 0; i < 100; ++i) run_like(pool, small, 2);
    berth_pool_get_facts(pool, &facts);
    cr_assert_leq(facts.reserved_bytes, (uint64_t)1 << 20, "%llu bytes are still reserved",
                  (unsigned long long)facts.reserved_bytes);
    berth_pool_close(pool);
}

Test(pool, the_limit_holds_and_can_be_raised) {
    berth_pool_facts facts;
    berth_pool *pool = NULL;
    assert_ok(berth_pool_create(berth_allocator_system(), &pool));
    const berth_allocator allocator = berth_pool_allocator(pool);
    berth_pool_set_limit(pool, 10 << 20);
    void *six = berth_alloc(allocator, 6 << 20);
    cr_assert_not_null(six);
    cr_assert_null(berth_alloc(allocator, 6 << 20));
    berth_pool_get_facts(pool, &facts);
    cr_assert_eq(facts.refused_count, 1);
    cr_assert_eq(facts.refused_bytes, 6 << 20);
    cr_assert_leq(facts.most_reserved_bytes, 10 << 20);
    // What is empty goes back before a block is refused: there is room for one in place of the other.
    berth_free(allocator, six, 6 << 20);
    void *nine = berth_alloc(allocator, 9 << 20);
    cr_assert_not_null(nine);
    berth_pool_set_limit(pool, 0);
    six = berth_alloc(allocator, 6 << 20);
    cr_assert_not_null(six);
    berth_free(allocator, six, 6 << 20);
    berth_free(allocator, nine, 9 << 20);
    berth_pool_close(pool);
}

enum { ring_count = 64, handed_count = 300000 };

typedef struct handed {
    berth_allocator allocator;
    _Atomic(void *) ring[ring_count];
} handed;

static size_t handed_size(int i) {
    return i % 3 ? 200 : 3000;  // of size classes, and of regions
}

static void *free_handed(void *user) {
    handed *h = user;
    for (int i = 0; i < handed_count; ++i) {
        void *taken = NULL;
        while (!(taken = atomic_exchange(&h->ring[i % ring_count], NULL))) sched_yield();
        berth_free(h->allocator, taken, handed_size(i));
    }
    return NULL;
}

// As results are: freed by another thread while the model runs on.
Test(pool, blocks_are_given_back_by_another_thread) {
    static handed h;
    berth_pool_facts facts;
    berth_pool *pool = NULL;
    pthread_t thread;
    assert_ok(berth_pool_create(berth_allocator_system(), &pool));
    h.allocator = berth_pool_allocator(pool);
    cr_assert_eq(pthread_create(&thread, NULL, free_handed, &h), 0);
    for (int i = 0; i < handed_count; ++i) {
        void *taken = berth_alloc(h.allocator, handed_size(i)), *none = NULL;
        cr_assert_not_null(taken);
        while (!atomic_compare_exchange_strong(&h.ring[i % ring_count], &none, taken)) {
            none = NULL;
            sched_yield();
        }
    }
    cr_assert_eq(pthread_join(thread, NULL), 0);
    berth_pool_get_facts(pool, &facts);
    cr_assert_eq(facts.live_count, 0);
    cr_assert_eq(facts.live_bytes, 0);
    cr_assert_eq(facts.allocation_count, handed_count);
    berth_pool_close(pool);
}

// Every time that the system gives no memory: the block is refused, and all else stays as it was.
Test(pool, the_system_may_refuse) {
    for (int_fast64_t fail_at = 1; fail_at < 8; ++fail_at) {
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        atomic_store(&counting.fail_at, fail_at);
        berth_pool *pool = NULL;
        berth_status status = berth_pool_create(berth_counting_allocator_get(&counting), &pool);
        model m = {.random = 3};
        for (int i = 0; i < 60 && !status; ++i) {
            const size_t size = random_size(&m);
            void *taken = berth_alloc(berth_pool_allocator(pool), size);
            if (taken) add(&m, taken, size);
        }
        for (; m.count > 0;) {
            const block b = take_out(&m, m.count - 1);
            berth_free(berth_pool_allocator(pool), b.data, b.size_bytes);
        }
        berth_pool_close(pool);
        berth_status_ignore(status);
        cr_assert_eq(atomic_load(&counting.live_count), 0);
    }
}

typedef struct asking_system {
    berth_pool *pool;
    uint32_t asked_count, given_count;
} asking_system;

// A system that looks at the pool meanwhile.
static void *ask_and_look(void *user, void *pointer, size_t old_size_bytes, size_t new_size_bytes) {
    asking_system *system = user;
    berth_pool_facts facts;
    if (system->pool) berth_pool_get_facts(system->pool, &facts);
    *(new_size_bytes ? &system->asked_count : &system->given_count) += 1;
    if (new_size_bytes)
        return berth_resize(berth_allocator_system(), pointer, old_size_bytes, new_size_bytes);
    berth_free(berth_allocator_system(), pointer, old_size_bytes);
    return NULL;
}

Test(pool, the_system_is_asked_without_the_lock, .timeout = 60) {
    static const size_t large[] = {100, 100 << 20, 50 << 20}, small[] = {100, 3000};
    asking_system system = {0};
    berth_pool *pool = NULL;
    assert_ok(berth_pool_create((berth_allocator){ask_and_look, &system}, &pool));
    system.pool = pool;
    const uint32_t asked = system.asked_count;
    run_like(pool, large, 3);
    cr_assert_geq(system.asked_count, asked + 3, "a chunk of the small ones, two regions");
    for (int i = 0; i < 100; ++i) run_like(pool, small, 2);
    cr_assert_gt(system.given_count, 0, "the large ones");
    system.pool = NULL;
    berth_pool_close(pool);
    cr_assert_eq(system.asked_count, system.given_count);
}
