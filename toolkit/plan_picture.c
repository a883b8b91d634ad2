#include "toolkit/plan_picture.h"

#include <math.h>
#include <string.h>

#include "base/timeline.h"
#include "toolkit/memory_rows.h"
#include "toolkit/operator_colours.h"

// XML, for labels in HTML form and quoted attributes; Graphviz reads escapes after a backslash.
static void add_escaped(berth_strbuf *out, const char *text) {
    for (const char *slash; (slash = strchr(text, '\\')); text = slash + 1) {
        berth_strbuf_add_xml(out, berth_arena_strndup(out->arena, text, (size_t)(slash - text)), 0);
        berth_strbuf_add(out, "&#92;");
    }
    berth_strbuf_add_xml(out, text, 0);
}

// ---- dot ----------------------------------------------------------------------------------------

// The last step that wrote each tensor makes the edge to a step that reads it.
void berth_plan_picture_dot(const berth_model *model, berth_strbuf *out) {
    const berth_program *program = berth_model_program(model);
    uint32_t *writer = berth_arena_new_array(out->arena, uint32_t, program->tensor_count);
    for (uint32_t i = 0; i < program->tensor_count; ++i) writer[i] = BERTH_NO_INDEX;
    berth_strbuf_add(
        out, "digraph plan {\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n");
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        bool copy = step->kind == BERTH_STEP_COPY;
        uint32_t bindings = copy ? 2 : program->kernels[step->kernel].binding_count;
        berth_strbuf_addf(out, "  s%u [label=<", i);
        add_escaped(out, step->op);
        berth_strbuf_add(out, "<br/>");
        add_escaped(out, step->name);
        berth_strbuf_addf(out, ">, fillcolor=\"%s\", tooltip=\"",
                          copy ? "#dddddd" : berth_colour_at(step->device));
        add_escaped(out, program->devices[step->device].name);
        berth_strbuf_add(out, "\"];\n");
        for (uint32_t j = 0; j + 1 < bindings; ++j) {
            uint32_t from = writer[step->bindings[j]];
            if (from != BERTH_NO_INDEX && from != i)
                berth_strbuf_addf(out, "  s%u -> s%u;\n", from, i);
        }
        if (bindings) writer[step->bindings[bindings - 1]] = i;
    }
    berth_strbuf_add(out, "}\n");
}

// ---- svg ----------------------------------------------------------------------------------------

typedef struct picture {
    const berth_model *model;
    const berth_program *program;
    const berth_plan *plan;
    berth_arena *arena;
    berth_operator_colours colours;
    berth_timeline_row *rows;
    uint32_t row_count;
    uint32_t *compute_row;  // per device, BERTH_NO_INDEX = none
    uint32_t *link_row;
    BERTH_VEC(berth_timeline_span) spans;
    berth_memory_rows memories;
} picture;

static void rank_operators(picture *p) {
    for (uint32_t i = 0; i < p->plan->entry_count; ++i)
        berth_operator_colours_add(&p->colours, p->arena, p->program->placements[i].op,
                                   p->plan->entries[i].time_ns);
    berth_operator_colours_rank(&p->colours);
}

typedef struct load {
    double time_ns;
    uint32_t count;
} load;

static uint32_t add_row(picture *p, const char *name, load busy, const char *one,
                        const char *several) {
    double share = p->plan->predicted_ns > 0 ? busy.time_ns / p->plan->predicted_ns : 0;
    berth_timeline_row row = {.name = name, .unused = busy.count == 0};
    row.note = row.unused
                   ? "unused"
                   : berth_arena_printf(p->arena, "%.4g ms (%.0f %%), %u %s", busy.time_ns / 1e6,
                                        share * 100, busy.count, busy.count == 1 ? one : several);
    p->rows[p->row_count] = row;
    return p->row_count++;
}

// A row for what each device computes, and one below it for its link where it is used. Hosts that
// only drive have no row of their own unless something runs there.
static void make_rows(picture *p) {
    uint32_t count = p->program->device_count;
    load *compute = berth_arena_new_array(p->arena, load, count);
    load *link = berth_arena_new_array(p->arena, load, count);
    for (uint32_t i = 0; i < p->plan->entry_count; ++i) {
        compute[p->plan->entries[i].device].time_ns += p->plan->entries[i].time_ns;
        compute[p->plan->entries[i].device].count++;
    }
    for (uint32_t i = 0; i < p->plan->transfer_count; ++i) {
        link[p->plan->transfers[i].device].time_ns += p->plan->transfers[i].time_ns;
        link[p->plan->transfers[i].device].count++;
    }
    uint32_t memory_count = berth_model_target(p->model)->memory_count;
    p->rows = berth_arena_new_array(p->arena, berth_timeline_row, 2 * (size_t)count + memory_count);
    p->compute_row = berth_arena_new_array(p->arena, uint32_t, count);
    p->link_row = berth_arena_new_array(p->arena, uint32_t, count);
    for (uint32_t d = 0; d < count; ++d) {
        const berth_program_device *device = &p->program->devices[d];
        p->compute_row[d] = p->link_row[d] = BERTH_NO_INDEX;
        if (!device->host_only || compute[d].count)
            p->compute_row[d] = add_row(p, device->name, compute[d], "operation", "operations");
        if (link[d].count)
            p->link_row[d] = add_row(p, berth_arena_printf(p->arena, "%s copies", device->name),
                                     link[d], "copy", "copies");
    }
}

// Operations of a device follow each other; sums of rounded times must not make them overlap.
static const double rounding = 1 - 1e-9;

static void add_operations(picture *p) {
    for (uint32_t i = 0; i < p->plan->entry_count; ++i) {
        const berth_plan_entry *entry = &p->plan->entries[i];
        const berth_program_placement *placement = &p->program->placements[i];
        const char *colour = berth_operator_colours_of(&p->colours, placement->op);
        berth_timeline_span span = {
            .start = entry->start_ns / 1e6,
            .end = (entry->start_ns + entry->time_ns * rounding) / 1e6,
            .row = p->compute_row[entry->device],
            .group = (unsigned char)colour[1] * 256u + (unsigned char)colour[2],
            .colour = colour,
            .name = berth_arena_printf(p->arena, "%s (%s)", placement->node, placement->op),
            .note = entry->reason,
            .label = placement->node};
        berth_vec_push(p->arena, &p->spans, span);
    }
}

static void add_transfers(picture *p) {
    for (uint32_t i = 0; i < p->plan->transfer_count; ++i) {
        const berth_plan_transfer *transfer = &p->plan->transfers[i];
        const char *device = p->program->devices[transfer->device].name;
        berth_timeline_span span = {
            .start = transfer->start_ns / 1e6,
            .end = (transfer->start_ns + transfer->time_ns * rounding) / 1e6,
            .row = p->link_row[transfer->device],
            .colour = BERTH_COPY_COLOUR,
            .name = berth_arena_printf(p->arena, "copy of %s %s %s", transfer->value,
                                       transfer->to_host ? "from" : "to", device)};
        berth_vec_push(p->arena, &p->spans, span);
    }
}

static void add_memories(picture *p) {
    berth_memory_rows_make(p->arena, berth_model_target(p->model),
                           berth_plan_memories(p->arena, p->model), p->row_count, &p->memories);
    for (uint32_t i = 0; i < p->memories.rows.count; ++i)
        p->rows[p->row_count++] = p->memories.rows.data[i];
}

// Those of the plan, and what the memories' rows show.
static const char *const *notes_of(const picture *p, uint32_t *out_count) {
    uint32_t count = p->plan->note_count;
    const char **notes = berth_arena_new_array(p->arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; ++i) notes[i] = p->plan->notes[i];
    if (p->memories.rows.count)
        notes[count++] = BERTH_MEMORY_ROW_NOTE "; each kernel is at the time of its operations";
    *out_count = count;
    return notes;
}

// The end of the schedule and, where latency is the objective, its bound.
static uint32_t make_lines(const berth_plan *plan, berth_timeline_line lines[2]) {
    uint32_t count = 0;
    bool latency = plan->valued && strcmp(plan->objective, "latency") == 0;
    bool apart = latency && plan->value - plan->lower_bound > 0.001 * plan->value;
    if (apart && plan->lower_bound > 0)
        lines[count++] =
            (berth_timeline_line){plan->lower_bound / 1e6, "#1f6f43", "bound", .to_left = true};
    lines[count++] = (berth_timeline_line){plan->predicted_ns / 1e6, "#b3261e", "predicted", false};
    return count;
}

static const char *title_of(const picture *p) {
    const char *slash = strrchr(p->program->name, '/');
    const char *name = slash ? slash + 1 : p->program->name;
    if (!p->plan->valued)
        return berth_arena_printf(p->arena, "%s: %.4g ms, one operation after the other", name,
                                  p->plan->predicted_ns / 1e6);
    const char *value = berth_plan_value_text(p->arena, p->plan);
    bool latency = strcmp(p->plan->objective, "latency") == 0;
    if (latency && fabs(p->plan->predicted_ns - p->plan->value) <= 1e-3 * p->plan->value)
        return berth_arena_printf(p->arena, "%s: %s", name, value);
    return berth_arena_printf(p->arena, "%s: %s; %s %.4g ms", name, value,
                              latency ? "by the kernels that are made" : "one request",
                              p->plan->predicted_ns / 1e6);
}

void berth_plan_picture_svg(const berth_model *model, berth_strbuf *out) {
    picture p = {
        .model = model, .program = berth_model_program(model), .plan = berth_model_plan(model)};
    berth_timeline_key keys[BERTH_OPERATOR_KEYS + BERTH_MEMORY_ROW_KEYS];
    berth_timeline_line lines[2];
    p.arena = berth_arena_create_child(out->arena);
    rank_operators(&p);
    make_rows(&p);
    add_operations(&p);
    add_transfers(&p);
    add_memories(&p);
    uint32_t key_count = berth_operator_colours_keys(&p.colours, p.plan->transfer_count > 0, keys);
    for (uint32_t i = 0; p.memories.rows.count && i < BERTH_MEMORY_ROW_KEYS; ++i)
        keys[key_count++] = berth_memory_row_keys[i];
    uint32_t note_count = 0;
    const char *const *notes = notes_of(&p, &note_count);
    const berth_timeline timeline = {.title = title_of(&p),
                                     .unit = "ms",
                                     .moments = true,
                                     .rows = p.rows,
                                     .row_count = p.row_count,
                                     .spans = p.spans.data,
                                     .span_count = p.spans.count,
                                     .lines = lines,
                                     .line_count = make_lines(p.plan, lines),
                                     .curves = p.memories.curves.data,
                                     .curve_count = p.memories.curves.count,
                                     .notes = notes,
                                     .note_count = note_count,
                                     .keys = keys,
                                     .key_count = key_count};
    berth_timeline_draw(&timeline, out);
    berth_arena_destroy(p.arena);
}

// ---- words --------------------------------------------------------------------------------------

static double in_words(const berth_plan *plan, double value) {
    return strcmp(plan->unit, "ns") == 0 ? value / 1e6 : value;
}

const char *berth_plan_value_text(berth_arena *arena, const berth_plan *plan) {
    static const char *const what[][2] = {{"latency", "latency of one request"},
                                          {"throughput", "largest load of a device per request"},
                                          {"memory", "largest constants of a device"}};
    const char *words = plan->objective;
    for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); ++i)
        if (strcmp(plan->objective, what[i][0]) == 0) words = what[i][1];
    const char *unit = strcmp(plan->unit, "ns") == 0 ? "ms" : plan->unit;
    const char *value =
        berth_arena_printf(arena, "%s: %.4g %s", words, in_words(plan, plan->value), unit);
    if (plan->proven) return berth_arena_printf(arena, "%s, proven optimal in the model", value);
    return berth_arena_printf(arena, "%s, lower bound %.4g, gap %.3g %%", value,
                              in_words(plan, plan->lower_bound), plan->gap * 100);
}
