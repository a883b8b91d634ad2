#include "toolkit/memory_rows.h"

#include <math.h>
#include <string.h>

static const char memory_colour[] = "#a7c7a3";
const berth_timeline_key berth_memory_row_keys[BERTH_MEMORY_ROW_KEYS] = {
    {memory_colour, "intermediate values"}, {"#b3261e", "their peak"}};

static const char *note_of(berth_arena *arena, const berth_target_memory *memory,
                           const berth_simulated_memory *curve) {
    char peak[32], fixed[32], capacity[32];
    berth_format_bytes_f64(curve->peak_bytes, peak);
    berth_format_bytes_f64(curve->fixed_bytes, fixed);
    berth_format_bytes(memory->capacity_bytes, capacity);
    return berth_arena_printf(arena, "peak %s + %s fixed%s%s", peak, fixed,
                              memory->capacity_bytes ? ", of " : "",
                              memory->capacity_bytes ? capacity : "");
}

void berth_memory_rows_make(berth_arena *arena, const berth_multi_target *target,
                            const berth_simulated_memory *memories, uint32_t first_row,
                            berth_memory_rows *out) {
    *out = (berth_memory_rows){0};
    for (uint32_t m = 0; memories && m < target->memory_count; ++m) {
        const berth_simulated_memory *memory = &memories[m];
        if (!memory->count) continue;
        double *times = berth_arena_new_array(arena, double, memory->count);
        for (uint32_t i = 0; i < memory->count; ++i) times[i] = memory->time_ns[i] / 1e6;
        const char *note = note_of(arena, &target->memories[m], memory);
        const char *name = berth_arena_printf(arena, "memory %s", target->memories[m].name);
        berth_vec_push(arena, &out->curves,
                       (berth_timeline_curve){.row = first_row + out->rows.count,
                                              .times = times,
                                              .values = memory->bytes,
                                              .count = memory->count,
                                              .colour = memory_colour,
                                              .name = note});
        berth_vec_push(arena, &out->rows, (berth_timeline_row){.name = name, .note = note});
    }
}

// ---- times of a program's steps in the plan -----------------------------------------------------

typedef struct span {
    double start_ns, end_ns;
    bool known;
} span;

typedef struct timer {
    const berth_program *program;
    const berth_plan *plan;
    berth_interner *names;
    BERTH_VEC(span) operations;    // per name on a device: from the first's start to the last's end
    BERTH_VEC(uint32_t) transfer;  // per name of a value on its way: its first transfer + 1
    uint32_t *next_transfer;       // of the same name, + 1
    berth_sim_event *events;
    double *ready_ns;  // per queue
} timer;

static uint32_t *transfer_of(timer *t, berth_arena *arena, const char *name, size_t length) {
    uint32_t id = berth_intern(t->names, berth_arena_strndup(arena, name, length));
    while (t->transfer.count <= id) berth_vec_push(arena, &t->transfer, 0);
    return &t->transfer.data[id];
}

// All operations of a name on a device: an operator in parts has many.
static span *operations_of(timer *t, berth_arena *arena, uint32_t device, const char *name,
                           size_t length) {
    const char *text = berth_arena_printf(arena, "%u %.*s", device, (int)length, name);
    uint32_t id = berth_intern(t->names, text);
    while (t->operations.count <= id)
        berth_vec_push(arena, &t->operations, (span){.start_ns = INFINITY});
    return &t->operations.data[id];
}

static void list_names(timer *t, berth_arena *arena) {
    const berth_plan *plan = t->plan;
    t->next_transfer = berth_arena_new_array(arena, uint32_t, plan->transfer_count + 1);
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        const berth_plan_entry *entry = &plan->entries[i];
        const char *node = t->program->placements[i].node;
        span *all = operations_of(t, arena, entry->device, node, strlen(node));
        *all = (span){.start_ns = fmin(all->start_ns, entry->start_ns),
                      .end_ns = fmax(all->end_ns, entry->start_ns + entry->time_ns),
                      .known = true};
    }
    for (uint32_t i = plan->transfer_count; i-- > 0;) {
        const char *value = plan->transfers[i].value;
        uint32_t *first = transfer_of(t, arena, value, strlen(value));
        t->next_transfer[i] = *first;
        *first = i + 1;
    }
}

static void include(berth_sim_event *event, double start_ns, double end_ns) {
    event->start_ns = fmin(event->start_ns, start_ns);
    event->end_ns = fmax(event->end_ns, end_ns);
}

static bool include_operations(timer *t, berth_arena *arena, uint32_t device, const char *name,
                               size_t length, berth_sim_event *event) {
    const span all = *operations_of(t, arena, device, name, length);
    if (all.known) include(event, all.start_ns, all.end_ns);
    return all.known;
}

// A kernel computes the operations whose names its own joins by "+". Names of nodes may have a "+"
// themselves.
static void time_kernel(timer *t, berth_arena *arena, const berth_program_step *step,
                        berth_sim_event *event) {
    const char *name = step->name;
    if (include_operations(t, arena, step->device, name, strlen(name), event)) return;
    for (size_t length = 0; name; name = name[length] ? name + length + 1 : NULL) {
        length = strcspn(name, "+");
        (void)include_operations(t, arena, step->device, name, length, event);
    }
}

static uint32_t pool_device(const timer *t, uint32_t tensor) {
    return t->program->pools[t->program->tensors[tensor].pool].device;
}

// "VALUE FROM>TO"
static void time_copy(timer *t, berth_arena *arena, const berth_program_step *step,
                      berth_sim_event *event) {
    const char *space = strrchr(step->name, ' ');
    size_t length = space ? (size_t)(space - step->name) : strlen(step->name);
    uint32_t from = pool_device(t, step->bindings[0]), to = pool_device(t, step->bindings[1]);
    for (uint32_t at = *transfer_of(t, arena, step->name, length); at;
         at = t->next_transfer[at - 1]) {
        const berth_plan_transfer *transfer = &t->plan->transfers[at - 1];
        if (transfer->device == (transfer->to_host ? from : to))
            include(event, transfer->start_ns, transfer->start_ns + transfer->time_ns);
    }
}

// In the order of the program: a step without a time of its own (a relayout, say) is where it can be at
// the earliest, and no step is before what it waits for has begun.
static void time_step(timer *t, berth_arena *scratch, uint32_t index) {
    const berth_program_step *step = &t->program->steps[index];
    berth_sim_event *event = &t->events[index];
    *event = (berth_sim_event){.task = index, .start_ns = INFINITY, .end_ns = 0};
    if (step->kind == BERTH_STEP_COPY)
        time_copy(t, scratch, step, event);
    else
        time_kernel(t, scratch, step, event);
    double earliest_ns = t->ready_ns[step->queue];
    for (uint32_t i = 0; i < step->wait_count; ++i)
        earliest_ns = fmax(earliest_ns, t->events[step->waits[i]].start_ns);
    bool known = event->start_ns < INFINITY;
    event->start_ns = known ? fmax(event->start_ns, earliest_ns) : earliest_ns;
    event->end_ns = fmax(event->end_ns, event->start_ns);
    t->ready_ns[step->queue] = known ? event->start_ns : event->end_ns;
}

const berth_simulated_memory *berth_plan_memories(berth_arena *arena, const berth_model *model) {
    timer t = {.program = berth_model_program(model), .plan = berth_model_plan(model)};
    if (t.plan->entry_count != t.program->placement_count) return NULL;
    berth_arena *scratch = berth_arena_create_child(arena);
    t.names = berth_interner_create(scratch);
    t.events = berth_arena_new_array(scratch, berth_sim_event, t.program->step_count + 1);
    t.ready_ns = berth_arena_new_array(scratch, double, t.program->queue_count + 1);
    list_names(&t, scratch);
    for (uint32_t i = 0; i < t.program->step_count; ++i) time_step(&t, scratch, i);
    berth_simulation simulation = {
        .model = model,
        .load = {.requests = 1, .streams = 1},
        .result = {.events = t.events, .event_count = t.program->step_count}};
    berth_simulation__follow_memory(arena, &simulation);
    berth_arena_destroy(scratch);
    return simulation.memories;
}
