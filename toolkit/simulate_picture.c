// The picture of a simulation: what each device and link does against time, and what memories hold.
#include <string.h>

#include "base/timeline.h"
#include "toolkit/memory_rows.h"
#include "toolkit/operator_colours.h"
#include "toolkit/simulate.h"

enum { most_link_rows = 12 };

typedef struct picture {
    const berth_simulation *s;
    const berth_program *program;
    const berth_multi_target *target;
    berth_arena *arena;
    berth_operator_colours colours;  // by the first request
    BERTH_VEC(berth_timeline_row) rows;
    uint32_t *row_of;  // per resource
    berth_timeline_span *spans;
    berth_memory_rows memories;
    BERTH_VEC(berth_timeline_key) keys;
} picture;

// ---- colours ------------------------------------------------------------------------------------

static void rank_operators(picture *p) {
    for (uint32_t i = 0; i < p->program->step_count; ++i) {
        const berth_program_step *step = &p->program->steps[i];
        if (step->kind != BERTH_STEP_COPY)
            berth_operator_colours_add(&p->colours, p->arena, step->op, p->s->tasks[i].ns);
    }
    berth_operator_colours_rank(&p->colours);
}

// Of one request by operator; of several by request.
static const char *colour_of(const picture *p, const berth_sim_event *event) {
    const berth_program_step *step = &p->program->steps[event->task];
    if (p->s->load.requests > 1) return berth_colour_at(event->request);
    if (step->kind == BERTH_STEP_COPY) return BERTH_COPY_COLOUR;
    return berth_operator_colours_of(&p->colours, step->op);
}

static void make_keys(picture *p) {
    bool copies = false;
    for (uint32_t i = 0; i < p->program->step_count; ++i)
        copies |= p->program->steps[i].kind == BERTH_STEP_COPY;
    berth_timeline_key keys[BERTH_OPERATOR_KEYS];
    uint32_t count = berth_operator_colours_keys(&p->colours, copies, keys);
    for (uint32_t i = 0; p->s->load.requests == 1 && i < count; ++i)
        berth_vec_push(p->arena, &p->keys, keys[i]);
    for (uint32_t i = 0; p->memories.rows.count && i < BERTH_MEMORY_ROW_KEYS; ++i)
        berth_vec_push(p->arena, &p->keys, berth_memory_row_keys[i]);
}

// ---- rows ---------------------------------------------------------------------------------------

static bool is_link(const picture *p, uint32_t resource) {
    return resource >= p->target->device_count;
}

static const char *busy_note(const picture *p, double busy_ns, const char *more) {
    double end_ns = p->s->result.end_ns;
    return berth_arena_printf(p->arena, "%.4g ms (%.0f %%)%s", busy_ns / 1e6,
                              end_ns > 0 ? 100 * busy_ns / end_ns : 0, more);
}

static uint32_t add_row(picture *p, const char *name, const char *note) {
    berth_vec_push(p->arena, &p->rows, (berth_timeline_row){.name = name, .note = note});
    return p->rows.count - 1;
}

// Whether fewer links than there are rows for are busier.
static bool has_own_row(const picture *p, uint32_t resource) {
    const double *busy_ns = p->s->result.busy_ns;
    uint32_t busier = 0;
    for (uint32_t r = p->target->device_count; r < p->s->resource_count; ++r)
        busier +=
            busy_ns[r] > busy_ns[resource] || (busy_ns[r] == busy_ns[resource] && r < resource);
    return busier < most_link_rows;
}

// Devices, then the busiest links, and all others together.
static void make_rows(picture *p) {
    const berth_simulation *s = p->s;
    uint32_t others = 0;
    double others_ns = 0;
    p->row_of = berth_arena_new_array(p->arena, uint32_t, s->resource_count + 1);
    for (uint32_t r = 0; r < s->resource_count; ++r) {
        p->row_of[r] = BERTH_NO_INDEX;
        if (s->result.busy_ns[r] <= 0) continue;
        if (!is_link(p, r) || has_own_row(p, r)) {
            p->row_of[r] = add_row(p, s->resources[r], busy_note(p, s->result.busy_ns[r], ""));
        } else {
            others++;
            others_ns += s->result.busy_ns[r];
        }
    }
    if (!others) return;
    uint32_t row = add_row(p, berth_arena_printf(p->arena, "%u other links", others),
                           busy_note(p, others_ns, " in sum"));
    for (uint32_t r = 0; r < s->resource_count; ++r)
        if (s->result.busy_ns[r] > 0 && p->row_of[r] == BERTH_NO_INDEX) p->row_of[r] = row;
}

static void make_spans(picture *p) {
    const berth_simulation *s = p->s;
    p->spans = berth_arena_new_array(p->arena, berth_timeline_span, s->result.event_count + 1);
    for (uint32_t i = 0; i < s->result.event_count; ++i) {
        const berth_sim_event *event = &s->result.events[i];
        const berth_program_step *step = &p->program->steps[event->task];
        if (event->end_ns <= event->start_ns) continue;
        const char *colour = colour_of(p, event);
        p->spans[i] = (berth_timeline_span){
            .start = event->start_ns / 1e6,
            .end = event->end_ns / 1e6,
            .row = p->row_of[s->tasks[event->task].resource],
            .group = (unsigned char)colour[1] * 256u + (unsigned char)colour[2],
            .colour = colour,
            .name = berth_arena_printf(p->arena, "%s (%s)", step->name, step->op),
            .note = s->load.requests > 1
                        ? berth_arena_printf(p->arena, "request %u", event->request)
                        : NULL,
            .label = step->name};
    }
}

// ---- memories -----------------------------------------------------------------------------------

static void make_curves(picture *p) {
    berth_memory_rows_make(p->arena, p->target, p->s->memories, p->rows.count, &p->memories);
    for (uint32_t i = 0; i < p->memories.rows.count; ++i)
        berth_vec_push(p->arena, &p->rows, p->memories.rows.data[i]);
}

// ---- the whole ----------------------------------------------------------------------------------

static const char *title_of(const picture *p) {
    const berth_simulation *s = p->s;
    const char *slash = strrchr(p->program->name, '/');
    const char *name = slash ? slash + 1 : p->program->name;
    const char *on =
        *p->target->name ? berth_arena_printf(p->arena, " on %s", p->target->name) : "";
    if (s->load.requests == 1)
        return berth_arena_printf(p->arena, "%s%s: one request, %.4g ms", name, on,
                                  s->result.end_ns / 1e6);
    return berth_arena_printf(p->arena, "%s%s: %u requests in %.4g ms, %.4g per second", name, on,
                              s->load.requests, s->result.end_ns / 1e6,
                              s->result.end_ns > 0 ? s->load.requests / s->result.end_ns * 1e9 : 0);
}

void berth_simulation_draw(const berth_simulation *simulation, berth_strbuf *out) {
    picture p = {.s = simulation,
                 .program = berth_model_program(simulation->model),
                 .target = berth_model_target(simulation->model)};
    p.arena = berth_arena_create_child(out->arena);
    rank_operators(&p);
    make_rows(&p);
    make_spans(&p);
    bool empty = p.rows.count == 0;
    make_curves(&p);
    make_keys(&p);
    static const char *const notes[] = {BERTH_MEMORY_ROW_NOTE};
    berth_timeline timeline = {.title = title_of(&p),
                               .unit = "ms",
                               .moments = true,
                               .rows = p.rows.data,
                               .row_count = p.rows.count,
                               .spans = p.spans,
                               .span_count = empty ? 0 : simulation->result.event_count,
                               .curves = p.memories.curves.data,
                               .curve_count = p.memories.curves.count,
                               .notes = notes,
                               .note_count = p.memories.rows.count ? 1 : 0,
                               .keys = p.keys.data,
                               .key_count = p.keys.count};
    berth_timeline_draw(&timeline, out);
    berth_arena_destroy(p.arena);
}
