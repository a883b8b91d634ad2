#include "toolkit/plan_picture.h"

#include <stdlib.h>
#include <string.h>

#include "base/timeline.h"

// Colours that differ for the common kinds of colour blindness (Okabe and Ito 2008).
static const char *const palette[] = {"#56b4e9", "#e69f00", "#009e73", "#cc79a7",
                                      "#f0e442", "#0072b2", "#d55e00"};
enum { palette_size = sizeof(palette) / sizeof(palette[0]) };

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
                          copy ? "#dddddd" : palette[step->device % palette_size]);
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

// Operators with a colour of their own: those that take the most time.
enum { colour_count = palette_size };
static const char copy_colour[] = "#52606d";
static const char other_colour[] = "#b8c2cc";

typedef struct operator_time {
    const char *op;
    double time_ns;
} operator_time;

typedef struct picture {
    const berth_program *program;
    const berth_plan *plan;
    berth_arena *arena;
    operator_time *operators;  // longest first
    uint32_t operator_count;
    berth_timeline_row *rows;
    uint32_t row_count;
    uint32_t *compute_row;  // per device, BERTH_NO_INDEX = none
    uint32_t *link_row;
    BERTH_VEC(berth_timeline_span) spans;
} picture;

static int by_time(const void *a, const void *b) {
    const operator_time *x = a;
    const operator_time *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? 1 : -1;
    return strcmp(x->op, y->op);
}

static void rank_operators(picture *p) {
    p->operators = berth_arena_new_array(p->arena, operator_time, p->plan->entry_count);
    for (uint32_t i = 0; i < p->plan->entry_count; ++i) {
        const char *op = p->program->placements[i].op;
        uint32_t at = 0;
        while (at < p->operator_count && strcmp(p->operators[at].op, op) != 0) ++at;
        if (at == p->operator_count) p->operators[p->operator_count++].op = op;
        p->operators[at].time_ns += p->plan->entries[i].time_ns;
    }
    qsort(p->operators, p->operator_count, sizeof(*p->operators), by_time);
}

static const char *colour_of(const picture *p, const char *op) {
    for (uint32_t i = 0; i < p->operator_count && i < colour_count; ++i)
        if (strcmp(p->operators[i].op, op) == 0) return palette[i];
    return other_colour;
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
    p->rows = berth_arena_new_array(p->arena, berth_timeline_row, 2 * (size_t)count);
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
        const char *colour = colour_of(p, placement->op);
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
            .colour = copy_colour,
            .name = berth_arena_printf(p->arena, "copy of %s %s %s", transfer->value,
                                       transfer->to_host ? "from" : "to", device)};
        berth_vec_push(p->arena, &p->spans, span);
    }
}

// The operators that have a colour, the others together, copies.
static uint32_t make_keys(const picture *p, berth_timeline_key keys[colour_count + 2]) {
    uint32_t count = 0;
    for (; count < p->operator_count && count < colour_count; ++count)
        keys[count] = (berth_timeline_key){palette[count], p->operators[count].op};
    if (p->operator_count > colour_count)
        keys[count++] = (berth_timeline_key){other_colour, "others"};
    if (p->plan->transfer_count) keys[count++] = (berth_timeline_key){copy_colour, "copies"};
    return count;
}

// The end of the schedule and, where latency is the objective, its bound.
static uint32_t make_lines(const berth_plan *plan, berth_timeline_line lines[2]) {
    uint32_t count = 0;
    bool latency = plan->valued && strcmp(plan->objective, "latency") == 0;
    bool apart = latency && plan->value - plan->lower_bound > 0.001 * plan->value;
    if (apart && plan->lower_bound > 0)
        lines[count++] =
            (berth_timeline_line){plan->lower_bound / 1e6, "#1f6f43", "bound", .to_left = true};
    lines[count++] = (berth_timeline_line){plan->predicted_ns / 1e6, "#b3261e",
                                           latency && !apart ? "optimal" : "predicted", false};
    return count;
}

static const char *title_of(const picture *p) {
    const char *slash = strrchr(p->program->name, '/');
    const char *name = slash ? slash + 1 : p->program->name;
    if (!p->plan->valued)
        return berth_arena_printf(p->arena, "%s: %.4g ms, one operation after the other", name,
                                  p->plan->predicted_ns / 1e6);
    const char *value = berth_plan_value_text(p->arena, p->plan);
    if (strcmp(p->plan->objective, "latency") == 0)
        return berth_arena_printf(p->arena, "%s: %s", name, value);
    return berth_arena_printf(p->arena, "%s: %s; one request %.4g ms", name, value,
                              p->plan->predicted_ns / 1e6);
}

void berth_plan_picture_svg(const berth_model *model, berth_strbuf *out) {
    picture p = {.program = berth_model_program(model), .plan = berth_model_plan(model)};
    berth_timeline_key keys[colour_count + 2];
    berth_timeline_line lines[2];
    p.arena = berth_arena_create_child(out->arena);
    rank_operators(&p);
    make_rows(&p);
    add_operations(&p);
    add_transfers(&p);
    const berth_timeline timeline = {.title = title_of(&p),
                                     .unit = "ms",
                                     .moments = true,
                                     .rows = p.rows,
                                     .row_count = p.row_count,
                                     .spans = p.spans.data,
                                     .span_count = p.spans.count,
                                     .lines = lines,
                                     .line_count = make_lines(p.plan, lines),
                                     .notes = p.plan->notes,
                                     .note_count = p.plan->note_count,
                                     .keys = keys,
                                     .key_count = make_keys(&p, keys)};
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
