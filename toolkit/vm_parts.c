#include "toolkit/vm_parts.h"

#include <string.h>

// Shapes of a segment that are compared with those before them: the first ones may differ in all (a
// prompt, then one token).
enum { most_looks = 6 };

typedef struct divided {
    berth_tensor *seen;  // inputs of the last look; data only of those that are known
    uint32_t looks;
    berth_vm_split split;
    uint32_t *part_of;                   // per step: its number
    uint32_t most_inputs, most_outputs;  // of a step
} divided;

typedef struct numbered_part {
    berth_vm_segment segment;
    berth_hash128 key;
    const char *name;
} numbered_part;

struct berth_vm_parts {
    berth_arena *arena;
    berth_module *module;
    const berth_vm_code *code;
    divided *segments;  // per segment of the code
    BERTH_VEC(numbered_part) parts;
};

berth_vm_parts *berth_vm_parts_create(berth_arena *arena, berth_module *module,
                                      const berth_vm_code *code) {
    berth_vm_parts *made = berth_arena_new(arena, berth_vm_parts);
    made->arena = arena;
    made->module = module;
    made->code = code;
    made->segments = berth_arena_new_array(arena, divided, code->program->segment_count + 1);
    return made;
}

const berth_vm_segment *berth_vm_parts_segment(const berth_vm_parts *parts, uint32_t index) {
    uint32_t count = parts->code->program->segment_count;
    return index < count ? &parts->code->segments[index]
                         : &parts->parts.data[index - count].segment;
}

const char *berth_vm_parts_name(const berth_vm_parts *parts, uint32_t index) {
    uint32_t count = parts->code->program->segment_count;
    return index < count ? parts->code->program->segments[index].name
                         : parts->parts.data[index - count].name;
}

bool berth_vm_parts_is_divided(const berth_vm_parts *parts, uint32_t index) {
    return index < parts->code->program->segment_count &&
           parts->segments[index].split.step_count > 0;
}

// ---- dividing -----------------------------------------------------------------------------------

static uint32_t number_of(berth_vm_parts *parts, uint32_t index, const berth_vm_split_step *step) {
    uint32_t count = parts->code->program->segment_count;
    for (uint32_t i = 0; i < parts->parts.count; ++i)
        if (berth_hash128_equal(parts->parts.data[i].key, step->key)) return count + i;
    const char *whole = parts->code->program->segments[index].name;
    numbered_part made = {.segment = step->segment, .key = step->key};
    made.name = berth_arena_printf(parts->arena, "%s, part %u", whole, parts->parts.count + 1);
    berth_vec_push(parts->arena, &parts->parts, made);
    return count + parts->parts.count - 1;
}

typedef struct look_job {
    berth_vm_parts *parts;
    uint32_t index;
    const berth_tensor *inputs;
} look_job;

static berth_status number_steps(void *user) {
    const look_job *job = user;
    berth_vm_parts *parts = job->parts;
    divided *d = &parts->segments[job->index];
    d->part_of = berth_arena_new_array(parts->arena, uint32_t, d->split.step_count);
    for (uint32_t i = 0; i < d->split.step_count; ++i) {
        const berth_vm_segment *part = &d->split.steps[i].segment;
        d->part_of[i] = number_of(parts, job->index, &d->split.steps[i]);
        if (part->input_count > d->most_inputs) d->most_inputs = part->input_count;
        if (part->output_count > d->most_outputs) d->most_outputs = part->output_count;
    }
    return BERTH_OK;
}

static berth_status keep_inputs(void *user) {
    const look_job *job = user;
    berth_arena *arena = job->parts->arena;
    const berth_vm_segment *segment = &job->parts->code->segments[job->index];
    berth_tensor *seen = berth_arena_new_array(arena, berth_tensor, segment->input_count + 1);
    for (uint32_t i = 0; i < segment->input_count; ++i) {
        seen[i] = job->inputs[i];
        size_t size = segment->known[i] ? berth_tensor_size_bytes(&seen[i]) : 0;
        seen[i].data = size ? berth_arena_copy(arena, job->inputs[i].data, size) : NULL;
    }
    job->parts->segments[job->index].seen = seen;
    return BERTH_OK;
}

berth_status berth_vm_parts_look(berth_vm_parts *parts, uint32_t index,
                                 const berth_tensor *inputs) {
    if (index >= parts->code->program->segment_count) return BERTH_OK;  // a part
    divided *d = &parts->segments[index];
    if (d->split.step_count || d->looks++ >= most_looks) return BERTH_OK;
    look_job job = {parts, index, inputs};
    if (d->seen)
        BERTH_TRY(berth_vm_segment_split(parts->module, &parts->code->segments[index], d->seen,
                                         inputs, parts->arena, &d->split));
    bool divides = d->split.step_count > 0;
    berth_status status = berth_arena_try(parts->arena, divides ? number_steps : keep_inputs, &job);
    if (status) d->split = (berth_vm_split){0};  // as before the look
    return status;
}

// ---- running ------------------------------------------------------------------------------------

// Values by slot; those of the segment's inputs stay NULL, the caller has them.
typedef struct run {
    const divided *segment;
    const berth_tensor *inputs;
    uint32_t input_count;
    berth_vm_run_part run_part;
    void *user;
    berth_vm_value **values;  // per slot
    berth_tensor *tensors;    // inputs of a step
    berth_vm_value **made;    // outputs of a step
} run;

static berth_status run_step(run *r, uint32_t index) {
    const berth_vm_split_step *step = &r->segment->split.steps[index];
    for (uint32_t i = 0; i < step->segment.input_count; ++i) {
        uint32_t slot = step->inputs[i];
        r->tensors[i] = slot < r->input_count ? r->inputs[slot] : r->values[slot]->tensor;
    }
    BERTH_TRY(r->run_part(r->user, r->segment->part_of[index], r->tensors, r->made));
    for (uint32_t i = 0; i < step->segment.output_count; ++i)
        r->values[step->outputs[i]] = r->made[i];
    for (uint32_t i = 0; i < step->last_count; ++i) {
        berth_vm_value_release(r->values[step->last[i]]);
        r->values[step->last[i]] = NULL;
    }
    return BERTH_OK;
}

static berth_status run_steps(run *r, uint32_t output_count, berth_vm_value **outputs) {
    const berth_vm_split *split = &r->segment->split;
    berth_status status = BERTH_OK;
    for (uint32_t i = 0; i < split->step_count && !status; ++i) status = run_step(r, i);
    for (uint32_t i = 0; i < output_count && !status; ++i)
        outputs[i] = berth_vm_value_retain(r->values[split->outputs[i]]);
    for (uint32_t i = 0; i < split->slot_count; ++i) berth_vm_value_release(r->values[i]);
    return status;
}

berth_status berth_vm_parts_run(const berth_vm_parts *parts, uint32_t index,
                                const berth_tensor *inputs, berth_vm_run_part run_part, void *user,
                                berth_vm_value **outputs) {
    const divided *d = &parts->segments[index];
    const berth_vm_segment *segment = &parts->code->segments[index];
    berth_allocator allocator = berth_allocator_system();
    size_t pointers = (size_t)d->split.slot_count + d->most_outputs;
    size_t size =
        pointers * sizeof(berth_vm_value *) + (d->most_inputs + (size_t)1) * sizeof(berth_tensor);
    char *room = berth_calloc(allocator, size, 1);
    if (!room) return berth_status_oom();
    run r = {.segment = d,
             .inputs = inputs,
             .input_count = segment->input_count,
             .run_part = run_part,
             .user = user,
             .tensors = (berth_tensor *)(void *)room};
    r.values = (berth_vm_value **)(void *)(r.tensors + d->most_inputs + 1);
    r.made = r.values + d->split.slot_count;
    berth_status status = run_steps(&r, segment->output_count, outputs);
    berth_free(allocator, room, size);
    return status;
}
