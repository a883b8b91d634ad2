#include "planner/solve/plot.h"

#include <math.h>
#include <stdio.h>

#include "base/timeline.h"
#include "planner/solve/problem/problem_file.h"

enum { SHADES = 64 };

static const char READ_COLOUR[] = "#9aa5b1";
static const char WRITE_COLOUR[] = "#52606d";

typedef enum part { PART_READ, PART_NODE, PART_WRITE } part;

typedef struct plot {
    const berth_place_problem *problem;
    berth_place_objective objective;
    const berth_place_answer *answer;
    berth_arena *scratch;
    const char *unit;
    uint32_t *rank;     // [node_count] place in the order of the graph
    char (*shade)[32];  // [SHADES] blue at the inputs, over green, to orange at the results
    BERTH_VEC(berth_timeline_span) spans;
} plot;

// ------------------------------------------------------------------------------------------------
// spans

static void add_transfer(plot *p, uint32_t device, double start, double length, part what) {
    berth_timeline_span span = {.start = start,
                                .end = start + length,
                                .row = device,
                                .group = what,
                                .colour = what == PART_READ ? READ_COLOUR : WRITE_COLOUR,
                                .name = what == PART_READ ? "reads" : "writes"};
    berth_vec_push(p->scratch, &p->spans, span);
}

static void add_node(plot *p, uint32_t node, double start, double end) {
    uint32_t shade = (uint32_t)((uint64_t)p->rank[node] * SHADES / p->problem->node_count);
    berth_timeline_span span = {.start = start,
                                .end = end,
                                .row = p->answer->assignment[node],
                                .group = PART_NODE,
                                .colour = p->shade[shade],
                                .name = p->problem->node_names[node]};
    berth_vec_push(p->scratch, &p->spans, span);
}

// What the device reads, or writes: each value once.
static double transfers(const plot *p, uint32_t device, part what) {
    const berth_place_problem *problem = p->problem;
    const uint32_t *at = p->answer->assignment;
    double sum = 0;
    for (uint32_t u = 0; u < problem->node_count; ++u) {
        if ((at[u] == device) != (what == PART_WRITE)) continue;
        bool moves = false;
        for (uint32_t i = problem->succ_start[u]; i < problem->succ_start[u + 1]; ++i)
            moves |= what == PART_WRITE ? at[problem->succ[i]] != device
                                        : at[problem->succ[i]] == device;
        if (moves)
            sum +=
                problem->transfer[(size_t)u * problem->kind_count + problem->device_kind[device]];
    }
    return sum;
}

// Reads, nodes in the order of the graph, writes, one after another from `start`.
static void add_stack(plot *p, uint32_t device, double start) {
    const berth_place_problem *problem = p->problem;
    bool memory = p->objective == BERTH_PLACE_MEMORY;
    uint32_t kind = problem->device_kind[device];
    double reads = memory ? 0 : transfers(p, device, PART_READ);
    add_transfer(p, device, start, reads, PART_READ);
    start += reads;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        if (p->answer->assignment[v] != device) continue;
        double length =
            memory ? problem->size_bytes[v] : problem->time[(size_t)v * problem->kind_count + kind];
        add_node(p, v, start, start + length);
        start += length;
    }
    if (!memory) add_transfer(p, device, start, transfers(p, device, PART_WRITE), PART_WRITE);
}

static double subgraph_start(const plot *p, uint32_t device) {
    for (uint32_t v = 0; v < p->problem->node_count; ++v)
        if (p->answer->assignment[v] == device) return p->answer->value.node_start[v];
    return 0;
}

static void collect_spans(plot *p) {
    const berth_place_problem *problem = p->problem;
    const berth_place_value *value = &p->answer->value;
    bool latency = p->objective == BERTH_PLACE_LATENCY;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        bool one = problem->one_subgraph && !problem->kinds[problem->device_kind[d]].concurrent;
        if (!latency || one) add_stack(p, d, latency ? subgraph_start(p, d) : 0);
    }
    for (uint32_t v = 0; v < problem->node_count && latency; ++v) {
        uint32_t kind = problem->device_kind[p->answer->assignment[v]];
        if (!problem->one_subgraph || problem->kinds[kind].concurrent)
            add_node(p, v, value->node_start[v], value->node_done[v]);
    }
}

// ------------------------------------------------------------------------------------------------
// the picture

static void note_row(const plot *p, uint32_t device, berth_timeline_row *row) {
    const berth_place_problem *problem = p->problem;
    const berth_place_kind *kind = &problem->kinds[problem->device_kind[device]];
    uint32_t nodes = 0;
    double bytes = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        if (p->answer->assignment[v] != device) continue;
        ++nodes;
        bytes += problem->size_bytes[v];
    }
    row->name = berth_place_device_name(p->scratch, problem, device);
    row->note = "unused";
    row->unused = !(p->answer->value.device_load[device] > 0);
    if (nodes == 0) return;
    char size[32];
    berth_format_bytes_f64(bytes, size);
    berth_strbuf note = berth_strbuf_make(p->scratch);
    if (p->objective != BERTH_PLACE_MEMORY)
        berth_strbuf_addf(&note, "%.4g %s, ", p->answer->value.device_load[device], p->unit);
    berth_strbuf_add(&note, size);
    if (kind->capacity_bytes < INFINITY)
        berth_strbuf_addf(&note, " (%.0f %%)", bytes > 0 ? bytes / kind->capacity_bytes * 100 : 0);
    berth_strbuf_addf(&note, ", %u node%s", nodes, nodes == 1 ? "" : "s");
    row->note = berth_strbuf_text(&note);
}

// The value and, where it is apart, the bound. Returns how many.
static uint32_t add_lines(const plot *p, berth_timeline_line lines[2]) {
    double value = p->answer->value.value;
    double bound = p->answer->lower_bound;
    bool share = p->objective == BERTH_PLACE_MEMORY && berth_place_memory_is_share(p->problem);
    if (share || p->problem->device_count == 0) return 0;  // rows are bytes
    bool apart = value - bound > 0.001 * value;
    uint32_t count = 0;
    if (apart && bound > 0) lines[count++] = (berth_timeline_line){bound, "#1f6f43", "bound", true};
    lines[count++] = (berth_timeline_line){value, "#b3261e", apart ? "value" : "optimal", false};
    return count;
}

static void make_shades(plot *p) {
    p->shade = berth_arena_alloc(p->scratch, SHADES * sizeof(*p->shade));
    for (int i = 0; i < SHADES; ++i)
        snprintf(p->shade[i], sizeof(*p->shade), "hsl(%d,62%%,%d%%)", 215 - 180 * i / (SHADES - 1),
                 62 + 4 * i / (SHADES - 1));
}

void berth_place_plot(const berth_place_problem *problem, berth_place_objective objective,
                      const berth_place_answer *answer, const berth_place_plot_options *options,
                      berth_strbuf *out) {
    static const berth_timeline_key keys[] = {{READ_COLOUR, "transfers in"},
                                              {"hsl(215,62%,62%)", "first nodes of the graph"},
                                              {"hsl(35,62%,66%)", "last nodes"},
                                              {WRITE_COLOUR, "transfers out"}};
    plot p = {.problem = problem, .objective = objective, .answer = answer};
    p.scratch = berth_arena_create_child(out->arena);
    p.unit = options->unit ? options->unit : "ms";
    p.rank = berth_arena_new_array(p.scratch, uint32_t, problem->node_count);
    for (uint32_t i = 0; i < problem->node_count; ++i) p.rank[problem->topological[i]] = i;
    make_shades(&p);
    collect_spans(&p);
    berth_timeline_row *rows =
        berth_arena_new_array(p.scratch, berth_timeline_row, problem->device_count);
    for (uint32_t d = 0; d < problem->device_count; ++d) note_row(&p, d, &rows[d]);
    berth_timeline_line lines[2];
    berth_timeline picture = {.title = options->title,
                              .unit = objective == BERTH_PLACE_MEMORY ? NULL : p.unit,
                              .moments = objective == BERTH_PLACE_LATENCY,
                              .width_px = options->width_px,
                              .rows = rows,
                              .row_count = problem->device_count,
                              .spans = p.spans.data,
                              .span_count = p.spans.count,
                              .lines = lines,
                              .line_count = add_lines(&p, lines),
                              .keys = keys,
                              .key_count = objective == BERTH_PLACE_MEMORY ? 0 : 4};
    berth_timeline_draw(&picture, out);
    berth_arena_destroy(p.scratch);
}
