// What a quantisation did and lost: text, JSON, and a picture with a bar per layer.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "toolkit/quantize/quantize.h"

static const char *decibels(double value, char out[32]) {
    if (!isfinite(value))
        strcpy(out, value > 0 ? "exact" : "-");
    else
        snprintf(out, 32, "%.1f dB", value);
    return out;
}

// ---- text ---------------------------------------------------------------------------------------

static void add_totals(const berth_quantize_result *r, berth_strbuf *out) {
    char before[32], after[32], text[32];
    berth_format_bytes(r->weight_bytes, before);
    berth_format_bytes(r->quantized_bytes, after);
    berth_strbuf_addf(out,
                      "%u of %u layers quantised, %u activations; their weights take %s, before "
                      "%s\n",
                      r->quantized_count, r->layer_count, r->tensor_count, after, before);
    for (uint32_t i = 0; i < r->output_count; ++i)
        berth_strbuf_addf(out, "output %s: %s, largest error %.4g, mean error %.4g\n",
                          r->outputs[i].name, decibels(r->outputs[i].sqnr, text),
                          r->outputs[i].max_error, r->outputs[i].mean_error);
    if (r->row_count)
        berth_strbuf_addf(out, "largest class as in the float model: %.2f %% of %llu rows\n",
                          100 * r->agreement, (unsigned long long)r->row_count);
    if (r->has_labels)
        berth_strbuf_addf(out, "right by the labels: %.2f %%, the float model %.2f %%\n",
                          100 * r->accuracy, 100 * r->float_accuracy);
    berth_strbuf_addf(out, "loss: %.3f %% over %u data sets (%s)\n", 100 * r->drop, r->set_count,
                      r->has_labels  ? "of accuracy"
                      : r->row_count ? "of rows with another class"
                                     : "noise over signal of the outputs");
}

static void add_text(const berth_quantize_result *r, berth_strbuf *out) {
    size_t width = 5;
    int op_width = 6;
    for (uint32_t i = 0; i < r->layer_count; ++i) {
        size_t length = strlen(r->layers[i].name);
        if (length > width) width = length < 48 ? length : 48;
    }
    for (uint32_t i = 0; i < r->layer_count; ++i)
        if ((int)strlen(r->layers[i].op) > op_width) op_width = (int)strlen(r->layers[i].op);
    berth_strbuf_addf(out, "%-*s  %-*s  %9s  %9s  %9s  %s\n", (int)width, "layer", op_width, "",
                      "weights", "alone", "in all", "largest error alone");
    for (uint32_t i = 0; i < r->layer_count; ++i) {
        const berth_quantize_layer *layer = &r->layers[i];
        char weights[32], alone[32], total[32];
        berth_strbuf_addf(out, "%-*s  %-*s  ", (int)width, layer->name, op_width, layer->op);
        if (layer->kept) {
            berth_strbuf_addf(out, "float: %s\n", layer->kept);
            continue;
        }
        berth_strbuf_addf(out, "%9s  %9s  %9s  %.4g\n", decibels(layer->weight_sqnr, weights),
                          decibels(layer->sqnr, alone), decibels(layer->total_sqnr, total),
                          layer->max_error);
    }
    for (uint32_t i = 0; i < r->note_count; ++i) berth_strbuf_addf(out, "%s\n", r->notes[i]);
    add_totals(r, out);
}

// ---- JSON ---------------------------------------------------------------------------------------

static void add_name(berth_strbuf *out, const char *key, const char *text) {
    berth_strbuf_addf(out, "\"%s\": ", key);
    berth_strbuf_add_json(out, text);
}

static void add_number(berth_strbuf *out, const char *key, double value) {
    char text[32];
    berth_format_f64(value, text);
    berth_strbuf_addf(out, ", \"%s\": %s", key, isfinite(value) ? text : "null");
}

static void add_layer_json(const berth_quantize_layer *layer, berth_strbuf *out) {
    berth_strbuf_add(out, "{");
    add_name(out, "name", layer->name);
    berth_strbuf_add(out, ", ");
    add_name(out, "op", layer->op);
    if (layer->kept) {
        berth_strbuf_add(out, ", ");
        add_name(out, "float_because", layer->kept);
    } else {
        add_number(out, "weight_sqnr_db", layer->weight_sqnr);
        add_number(out, "sqnr_db", layer->sqnr);
        add_number(out, "max_error", layer->max_error);
        add_number(out, "total_sqnr_db", layer->total_sqnr);
    }
    berth_strbuf_add(out, "}");
}

static void add_json(const berth_quantize_result *r, berth_strbuf *out) {
    berth_strbuf_addf(out,
                      "{\"layers_quantized\": %u, \"activations\": %u, \"data_sets\": %u, "
                      "\"rows\": %llu, \"opset\": %lld, \"equalized_pairs\": %u, "
                      "\"weight_bytes_before\": %llu, \"weight_bytes\": %llu",
                      r->quantized_count, r->tensor_count, r->set_count,
                      (unsigned long long)r->row_count, (long long)r->opset, r->equalized_count,
                      (unsigned long long)r->weight_bytes, (unsigned long long)r->quantized_bytes);
    if (r->row_count) add_number(out, "agreement", r->agreement);
    if (r->has_labels) {
        add_number(out, "float_accuracy", r->float_accuracy);
        add_number(out, "accuracy", r->accuracy);
    }
    add_number(out, "loss", r->drop);
    berth_strbuf_add(out, ",\n \"outputs\": [");
    for (uint32_t i = 0; i < r->output_count; ++i) {
        berth_strbuf_add(out, i ? ",\n  {" : "\n  {");
        add_name(out, "name", r->outputs[i].name);
        add_number(out, "sqnr_db", r->outputs[i].sqnr);
        add_number(out, "max_error", r->outputs[i].max_error);
        add_number(out, "mean_error", r->outputs[i].mean_error);
        berth_strbuf_add(out, "}");
    }
    berth_strbuf_add(out, "],\n \"layers\": [");
    for (uint32_t i = 0; i < r->layer_count; ++i) {
        berth_strbuf_add(out, i ? ",\n  " : "\n  ");
        add_layer_json(&r->layers[i], out);
    }
    berth_strbuf_add(out, "],\n \"notes\": [");
    for (uint32_t i = 0; i < r->note_count; ++i) {
        if (i) berth_strbuf_add(out, ", ");
        berth_strbuf_add_json(out, r->notes[i]);
    }
    berth_strbuf_add(out, "]}\n");
}

// ---- the picture --------------------------------------------------------------------------------

enum { ROW_PX = 22, NAME_PX = 260, BAR_PX = 520, TOP_PX = 64, MOST_DECIBELS = 60 };

static double bar_px(double value) {
    double shown = value < 0 ? 0 : value > MOST_DECIBELS ? MOST_DECIBELS : value;
    return shown / MOST_DECIBELS * BAR_PX;
}

static void add_bar(const berth_quantize_layer *layer, int y, berth_strbuf *out) {
    char alone[32], total[32];
    berth_strbuf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", NAME_PX - 8, y + 14);
    berth_strbuf_add_xml(out, layer->name, 40);
    berth_strbuf_add(out, "</text>");
    if (layer->kept) {
        berth_strbuf_addf(out, "<text x=\"%d\" y=\"%d\" fill=\"#8a6d3b\">float: ", NAME_PX + 4,
                          y + 14);
        berth_strbuf_add_xml(out, layer->kept, 90);
        berth_strbuf_add(out, "</text>\n");
        return;
    }
    berth_strbuf_addf(out,
                      "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"8\" fill=\"#4c78a8\"/>"
                      "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"8\" fill=\"#f2a65a\"/>",
                      NAME_PX, y + 2, bar_px(layer->sqnr), NAME_PX, y + 11,
                      bar_px(layer->total_sqnr));
    berth_strbuf_addf(out, "<text x=\"%d\" y=\"%d\">%s, %s</text>\n", NAME_PX + BAR_PX + 8, y + 14,
                      decibels(layer->sqnr, alone), decibels(layer->total_sqnr, total));
}

static void add_svg(const berth_quantize_result *r, berth_strbuf *out) {
    int height = TOP_PX + (int)r->layer_count * ROW_PX + 24, width = NAME_PX + BAR_PX + 160;
    berth_strbuf_addf(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
                      "<text x=\"%d\" y=\"20\">Signal to quantisation noise per layer: the layer "
                      "alone (blue), in the whole model (orange)</text>\n",
                      width, height, NAME_PX);
    for (int tick = 0; tick <= MOST_DECIBELS; tick += 10)
        berth_strbuf_addf(out,
                          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#dddddd\"/>"
                          "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d dB</text>\n",
                          NAME_PX + bar_px(tick), NAME_PX + bar_px(tick), TOP_PX - 8, height - 16,
                          NAME_PX + bar_px(tick), TOP_PX - 14, tick);
    for (uint32_t i = 0; i < r->layer_count; ++i)
        add_bar(&r->layers[i], TOP_PX + (int)i * ROW_PX, out);
    berth_strbuf_add(out, "</svg>\n");
}

void berth_quantize_report(const berth_quantize_result *result, berth_quantize_form form,
                           berth_strbuf *out) {
    switch (form) {
    case BERTH_QUANTIZE_TEXT: add_text(result, out); break;
    case BERTH_QUANTIZE_JSON: add_json(result, out); break;
    case BERTH_QUANTIZE_SVG: add_svg(result, out); break;
    }
}
