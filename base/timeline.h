// A picture (SVG) of what is where and when: a row for each device, time (or bytes) to the right.
// Who draws it: placements (planner/solve/plot.h), and whoever has rows and spans.
//
//   berth_timeline picture = {.title = "resnet50", .unit = "ms", .rows = rows, .row_count = 2,
//                             .spans = spans, .span_count = n};
//   berth_timeline_draw(&picture, &out);
//
// Time and output are bounded whatever the figures are: spans too narrow to see are drawn together
// with their neighbours, more than BERTH_TIMELINE_LANES that overlap in a row share the last lane,
// long names are cut. O(n log n) for n spans; a few MB of text at most.
#ifndef BERTH_BASE_TIMELINE_H_
#define BERTH_BASE_TIMELINE_H_

#include <stdbool.h>

#include "base/str.h"

#define BERTH_TIMELINE_LANES 32u       // in a row, one below the other
#define BERTH_TIMELINE_BOXES 20000u    // about the most that are drawn
#define BERTH_TIMELINE_NAME_BYTES 200  // names are cut there

// All text is borrowed, any bytes, and escaped.
typedef struct berth_timeline_row {
    const char *name;
    const char *note;  // to the right of it; NULL = none
    bool unused;       // drawn thin
} berth_timeline_row;

// What takes [start, end) of a row. Spans that overlap are drawn below each other.
typedef struct berth_timeline_span {
    double start, end;  // finite, 0 <= start <= end; empty ones are left out
    uint32_t row;
    uint32_t group;      // only spans of one group are drawn as one box where that is possible
    const char *colour;  // as SVG has them: "#9aa5b1"
    const char *name;    // shown when pointed at
    const char *note;    // shown after it; NULL = none
    const char *label;   // inside the box where it fits; NULL = none
} berth_timeline_span;

// A quantity against time, filled, in a row of its own: values[i] holds from times[i] on, the last until
// the right edge. As high as the row where it is largest; that place is marked. Borrowed.
typedef struct berth_timeline_curve {
    uint32_t row;
    const double *times;   // finite, >= 0, rising
    const double *values;  // finite, >= 0
    uint32_t count;
    const char *colour;
    const char *name;  // shown when pointed at
} berth_timeline_curve;

// A dashed vertical line.
typedef struct berth_timeline_line {
    double at;
    const char *colour;
    const char *text;  // the figure follows it
    bool to_left;      // where the text is
} berth_timeline_line;

typedef struct berth_timeline_key {
    const char *colour;
    const char *text;
} berth_timeline_key;

typedef struct berth_timeline {
    const char *title;  // NULL = none
    const char *unit;   // "ms"; NULL = bytes
    bool moments;       // say when spans start and end, not only how long they are
    uint32_t width_px;  // of the drawing area; 0 = 900
    const berth_timeline_row *rows;
    uint32_t row_count;
    const berth_timeline_span *spans;
    uint32_t span_count;
    const berth_timeline_curve *curves;
    uint32_t curve_count;
    const berth_timeline_line *lines;
    uint32_t line_count;
    const berth_timeline_key *keys;  // the legend
    uint32_t key_count;
    const char *const *notes;  // lines below it
    uint32_t note_count;
} berth_timeline;

// Adds an SVG document. Inside berth_arena_try of the buffer's arena.
void berth_timeline_draw(const berth_timeline *timeline, berth_strbuf *out);

#endif  // BERTH_BASE_TIMELINE_H_
