// A box for each memory that is a device's own, with its devices inside and the other memories that
// these reach; lines for links behind the boxes. Memories of CPUs stand above the others. Where links
// of one bandwidth join each memory of a group with each, a mark in their boxes says so instead.
#include "toolkit/machine_picture.h"

#include <string.h>

enum {
    BOX_WIDTH = 250,
    BOX_GAP_X = 60,
    BOX_GAP_Y = 70,
    MARGIN = 30,
    TITLE_PX = 40,
    HEAD_PX = 44,    // a memory's two lines
    DEVICE_PX = 58,  // three lines
    OTHER_PX = 40,
    INSET = 10,
    MOST_IN_ROW = 6,
    MOST_LABELS = 12,  // more links than that are told apart by colour alone
    LEAST_GROUP = 4,
    MARK_PX = 10,
    CLASSES = 6,
    NAME_BYTES = 30
};

// Tints and lines that differ for the common kinds of colour blindness (Okabe and Ito 2008).
static const char *const tints[] = {
    [BERTH_DEVICE_CPU] = "#ddeffa",    [BERTH_DEVICE_OPENCL] = "#fbecd0",
    [BERTH_DEVICE_VULKAN] = "#f7e9f1", [BERTH_DEVICE_CUDA] = "#d9f0e8",
    [BERTH_DEVICE_VTA] = "#fbf7cf",    [BERTH_DEVICE_NPU] = "#fbe6cf",
    [BERTH_DEVICE_NULL] = "#eeeeee"};
static const char *const classes[CLASSES] = {"#0072b2", "#d55e00", "#009e73",
                                             "#cc79a7", "#e69f00", "#7f8c8d"};

typedef struct place {
    double x, y, height;
    bool drawn;  // a box of its own
} place;

typedef struct picture {
    const berth_multi_target *target;
    berth_strbuf *out;
    place *places;  // by memory
    double width, bottom;
    double bandwidths[CLASSES];  // of links, the first five that differ
    uint32_t counts[CLASSES];    // the last holds the rest
    uint32_t class_count;
    uint32_t groups[CLASSES];  // memories that the class joins each with each; 0 = it does not
} picture;

static bool is_own(const picture *p, uint32_t memory) {
    for (uint32_t d = 0; d < p->target->device_count; ++d)
        if (p->target->devices[d].own_memory == memory) return true;
    return false;
}

static bool has_cpu(const picture *p, uint32_t memory) {
    for (uint32_t d = 0; d < p->target->device_count; ++d)
        if (p->target->devices[d].own_memory == memory &&
            berth_device_kind_is_host(p->target->devices[d].target->kind))
            return true;
    return false;
}

// The box in which a memory that is nobody's own is drawn.
static uint32_t box_of(const picture *p, uint32_t memory) {
    for (uint32_t d = 0; d < p->target->device_count; ++d)
        if (berth_bits_has(p->target->memories[memory].reached_by, d))
            return p->target->devices[d].own_memory;
    return memory;
}

static double height_of(const picture *p, uint32_t memory) {
    double height = HEAD_PX + INSET;
    for (uint32_t d = 0; d < p->target->device_count; ++d)
        if (p->target->devices[d].own_memory == memory) height += DEVICE_PX + INSET;
    for (uint32_t m = 0; m < p->target->memory_count; ++m)
        if (!is_own(p, m) && m != memory && box_of(p, m) == memory) height += OTHER_PX + INSET;
    return height;
}

static uint32_t machine_of(const picture *p, uint32_t memory) {
    for (uint32_t d = 0; d < p->target->device_count; ++d)
        if (p->target->devices[d].own_memory == memory) return p->target->devices[d].machine;
    return 0;
}

// ---- layout ----

typedef struct row {
    uint32_t count;
    double top, height;
} row;

static void end_row(picture *p, row *r) {
    if (r->count == 0) return;
    *r = (row){.top = r->top + r->height + BOX_GAP_Y};
    p->bottom = r->top - BOX_GAP_Y;
}

static void lay_out(picture *p) {
    row r = {.top = MARGIN + TITLE_PX};
    for (uint32_t machine = 0; machine < p->target->machine_count; ++machine)
        for (int cpus = 1; cpus >= 0; --cpus) {
            for (uint32_t m = 0; m < p->target->memory_count; ++m) {
                bool own = is_own(p, m) || box_of(p, m) == m;
                if (!own || machine_of(p, m) != machine || has_cpu(p, m) != (cpus == 1)) continue;
                if (r.count == MOST_IN_ROW) end_row(p, &r);
                place *at = &p->places[m];
                *at = (place){.x = MARGIN + r.count * (BOX_WIDTH + BOX_GAP_X),
                              .y = r.top,
                              .height = height_of(p, m),
                              .drawn = true};
                if (at->height > r.height) r.height = at->height;
                if (at->x + BOX_WIDTH + MARGIN > p->width) p->width = at->x + BOX_WIDTH + MARGIN;
                r.count++;
            }
            end_row(p, &r);
        }
}

// ---- links ----

static void classify(picture *p) {
    for (uint32_t i = 0; i < p->target->link_count; ++i) {
        double bandwidth = p->target->links[i].bandwidth_bytes_per_s;
        uint32_t at = 0;
        while (at < p->class_count && p->bandwidths[at] != bandwidth) ++at;
        if (at == p->class_count && at < CLASSES - 1) p->bandwidths[p->class_count++] = bandwidth;
        if (at >= CLASSES - 1) at = CLASSES - 1;
        p->counts[at]++;
    }
}

static uint32_t class_of(const picture *p, double bandwidth) {
    for (uint32_t i = 0; i < p->class_count; ++i)
        if (p->bandwidths[i] == bandwidth) return i;
    return CLASSES - 1;
}

// A link of the class at `memory`, to `other` or (UINT32_MAX) to any.
static bool has_link_of(const picture *p, uint32_t memory, uint32_t other, uint32_t class) {
    for (uint32_t i = 0; i < p->target->link_count; ++i) {
        const berth_target_link *link = &p->target->links[i];
        if (class_of(p, link->bandwidth_bytes_per_s) != class) continue;
        if (link->from == memory && (other == UINT32_MAX || link->to == other)) return true;
        if (link->to == memory && (other == UINT32_MAX || link->from == other)) return true;
    }
    return false;
}

static bool is_member(const picture *p, uint32_t memory, uint32_t class) {
    return has_link_of(p, memory, UINT32_MAX, class);
}

static void find_groups(picture *p) {
    for (uint32_t class = 0; class < p->class_count; ++class) {
        uint32_t members = 0;
        bool all = true;
        for (uint32_t a = 0; a < p->target->memory_count; ++a) {
            if (!is_member(p, a, class)) continue;
            members++;
            for (uint32_t b = a + 1; b < p->target->memory_count && all; ++b)
                all = !is_member(p, b, class) || has_link_of(p, a, b, class);
        }
        if (all && members >= LEAST_GROUP) p->groups[class] = members;
    }
}

static const place *end_of(const picture *p, uint32_t memory) {
    return &p->places[p->places[memory].drawn ? memory : box_of(p, memory)];
}

// From the side of a box that faces the other.
static void add_line(picture *p, const berth_target_link *link, uint32_t index) {
    const place *a = end_of(p, link->from), *b = end_of(p, link->to);
    if (p->groups[class_of(p, link->bandwidth_bytes_per_s)]) return;
    double shift = (double)(index % 7) * 12 - 36;  // lines between the same rows side by side
    double x1 = a->x + BOX_WIDTH / 2.0 + shift, x2 = b->x + BOX_WIDTH / 2.0 + shift;
    double y1 = a->y + a->height, y2 = b->y;
    if (a->y > b->y) {
        y1 = a->y;
        y2 = b->y + b->height;
    } else if (a->y + 0.5 > b->y) {  // in one row: an arc below
        y2 = b->y + b->height;
    }
    bool beside = a->y + 0.5 > b->y && b->y + 0.5 > a->y;
    double low = (y1 > y2 ? y1 : y2) + 14 + (double)(index % 5) * 9;
    berth_strbuf_addf(p->out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" d=\"",
                      classes[class_of(p, link->bandwidth_bytes_per_s)],
                      p->target->link_count > 40 ? "0.7" : "1.6");
    if (beside)
        berth_strbuf_addf(p->out, "M%.1f %.1f V%.1f H%.1f V%.1f", x1, y1, low, x2, y2);
    else
        berth_strbuf_addf(p->out, "M%.1f %.1f L%.1f %.1f", x1, y1, x2, y2);
    berth_strbuf_add(p->out, "\"><title>");
    berth_strbuf_add_xml(p->out, p->target->memories[link->from].name, NAME_BYTES);
    berth_strbuf_add(p->out, " - ");
    berth_strbuf_add_xml(p->out, p->target->memories[link->to].name, NAME_BYTES);
    berth_strbuf_addf(p->out, ": %.4g GB/s, %llu ns, bus ", link->bandwidth_bytes_per_s / 1e9,
                      (unsigned long long)link->latency_ns);
    berth_strbuf_add_xml(p->out, link->bus, NAME_BYTES);
    berth_strbuf_add(p->out, "</title></path>\n");
    if (p->target->link_count > MOST_LABELS) return;
    berth_strbuf_addf(
        p->out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" fill=\"#333\">%.4g GB/s</text>\n",
        (x1 + x2) / 2 + 3, beside ? low - 2 : (y1 + y2) / 2 + (index % 2 ? 12 : 0),
        link->bandwidth_bytes_per_s / 1e9);
}

static void add_legend(picture *p) {
    double y = p->bottom + 84;
    for (uint32_t i = 0; i < CLASSES; ++i) {
        if (p->counts[i] == 0) continue;
        berth_strbuf_addf(p->out,
                          "<path d=\"M%d %.1f h24\" stroke=\"%s\" stroke-width=\"3\"/>"
                          "<text x=\"%d\" y=\"%.1f\">",
                          MARGIN, y - 4, classes[i], MARGIN + 32, y);
        if (p->groups[i])
            berth_strbuf_addf(p->out, "%.4g GB/s, each of %u with each", p->bandwidths[i] / 1e9,
                              p->groups[i]);
        else if (i == CLASSES - 1)
            berth_strbuf_add(p->out, "other bandwidths");
        else
            berth_strbuf_addf(p->out, "%.4g GB/s", p->bandwidths[i] / 1e9);
        berth_strbuf_addf(p->out, ": %u link%s</text>\n", p->counts[i],
                          p->counts[i] == 1 ? "" : "s");
        y += 18;
    }
}

// ---- boxes ----

static void add_rect(picture *p, double x, double y, double width, double height,
                     const char *fill) {
    berth_strbuf_addf(p->out,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" "
                      "fill=\"%s\" stroke=\"#7b8794\"/>\n",
                      x, y, width, height, fill);
}

static void begin_text(picture *p, double x, double y, bool strong) {
    berth_strbuf_addf(p->out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y,
                      strong ? " font-weight=\"bold\"" : "");
}

static void add_memory(picture *p, uint32_t index, double x, double y) {
    const berth_target_memory *m = &p->target->memories[index];
    char capacity[32];
    berth_format_bytes(m->capacity_bytes, capacity);
    begin_text(p, x, y + 17, true);
    berth_strbuf_add_xml(p->out, m->name, NAME_BYTES);
    berth_strbuf_add(p->out, "</text>\n");
    begin_text(p, x, y + 34, false);
    if (strcmp(m->scope, "global") != 0) {
        berth_strbuf_add_xml(p->out, m->scope, NAME_BYTES / 2);
        berth_strbuf_add(p->out, ", ");
    }
    berth_strbuf_addf(p->out, "%s, %.4g GB/s, %llu ns%s</text>\n", capacity,
                      m->bandwidth_bytes_per_s / 1e9, (unsigned long long)m->latency_ns,
                      m->holds_constants ? ", constants" : "");
}

static void add_device(picture *p, uint32_t index, double x, double y) {
    const berth_target_device *d = &p->target->devices[index];
    const berth_target *t = d->target;
    add_rect(p, x, y, BOX_WIDTH - 2 * INSET, DEVICE_PX, tints[t->kind]);
    begin_text(p, x + 8, y + 16, true);
    berth_strbuf_add_xml(p->out, d->name, NAME_BYTES);
    berth_strbuf_addf(p->out, "</text>\n");
    begin_text(p, x + 8, y + 33, false);
    berth_strbuf_addf(p->out, "%s ", berth_device_kind_name(t->kind));
    berth_strbuf_add_xml(p->out, *t->model ? t->model : *t->cpu ? t->cpu : t->arch, NAME_BYTES - 6);
    berth_strbuf_add(p->out, "</text>\n");
    begin_text(p, x + 8, y + 50, false);
    if (t->cores)
        berth_strbuf_addf(p->out, "%lld core%s, ", (long long)t->cores, t->cores == 1 ? "" : "s");
    if (t->compute_units) berth_strbuf_addf(p->out, "%lld units, ", (long long)t->compute_units);
    double peak = t->peak_flops[BERTH_DTYPE_F32];
    berth_strbuf_addf(p->out, "%.3g GHz, %.3g %cFLOP/s</text>\n", (double)t->clock_hz / 1e9,
                      peak / (peak < 1e12 ? 1e9 : 1e12), peak < 1e12 ? 'G' : 'T');
}

static void add_marks(picture *p, uint32_t memory) {
    const place *at = &p->places[memory];
    double x = at->x + BOX_WIDTH - INSET - MARK_PX;
    for (uint32_t class = 0; class < p->class_count; ++class) {
        if (!p->groups[class] || !is_member(p, memory, class)) continue;
        add_rect(p, x, at->y + INSET, MARK_PX, MARK_PX, classes[class]);
        x -= MARK_PX + 4;
    }
}

static void add_box(picture *p, uint32_t memory) {
    const place *at = &p->places[memory];
    add_rect(p, at->x, at->y, BOX_WIDTH, at->height, "#f5f7f9");
    add_marks(p, memory);
    add_memory(p, memory, at->x + INSET, at->y);
    double y = at->y + HEAD_PX;
    for (uint32_t d = 0; d < p->target->device_count; ++d) {
        if (p->target->devices[d].own_memory != memory) continue;
        add_device(p, d, at->x + INSET, y);
        y += DEVICE_PX + INSET;
    }
    for (uint32_t m = 0; m < p->target->memory_count; ++m) {
        if (is_own(p, m) || m == memory || box_of(p, m) != memory) continue;
        add_rect(p, at->x + INSET, y, BOX_WIDTH - 2 * INSET, OTHER_PX, "#ffffff");
        add_memory(p, m, at->x + 2 * INSET, y);
        y += OTHER_PX + INSET;
    }
}

void berth_machine_picture_svg(const berth_multi_target *target, berth_strbuf *out) {
    picture p = {.target = target, .out = out, .width = 420};
    p.places = berth_arena_new_array(out->arena, place, target->memory_count);
    lay_out(&p);
    classify(&p);
    find_groups(&p);
    uint32_t legend = 0;
    for (uint32_t i = 0; i < CLASSES; ++i) legend += p.counts[i] > 0;
    berth_strbuf_addf(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                      "<text x=\"%d\" y=\"%d\" font-size=\"16\">",
                      p.width, p.bottom + MARGIN + (legend ? 60 + 18 * legend : 0), MARGIN, MARGIN);
    berth_strbuf_add_xml(out, *target->name ? target->name : "machine", 2 * NAME_BYTES);
    berth_strbuf_add(out, "</text>\n");
    for (uint32_t i = 0; i < target->link_count; ++i) add_line(&p, &target->links[i], i);
    for (uint32_t m = 0; m < target->memory_count; ++m)
        if (p.places[m].drawn) add_box(&p, m);
    add_legend(&p);
    berth_strbuf_add(out, "</svg>\n");
}
