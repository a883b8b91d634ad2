// Plans in which constants are read again in every run, as steps of the program.
#include "compiler/package/stream.h"

#include <string.h>

#include "compiler/package/fit_budget.h"

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
static void move_to_store(berth_streamer *s, uint32_t storage) {
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

static stay make_stay(berth_streamer *s, const berth_stream_load *load) {
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
static void bind_stay(berth_streamer *s, const berth_stream_load *load, const stay *made) {
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

static void add_load_step(berth_streamer *s, const stay *made, const char *name) {
    berth_packager *p = s->p;
    bool apart = p->target->executor != BERTH_EXECUTOR_AOT;
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
        ((berth_step_facts){.written = writes_second, .unit = BERTH_NO_INDEX, .apart = apart}));
}

static berth_memory_streamed *count_streamed(const berth_streamer *s) {
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
    out->spilled_count = s->moves.spilled_count;
    out->spilled_bytes = s->moves.spilled_bytes;
    out->recomputed_count = s->moves.recomputed_count;
    out->recomputed_bytes = s->moves.recomputed_bytes;
    out->recomputed_steps = s->moves.recomputed_steps;
    out->recompute_ns = s->moves.recompute_ns;
    for (uint32_t i = 0; i < s->problem.step_count; ++i) out->whole_ns += s->problem.step_ns[i];
    out->whole_ns -= s->moves.spilled_ns + s->moves.recompute_ns;
    return out;
}

static bool is_resident(const berth_streamer *s, uint32_t load) {
    return s->weights.data[s->loads.data[load].weight].resident;
}

// Workspace for each load, and the steps that read it bound to that. [load]; unset where its constant
// is resident.
static stay *make_stays(berth_streamer *s, berth_memory_streamed *report) {
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
static void weave_steps(berth_streamer *s, const stay *stays, const berth_memory_streamed *report,
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
static void insert_loads(berth_streamer *s, berth_memory_streamed *report) {
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
static berth_status try_plan(berth_streamer *s, double ns, berth_memory_streamed **out_report,
                             uint64_t *out_bytes) {
    *out_report = count_streamed(s);
    (*out_report)->run_ns = ns;
    insert_loads(s, *out_report);
    return berth_packager__measure_place(s->p, s->place, out_bytes);
}

void berth_streamer__read_others(berth_streamer *s, berth_memory_streamed *out_report) {
    for (uint32_t k = 0; k < s->loads.count; ++k) s->loads.data[k].start = s->loads.data[k].first;
    berth_memory_streamed *report = count_streamed(s);
    insert_loads(s, report);
    *out_report = *report;
}

// Gaps between values take some of the room; then a plan with so much less is tried.
berth_status berth_streamer__place(berth_streamer *s, uint64_t budget, uint64_t *out_bytes,
                                   berth_memory_streamed *out_report) {
    enum { most_attempts = 6 };
    berth_packager *p = s->p;
    berth_kept_state kept;
    berth_packager__keep_state(p, &kept);
    berth_memory_streamed *report = NULL;
    uint64_t bytes = UINT64_MAX, fixed = berth_streamer__fixed_bytes(s), taken = 0;
    for (int i = 0; i < most_attempts && bytes > budget; ++i) {
        double ns = 0;
        if (fixed + taken >= budget) break;
        s->problem.room_bytes = budget - fixed - taken;
        if (!berth_stream_choose(&s->problem, &ns)) break;
        if (bytes != UINT64_MAX) berth_packager__restore_state(p, &kept);
        BERTH_TRY(try_plan(s, ns, &report, &bytes));
        if (bytes > budget) taken += bytes - budget;
    }
    if (bytes > budget) {
        if (bytes != UINT64_MAX) berth_packager__restore_state(p, &kept);
        s->problem.room_bytes = UINT64_MAX;
        double ns = berth_stream_choose_least(&s->problem);
        BERTH_TRY(try_plan(s, ns, &report, &bytes));
    }
    *out_bytes = bytes;
    *out_report = *report;
    return BERTH_OK;
}

void berth_packager__add_streaming_time(const berth_packager *p, berth_program *program) {
    double added_ns = 0;
    for (uint32_t i = 0; i < p->report->streamed_count; ++i)
        added_ns += p->report->streamed[i].run_ns - p->report->streamed[i].whole_ns;
    program->predicted_ns += added_ns;
    if (p->pipeline->plan) p->pipeline->plan->predicted_ns += added_ns;
}
