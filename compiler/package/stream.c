#include "compiler/package/stream.h"

#include <string.h>

// A stream's reads at a run, where nothing better is known: a constant in host memory, or in a file
// that the system keeps in memory, is read and written once. A slower disk only makes the prediction
// wrong.
enum { passes_of_a_copy = 2 };

// Uses of a constant by steps this close to each other are one: kernels of one operation.
enum { same_operation = 2 };

typedef struct streamer {
    berth_packager *p;
    berth_arena *arena;  // scratch
    uint32_t place;
    uint32_t device;  // the only one that works there
    uint32_t memory;
    bool *mixed;  // per storage: its uses are not all kernels of the device
    BERTH_VEC(berth_stream_weight) weights;
    BERTH_VEC(berth_stream_load) loads;
    uint64_t stays_bytes;  // of constants that cannot be streamed
    uint32_t spilled_count;
    uint64_t spilled_bytes;
    double spilled_ns;
    berth_stream_problem problem;
} streamer;

// ---- the packager before and after ---------------------------------------------------------------

// What streaming changes, so that another plan can be tried.
typedef struct kept_state {
    berth_storage *storages;
    berth_program_constant *constants;
    berth_program_step *steps;
    berth_step_facts *facts;
    uint32_t storage_count, tensor_count, step_count;
} kept_state;

static kept_state keep_state(const berth_packager *p) {
    return (kept_state){
        .storages =
            berth_arena_copy(p->arena, p->storages.data, p->storages.count * sizeof(berth_storage)),
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

static void restore_state(berth_packager *p, const kept_state *kept) {
    p->storages.count = kept->storage_count;
    p->tensors.count = p->storage_of.count = kept->tensor_count;
    p->steps.count = p->facts.count = kept->step_count;
    memcpy(p->storages.data, kept->storages, kept->storage_count * sizeof(berth_storage));
    memcpy(p->steps.data, kept->steps, kept->step_count * sizeof(berth_program_step));
    memcpy(p->facts.data, kept->facts, kept->step_count * sizeof(berth_step_facts));
    if (p->constants.count)
        memcpy(p->constants.data, kept->constants,
               p->constants.count * sizeof(berth_program_constant));
}

// ---- the problem --------------------------------------------------------------------------------

static bool is_constant_here(const streamer *s, uint32_t storage) {
    const berth_storage *held = &s->p->storages.data[storage];
    return held->usage == BERTH_POOL_CONSTANT && held->place == s->place;
}

static uint64_t aligned(const streamer *s, uint64_t bytes) {
    uint64_t alignment = berth_packager__alignment(s->p, s->place);
    return (bytes + alignment - 1) / alignment * alignment;
}

static double load_ns(const streamer *s, uint64_t bytes) {
    const berth_multi_target *target = s->p->target;
    uint32_t host = target->devices[target->host].own_memory;
    berth_target_route route;
    if (host != s->memory &&
        berth_multi_target_route(target, s->arena, host, s->memory, bytes, &route))
        return route.time_ns;
    double bandwidth = target->memories[s->memory].bandwidth_bytes_per_s;
    return bandwidth > 0 ? passes_of_a_copy * (double)bytes / bandwidth * 1e9 : 0;
}

static void find_mixed(streamer *s) {
    berth_packager *p = s->p;
    s->mixed = berth_arena_new_array(s->arena, bool, p->storages.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        const berth_program_step *step = &p->steps.data[i];
        bool plain = step->kind == BERTH_STEP_DISPATCH && step->device == s->device;
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i) && !plain; ++b)
            s->mixed[p->storage_of.data[step->bindings[b]]] = true;
    }
}

// A use of a constant by a step: goes on with the load before, or is one of its own.
static void add_use(streamer *s, uint32_t storage, uint32_t step, uint32_t *weight_of,
                    uint32_t *last_load) {
    if (weight_of[storage] == BERTH_NO_INDEX) {
        uint64_t bytes = s->p->storages.data[storage].size_bytes;
        weight_of[storage] = s->weights.count;
        berth_vec_push(s->arena, &s->weights,
                       ((berth_stream_weight){.storage = storage,
                                              .size_bytes = aligned(s, bytes),
                                              .first = step,
                                              .load_ns = load_ns(s, bytes)}));
    }
    uint32_t weight = weight_of[storage];
    if (s->weights.data[weight].load_count) {
        berth_stream_load *before = &s->loads.data[last_load[storage]];
        if (step - before->last <= same_operation) {
            before->last = step;
            return;
        }
    }
    s->weights.data[weight].load_count++;
    last_load[storage] = s->loads.count;
    berth_vec_push(s->arena, &s->loads, ((berth_stream_load){weight, step, step, step}));
}

static void find_loads(streamer *s) {
    berth_packager *p = s->p;
    uint32_t *weight_of = berth_arena_new_array(s->arena, uint32_t, p->storages.count);
    uint32_t *last_load = berth_arena_new_array(s->arena, uint32_t, p->storages.count);
    memset(weight_of, 0xff, p->storages.count * sizeof(*weight_of));
    for (uint32_t i = 0; i < p->steps.count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint32_t storage = p->storage_of.data[p->steps.data[i].bindings[b]];
            if (is_constant_here(s, storage) && !s->mixed[storage] &&
                p->storages.data[storage].size_bytes)
                add_use(s, storage, i, weight_of, last_load);
        }
    for (uint32_t i = 0; i < p->storages.count; ++i)
        if (is_constant_here(s, i) && weight_of[i] == BERTH_NO_INDEX)
            s->stays_bytes += aligned(s, p->storages.data[i].size_bytes);
}

static uint64_t *live_bytes(const streamer *s) {
    const berth_packager *p = s->p;
    uint64_t *live = berth_arena_new_array(s->arena, uint64_t, p->steps.count + 1);
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        const berth_storage *held = &p->storages.data[i];
        if (held->usage != BERTH_POOL_WORKSPACE || held->place != s->place ||
            held->into != BERTH_NO_INDEX || held->first_step == BERTH_NO_INDEX)
            continue;
        live[held->first_step] += aligned(s, held->size_bytes);
        live[held->last_step + 1] -= aligned(s, held->size_bytes);
    }
    for (uint32_t i = 1; i < p->steps.count; ++i) live[i] += live[i - 1];
    return live;
}

static double *step_times(const streamer *s) {
    const berth_packager *p = s->p;
    double *times = berth_arena_new_array(s->arena, double, p->steps.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        times[i] = berth_packager__kernel_ns(p, i);
        if (p->facts.data[i].apart)  // a value that moves: as if nothing went on beside it
            times[i] = load_ns(s, p->tensors.data[p->steps.data[i].bindings[0]].size_bytes);
    }
    return times;
}

static double burden_of(const streamer *s) {
    const berth_target *device = s->p->target->devices[s->device].target;
    if (!berth_target_is_cores(device)) return 0;
    int64_t cores = device->cores > 0 ? device->cores : device->compute_units;
    return 1.0 / (double)(cores > 0 ? cores : 1);
}

static void make_problem(streamer *s) {
    find_mixed(s);
    find_loads(s);
    s->problem = (berth_stream_problem){.arena = s->arena,
                                        .step_count = s->p->steps.count,
                                        .live = live_bytes(s),
                                        .step_ns = step_times(s),
                                        .weights = s->weights.data,
                                        .weight_count = s->weights.count,
                                        .loads = s->loads.data,
                                        .load_count = s->loads.count,
                                        .burden = burden_of(s)};
}

// What is there beside values and constants that can be streamed: inputs and outputs, other
// constants, what kernels keep for threads.
static uint64_t fixed_bytes(const streamer *s) {
    const berth_packager *p = s->p;
    uint64_t bytes = s->stays_bytes + berth_packager__scratch_bytes(p, s->memory);
    for (uint32_t i = 0; i < p->storages.count; ++i)
        if (p->storages.data[i].usage == BERTH_POOL_IO && p->storages.data[i].place == s->place)
            bytes += aligned(s, p->storages.data[i].size_bytes);
    return bytes;
}

// ---- the program --------------------------------------------------------------------------------

static const bool writes_second[] = {false, true};

// The constant's tensor that gives its content.
static uint32_t constant_of(const berth_packager *p, uint32_t storage) {
    for (uint32_t i = 0; i < p->constants.count; ++i)
        if (p->storage_of.data[p->constants.data[i].tensor] == storage)
            return p->constants.data[i].tensor;
    return BERTH_NO_INDEX;
}

// The constant stays where the program has it. Its tensor is bound by copies only from now on.
static void move_to_store(streamer *s, uint32_t storage) {
    berth_packager *p = s->p;
    berth_storage *held = &p->storages.data[storage];
    held->usage = BERTH_POOL_STORE;
    held->place = berth_packager__place(p, p->target->host, NULL);
    held->users = (berth_bits){0};
}

static uint32_t add_copy_of(berth_packager *p, uint32_t tensor, uint32_t storage) {
    berth_program_tensor copy = p->tensors.data[tensor];
    copy.name = berth_packager__constant_name(p, tensor);
    berth_vec_push(p->arena, &p->tensors, copy);
    berth_vec_push(p->arena, &p->storage_of, storage);
    return p->tensors.count - 1;
}

// The bytes that a load brings a constant to, and the tensors there.
typedef struct stay {
    uint32_t storage;
    uint32_t constant;  // tensor in the store
    uint32_t copy;      // tensor in workspace
} stay;

static stay make_stay(streamer *s, const berth_stream_load *load) {
    berth_packager *p = s->p;
    uint32_t of = s->weights.data[load->weight].storage;
    uint32_t constant = constant_of(p, of);
    berth_storage storage = {.place = s->place,
                             .usage = BERTH_POOL_WORKSPACE,
                             .size_bytes = p->storages.data[of].size_bytes,
                             .into = BERTH_NO_INDEX,
                             .first_step = load->start,
                             .last_step = load->last};
    berth_vec_push(p->arena, &p->storages, storage);
    uint32_t index = p->storages.count - 1;
    return (stay){index, constant, add_copy_of(p, constant, index)};
}

// The steps of a load read its bytes; views of the constant become views of these.
static void bind_stay(streamer *s, const berth_stream_load *load, const stay *made) {
    berth_packager *p = s->p;
    uint32_t of = s->weights.data[load->weight].storage;
    for (uint32_t i = load->first; i <= load->last; ++i) {
        uint32_t count = berth_packager__binding_count(p, i);
        uint32_t *bindings =
            berth_arena_copy(p->arena, p->steps.data[i].bindings, count * sizeof(*bindings));
        for (uint32_t b = 0; b < count; ++b) {
            if (p->storage_of.data[bindings[b]] != of) continue;
            bindings[b] = bindings[b] == made->constant
                              ? made->copy
                              : add_copy_of(p, bindings[b], made->storage);
        }
        p->steps.data[i].bindings = bindings;
    }
}

static void add_load_step(streamer *s, const stay *made, const char *name) {
    berth_packager *p = s->p;
    uint32_t *bindings = berth_arena_new_array(p->arena, uint32_t, 2);
    bindings[0] = made->constant;
    bindings[1] = made->copy;
    berth_vec_push(p->arena, &p->steps,
                   ((berth_program_step){.kind = BERTH_STEP_COPY,
                                         .device = s->device,
                                         .kernel = BERTH_NO_INDEX,
                                         .bindings = bindings,
                                         .name = berth_arena_printf(p->arena, "read %s", name),
                                         .op = "copy"}));
    berth_vec_push(
        p->arena, &p->facts,
        ((berth_step_facts){.written = writes_second, .unit = BERTH_NO_INDEX, .apart = true}));
}

static berth_memory_streamed *count_streamed(const streamer *s) {
    const berth_packager *p = s->p;
    berth_memory_streamed *out = berth_arena_new(p->arena, berth_memory_streamed);
    out->memory = p->target->memories[s->memory].name;
    out->device = s->device;
    out->budget_bytes = p->target->memories[s->memory].budget_bytes;
    out->constant_bytes = out->resident_bytes = s->stays_bytes;
    for (uint32_t w = 0; w < s->weights.count; ++w) {
        const berth_stream_weight *weight = &s->weights.data[w];
        uint64_t bytes = p->storages.data[weight->storage].size_bytes;
        out->constant_bytes += bytes;
        if (weight->resident) {
            out->resident_bytes += bytes;
            continue;
        }
        out->constant_count++;
        out->load_count += weight->load_count;
        out->loaded_bytes += bytes * weight->load_count;
        out->load_ns += weight->load_ns * weight->load_count;
    }
    out->spilled_count = s->spilled_count;
    out->spilled_bytes = s->spilled_bytes;
    for (uint32_t i = 0; i < s->problem.step_count; ++i) out->whole_ns += s->problem.step_ns[i];
    out->whole_ns -= s->spilled_ns;
    return out;
}

static bool is_resident(const streamer *s, uint32_t load) {
    return s->weights.data[s->loads.data[load].weight].resident;
}

// Workspace for each load, and the steps that read it bound to that. [load]; unset where its constant
// is resident.
static stay *make_stays(streamer *s, berth_memory_streamed *report) {
    berth_packager *p = s->p;
    uint32_t written = 0;
    stay *stays = berth_arena_new_array(s->arena, stay, s->loads.count);
    berth_memory_load *lines = berth_arena_new_array(p->arena, berth_memory_load, s->loads.count);
    for (uint32_t k = 0; k < s->loads.count; ++k) {
        const berth_stream_load *load = &s->loads.data[k];
        if (is_resident(s, k)) continue;
        stays[k] = make_stay(s, load);
        lines[written++] =
            (berth_memory_load){.name = berth_packager__constant_name(p, stays[k].constant),
                                .size_bytes = p->storages.data[stays[k].storage].size_bytes,
                                .from_step = p->steps.data[load->start].name,
                                .first_step = p->steps.data[load->first].name,
                                .last_step = p->steps.data[load->last].name};
    }
    for (uint32_t k = 0; k < s->loads.count; ++k)
        if (!is_resident(s, k)) bind_stay(s, &s->loads.data[k], &stays[k]);
    report->loads = lines;
    return stays;
}

// The steps with the copies between them, each before the step where it starts, in order of their
// uses. Where steps and copies are now: step_at [step], copy_at [load].
static void weave_steps(streamer *s, const stay *stays, const berth_memory_streamed *report,
                        uint32_t *step_at, uint32_t *copy_at) {
    berth_packager *p = s->p;
    uint32_t count = p->steps.count, next = 0, written = 0;
    const berth_program_step *steps =
        berth_arena_copy(s->arena, p->steps.data, count * sizeof(berth_program_step));
    const berth_step_facts *facts =
        berth_arena_copy(s->arena, p->facts.data, count * sizeof(berth_step_facts));
    p->steps.count = p->facts.count = 0;
    for (uint32_t i = 0; i < count; ++i) {
        for (; next < s->loads.count; ++next) {
            if (is_resident(s, next)) continue;
            if (s->loads.data[next].start > i) break;
            copy_at[next] = p->steps.count;
            add_load_step(s, &stays[next], report->loads[written++].name);
        }
        step_at[i] = p->steps.count;
        berth_vec_push(p->arena, &p->steps, steps[i]);
        berth_vec_push(p->arena, &p->facts, facts[i]);
    }
}

// Makes the loads steps of the program, and their constants those of a store.
static void insert_loads(streamer *s, berth_memory_streamed *report) {
    berth_packager *p = s->p;
    uint32_t storages = p->storages.count;
    uint32_t *step_at = berth_arena_new_array(s->arena, uint32_t, p->steps.count);
    uint32_t *copy_at = berth_arena_new_array(s->arena, uint32_t, s->loads.count);
    const stay *stays = make_stays(s, report);
    weave_steps(s, stays, report, step_at, copy_at);
    for (uint32_t i = 0; i < storages; ++i) {
        berth_storage *held = &p->storages.data[i];
        if (held->first_step == BERTH_NO_INDEX) continue;
        held->first_step = step_at[held->first_step];
        held->last_step = step_at[held->last_step];
    }
    for (uint32_t k = 0; k < s->loads.count; ++k) {
        if (is_resident(s, k)) continue;
        p->storages.data[stays[k].storage].first_step = copy_at[k];
        p->storages.data[stays[k].storage].last_step = step_at[s->loads.data[k].last];
        move_to_store(s, s->weights.data[s->loads.data[k].weight].storage);
    }
}

// ---- plans --------------------------------------------------------------------------------------

// A plan of the problem in the program, placed for the moment.
static berth_status try_plan(streamer *s, double ns, berth_memory_streamed **out_report,
                             uint64_t *out_bytes) {
    *out_report = count_streamed(s);
    (*out_report)->run_ns = ns;
    insert_loads(s, *out_report);
    return berth_packager__measure_place(s->p, s->place, out_bytes);
}

// Gaps between values take some of the room; then a plan with so much less is tried. Where none does,
// the plan that needs the least stays, and *out_bytes is above the budget.
static berth_status stream_place(streamer *s, uint64_t budget, uint64_t *out_bytes) {
    enum { most_attempts = 6 };
    berth_packager *p = s->p;
    kept_state kept = keep_state(p);
    berth_memory_streamed *report = NULL;
    uint64_t bytes = UINT64_MAX, fixed = fixed_bytes(s), taken = 0;
    for (int i = 0; i < most_attempts && bytes > budget; ++i) {
        double ns = 0;
        if (fixed + taken >= budget) break;
        s->problem.room_bytes = budget - fixed - taken;
        if (!berth_stream_choose(&s->problem, &ns)) break;
        if (bytes != UINT64_MAX) restore_state(p, &kept);
        BERTH_TRY(try_plan(s, ns, &report, &bytes));
        if (bytes > budget) taken += bytes - budget;
    }
    if (bytes > budget) {
        if (bytes != UINT64_MAX) restore_state(p, &kept);
        s->problem.room_bytes = UINT64_MAX;
        double ns = berth_stream_choose_least(&s->problem);
        BERTH_TRY(try_plan(s, ns, &report, &bytes));
    }
    *out_bytes = bytes;
    berth_memory_streamed *all =
        berth_arena_new_array(p->arena, berth_memory_streamed, p->report->streamed_count + 1);
    if (p->report->streamed_count)
        memcpy(all, p->report->streamed, p->report->streamed_count * sizeof(*all));
    all[p->report->streamed_count++] = *report;
    p->report->streamed = all;
    return BERTH_OK;
}

// Whether constants of the place can be streamed: somebody asked for less than there is, one device
// works there, and has them in its own memory.
static bool may_stream(const berth_packager *p, uint32_t place) {
    uint32_t memory = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
    return berth_bits_is_single(berth_packager__workers(p, place)) &&
           memory == berth_packager__memory(p, place, BERTH_POOL_CONSTANT) &&
           p->target->memories[memory].budget_bytes != p->target->memories[memory].capacity_bytes;
}

static double copy_ns(const void *user, uint64_t size_bytes) {
    return load_ns(user, size_bytes);
}

// Moves a value out of the way of the problem's peak. Only out of memories of their own: what a cpu
// has beside its memory are files.
static bool spill_at_peak(streamer *s, uint64_t budget) {
    berth_packager *p = s->p;
    uint64_t fixed = fixed_bytes(s), bytes = 0;
    if (s->place == berth_packager__place(p, p->target->host, NULL) || fixed >= budget)
        return false;
    berth_spill_request request = {.place = s->place,
                                   .device = s->device,
                                   .room_bytes = budget - fixed,
                                   .needed = berth_stream_needed(&s->problem),
                                   .step_ns = s->problem.step_ns,
                                   .copy_ns = copy_ns,
                                   .user = s};
    for (uint32_t i = 1; i < s->problem.step_count; ++i)
        if (request.needed[i] > request.needed[request.peak_step]) request.peak_step = i;
    if (!berth_packager__spill_value(p, &request, &bytes)) return false;
    s->spilled_count++;
    s->spilled_bytes += bytes;
    s->spilled_ns += 2 * load_ns(s, bytes);
    return true;
}

// One plan of a place, and whether a value was moved for another one.
static berth_status try_place(streamer *s, uint64_t budget, bool may_spill, bool *out_again) {
    berth_packager *p = s->p;
    uint64_t bytes = 0;
    kept_state kept = keep_state(p);
    *out_again = false;
    BERTH_TRY(stream_place(s, budget, &bytes));
    if (bytes <= budget || !may_spill) return BERTH_OK;
    kept_state least = keep_state(p);
    restore_state(p, &kept);
    *out_again = spill_at_peak(s, budget);
    if (*out_again)
        p->report->streamed_count--;
    else
        restore_state(p, &least);
    return BERTH_OK;
}

// Streams constants; where that is not enough, values wait elsewhere, one after another.
static berth_status fit_place(berth_packager *p, uint32_t place, uint64_t budget) {
    enum { most_spilled = 64 };
    streamer s = {0};
    bool again = true;
    for (int spilled = 0; again; ++spilled) {
        s = (streamer){.p = p,
                       .arena = berth_arena_create_child(p->arena),
                       .place = place,
                       .device = berth_bits_first(berth_packager__workers(p, place)),
                       .memory = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE),
                       .spilled_count = s.spilled_count,
                       .spilled_bytes = s.spilled_bytes,
                       .spilled_ns = s.spilled_ns};
        make_problem(&s);
        berth_status status = try_place(&s, budget, spilled < most_spilled, &again);
        berth_arena_destroy(s.arena);
        BERTH_TRY(status);
    }
    return BERTH_OK;
}

berth_status berth_packager__stream_constants(berth_packager *p) {
    for (uint32_t place = 0; place < berth_packager__place_count(p); ++place) {
        uint64_t bytes = 0;
        if (!may_stream(p, place)) continue;
        uint32_t memory = berth_packager__memory(p, place, BERTH_POOL_WORKSPACE);
        uint64_t budget = p->target->memories[memory].budget_bytes;
        BERTH_TRY(berth_packager__measure_place(p, place, &bytes));
        if (bytes > budget) BERTH_TRY(fit_place(p, place, budget));
    }
    p->pools.count = p->pool_place.count = p->report->pool_count = 0;
    p->pipeline->over_bytes = 0;
    return berth_packager__plan_memory(p);
}

void berth_packager__add_streaming_time(const berth_packager *p, berth_program *program) {
    double added_ns = 0;
    for (uint32_t i = 0; i < p->report->streamed_count; ++i)
        added_ns += p->report->streamed[i].run_ns - p->report->streamed[i].whole_ns;
    program->predicted_ns += added_ns;
    if (p->pipeline->plan) p->pipeline->plan->predicted_ns += added_ns;
}
