#include "compiler/package/fit_budget.h"

#include <stdlib.h>
#include <string.h>

// ---- the packager before and after ---------------------------------------------------------------

void berth_packager__keep_state(const berth_packager *p, berth_kept_state *out) {
    *out = (berth_kept_state){
        .storages =
            berth_arena_copy(p->arena, p->storages.data, p->storages.count * sizeof(berth_storage)),
        .tensors = berth_arena_copy(p->arena, p->tensors.data,
                                    p->tensors.count * sizeof(berth_program_tensor)),
        .storage_of =
            berth_arena_copy(p->arena, p->storage_of.data, p->storage_of.count * sizeof(uint32_t)),
        .constants = berth_arena_copy(p->arena, p->constants.data,
                                      p->constants.count * sizeof(berth_program_constant)),
        .steps =
            berth_arena_copy(p->arena, p->steps.data, p->steps.count * sizeof(berth_program_step)),
        .facts =
            berth_arena_copy(p->arena, p->facts.data, p->facts.count * sizeof(berth_step_facts)),
        .storage_count = p->storages.count,
        .tensor_count = p->tensors.count,
        .step_count = p->steps.count};
}

void berth_packager__restore_state(berth_packager *p, const berth_kept_state *kept) {
    p->storages.count = kept->storage_count;
    p->tensors.count = p->storage_of.count = kept->tensor_count;
    p->steps.count = p->facts.count = kept->step_count;
    memcpy(p->storages.data, kept->storages, kept->storage_count * sizeof(berth_storage));
    memcpy(p->tensors.data, kept->tensors, kept->tensor_count * sizeof(berth_program_tensor));
    memcpy(p->storage_of.data, kept->storage_of, kept->tensor_count * sizeof(uint32_t));
    memcpy(p->steps.data, kept->steps, kept->step_count * sizeof(berth_program_step));
    memcpy(p->facts.data, kept->facts, kept->step_count * sizeof(berth_step_facts));
    if (p->constants.count)
        memcpy(p->constants.data, kept->constants,
               p->constants.count * sizeof(berth_program_constant));
}

// ---- one value ----------------------------------------------------------------------------------

// Depths of recomputations that are looked at, and values that are too small to be: a part of the largest
// that waits.
enum { most_depth = 8, smallest_part = 16 };

// A way to take a value out of a peak.
typedef struct way {
    berth_waiting_value value;
    bool spills;
    berth_recomputation again;  // of those that do not spill
    double ns;                  // predicted
} way;

// The cheapest for each byte first, then the larger value.
static int compare_ways(const void *left, const void *right) {
    const way *a = left, *b = right;
    double x = a->ns * (double)b->value.size_bytes, y = b->ns * (double)a->value.size_bytes;
    if (x != y) return x < y ? -1 : 1;
    if (a->value.size_bytes != b->value.size_bytes)
        return a->value.size_bytes > b->value.size_bytes ? -1 : 1;
    if (a->value.storage != b->value.storage) return a->value.storage < b->value.storage ? -1 : 1;
    return (a->again.step_count > b->again.step_count) -
           (a->again.step_count < b->again.step_count);
}

typedef BERTH_VEC(way) way_list;

static void add_recomputations(const berth_packager *p, berth_arena *arena, uint32_t device,
                               const berth_waiting_value *value, way_list *ways) {
    uint32_t known = 0;
    for (uint32_t depth = 1; depth <= most_depth; ++depth) {
        way again = {.value = *value};
        if (!berth_packager__find_recomputation(p, arena, device, value, depth, &again.again))
            return;
        if (again.again.step_count == known) return;
        known = again.again.step_count;
        again.ns = again.again.ns;
        berth_vec_push(arena, ways, again);
    }
}

// Of the values that wait at a step those that are worth a look.
static uint32_t find_large(const berth_packager *p, berth_arena *arena, uint32_t place,
                           uint32_t step, berth_waiting_value **out_values) {
    uint64_t largest = 0;
    uint32_t kept = 0, count = berth_packager__find_waiting(p, arena, place, step, out_values);
    berth_waiting_value *values = *out_values;
    for (uint32_t i = 0; i < count; ++i)
        if (values[i].size_bytes > largest) largest = values[i].size_bytes;
    for (uint32_t i = 0; i < count; ++i)
        if (values[i].size_bytes >= largest / smallest_part) values[kept++] = values[i];
    return kept;
}

// All ways to lower the step's bytes. Values are moved out of memories of their own only: what a cpu
// has beside its memory are files.
static way_list find_ways(const berth_streamer *s, uint32_t peak) {
    berth_waiting_value *values = NULL;
    way_list ways = {0};
    uint32_t count = find_large(s->p, s->arena, s->place, peak, &values);
    for (uint32_t i = 0; i < count; ++i) {
        if (s->place != berth_packager__place(s->p, s->p->target->host, NULL))
            berth_vec_push(s->arena, &ways,
                           ((way){.value = values[i],
                                  .spills = true,
                                  .ns = 2 * berth_streamer__load_ns(s, values[i].size_bytes)}));
        add_recomputations(s->p, s->arena, s->device, &values[i], &ways);
    }
    if (ways.count) qsort(ways.data, ways.count, sizeof(*ways.data), compare_ways);
    return ways;
}

// How full the memory is at the fullest, and in how many steps.
typedef struct peak {
    uint64_t bytes;
    uint32_t first_step, step_count;
} peak;

static peak peak_of(const uint64_t *needed, uint32_t count) {
    peak found = {0};
    for (uint32_t i = 0; i < count; ++i) {
        if (needed[i] > found.bytes) found = (peak){needed[i], i, 0};
        found.step_count += needed[i] == found.bytes;
    }
    return found;
}

static void apply(berth_streamer *s, const way *chosen, const uint64_t *needed, uint32_t peak_step,
                  uint64_t room_bytes) {
    if (!chosen->spills) {
        berth_packager__recompute(s->p, &chosen->again);
        return;
    }
    berth_spill_request request = {.device = s->device,
                                   .peak_step = peak_step,
                                   .room_bytes = room_bytes,
                                   .needed = needed,
                                   .step_ns = s->problem.step_ns,
                                   .copy_ns = berth_streamer__load_ns(s, chosen->value.size_bytes)};
    berth_packager__spill(s->p, &chosen->value, &request);
}

static void count_move(berth_value_moves *moves, const way *chosen) {
    if (chosen->spills) {
        moves->spilled_count++;
        moves->spilled_bytes += chosen->value.size_bytes;
        moves->spilled_ns += chosen->ns;
    } else {
        moves->recomputed_count++;
        moves->recomputed_bytes += chosen->value.size_bytes;
        moves->recomputed_steps += chosen->again.step_count;
        moves->recompute_ns += chosen->ns;
    }
}

// Takes a value out of the peak, in the way that costs least of those that lower it. False: none does.
static bool relieve(berth_streamer *s, uint64_t budget, berth_value_moves *moves) {
    enum { most_tries = 64 };
    uint64_t fixed = berth_streamer__fixed_bytes(s);
    const uint64_t *needed = berth_stream_needed(&s->problem);
    peak before = peak_of(needed, s->problem.step_count);
    way_list ways = find_ways(s, before.first_step);
    berth_kept_state kept;
    berth_packager__keep_state(s->p, &kept);
    for (uint32_t i = 0; i < ways.count && i < most_tries; ++i) {
        berth_streamer next;
        apply(s, &ways.data[i], needed, before.first_step, budget > fixed ? budget - fixed : 0);
        berth_streamer__init(&next, s->p, s->place, moves);
        peak now = peak_of(berth_stream_needed(&next.problem), next.problem.step_count);
        berth_arena_destroy(next.arena);
        if (now.bytes < before.bytes ||
            (now.bytes == before.bytes && now.step_count < before.step_count)) {
            count_move(moves, &ways.data[i]);
            return true;
        }
        berth_packager__restore_state(s->p, &kept);
    }
    return false;
}

void berth_packager__add_streamed(berth_packager *p, const berth_memory_streamed *streamed) {
    uint32_t count = p->report->streamed_count;
    berth_memory_streamed *all = berth_arena_new_array(p->arena, berth_memory_streamed, count + 1);
    if (count) memcpy(all, p->report->streamed, count * sizeof(*all));
    all[count] = *streamed;
    p->report->streamed = all;
    p->report->streamed_count = count + 1;
}

// ---- plain C ------------------------------------------------------------------------------------

// Per step, in the place's workspace.
static uint64_t *live_bytes(const berth_packager *p, uint32_t place, berth_arena *arena) {
    uint64_t *live = berth_arena_new_array(arena, uint64_t, p->steps.count + 1);
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        const berth_storage *held = &p->storages.data[i];
        if (held->place != place || held->usage != BERTH_POOL_WORKSPACE ||
            held->into != BERTH_NO_INDEX || held->first_step == BERTH_NO_INDEX)
            continue;
        live[held->first_step] += held->size_bytes;
        live[held->last_step + 1] -= held->size_bytes;
    }
    for (uint32_t i = 1; i < p->steps.count; ++i) live[i] += live[i - 1];
    return live;
}

static peak peak_now(const berth_packager *p, uint32_t place) {
    berth_arena *scratch = berth_arena_create_child(p->arena);
    peak found = peak_of(live_bytes(p, place, scratch), p->steps.count);
    berth_arena_destroy(scratch);
    return found;
}

// Computes a value at the fullest step again, the one that costs least of those with which less is live. False:
// there is none.
static bool recompute_one(berth_packager *p, uint32_t place, uint32_t device,
                          berth_value_moves *moves) {
    enum { most_tries = 64 };
    berth_arena *scratch = berth_arena_create_child(p->arena);
    berth_waiting_value *values = NULL;
    way_list ways = {0};
    peak before = peak_now(p, place);
    uint32_t count = find_large(p, scratch, place, before.first_step, &values);
    for (uint32_t i = 0; i < count; ++i) add_recomputations(p, scratch, device, &values[i], &ways);
    if (ways.count) qsort(ways.data, ways.count, sizeof(*ways.data), compare_ways);
    berth_kept_state kept;
    berth_packager__keep_state(p, &kept);
    bool done = false;
    for (uint32_t i = 0; i < ways.count && i < most_tries && !done; ++i) {
        berth_packager__recompute(p, &ways.data[i].again);
        peak now = peak_now(p, place);
        done = now.bytes < before.bytes ||
               (now.bytes == before.bytes && now.step_count < before.step_count);
        if (done)
            count_move(moves, &ways.data[i]);
        else
            berth_packager__restore_state(p, &kept);
    }
    berth_arena_destroy(scratch);
    return done;
}

// `whole_ns`: of the kernels without. Times are shares of what the plan predicts for plain C.
static void report_recomputed(berth_packager *p, uint32_t memory, uint32_t device,
                              const berth_value_moves *moves, double whole_ns) {
    const berth_plan *plan = p->pipeline->plan;
    double planned_ns = plan && whole_ns > 0 ? plan->predicted_ns : whole_ns;
    double again_ns = whole_ns > 0 ? moves->recompute_ns / whole_ns * planned_ns : 0;
    const berth_memory_streamed report = {.memory = p->target->memories[memory].name,
                                          .device = device,
                                          .budget_bytes = p->target->memories[memory].budget_bytes,
                                          .recomputed_count = moves->recomputed_count,
                                          .recomputed_bytes = moves->recomputed_bytes,
                                          .recomputed_steps = moves->recomputed_steps,
                                          .recompute_ns = again_ns,
                                          .whole_ns = planned_ns,
                                          .run_ns = planned_ns + again_ns};
    berth_packager__add_streamed(p, &report);
}

berth_status berth_packager__recompute_to_fit(berth_packager *p) {
    enum { most_moves = 64 };
    uint32_t device = p->pipeline->over_device;
    uint32_t place = berth_packager__place(p, device, NULL);
    uint32_t memory = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
    uint64_t budget = p->target->memories[memory].budget_bytes, bytes = 0, least = UINT64_MAX;
    berth_value_moves moves = {0}, least_moves = {0};
    berth_kept_state best;
    double whole_ns = 0;
    for (uint32_t i = 0; i < p->steps.count; ++i) whole_ns += berth_packager__kernel_ns(p, i);
    for (int moved = 0; moved <= most_moves; ++moved) {
        BERTH_TRY(berth_packager__measure_place(p, place, &bytes));
        if (bytes < least) {
            least = bytes;
            least_moves = moves;
            berth_packager__keep_state(p, &best);
        }
        if (least <= budget || !recompute_one(p, place, device, &moves)) break;
    }
    berth_packager__restore_state(p, &best);
    if (least <= budget && least_moves.recomputed_count)
        report_recomputed(p, memory, device, &least_moves, whole_ns);
    p->pools.count = p->pool_place.count = p->report->pool_count = 0;
    p->pipeline->over_bytes = 0;
    return berth_packager__plan_memory(p);
}

// ---- a memory -----------------------------------------------------------------------------------

// Whether a memory is made to fit: somebody asked for less than there is, one device works there, and
// has its constants in the same one.
static bool may_fit(const berth_packager *p, uint32_t place) {
    uint32_t memory = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
    return berth_bits_is_single(berth_packager__workers(p, place)) &&
           memory == berth_packager__memory(p, place, BERTH_POOL_CONSTANT) &&
           p->target->memories[memory].budget_bytes != p->target->memories[memory].capacity_bytes;
}

// A plan of a memory, as far as plans are compared.
typedef struct tried_plan {
    berth_kept_state state;
    berth_memory_streamed report;
    uint64_t bytes;
} tried_plan;

static bool is_better(const tried_plan *a, const tried_plan *b, uint64_t budget) {
    if (a->bytes > budget || b->bytes > budget) return a->bytes < b->bytes;
    return a->report.run_ns < b->report.run_ns;
}

// The plan with these moves, and where the program was before it. Leaves the program there.
static berth_status try_plan(berth_streamer *s, uint64_t budget, tried_plan *out) {
    berth_packager *p = s->p;
    berth_kept_state kept;
    berth_packager__keep_state(p, &kept);
    BERTH_TRY(berth_streamer__place(s, budget, &out->bytes, &out->report));
    berth_packager__keep_state(p, &out->state);
    berth_packager__restore_state(p, &kept);
    return BERTH_OK;
}

// Reads constants again; where that is not enough, values are moved or computed again, one after
// another. Some more are where that leaves room for constants, as long as a plan that fits takes longer
// than one without a budget: of all plans the fastest stays.
static berth_status fit_place(berth_packager *p, uint32_t place, uint64_t budget) {
    enum { most_moves = 64, more_moves = 3 };
    berth_value_moves moves = {0};
    tried_plan best = {.bytes = UINT64_MAX};
    int beyond = 0;
    bool again = true;
    for (int moved = 0; again && moved <= most_moves; ++moved) {
        berth_streamer s;
        tried_plan plan;
        berth_streamer__init(&s, p, place, &moves);
        berth_status status = try_plan(&s, budget, &plan);
        if (!status && is_better(&plan, &best, budget)) best = plan;
        if (!status && best.bytes <= budget) beyond++;
        again = !status && beyond <= more_moves &&
                (best.bytes > budget || best.report.run_ns > best.report.whole_ns) &&
                relieve(&s, budget, &moves);
        berth_arena_destroy(s.arena);
        BERTH_TRY(status);
    }
    berth_packager__restore_state(p, &best.state);
    berth_packager__add_streamed(p, &best.report);
    return BERTH_OK;
}

berth_status berth_packager__fit_budgets(berth_packager *p) {
    for (uint32_t place = 0; place < berth_packager__place_count(p); ++place) {
        uint64_t bytes = 0;
        if (!may_fit(p, place)) continue;
        uint32_t memory = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
        uint64_t budget = p->target->memories[memory].budget_bytes;
        BERTH_TRY(berth_packager__measure_place(p, place, &bytes));
        if (bytes > budget) BERTH_TRY(fit_place(p, place, budget));
    }
    p->pools.count = p->pool_place.count = p->report->pool_count = 0;
    p->pipeline->over_bytes = 0;
    return berth_packager__plan_memory(p);
}
