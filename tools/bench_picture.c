#include "tools/bench_picture.h"

#include <math.h>

#include "base/axis.h"
#include "tools/latency.h"

enum {
    WIDTH = 640,
    HEIGHT = 320,  // of the drawing area
    MARGIN_LEFT = 80,
    MARGIN_RIGHT = 60,
    MARGIN_TOP = 56,
    MARGIN_BOTTOM = 58,
    POINTS = 320,
    LINE = 14,  // from a label to the next
};

typedef struct canvas {
    const berth_bench_facts *in;
    berth_strbuf *out;
    double most_ms, tick_ms;
    double decades;  // of the share of runs that take longer, at the right edge: 2 = 99 %
} canvas;

// The slowest tenth has as much room as the nine before it, the slowest hundredth again as much, and so on.
static double x_of(const canvas *c, double share) {
    double decades = share < 1 ? -log10(1 - share) : c->decades;
    return MARGIN_LEFT + WIDTH * fmin(decades, c->decades) / c->decades;
}

static double y_of(const canvas *c, double ms) {
    return MARGIN_TOP + HEIGHT * (1 - ms / c->most_ms);
}

static void draw_axes(const canvas *c) {
    static const double shares[] = {0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); ++i)
        if (i == 0 || -log10(1 - shares[i]) <= c->decades + 1e-9)
            berth_strbuf_addf(
                c->out,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#e3e7eb\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g %%</text>\n",
                x_of(c, shares[i]), x_of(c, shares[i]), MARGIN_TOP, MARGIN_TOP + HEIGHT,
                x_of(c, shares[i]), MARGIN_TOP + HEIGHT + 18, shares[i] * 100);
    for (double ms = 0; ms < c->most_ms + c->tick_ms / 2; ms += c->tick_ms)
        berth_strbuf_addf(c->out,
                          "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e3e7eb\"/>"
                          "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g ms</text>\n",
                          MARGIN_LEFT, MARGIN_LEFT + WIDTH, y_of(c, ms), y_of(c, ms),
                          MARGIN_LEFT - 8, y_of(c, ms) + 4, ms);
    berth_strbuf_addf(c->out,
                      "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">share of runs that take no "
                      "longer</text>\n",
                      MARGIN_LEFT + WIDTH / 2, MARGIN_TOP + HEIGHT + 44);
}

static void draw_predicted(const canvas *c) {
    double ms = c->in->predicted_ms;
    if (!(ms > 0)) return;
    berth_strbuf_addf(
        c->out,
        "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#b3261e\" "
        "stroke-dasharray=\"4 3\"/>"
        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#b3261e\">predicted: %s "
        "ms</text>\n",
        MARGIN_LEFT, MARGIN_LEFT + WIDTH, y_of(c, ms), y_of(c, ms), MARGIN_LEFT + WIDTH - 6,
        y_of(c, ms) - 5, berth_latency_print(ms).text);
}

static double latency(const canvas *c, double share) {
    return berth_latency_quantile(c->in->latency_ms, c->in->count, share);
}

static void draw_curve(const canvas *c) {
    static const double marks[] = {0.5, 0.9, 0.99};
    berth_strbuf_add(c->out, "<polyline fill=\"none\" stroke=\"#0b6bcb\" stroke-width=\"2\" "
                             "points=\"");
    for (int i = 0; i <= POINTS; ++i) {
        double share = i == POINTS ? 1 : 1 - pow(10, -c->decades * i / POINTS);
        berth_strbuf_addf(c->out, "%.1f,%.1f ", x_of(c, share), y_of(c, latency(c, share)));
    }
    berth_strbuf_add(c->out, "\"/>\n");
    const size_t count = sizeof(marks) / sizeof(marks[0]);
    for (size_t i = 0; i < count; ++i) {  // labels one above the other, the first at the left edge
        double ms = latency(c, marks[i]), above = y_of(c, ms) - 8 - LINE * (double)i;
        bool fits = y_of(c, latency(c, marks[count - 1])) - 8 - LINE * (double)count > MARGIN_TOP;
        berth_strbuf_addf(c->out,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#0b6bcb\"/>"
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">p%.0f %s ms</text>\n",
                          x_of(c, marks[i]), y_of(c, ms),
                          i ? x_of(c, marks[i]) - 6 : MARGIN_LEFT + 6.0,
                          fits ? above : y_of(c, ms) + 4 + LINE * (double)(count - i),
                          i ? "end" : "start", marks[i] * 100, berth_latency_print(ms).text);
    }
}

void berth_bench_draw(const berth_bench_facts *facts, berth_strbuf *out) {
    canvas c = {.in = facts, .out = out};
    double most_ms = fmax(facts->latency_ms[facts->count - 1], facts->predicted_ms);
    c.tick_ms = berth_axis_tick(most_ms, 1000);
    c.most_ms = c.tick_ms * fmax(ceil(most_ms / c.tick_ms), 1);
    c.decades = fmax(2, log10((double)facts->count));  // 99 % at least
    berth_strbuf_addf(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                      "<text x=\"%d\" y=\"24\" font-size=\"15\">",
                      WIDTH + MARGIN_LEFT + MARGIN_RIGHT, HEIGHT + MARGIN_TOP + MARGIN_BOTTOM,
                      MARGIN_LEFT);
    berth_strbuf_add_xml(out, facts->model, 70);
    berth_strbuf_addf(out,
                      "</text>\n<text x=\"%d\" y=\"42\" fill=\"#555\">latency of %llu runs, %u "
                      "stream%s: %.1f runs per second</text>\n",
                      MARGIN_LEFT, (unsigned long long)facts->count, facts->streams,
                      facts->streams == 1 ? "" : "s", facts->throughput_per_s);
    draw_axes(&c);
    draw_predicted(&c);
    draw_curve(&c);
    berth_strbuf_add(out, "</svg>\n");
}
