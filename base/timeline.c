#include "base/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARGIN_LEFT = 70,  // at least
    MARGIN_LEFT_MOST = 220,
    MARGIN_RIGHT = 250,
    MARGIN_TOP = 24,
    MARGIN_BOTTOM = 62,
    NOTE_PX = 16,  // a line below the legend
    TITLE_PX = 30,
    ROW_PX = 30,
    UNUSED_ROW_PX = 12,
    ROW_GAP_PX = 10,
    LANE_PX = 9,    // least height of what is below each other
    LABEL_PX = 14,  // least height of a box with a label
    LETTER_PX = 7,  // about the width of a letter of 12 px
    DEFAULT_WIDTH = 900,
    MARKS = 12  // of the axis, at most
};

// A span in the picture: pixels from the left edge of the drawing area.
typedef struct box {
    double left, right;
    const berth_timeline_span *span;  // the first of those drawn together
    double end;                       // of the last of them, in the picture's unit
    uint32_t lane;
    uint32_t count;
} box;

typedef struct canvas {
    const berth_timeline *in;
    berth_strbuf *out;
    berth_arena *scratch;
    box *boxes;  // by row, lane and place
    uint32_t box_count;
    uint32_t *lanes;  // [row_count] at least 1
    double *top;      // [row_count]
    double *height;   // [row_count]
    double left;      // of the drawing area
    double width;
    double right;   // room beside it, for notes
    double bottom;  // of the last row
    double most;    // at the right edge; > 0
} canvas;

// ------------------------------------------------------------------------------------------------
// boxes

// In pixels; figures may be as small or large as a double can be.
static double place_of(const canvas *c, double value) {
    return c->width * fmin(fmax(value / c->most, 0), 1);
}

static int by_start(const void *left, const void *right) {
    const berth_timeline_span *a = ((const box *)left)->span;
    const berth_timeline_span *b = ((const box *)right)->span;
    if (a->row != b->row) return a->row < b->row ? -1 : 1;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int by_lane(const void *left, const void *right) {
    const box *a = left;
    const box *b = right;
    if (a->span->row != b->span->row) return a->span->row < b->span->row ? -1 : 1;
    if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
    return by_start(left, right);
}

static void collect_boxes(canvas *c) {
    const berth_timeline *in = c->in;
    c->boxes = berth_arena_new_array(c->scratch, box, in->span_count);
    for (uint32_t i = 0; i < in->line_count; ++i) c->most = fmax(c->most, in->lines[i].at);
    for (uint32_t i = 0; i < in->curve_count; ++i)
        if (in->curves[i].count)
            c->most = fmax(c->most, in->curves[i].times[in->curves[i].count - 1]);
    for (uint32_t i = 0; i < in->span_count; ++i) {
        const berth_timeline_span *span = &in->spans[i];
        if (!(span->end > span->start)) continue;
        c->most = fmax(c->most, span->end);
        c->boxes[c->box_count++] = (box){.span = span, .end = span->end, .count = 1};
    }
    if (!(c->most > 0)) c->most = 1;
    for (uint32_t i = 0; i < c->box_count; ++i) {
        c->boxes[i].left = place_of(c, c->boxes[i].span->start);
        c->boxes[i].right = place_of(c, c->boxes[i].span->end);
    }
}

// Each box in the first lane of its row that is free when it starts; the last lane takes the rest.
static void find_lanes(canvas *c) {
    double busy[BERTH_TIMELINE_LANES] = {0};  // until when, by lane
    uint32_t used = 0;
    if (c->box_count > 1) qsort(c->boxes, c->box_count, sizeof(box), by_start);
    for (uint32_t r = 0; r < c->in->row_count; ++r) c->lanes[r] = 1;
    for (uint32_t i = 0; i < c->box_count; ++i) {
        box *b = &c->boxes[i];
        uint32_t row = b->span->row;
        if (i == 0 || c->boxes[i - 1].span->row != row) used = 0;
        uint32_t lane = 0;
        while (lane < used && lane + 1 < BERTH_TIMELINE_LANES && busy[lane] > b->span->start)
            ++lane;
        if (lane == used) busy[used++] = 0;
        busy[lane] = fmax(busy[lane], b->span->end);
        b->lane = lane;
        if (used > c->lanes[row]) c->lanes[row] = used;
    }
    if (c->box_count > 1) qsort(c->boxes, c->box_count, sizeof(box), by_lane);
}

// Whether `next` is drawn as part of `first`: both are hardly visible, or what has no lane of its
// own overlaps.
static bool joins(const box *first, const box *next, double least_px, bool any_group) {
    if (next->span->row != first->span->row || next->lane != first->lane) return false;
    if (next->left < first->right && next->span->start < first->end &&
        next->lane + 1 == BERTH_TIMELINE_LANES)
        return true;
    if (!any_group && next->span->group != first->span->group) return false;
    return fmax(first->right, next->right) - first->left < least_px;
}

// How many boxes are left when those narrower than `least_px` are joined; does it when `write`.
static uint32_t join_boxes(canvas *c, double least_px, bool any_group, bool write) {
    uint32_t count = 0;
    box joined = {0};
    for (uint32_t i = 0; i < c->box_count; ++i) {
        const box *next = &c->boxes[i];
        if (count > 0 && joins(&joined, next, least_px, any_group)) {
            joined.right = fmax(joined.right, next->right);
            joined.end = fmax(joined.end, next->end);
            joined.count++;
        } else {
            joined = *next;
            ++count;
        }
        if (write) c->boxes[count - 1] = joined;  // count <= i + 1: read already
    }
    return count;
}

// Coarser until there are few enough: every lane has at most a few boxes as wide as the picture.
static void thin_out(canvas *c) {
    double least_px = 0.5;
    bool any_group = false;
    while (least_px < c->width &&
           join_boxes(c, least_px, any_group, false) > BERTH_TIMELINE_BOXES) {
        if (any_group) least_px *= 2;
        any_group = true;
    }
    c->box_count = join_boxes(c, least_px, any_group, true);
}

// ------------------------------------------------------------------------------------------------
// drawing

static void add_text(const canvas *c, const char *text) {
    berth_strbuf_add_xml(c->out, text, BERTH_TIMELINE_NAME_BYTES);
}

// "12.3 ms" or "4.0 MiB".
static void format_value(const canvas *c, double value, char out[64]) {
    if (!c->in->unit)
        berth_format_bytes_f64(value, out);
    else
        snprintf(out, 64, "%.4g %.16s", value, c->in->unit);
}

static void draw_label(const canvas *c, const box *b, double y, double height) {
    const char *label = b->span->label;
    if (!label || b->count > 1 || height < LABEL_PX) return;
    double room = (b->right - b->left) / LETTER_PX;
    if (room < 1 || (double)strnlen(label, BERTH_TIMELINE_NAME_BYTES) > room) return;
    berth_strbuf_addf(c->out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">",
                      c->left + (b->left + b->right) / 2, y + height / 2 + 4);
    add_text(c, label);
    berth_strbuf_add(c->out, "</text>\n");
}

static void draw_box(const canvas *c, const box *b) {
    uint32_t row = b->span->row;
    double lane_px = c->height[row] / c->lanes[row];
    double y = c->top[row] + b->lane * lane_px;
    double width = b->right - b->left;
    char length[64];
    format_value(c, b->end - b->span->start, length);
    berth_strbuf_addf(
        c->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"",
        c->left + b->left, y, width, lane_px > 4 ? lane_px - 0.5 : lane_px, b->span->colour);
    if (width > 4) berth_strbuf_add(c->out, " stroke=\"white\" stroke-width=\"0.5\"");
    berth_strbuf_add(c->out, "><title>");
    add_text(c, b->span->name);
    if (b->count > 1) berth_strbuf_addf(c->out, " and %u more", b->count - 1);
    berth_strbuf_addf(c->out, ": %s", length);
    if (c->in->moments) berth_strbuf_addf(c->out, ", from %.6g to %.6g", b->span->start, b->end);
    if (b->span->note && b->count == 1) {
        berth_strbuf_add(c->out, "; ");
        add_text(c, b->span->note);
    }
    berth_strbuf_add(c->out, "</title></rect>\n");
    draw_label(c, b, y, lane_px);
}

static void place_rows(canvas *c) {
    double top = MARGIN_TOP + (c->in->title ? TITLE_PX : 0);
    size_t letters = 0, noted = 0;
    for (uint32_t r = 0; r < c->in->row_count; ++r) {
        const berth_timeline_row *row = &c->in->rows[r];
        size_t length = strnlen(row->name, BERTH_TIMELINE_NAME_BYTES);
        if (length > letters) letters = length;
        length = row->note ? strnlen(row->note, BERTH_TIMELINE_NAME_BYTES) : 0;
        if (length > noted) noted = length;
        c->top[r] = top;
        c->height[r] = row->unused ? UNUSED_ROW_PX : fmax(ROW_PX, (double)LANE_PX * c->lanes[r]);
        top += c->height[r] + ROW_GAP_PX;
    }
    c->bottom = top;
    c->left = fmin(fmax(MARGIN_LEFT, 16 + LETTER_PX * (double)letters), MARGIN_LEFT_MOST);
    c->right = fmax(MARGIN_RIGHT, 20 + LETTER_PX * (double)noted);
}

static void draw_row(const canvas *c, uint32_t r) {
    const berth_timeline_row *row = &c->in->rows[r];
    double middle = c->top[r] + c->height[r] / 2;
    berth_strbuf_addf(c->out,
                      "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                      "fill=\"#f3f5f7\"/>\n<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"end\">",
                      c->left, c->top[r], c->width, c->height[r], c->left - 8, middle + 4);
    add_text(c, row->name);
    berth_strbuf_add(c->out, "</text>\n");
    if (!row->note) return;
    berth_strbuf_addf(c->out, "<text x=\"%.2f\" y=\"%.2f\" fill=\"#52606d\">",
                      c->left + c->width + 10, middle + 4);
    add_text(c, row->note);
    berth_strbuf_add(c->out, "</text>\n");
}

// The largest value of each column of a pixel, and where the largest of all is.
static double largest_by_column(const canvas *c, const berth_timeline_curve *curve, double *columns,
                                uint32_t column_count, uint32_t *out_peak) {
    double most = 0;
    for (uint32_t i = 0; i < curve->count; ++i) {
        double end = i + 1 < curve->count ? curve->times[i + 1] : c->most;
        uint32_t first = (uint32_t)place_of(c, curve->times[i]);
        uint32_t last = (uint32_t)place_of(c, end);
        if (first >= column_count) first = column_count - 1;
        if (last >= column_count) last = column_count - 1;
        // Within a column only the largest is seen; whole columns hold what began before.
        for (uint32_t k = first; k <= last; ++k) columns[k] = fmax(columns[k], curve->values[i]);
        if (curve->values[i] > most) {
            most = curve->values[i];
            *out_peak = first;
        }
    }
    return most;
}

static void draw_curve(const canvas *c, const berth_timeline_curve *curve) {
    uint32_t count = (uint32_t)c->width, peak = 0;
    double *columns = berth_arena_new_array(c->scratch, double, count);
    double most = largest_by_column(c, curve, columns, count, &peak);
    double bottom = c->top[curve->row] + c->height[curve->row], height = c->height[curve->row] - 2;
    if (!(most > 0)) return;
    berth_strbuf_addf(c->out, "<path fill=\"%s\" d=\"M%.2f %.2f", curve->colour, c->left, bottom);
    for (uint32_t k = 0; k < count; ++k) {
        if (k && columns[k] == columns[k - 1]) continue;
        berth_strbuf_addf(c->out, "H%.0fV%.2f", c->left + k, bottom - height * (columns[k] / most));
    }
    berth_strbuf_addf(c->out, "H%.2fV%.2fZ\"><title>", c->left + c->width, bottom);
    add_text(c, curve->name);
    berth_strbuf_addf(c->out,
                      "</title></path>\n<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" "
                      "fill=\"#b3261e\"/>\n",
                      c->left + peak + 0.5, bottom - height);
}

// 1, 2 or 5 times a power of ten (of bytes: of the unit that fits), for at most about ten marks; 0
// where no such number is a double.
static double axis_step(const canvas *c) {
    double unit = 1;
    while (!c->in->unit && c->most / unit > 1024) unit *= 1024;
    double most = c->most / unit;
    double power = pow(10, floor(log10(most)) - 1);
    static const double steps[] = {1, 2, 5, 10};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i) {
        double step = steps[i] * power;
        if (isnormal(step) && most / step <= 10) return step * unit;
    }
    return 0;
}

static void draw_mark(const canvas *c, double value) {
    char text[64];
    format_value(c, value, text);
    double x = c->left + place_of(c, value);
    berth_strbuf_addf(c->out,
                      "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"#9aa5b1\"/>"
                      "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\" fill=\"#52606d\" "
                      "font-size=\"11\">%s</text>\n",
                      x, x, c->bottom, c->bottom + 5, x, c->bottom + 18, text);
}

static void draw_axis(const canvas *c) {
    double step = axis_step(c);
    draw_mark(c, 0);
    if (step == 0) draw_mark(c, c->most);
    for (int i = 1; step > 0 && i <= MARKS && i * step - c->most <= c->most * 1e-9; ++i)
        draw_mark(c, i * step);
}

static void draw_line(const canvas *c, const berth_timeline_line *line) {
    char text[64];
    format_value(c, line->at, text);
    double x = c->left + place_of(c, line->at);
    double top = MARGIN_TOP + (c->in->title ? TITLE_PX : 0) - 6;
    berth_strbuf_addf(c->out,
                      "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" "
                      "stroke-dasharray=\"4 3\"/>\n<text x=\"%.2f\" y=\"%.2f\" fill=\"%s\" "
                      "text-anchor=\"%s\" font-size=\"11\">",
                      x, x, top, c->bottom, line->colour, x + (line->to_left ? -4 : 4), top + 2,
                      line->colour, line->to_left ? "end" : "start");
    add_text(c, line->text);
    berth_strbuf_addf(c->out, " %s</text>\n", text);
}

// Draws the legend when `write`; lines that it takes.
static uint32_t draw_legend(const canvas *c, bool write) {
    double x = c->left;
    uint32_t line = 0;
    for (uint32_t i = 0; i < c->in->key_count; ++i) {
        const berth_timeline_key *key = &c->in->keys[i];
        double width = 35 + LETTER_PX * (double)strnlen(key->text, BERTH_TIMELINE_NAME_BYTES);
        if (x > c->left && x + width > c->left + c->width + c->right) {
            x = c->left;
            line++;
        }
        double y = c->bottom + 32 + NOTE_PX * (double)line;
        if (write) {
            berth_strbuf_addf(c->out,
                              "<rect x=\"%.2f\" y=\"%.2f\" width=\"12\" height=\"12\" fill=\"%s\"/>"
                              "<text x=\"%.2f\" y=\"%.2f\" font-size=\"11\" fill=\"#52606d\">",
                              x, y, key->colour, x + 17, y + 10);
            add_text(c, key->text);
            berth_strbuf_add(c->out, "</text>\n");
        }
        x += width;
    }
    return line + 1;
}

static void draw_notes(const canvas *c, uint32_t legend_lines) {
    for (uint32_t i = 0; i < c->in->note_count; ++i) {
        berth_strbuf_addf(c->out, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"11\" fill=\"#52606d\">",
                          c->left, c->bottom + 46 + (double)NOTE_PX * (legend_lines + i));
        add_text(c, c->in->notes[i]);
        berth_strbuf_add(c->out, "</text>\n");
    }
}

static void draw(const canvas *c) {
    uint32_t legend_lines = draw_legend(c, false);
    berth_strbuf_addf(c->out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                      c->left + c->width + c->right,
                      c->bottom + MARGIN_BOTTOM +
                          (double)NOTE_PX * (legend_lines - 1 + c->in->note_count));
    if (c->in->title) {
        berth_strbuf_addf(c->out, "<text x=\"%.2f\" y=\"20\" font-size=\"15\">", c->left);
        add_text(c, c->in->title);
        berth_strbuf_add(c->out, "</text>\n");
    }
    for (uint32_t r = 0; r < c->in->row_count; ++r) draw_row(c, r);
    for (uint32_t i = 0; i < c->in->curve_count; ++i) draw_curve(c, &c->in->curves[i]);
    for (uint32_t i = 0; i < c->box_count; ++i) draw_box(c, &c->boxes[i]);
    draw_axis(c);
    for (uint32_t i = 0; i < c->in->line_count; ++i) draw_line(c, &c->in->lines[i]);
    draw_legend(c, true);
    draw_notes(c, legend_lines);
    berth_strbuf_add(c->out, "</svg>\n");
}

void berth_timeline_draw(const berth_timeline *timeline, berth_strbuf *out) {
    canvas c = {.in = timeline, .out = out};
    c.scratch = berth_arena_create_child(out->arena);
    c.width = timeline->width_px ? timeline->width_px : DEFAULT_WIDTH;
    c.lanes = berth_arena_new_array(c.scratch, uint32_t, timeline->row_count);
    c.top = berth_arena_new_array(c.scratch, double, timeline->row_count);
    c.height = berth_arena_new_array(c.scratch, double, timeline->row_count);
    collect_boxes(&c);
    find_lanes(&c);
    thin_out(&c);
    place_rows(&c);
    draw(&c);
    berth_arena_destroy(c.scratch);
}
