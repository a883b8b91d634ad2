#include "planner/solve/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/solve/problem_file.h"

enum {
    MARGIN_LEFT = 70,
    MARGIN_RIGHT = 250,
    MARGIN_TOP = 24,
    MARGIN_BOTTOM = 62,
    TITLE_PX = 30,
    ROW_PX = 30,
    UNUSED_ROW_PX = 12,
    ROW_GAP_PX = 10,
    LANE_PX = 9,  // least height of nodes that are below each other
    DEFAULT_WIDTH = 900
};

typedef enum part { PART_READ, PART_NODE, PART_WRITE } part;

typedef struct span {
    double start, end;
    uint32_t device;
    uint32_t node;
    part part;
    uint32_t lane;
} span;

typedef struct plot {
    const berth_place_problem *problem;
    berth_place_objective objective;
    const berth_place_answer *answer;
    const char *unit;
    berth_strbuf *out;
    berth_arena *scratch;
    uint32_t *rank;  // [node_count] place in the order of the graph
    BERTH_VEC(span) spans;
    uint32_t *lanes;  // [device_count] at least 1
    double *top;      // [device_count] of the row
    double *height;   // [device_count]
    double bottom;    // of the last row
    double width;
    double most;  // at the right edge
} plot;

// ------------------------------------------------------------------------------------------------
// spans

static void add_span(plot *p, uint32_t device, double start, double length, part what,
                     uint32_t node) {
    if (length > 0)
        berth_vec_push(p->scratch, &p->spans, (span){start, start + length, device, node, what, 0});
}

// What device d reads, and whether node u has a successor elsewhere.
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
    add_span(p, device, start, reads, PART_READ, BERTH_PLACE_NONE);
    start += reads;
    for (uint32_t i = 0; i < problem->node_count; ++i) {
        uint32_t v = problem->topological[i];
        if (p->answer->assignment[v] != device) continue;
        double length =
            memory ? problem->size_bytes[v] : problem->time[(size_t)v * problem->kind_count + kind];
        add_span(p, device, start, length, PART_NODE, v);
        start += length;
    }
    if (!memory)
        add_span(p, device, start, transfers(p, device, PART_WRITE), PART_WRITE, BERTH_PLACE_NONE);
}

static int earlier_first(const void *left, const void *right) {
    const span *a = left;
    const span *b = right;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

// Each node of a device in the first lane that is free when it starts.
static void add_lanes(plot *p, uint32_t device) {
    const berth_place_problem *problem = p->problem;
    uint32_t first = p->spans.count;
    for (uint32_t v = 0; v < problem->node_count; ++v)
        if (p->answer->assignment[v] == device)
            add_span(p, device, p->answer->value.node_start[v],
                     p->answer->value.node_done[v] - p->answer->value.node_start[v], PART_NODE, v);
    uint32_t count = p->spans.count - first;
    if (count > 1) qsort(p->spans.data + first, count, sizeof(span), earlier_first);
    BERTH_VEC(double) busy = {0};  // until when, by lane
    for (uint32_t i = first; i < p->spans.count; ++i) {
        span *s = &p->spans.data[i];
        uint32_t lane = 0;
        while (lane < busy.count && busy.data[lane] > s->start) ++lane;
        if (lane == busy.count) berth_vec_push(p->scratch, &busy, 0);
        busy.data[lane] = s->end;
        s->lane = lane;
    }
    if (busy.count > p->lanes[device]) p->lanes[device] = busy.count;
}

static double subgraph_start(const plot *p, uint32_t device) {
    for (uint32_t v = 0; v < p->problem->node_count; ++v)
        if (p->answer->assignment[v] == device) return p->answer->value.node_start[v];
    return 0;
}

static void collect_spans(plot *p) {
    const berth_place_problem *problem = p->problem;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        p->lanes[d] = 1;
        bool concurrent = problem->kinds[problem->device_kind[d]].concurrent;
        if (p->objective != BERTH_PLACE_LATENCY)
            add_stack(p, d, 0);
        else if (problem->one_subgraph && !concurrent)
            add_stack(p, d, subgraph_start(p, d));
        else
            add_lanes(p, d);
    }
    for (uint32_t i = 0; i < p->spans.count; ++i) p->most = fmax(p->most, p->spans.data[i].end);
}

// ------------------------------------------------------------------------------------------------
// drawing

static void add_escaped(berth_strbuf *out, const char *text) {
    for (; *text; ++text) {
        switch (*text) {
        case '<': berth_strbuf_add(out, "&lt;"); break;
        case '>': berth_strbuf_add(out, "&gt;"); break;
        case '&': berth_strbuf_add(out, "&amp;"); break;
        case '"': berth_strbuf_add(out, "&quot;"); break;
        default: berth_strbuf_add_n(out, (unsigned char)*text < 0x20 ? " " : text, 1);
        }
    }
}

static double x_of(const plot *p, double value) {
    return MARGIN_LEFT + p->width * value / p->most;
}

// "12.3 ms" or "4.0 MiB".
static void format_value(const plot *p, double value, char out[48]) {
    if (p->objective == BERTH_PLACE_MEMORY)
        berth_format_bytes((uint64_t)value, out);
    else
        snprintf(out, 48, "%.4g %s", value, p->unit);
}

// Blue at the inputs, over green, to orange at the results.
static void colour_of(const plot *p, const span *s, char out[32]) {
    if (s->part != PART_NODE) {
        snprintf(out, 32, "%s", s->part == PART_READ ? "#9aa5b1" : "#52606d");
        return;
    }
    double place =
        p->problem->node_count > 1 ? (double)p->rank[s->node] / (p->problem->node_count - 1) : 0;
    snprintf(out, 32, "hsl(%d,62%%,%d%%)", (int)(215 - 180 * place), 62 + (int)(4 * place));
}

// One rectangle for `count` spans from `first` that are neighbours.
static void draw_span(const plot *p, const span *first, const span *last, uint32_t count) {
    char colour[32];
    char length[48];
    double lane_px = p->height[first->device] / p->lanes[first->device];
    double x = x_of(p, first->start);
    double width = x_of(p, last->end) - x;
    colour_of(p, first, colour);
    format_value(p, last->end - first->start, length);
    berth_strbuf_addf(p->out,
                      "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"", x,
                      p->top[first->device] + first->lane * lane_px, width,
                      lane_px > 4 ? lane_px - 0.5 : lane_px, colour);
    if (width > 4) berth_strbuf_add(p->out, " stroke=\"white\" stroke-width=\"0.5\"");
    berth_strbuf_add(p->out, "><title>");
    if (first->part != PART_NODE) {
        berth_strbuf_add(p->out, first->part == PART_READ ? "reads" : "writes");
    } else {
        add_escaped(p->out, p->problem->node_names[first->node]);
        if (count > 1) berth_strbuf_addf(p->out, " and %u more", count - 1);
    }
    berth_strbuf_addf(p->out, ": %s", length);
    if (p->objective == BERTH_PLACE_LATENCY)
        berth_strbuf_addf(p->out, ", from %.6g to %.6g", first->start, last->end);
    berth_strbuf_add(p->out, "</title></rect>\n");
}

// Spans too thin to see are drawn together with their neighbours.
static void draw_spans(const plot *p) {
    double least = 0.5 * p->most / p->width;
    for (uint32_t i = 0; i < p->spans.count;) {
        const span *first = &p->spans.data[i];
        uint32_t last = i;
        while (p->spans.data[last].end - first->start < least && last + 1 < p->spans.count) {
            const span *next = &p->spans.data[last + 1];
            if (next->device != first->device || next->lane != first->lane ||
                next->part != first->part || next->start > p->spans.data[last].end)
                break;
            ++last;
        }
        draw_span(p, first, &p->spans.data[last], last - i + 1);
        i = last + 1;
    }
}

static void place_rows(plot *p, double top) {
    uint32_t count = p->problem->device_count;
    for (uint32_t d = 0; d < count; ++d) {
        p->top[d] = top;
        bool used = p->answer->value.device_load[d] > 0;
        p->height[d] = used ? fmax(ROW_PX, (double)LANE_PX * p->lanes[d]) : UNUSED_ROW_PX;
        top += p->height[d] + ROW_GAP_PX;
    }
    p->bottom = top;
}

static void draw_row(const plot *p, uint32_t device) {
    const berth_place_problem *problem = p->problem;
    const berth_place_kind *kind = &problem->kinds[problem->device_kind[device]];
    uint32_t nodes = 0;
    double bytes = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        if (p->answer->assignment[v] != device) continue;
        ++nodes;
        bytes += problem->size_bytes[v];
    }
    double middle = p->top[device] + p->height[device] / 2;
    berth_strbuf_addf(p->out,
                      "<rect x=\"%d\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                      "fill=\"#f3f5f7\"/>\n<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">",
                      MARGIN_LEFT, p->top[device], p->width, p->height[device], MARGIN_LEFT - 8,
                      middle + 4);
    add_escaped(p->out, berth_place_device_name(p->scratch, problem, device));
    char size[48];
    char load[48];
    berth_format_bytes((uint64_t)bytes, size);
    format_value(p, p->answer->value.device_load[device], load);
    berth_strbuf_addf(p->out, "</text>\n<text x=\"%.2f\" y=\"%.2f\" fill=\"#52606d\">",
                      MARGIN_LEFT + p->width + 10, middle + 4);
    if (nodes == 0) {
        berth_strbuf_add(p->out, "unused</text>\n");
        return;
    }
    if (p->objective != BERTH_PLACE_MEMORY) berth_strbuf_addf(p->out, "%s, ", load);
    berth_strbuf_addf(p->out, "%s%s, %u node%s</text>\n", size,
                      kind->capacity_bytes < INFINITY
                          ? berth_arena_printf(p->scratch, " (%.0f %%)",
                                               bytes > 0 ? bytes / kind->capacity_bytes * 100 : 0)
                          : "",
                      nodes, nodes == 1 ? "" : "s");
}

// 1, 2 or 5 times a power of ten (of bytes: of the unit that fits), for at most about ten marks.
static double axis_step(const plot *p) {
    double unit = 1;
    while (p->objective == BERTH_PLACE_MEMORY && p->most / unit > 1024) unit *= 1024;
    double most = p->most / unit;
    double step = pow(10, floor(log10(most / 10)));
    while (most / step > 10) {
        double lead = step / pow(10, floor(log10(step) + 1e-9));
        step *= lead < 1.5 || lead > 4 ? 2 : 2.5;
    }
    return step * unit;
}

static void draw_axis(const plot *p) {
    double step = axis_step(p);
    for (double value = 0; value <= p->most * (1 + 1e-9); value += step) {
        char text[48];
        format_value(p, value, text);
        berth_strbuf_addf(p->out,
                          "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\" "
                          "stroke=\"#9aa5b1\"/><text x=\"%.2f\" y=\"%.2f\" "
                          "text-anchor=\"middle\" fill=\"#52606d\" font-size=\"11\">%s</text>\n",
                          x_of(p, value), x_of(p, value), p->bottom, p->bottom + 5, x_of(p, value),
                          p->bottom + 18, text);
    }
}

static void draw_line(const plot *p, double value, const char *colour, const char *what,
                      bool to_left) {
    char text[48];
    format_value(p, value, text);
    double x = x_of(p, value);
    double top = p->top[0] - 6;
    berth_strbuf_addf(p->out,
                      "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" "
                      "stroke-dasharray=\"4 3\"/>\n<text x=\"%.2f\" y=\"%.2f\" fill=\"%s\" "
                      "text-anchor=\"%s\" font-size=\"11\">%s %s</text>\n",
                      x, x, top, p->bottom, colour, x + (to_left ? -4 : 4), top + 2, colour,
                      to_left ? "end" : "start", what, text);
}

static void draw_legend(const plot *p) {
    if (p->objective == BERTH_PLACE_MEMORY) return;
    static const struct {
        const char *colour;
        const char *text;
        int width;
    } entries[] = {
        {"#9aa5b1", "transfers in", 100},
        {"hsl(215,62%,62%)", "first nodes of the graph", 170},
        {"hsl(35,62%,66%)", "last nodes", 95},
        {"#52606d", "transfers out", 100},
    };
    double x = MARGIN_LEFT;
    double y = p->bottom + 32;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); ++i) {
        berth_strbuf_addf(p->out,
                          "<rect x=\"%.2f\" y=\"%.2f\" width=\"12\" height=\"12\" "
                          "fill=\"%s\"/><text x=\"%.2f\" y=\"%.2f\" font-size=\"11\" "
                          "fill=\"#52606d\">%s</text>\n",
                          x, y, entries[i].colour, x + 17, y + 10, entries[i].text);
        x += entries[i].width;
    }
}

static void draw(plot *p, const char *title) {
    double top = MARGIN_TOP + (title ? TITLE_PX : 0);
    place_rows(p, top);
    berth_strbuf_addf(p->out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                      MARGIN_LEFT + p->width + MARGIN_RIGHT, p->bottom + MARGIN_BOTTOM);
    if (title) {
        berth_strbuf_addf(p->out, "<text x=\"%d\" y=\"20\" font-size=\"15\">", MARGIN_LEFT);
        add_escaped(p->out, title);
        berth_strbuf_add(p->out, "</text>\n");
    }
    for (uint32_t d = 0; d < p->problem->device_count; ++d) draw_row(p, d);
    draw_spans(p);
    draw_axis(p);
    bool shares = p->objective == BERTH_PLACE_MEMORY && p->answer->value.value <= 1;
    if (p->problem->device_count > 0 && !shares) {
        bool apart = p->answer->value.value - p->answer->lower_bound > 0.001 * p->most;
        if (apart && p->answer->lower_bound > 0)
            draw_line(p, p->answer->lower_bound, "#1f6f43", "bound", true);
        draw_line(p, p->answer->value.value, "#b3261e", apart ? "value" : "optimal", false);
    }
    draw_legend(p);
    berth_strbuf_add(p->out, "</svg>\n");
}

void berth_place_plot(const berth_place_problem *problem, berth_place_objective objective,
                      const berth_place_answer *answer, const berth_place_plot_options *options,
                      berth_strbuf *out) {
    berth_arena *scratch = berth_arena_create_child(out->arena);
    plot p = {.problem = problem, .objective = objective, .answer = answer, .out = out};
    p.scratch = scratch;
    p.unit = options->unit ? options->unit : "ms";
    p.width = options->width_px ? options->width_px : DEFAULT_WIDTH;
    p.rank = berth_arena_new_array(scratch, uint32_t, problem->node_count);
    p.lanes = berth_arena_new_array(scratch, uint32_t, problem->device_count);
    p.top = berth_arena_new_array(scratch, double, problem->device_count);
    p.height = berth_arena_new_array(scratch, double, problem->device_count);
    for (uint32_t i = 0; i < problem->node_count; ++i) p.rank[problem->topological[i]] = i;
    collect_spans(&p);
    if (p.most <= 0) p.most = 1;
    draw(&p, options->title);
    berth_arena_destroy(scratch);
}
