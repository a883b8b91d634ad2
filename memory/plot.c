#include "memory/plot.h"

#include <stdlib.h>

#define PEAK_COLOUR "#b3261e"

enum {
    MARGIN_LEFT = 90,
    MARGIN_TOP = 34,
    MARGIN_BOTTOM = 30,
    MARGIN_RIGHT = 20,
    DEFAULT_WIDTH = 1200,
    DEFAULT_HEIGHT = 600,
    LONGEST_NAME = 200
};

typedef struct panel {
    const berth_memory_problem *problem;
    const uint64_t *offsets;
    berth_strbuf *out;
    uint32_t pool;
    const int64_t *times;  // sorted, different
    uint32_t time_count;
    double left, top, width, height;  // of the drawing area
    uint64_t most_bytes;              // at the upper edge
    const berth_memory_plot_options *options;
} panel;

static int compare_times(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static uint32_t time_index(const panel *p, int64_t time) {
    uint32_t low = 0;
    uint32_t high = p->time_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->times[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static double x_of(const panel *p, uint32_t time) {
    return p->left + (p->time_count > 1 ? p->width * time / (p->time_count - 1) : 0);
}

static double y_of(const panel *p, uint64_t bytes) {
    return p->top + p->height * (1 - (double)bytes / (double)p->most_bytes);
}

// NULL: the time has no name.
static const char *name_of_time(const panel *p, int64_t time) {
    const berth_memory_plot_options *options = p->options;
    bool named = options->time_names && time >= 0 && time < (int64_t)options->time_name_count;
    return named && *options->time_names[time] ? options->time_names[time] : NULL;
}

static void add_time(const panel *p, int64_t time) {
    const char *name = name_of_time(p, time);
    berth_strbuf_addf(p->out, "%lld", (long long)time);
    if (!name) return;
    berth_strbuf_add(p->out, " (");
    berth_strbuf_add_xml(p->out, name, LONGEST_NAME);
    berth_strbuf_add(p->out, ")");
}

// As much of the name as there is room for; nothing where that would say little.
static void draw_label(const panel *p, const char *name, double x, double y, double width,
                       double height) {
    enum { font_px = 10, character_px = 6, least = 4 };
    uint32_t room = width > 0 ? (uint32_t)(width / character_px) : 0;
    if (height < font_px + 1 || room < least) return;
    if (room > LONGEST_NAME) room = LONGEST_NAME;
    berth_strbuf_addf(p->out,
                      "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" text-anchor=\"middle\" "
                      "pointer-events=\"none\">",
                      x + width / 2, y + height / 2 + 3.5, font_px);
    berth_strbuf_add_xml(p->out, name, room);
    berth_strbuf_add(p->out, "</text>\n");
}

static void draw_buffers(const panel *p) {
    for (uint32_t i = 0; i < p->problem->buffer_count; ++i) {
        if (p->problem->pools[i] != p->pool) continue;
        const berth_memory_interval *b = &p->problem->intervals[i];
        double x = x_of(p, time_index(p, b->lower));
        double y = y_of(p, p->offsets[i] + b->size_bytes);
        double width = x_of(p, time_index(p, b->upper)) - x;
        double height = y_of(p, p->offsets[i]) - y;
        // Golden-angle hues: neighbours in the file differ.
        berth_strbuf_addf(
            p->out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%u,55%%,70%%)\" "
            "stroke=\"#444\" stroke-width=\"0.3\"><title>",
            x, y, width, height, (unsigned)((uint64_t)i * 137 % 360));
        berth_strbuf_add_xml(p->out, p->problem->ids[i], LONGEST_NAME);
        berth_strbuf_addf(p->out, ": [%lld, %lld), %llu bytes at %llu", (long long)b->lower,
                          (long long)b->upper, (unsigned long long)b->size_bytes,
                          (unsigned long long)p->offsets[i]);
        if (name_of_time(p, b->lower) && name_of_time(p, b->upper - 1)) {
            berth_strbuf_add(p->out, "; from ");
            add_time(p, b->lower);
            berth_strbuf_add(p->out, " to ");
            add_time(p, b->upper - 1);
        }
        berth_strbuf_add(p->out, "</title></rect>\n");
        draw_label(p, p->problem->ids[i], x, y, width, height);
    }
}

static void draw_live_sum(const panel *p, const uint64_t *live) {
    berth_strbuf_add(p->out,
                     "<polyline fill=\"none\" stroke=\"black\" stroke-width=\"1\" points=\"");
    for (uint32_t t = 0; t + 1 < p->time_count; ++t)
        berth_strbuf_addf(p->out, "%.2f,%.2f %.2f,%.2f ", x_of(p, t), y_of(p, live[t]),
                          x_of(p, t + 1), y_of(p, live[t]));
    berth_strbuf_add(p->out, "\"><title>sum of sizes live</title></polyline>\n");
}

// Where the most is live for the first time.
static void draw_peak(const panel *p, const uint64_t *live, uint64_t most) {
    uint32_t t = 0;
    while (t + 1 < p->time_count && live[t] < most) t++;
    if (most == 0 || t + 1 >= p->time_count) return;
    double x = (x_of(p, t) + x_of(p, t + 1)) / 2;
    char text[32];
    berth_format_bytes(most, text);
    berth_strbuf_addf(p->out,
                      "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" "
                      "stroke-width=\"1.5\" stroke-dasharray=\"2 2\"/>\n"
                      "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"end\" fill=\"%s\">peak: %s "
                      "live at ",
                      x, x, p->top, p->top + p->height, PEAK_COLOUR, p->left + p->width,
                      p->top - 10, PEAK_COLOUR, text);
    add_time(p, p->times[t]);
    berth_strbuf_add(p->out, "</text>\n");
}

static void draw_line(const panel *p, uint64_t bytes, const char *colour, const char *what) {
    char text[32];
    berth_format_bytes(bytes, text);
    double y = y_of(p, bytes);
    berth_strbuf_addf(p->out,
                      "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" "
                      "stroke-dasharray=\"4 3\">"
                      "<title>%s: %llu bytes</title></line>\n"
                      "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"end\">%s</text>\n",
                      p->left, p->left + p->width, y, y, colour, what, (unsigned long long)bytes,
                      p->left - 6, y + 4, text);
}

static uint64_t *sum_live(berth_arena *scratch, const panel *p, uint64_t *out_most) {
    uint64_t *live = berth_arena_new_array(scratch, uint64_t, (size_t)p->time_count + 1);
    for (uint32_t i = 0; i < p->problem->buffer_count; ++i) {
        if (p->problem->pools[i] != p->pool) continue;
        const berth_memory_interval *b = &p->problem->intervals[i];
        live[time_index(p, b->lower)] += b->size_bytes;
        live[time_index(p, b->upper)] -= b->size_bytes;  // wraps, and is summed back below
    }
    *out_most = 0;
    for (uint32_t t = 0; t < p->time_count; ++t) {
        if (t > 0) live[t] += live[t - 1];
        if (live[t] > *out_most) *out_most = live[t];
    }
    return live;
}

static void draw_panel(panel *p, uint64_t capacity_bytes) {
    berth_arena *scratch = berth_arena_create_child(p->out->arena);
    uint64_t height = 0;
    for (uint32_t i = 0; i < p->problem->buffer_count; ++i) {
        if (p->problem->pools[i] != p->pool) continue;
        uint64_t end = p->offsets[i] + p->problem->intervals[i].size_bytes;
        if (end > height) height = end;
    }
    uint64_t live_most = 0;
    uint64_t *live = sum_live(scratch, p, &live_most);
    p->most_bytes = height > capacity_bytes ? height : capacity_bytes;
    if (p->most_bytes == 0) p->most_bytes = 1;
    berth_strbuf_addf(p->out, "<text x=\"%.2f\" y=\"%.2f\">pool \"", p->left, p->top - 10);
    berth_strbuf_add_xml(p->out, p->problem->pool_names[p->pool], LONGEST_NAME);
    berth_strbuf_addf(p->out, "\": height %llu bytes, largest live sum %llu bytes</text>\n",
                      (unsigned long long)height, (unsigned long long)live_most);
    berth_strbuf_addf(p->out,
                      "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"white\" "
                      "stroke=\"#888\"/>\n",
                      p->left, p->top, p->width, p->height);
    draw_buffers(p);
    draw_live_sum(p, live);
    draw_peak(p, live, live_most);
    draw_line(p, height, "#06c", "height");
    if (capacity_bytes) draw_line(p, capacity_bytes, "#c00", "capacity");
    if (p->time_count > 0)
        berth_strbuf_addf(p->out,
                          "<text x=\"%.2f\" y=\"%.2f\">%lld</text>\n"
                          "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"end\">time %lld</text>\n",
                          p->left, p->top + p->height + 16, (long long)p->times[0],
                          p->left + p->width, p->top + p->height + 16,
                          (long long)p->times[p->time_count - 1]);
    berth_arena_destroy(scratch);
}

void berth_memory_plot(const berth_memory_problem *problem, const uint64_t *offsets,
                       const berth_memory_plot_options *options, berth_strbuf *out) {
    berth_arena *scratch = berth_arena_create_child(out->arena);
    int64_t *times = berth_arena_new_array(scratch, int64_t, (size_t)problem->buffer_count * 2);
    for (uint32_t i = 0; i < problem->buffer_count; ++i) {
        times[(size_t)i * 2] = problem->intervals[i].lower;
        times[(size_t)i * 2 + 1] = problem->intervals[i].upper;
    }
    if (problem->buffer_count > 0)
        qsort(times, (size_t)problem->buffer_count * 2, sizeof(*times), compare_times);
    uint32_t time_count = 0;
    for (size_t i = 0; i < (size_t)problem->buffer_count * 2; ++i)
        if (time_count == 0 || times[i] != times[time_count - 1]) times[time_count++] = times[i];
    uint32_t width = options->width_px ? options->width_px : DEFAULT_WIDTH;
    uint32_t height = options->height_px ? options->height_px : DEFAULT_HEIGHT;
    uint32_t panel_px = height + MARGIN_TOP + MARGIN_BOTTOM;
    uint32_t title_px = options->title ? 28 : 0;
    uint32_t all_width = width + MARGIN_LEFT + MARGIN_RIGHT;
    uint32_t all_height = panel_px * problem->pool_count + title_px;
    berth_strbuf_addf(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                      "viewBox=\"0 0 %u %u\" style=\"max-width:100%%;height:auto\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"%u\" height=\"%u\" fill=\"white\"/>\n",
                      all_width, all_height, all_width, all_height, all_width, all_height);
    if (options->title) {
        berth_strbuf_addf(out, "<text x=\"%d\" y=\"20\" font-size=\"15\">", MARGIN_LEFT);
        berth_strbuf_add_xml(out, options->title, 200);
        berth_strbuf_add(out, "</text>\n");
    }
    for (uint32_t pool = 0; pool < problem->pool_count; ++pool) {
        panel p = {.problem = problem,
                   .options = options,
                   .offsets = offsets,
                   .out = out,
                   .pool = pool,
                   .times = times,
                   .time_count = time_count,
                   .left = MARGIN_LEFT,
                   .top = title_px + (double)panel_px * pool + MARGIN_TOP,
                   .width = width,
                   .height = height};
        draw_panel(&p, options->capacity_bytes ? options->capacity_bytes[pool] : 0);
    }
    berth_strbuf_add(out, "</svg>\n");
    berth_arena_destroy(scratch);
}
