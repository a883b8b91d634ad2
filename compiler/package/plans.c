#include "compiler/package/plans.h"

#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "compiler/package/package.h"

typedef struct kept_plan {
    struct kept_plan *next;
    berth_hash128 form;
    const berth_storage *storages;
    const berth_program_pool *pools;
    uint32_t pool_count;
    const uint32_t *pool_place;
} kept_plan;

struct berth_memory_plans {
    berth_arena *arena;
    kept_plan *first;
};

berth_memory_plans *berth_memory_plans_create(berth_arena *arena) {
    berth_memory_plans *plans = berth_arena_new(arena, berth_memory_plans);
    plans->arena = arena;
    return plans;
}

// All that a plan follows from, but for sizes.
static berth_hash128 form_of(const berth_packager *p) {
    berth_strbuf text = berth_strbuf_make(p->arena);
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        const berth_storage *s = &p->storages.data[i];
        // What nothing touches is planned as if the first step did.
        bool is_used = s->first_step != BERTH_NO_INDEX;
        uint32_t facts[] = {s->place, s->usage, s->into, is_used ? s->first_step : 0,
                            is_used ? s->last_step : 0};
        berth_strbuf_add_n(&text, (const char *)facts, sizeof(facts));
        for (uint32_t d = berth_bits_first(s->users); d != BERTH_BITS_END;
             d = berth_bits_next(s->users, d))
            berth_strbuf_add_n(&text, (const char *)&d, sizeof(d));
    }
    return berth_hash128_of(text.data, text.length);
}

static bool is_as_large(const kept_plan *plan, const berth_packager *p) {
    for (uint32_t i = 0; i < p->storages.count; ++i)
        if (plan->storages[i].size_bytes < p->storages.data[i].size_bytes) return false;
    return true;
}

bool berth_memory_plans_recall(berth_memory_plans *plans, berth_packager *p) {
    berth_hash128 form = form_of(p);
    for (const kept_plan *plan = plans->first; plan; plan = plan->next) {
        if (!berth_hash128_equal(plan->form, form) || !is_as_large(plan, p)) continue;
        for (uint32_t i = 0; i < p->storages.count; ++i) {
            p->storages.data[i].pool = plan->storages[i].pool;
            p->storages.data[i].offset_bytes = plan->storages[i].offset_bytes;
        }
        for (uint32_t i = 0; i < plan->pool_count; ++i) {
            berth_program_pool pool = plan->pools[i];
            pool.shared_with = berth_bits_copy(p->arena, pool.shared_with);
            berth_vec_push(p->arena, &p->pools, pool);
            berth_vec_push(p->arena, &p->pool_place, plan->pool_place[i]);
        }
        return true;
    }
    return false;
}

typedef struct keep_job {
    berth_memory_plans *plans;
    const berth_packager *packager;
} keep_job;

static berth_status keep(void *user) {
    const keep_job *job = user;
    const berth_packager *p = job->packager;
    berth_arena *arena = job->plans->arena;
    kept_plan *made = berth_arena_new(arena, kept_plan);
    berth_program_pool *pools =
        berth_arena_copy(arena, p->pools.data, p->pools.count * sizeof(*pools));
    for (uint32_t i = 0; i < p->pools.count; ++i) {
        pools[i].shared_with = berth_bits_copy(arena, pools[i].shared_with);
        pools[i].scope = berth_arena_strdup(arena, pools[i].scope);
    }
    made->form = form_of(p);
    made->storages =
        berth_arena_copy(arena, p->storages.data, p->storages.count * sizeof(*made->storages));
    made->pools = pools;
    made->pool_count = p->pools.count;
    made->pool_place =
        berth_arena_copy(arena, p->pool_place.data, p->pool_place.count * sizeof(uint32_t));
    made->next = job->plans->first;
    job->plans->first = made;
    return BERTH_OK;
}

void berth_memory_plans_keep(berth_memory_plans *plans, const berth_packager *p) {
    keep_job job = {plans, p};
    berth_status_ignore(berth_arena_try(plans->arena, keep, &job));
}
