// Constants of a board's sources that flash in the address space has no room for: they lie in a store (a memory of the scope
// "store"), from which the application reads each into RAM before the operation that needs it (docs/bare.md). Kernels wait
// for it: plain C has one thread.
#include "compiler/package/fit_budget.h"

// ---- which are read -----------------------------------------------------------------------------

typedef struct choice {
    berth_streamer *s;
    uint64_t *needed;  // per step: values, and constants that are not in flash
    uint64_t flash_bytes;
} choice;

static void keep_in_flash(choice *c, uint32_t weight) {
    berth_stream_problem *problem = &c->s->problem;
    problem->weights[weight].resident = true;
    c->flash_bytes += problem->weights[weight].size_bytes;
    for (uint32_t k = 0; k < problem->load_count; ++k)
        for (uint32_t i = problem->loads[k].first;
             problem->loads[k].weight == weight && i <= problem->loads[k].last; ++i)
            c->needed[i] -= problem->weights[weight].size_bytes;
}

// Of the constants that a step reads from the store the smallest without which it has room enough, else the largest.
static uint32_t weight_to_keep(const choice *c, uint32_t step, uint64_t excess) {
    const berth_stream_problem *problem = &c->s->problem;
    uint32_t best = BERTH_NO_INDEX;
    for (uint32_t k = 0; k < problem->load_count; ++k) {
        const berth_stream_load *load = &problem->loads[k];
        if (step < load->first || step > load->last || problem->weights[load->weight].resident)
            continue;
        if (best == BERTH_NO_INDEX) {
            best = load->weight;
            continue;
        }
        uint64_t bytes = problem->weights[load->weight].size_bytes;
        uint64_t best_bytes = problem->weights[best].size_bytes;
        bool enough = bytes >= excess, best_enough = best_bytes >= excess;
        if (enough != best_enough ? enough : enough ? bytes < best_bytes : bytes > best_bytes)
            best = load->weight;
    }
    return best;
}

// What RAM has no room for, fullest steps first.
static void keep_what_is_too_large(choice *c, uint64_t ram_room) {
    const berth_stream_problem *problem = &c->s->problem;
    for (;;) {
        uint32_t fullest = 0, weight;
        for (uint32_t i = 1; i < problem->step_count; ++i)
            if (c->needed[i] > c->needed[fullest]) fullest = i;
        if (problem->step_count == 0 || c->needed[fullest] <= ram_room) return;
        weight = weight_to_keep(c, fullest, c->needed[fullest] - ram_room);
        if (weight == BERTH_NO_INDEX) return;
        keep_in_flash(c, weight);
    }
}

// Of the constants that may be read those stay that save most time in the room that flash has left: a knapsack, by dynamic
// programming over sizes in up to so many units (each constant rounded up: exact where a unit is the constants' alignment).
//   complexity: O(constants * units) time and bits
static void fill_flash(choice *c, uint64_t flash_room) {
    enum { most_units = 1 << 15 };
    const berth_stream_problem *problem = &c->s->problem;
    uint64_t room = flash_room > c->flash_bytes ? flash_room - c->flash_bytes : 0;
    uint64_t unit = berth_streamer__aligned(c->s, room / most_units + 1);
    uint32_t units = (uint32_t)(room / unit), count = problem->weight_count;
    double *saved = berth_arena_new_array(problem->arena, double, units + 1);
    uint64_t *stays =
        berth_arena_new_array(problem->arena, uint64_t, (size_t)count * (units / 64 + 1));
    for (uint32_t w = 0; w < count; ++w) {
        const berth_stream_weight *weight = &problem->weights[w];
        uint64_t size = (weight->size_bytes + unit - 1) / unit,
                 *row = stays + (size_t)w * (units / 64 + 1);
        double ns = weight->load_ns * weight->load_count;
        for (uint64_t left = units; !weight->resident && left >= size; --left) {
            if (saved[left - size] + ns > saved[left]) {
                saved[left] = saved[left - size] + ns;
                row[left / 64] |= UINT64_C(1) << left % 64;
            }
            if (left == 0) break;
        }
    }
    uint64_t left = units;
    for (uint32_t w = count; w-- > 0;) {
        const uint64_t *row = stays + (size_t)w * (units / 64 + 1);
        if (!(row[left / 64] >> left % 64 & 1)) continue;
        left -= (problem->weights[w].size_bytes + unit - 1) / unit;
        keep_in_flash(c, w);
    }
}

// ---- the program --------------------------------------------------------------------------------

static uint64_t room_beside(uint64_t budget, uint64_t taken) {
    return budget > taken ? budget - taken : 0;
}

static berth_status check_store(const berth_packager *p, uint32_t store,
                                const berth_memory_streamed *report) {
    const berth_target_memory *memory = &p->target->memories[store];
    uint64_t bytes = report->constant_bytes - report->resident_bytes;
    if (bytes <= memory->budget_bytes) return BERTH_OK;
    return berth_status_make(
        BERTH_OUT_OF_MEMORY,
        "memory \"%s\" needs %llu bytes for the constants of this model that \"%s\" has no room "
        "for; its limit is %llu bytes",
        memory->name, (unsigned long long)bytes, report->memory,
        (unsigned long long)memory->budget_bytes);
}

static void report_store(berth_packager *p, const berth_target_memory *flash,
                         berth_memory_streamed *report) {
    const berth_plan *plan = p->pipeline->plan;
    report->memory = flash->name;
    report->budget_bytes = flash->budget_bytes;
    if (plan) report->whole_ns = plan->predicted_ns;
    report->run_ns = report->whole_ns + report->load_ns;
    berth_packager__add_streamed(p, report);
}

// Bytes of the place's constants, as its memory counts them.
static uint64_t constant_bytes(const berth_streamer *s) {
    uint64_t bytes = s->stays_bytes;
    for (uint32_t w = 0; w < s->weights.count; ++w) bytes += s->weights.data[w].size_bytes;
    return bytes;
}

static berth_status store_constants(berth_packager *p, uint32_t device, uint32_t store) {
    const berth_value_moves none = {0};
    berth_streamer s;
    uint32_t place = berth_packager__place(p, device, NULL);
    uint32_t ram = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
    const berth_target_memory *flash =
        &p->target->memories[berth_packager__memory(p, place, BERTH_POOL_CONSTANT)];
    berth_packager__index_places(p);
    berth_streamer__init(&s, p, place, &none);
    berth_status status = BERTH_OK;
    if (constant_bytes(&s) > flash->budget_bytes) {
        choice c = {
            .s = &s, .needed = berth_stream_needed(&s.problem), .flash_bytes = s.stays_bytes};
        berth_memory_streamed report;
        uint64_t beside = berth_streamer__fixed_bytes(&s) - s.stays_bytes;
        keep_what_is_too_large(&c, room_beside(p->target->memories[ram].budget_bytes, beside));
        fill_flash(&c, flash->budget_bytes);
        berth_streamer__read_others(&s, &report);
        if (report.load_count) report_store(p, flash, &report);
        status = check_store(p, store, &report);
    }
    berth_arena_destroy(s.arena);
    return status;
}

berth_status berth_packager__store_constants(berth_packager *p) {
    if (p->target->executor != BERTH_EXECUTOR_AOT) return BERTH_OK;
    for (uint32_t d = 0; d < p->target->device_count; ++d) {
        uint32_t store = berth_multi_target_memory_of(p->target, d, BERTH_TARGET_SCOPE_STORE);
        const berth_target_device *device = &p->target->devices[d];
        if (store != BERTH_NO_INDEX && device->constant_memory != device->own_memory)
            BERTH_TRY(store_constants(p, d, store));
    }
    return BERTH_OK;
}
