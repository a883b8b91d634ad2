// Pictures of rows against time: bounded for all figures, and XML for all names.
#include <criterion/criterion.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/timeline.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(timeline, .init = setup, .fini = teardown);

static uint32_t occurrences(const char *text, const char *part) {
    uint32_t count = 0;
    for (text = strstr(text, part); text; text = strstr(text + 1, part)) ++count;
    return count;
}

static const char *draw(const berth_timeline *picture) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_timeline_draw(picture, &out);
    cr_assert_eq(strncmp(out.data, "<svg ", 5), 0);
    cr_assert_not_null(strstr(out.data, "</svg>\n"));
    cr_assert_null(strstr(out.data, "nan"));
    cr_assert_null(strstr(out.data, "inf"));
    return out.data;
}

// One row, spans without labels.
static const char *draw_row(const char *unit, const berth_timeline_span *spans, uint32_t count) {
    const berth_timeline_row row = {.name = "cpu0"};
    const berth_timeline picture = {
        .unit = unit, .rows = &row, .row_count = 1, .spans = spans, .span_count = count};
    return draw(&picture);
}

Test(timeline, lanes_labels_and_marks) {
    const berth_timeline_row rows[] = {{.name = "a", .note = "5 ms"}, {.name = "b"}};
    const berth_timeline_span spans[] = {
        {.start = 0, .end = 4, .colour = "red", .name = "first", .label = "first"},
        {.start = 2, .end = 5, .colour = "red", .name = "second", .note = "why"},
        {.start = 4, .end = 5, .colour = "red", .name = "third"},
        {.start = 0, .end = 1, .row = 1, .colour = "red", .name = "fourth"}};
    const berth_timeline_line line = {.at = 10, .colour = "blue", .text = "bound"};
    const berth_timeline picture = {.title = "t",
                                    .unit = "ms",
                                    .moments = true,
                                    .rows = rows,
                                    .row_count = 2,
                                    .spans = spans,
                                    .span_count = 4,
                                    .lines = &line,
                                    .line_count = 1};
    const char *text = draw(&picture);
    // 900 px for 10 ms; two lanes of 15 px share the first row, from 54 on.
    cr_assert_not_null(strstr(text, "<rect x=\"70.00\" y=\"54.00\" width=\"360.00\""), "%s", text);
    cr_assert_not_null(strstr(text, "<rect x=\"250.00\" y=\"69.00\" width=\"270.00\""), "%s", text);
    cr_assert_not_null(strstr(text, "<rect x=\"430.00\" y=\"54.00\" width=\"90.00\""), "%s", text);
    cr_assert_not_null(strstr(text, "<title>second: 3 ms, from 2 to 5; why</title>"), "%s", text);
    cr_assert_not_null(strstr(text, ">first</text>"));
    cr_assert_not_null(strstr(text, ">5 ms</text>"));
    cr_assert_not_null(strstr(text, ">bound 10 ms</text>"));
    for (int i = 0; i <= 10; ++i) {
        char mark[32];
        snprintf(mark, sizeof(mark), ">%d ms</text>", i);
        cr_assert_not_null(strstr(text, mark), "%s", mark);
    }
}

// 900 px for 10 ms, and 28 px for the largest value, which is marked.
Test(timeline, curves) {
    static const double times[] = {0, 5, 10}, values[] = {1, 2, 0};
    const berth_timeline_row row = {.name = "memory", .note = "peak"};
    const berth_timeline_curve curve = {
        .times = times, .values = values, .count = 3, .colour = "green", .name = "<bytes>"};
    const berth_timeline picture = {
        .unit = "ms", .rows = &row, .row_count = 1, .curves = &curve, .curve_count = 1};
    const char *text = draw(&picture);
    cr_assert_not_null(strstr(text, "d=\"M70.00 54.00H70V40.00H520V26.00H970.00V54.00Z\""), "%s",
                       text);
    cr_assert_not_null(strstr(text, "<circle cx=\"520.50\" cy=\"26.00\""), "%s", text);
    cr_assert_not_null(strstr(text, "<title>&lt;bytes&gt;</title>"), "%s", text);
    cr_assert_not_null(strstr(text, ">10 ms</text>"), "%s", text);
}

// As many steps as one likes are a path of at most one step per pixel.
Test(timeline, curves_are_bounded) {
    enum { COUNT = 300000 };
    double *times = berth_arena_new_array(arena, double, COUNT);
    double *values = berth_arena_new_array(arena, double, COUNT);
    for (uint32_t i = 0; i < COUNT; ++i) {
        times[i] = i;
        values[i] = i % 2 ? DBL_MAX : 5e-324;
    }
    const berth_timeline_row row = {.name = "memory"};
    const berth_timeline_curve curves[] = {
        {.times = times, .values = values, .count = COUNT, .colour = "green", .name = "n"},
        {.colour = "green", .name = "none"}};
    const berth_timeline picture = {
        .unit = "ms", .rows = &row, .row_count = 1, .curves = curves, .curve_count = 2};
    const char *text = draw(&picture);
    cr_assert_eq(occurrences(text, "<path"), 1);
    cr_assert_leq(occurrences(text, "V"), 901);
}

// Keys that do not fit one line go on in the next.
Test(timeline, legend_in_lines) {
    berth_timeline_key keys[12];
    for (int i = 0; i < 12; ++i)
        keys[i] = (berth_timeline_key){"red", "an operator with a long name"};
    const berth_timeline_row row = {.name = "r"};
    const berth_timeline picture = {
        .unit = "ms", .rows = &row, .row_count = 1, .keys = keys, .key_count = 12};
    const char *text = draw(&picture);
    unsigned width = 0;
    cr_assert_eq(sscanf(strstr(text, " width=\""), " width=\"%u\"", &width), 1);
    for (const char *at = text; (at = strstr(at, "width=\"12\"")); ++at) {
        double x = 0, y = 0;
        const char *start = at;
        while (strncmp(start, "<rect", 5) != 0) --start;
        cr_assert_eq(sscanf(start, "<rect x=\"%lf\" y=\"%lf\"", &x, &y), 2);
        cr_assert_lt(x + 28 * 7, width);
    }
    cr_assert_eq(occurrences(text, "an operator with"), 12);
}

Test(timeline, ends_for_every_figure) {
    static const double figures[] = {5e-324,  1e-320, DBL_MIN, 1e-300, 9.999e-5, 1,
                                     1023.99, 1024.1, 1e18,    1e24,   1e300,    DBL_MAX};
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); ++i) {
        const berth_timeline_span spans[] = {
            {.start = 0, .end = figures[i], .colour = "red", .name = "n"},
            {.start = figures[i] / 2, .end = figures[i], .colour = "red", .name = "n"}};
        for (int bytes = 0; bytes < 2; ++bytes) {
            const char *text = draw_row(bytes ? NULL : "ms", spans, 2);
            uint32_t marks = occurrences(text, "<line ");
            cr_assert(marks >= 2 && marks <= 13, "%g: %u marks", figures[i], marks);
        }
    }
    draw_row("ms", NULL, 0);
}

// Spans of all lengths that lie anywhere, overlap, or have gaps between them: all are counted, and
// few are drawn.
Test(timeline, output_is_bounded) {
    enum { COUNT = 300000 };
    berth_timeline_span *spans = berth_arena_new_array(arena, berth_timeline_span, COUNT);
    for (int overlap = 0; overlap < 3; ++overlap) {
        uint64_t random = 1;
        for (uint32_t i = 0; i < COUNT; ++i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            double at = (double)(random >> 33);
            double length = overlap == 0 ? 0.4 : overlap == 1 ? (double)(i % 1000 + 1) * 1e5 : 2e9;
            spans[i] = (berth_timeline_span){.start = overlap ? at : i,
                                             .end = (overlap ? at : i) + length,
                                             .group = i % 3,
                                             .colour = "red",
                                             .name = "n"};
        }
        const char *text = draw_row("ms", spans, COUNT);
        uint32_t drawn = 0;
        uint32_t spans_in = 0;
        for (const char *at = strstr(text, "<title>n"); at; at = strstr(at + 1, "<title>n")) {
            ++drawn;
            unsigned more = 0;
            spans_in += sscanf(at, "<title>n and %u more", &more) == 1 ? more + 1 : 1;
        }
        cr_assert_eq(spans_in, COUNT, "%d: %u", overlap, spans_in);
        cr_assert_leq(drawn, BERTH_TIMELINE_BOXES);
        cr_assert_geq(drawn, BERTH_TIMELINE_LANES, "%d: %u", overlap, drawn);
        cr_assert_lt(strlen(text), (size_t)6 << 20);
    }
}

Test(timeline, any_bytes_are_xml) {
    char *huge = berth_arena_alloc(arena, 1 << 20);
    memset(huge, 'x', (1 << 20) - 1);
    const char *const names[] = {"</title><script>&\"'", "\x1b[31m\x7f\xc2\x9b", "\xff\xc0\xaf",
                                 "\xef\xbf\xbe\xef\xbf\xbf\xed\xa0\x80", huge};
    const char *const parts[] = {">&lt;/title&gt;&lt;script&gt;&amp;&quot;&#39;<",
                                 "> [31m \xef\xbf\xbd<", ">\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd<",
                                 ">\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd<",
                                 "xxx...<"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        const berth_timeline_row row = {.name = names[i], .note = names[i]};
        const berth_timeline_span span = {
            .end = 1, .colour = "red", .name = names[i], .note = names[i], .label = names[i]};
        const berth_timeline picture = {.title = names[i],
                                        .unit = "ms",
                                        .rows = &row,
                                        .row_count = 1,
                                        .spans = &span,
                                        .span_count = 1};
        const char *text = draw(&picture);
        cr_assert_geq(occurrences(text, parts[i]), 3, "%zu: %s", i, text);
        cr_assert_lt(strlen(text), 8192);
        for (const unsigned char *at = (const unsigned char *)text; *at; ++at)
            cr_assert(*at >= 0x20 || *at == '\n');
    }
}

Test(timeline, cut_text_keeps_whole_characters) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_strbuf_add_xml(&out, "ab\xc3\xa9\xc3\xa9\xc3\xa9", 8);
    cr_assert_str_eq(out.data, "ab\xc3\xa9\xc3\xa9\xc3\xa9");
    berth_strbuf out2 = berth_strbuf_make(arena);
    berth_strbuf_add_xml(&out2, "ab\xc3\xa9\xc3\xa9\xc3\xa9", 7);
    cr_assert_str_eq(out2.data, "ab\xc3\xa9...");
}
