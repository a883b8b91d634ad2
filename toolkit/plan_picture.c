#include "toolkit/plan_picture.h"

#include <string.h>

// Colours that differ for the common kinds of colour blindness (Okabe and Ito 2008).
static const char *const palette[] = {"#56b4e9", "#e69f00", "#009e73", "#cc79a7",
                                      "#f0e442", "#0072b2", "#d55e00"};
enum { palette_size = sizeof(palette) / sizeof(palette[0]) };

// XML, for labels in HTML form and quoted attributes; Graphviz reads escapes behind a backslash.
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

enum { row_height = 44, left = 120, width = 1000, top = 40 };

static void add_box(berth_strbuf *out, double x, double w, double y, const char *colour,
                    const char *title, const char *label, double time_ns) {
    berth_strbuf_addf(
        out,
        "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"%s\" stroke=\"#333\" "
        "stroke-width=\"0.4\"><title>",
        x, y, w < 0.6 ? 0.6 : w, row_height - 12, colour);
    add_escaped(out, title);
    berth_strbuf_addf(out, ", %.1f us</title></rect>\n", time_ns / 1e3);
    enum { letter_width = 7 };
    if (w < (double)(strlen(label) * letter_width)) return;
    berth_strbuf_addf(out, "<text x=\"%.2f\" y=\"%.1f\" text-anchor=\"middle\">", x + w / 2,
                      y + 21);
    add_escaped(out, label);
    berth_strbuf_add(out, "</text>\n");
}

// Everything one after the other, as the picture draws it.
static double drawn_ns(const berth_plan *plan) {
    double total = 0;
    for (uint32_t i = 0; i < plan->entry_count; ++i) total += plan->entries[i].time_ns;
    for (uint32_t i = 0; i < plan->copy_count; ++i) total += plan->copies[i].time_ns;
    return total > 0 ? total : 1;
}

// One row per device; operations in plan order, each as wide as its predicted time; copies in grey
// on the receiving row.
void berth_plan_picture_svg(const berth_model *model, berth_strbuf *out) {
    const berth_program *program = berth_model_program(model);
    const berth_plan *plan = berth_model_plan(model);
    double total = drawn_ns(plan);
    double scale = width / total;
    uint32_t height = top + program->device_count * row_height + 40;
    berth_strbuf_addf(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
                      "font-family=\"sans-serif\" "
                      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                      "<text x=\"10\" y=\"22\" font-size=\"15\">",
                      left + width + 20, height);
    add_escaped(out, program->name);
    berth_strbuf_addf(out, ": predicted %.3f ms</text>\n", plan->predicted_ns / 1e6);
    for (uint32_t d = 0; d < program->device_count; ++d) {
        berth_strbuf_addf(out, "<text x=\"10\" y=\"%u\">", top + d * row_height + 22);
        add_escaped(out, program->devices[d].name);
        berth_strbuf_add(out, "</text>\n");
    }
    double at = 0;
    uint32_t copy = 0;
    for (uint32_t i = 0; i < plan->entry_count; ++i) {
        const berth_plan_entry *entry = &plan->entries[i];
        for (; copy < plan->copy_count && plan->copies[copy].before == entry->op; ++copy) {
            const berth_plan_copy *c = &plan->copies[copy];
            add_box(out, left + at * scale, c->time_ns * scale, top + c->to * row_height, "#bbbbbb",
                    "copy", "copy", c->time_ns);
            at += c->time_ns;
        }
        const char *title = berth_arena_printf(
            out->arena, "%s (%s) on %s: %s", program->placements[i].node, program->placements[i].op,
            program->devices[entry->device].name, entry->reason);
        add_box(out, left + at * scale, entry->time_ns * scale, top + entry->device * row_height,
                palette[entry->device % palette_size], title, program->placements[i].node,
                entry->time_ns);
        at += entry->time_ns;
    }
    berth_strbuf_addf(out,
                      "<text x=\"%d\" y=\"%u\">0</text><text x=\"%d\" y=\"%u\" "
                      "text-anchor=\"end\">%.3f ms</text>\n",
                      left, height - 12, left + width, height - 12, total / 1e6);
    berth_strbuf_add(out, "</svg>\n");
}
