#include "tools/run_output.h"

#include <math.h>
#include <string.h>

#include "tools/cli.h"

typedef struct tensor_summary {
    double least, most;
    int64_t top[5];  // NaN is never among them
    int top_count;
    int64_t nan_count;
} tensor_summary;

static tensor_summary summarise(const berth_tensor *tensor) {
    tensor_summary summary = {.least = INFINITY, .most = -INFINITY};
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i) {
        double value = berth_tensor_get_f64(tensor, i);
        if (isnan(value)) {
            summary.nan_count++;
            continue;
        }
        if (value < summary.least) summary.least = value;
        if (value > summary.most) summary.most = value;
        int at = summary.top_count;
        while (at > 0 && value > berth_tensor_get_f64(tensor, summary.top[at - 1])) at--;
        if (at >= 5) continue;
        if (summary.top_count < 5) summary.top_count++;
        for (int j = summary.top_count - 1; j > at; --j) summary.top[j] = summary.top[j - 1];
        summary.top[at] = i;
    }
    return summary;
}

enum { most_strings = 8, most_bytes = 200 };

static void print_strings(const berth_tensor *tensor) {
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count && i < most_strings; ++i) {
        berth_string string = berth_tensor_strings(tensor)[i];
        size_t shown = string.length < most_bytes ? string.length : most_bytes;
        berth_cli_print("%s\"", i ? ", " : " ");
        for (size_t at = 0; at < shown; ++at) {
            size_t text = strnlen(string.data + at, shown - at);
            berth_cli_print("%.*s", (int)text, string.data + at);
            at += text;
            if (at < shown) berth_cli_print("\\x00");
        }
        berth_cli_print(shown < string.length ? "...\"" : "\"");
    }
    berth_cli_print(count > most_strings ? ", ...\n" : "\n");
}

// The first ones; null for bytes that are no text.
static json_t *strings_json(const berth_tensor *tensor) {
    json_t *list = json_array();
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count && i < most_strings; ++i) {
        berth_string string = berth_tensor_strings(tensor)[i];
        json_t *text = json_stringn(string.length ? string.data : "", string.length);
        if (text && memchr(string.length ? string.data : "", 0, string.length)) {
            json_decref(text);
            text = NULL;
        }
        json_array_append_new(list, text ? text : json_null());
    }
    return list;
}

void berth_run_output_print(const char *name, const berth_tensor *tensor) {
    if (tensor->dtype == BERTH_DTYPE_STRING) {
        char strings_shape[192];
        berth_tensor_format_shape(tensor, strings_shape);
        berth_cli_print("output %s %s", name, strings_shape);
        print_strings(tensor);
        return;
    }
    tensor_summary summary = summarise(tensor);
    char shape[192];
    berth_tensor_format_shape(tensor, shape);
    berth_cli_print("output %s %s", name, shape);
    if (summary.top_count) berth_cli_print(" range %.6g .. %.6g, top", summary.least, summary.most);
    for (int i = 0; i < summary.top_count; ++i)
        berth_cli_print(" [%lld]=%.6g", (long long)summary.top[i],
                        berth_tensor_get_f64(tensor, summary.top[i]));
    if (summary.nan_count) berth_cli_print(", %lld NaN", (long long)summary.nan_count);
    berth_cli_print("\n");
}

json_t *berth_run_output_json(const char *name, const berth_tensor *tensor) {
    json_t *dims = json_array();
    for (int d = 0; d < tensor->rank; ++d)
        json_array_append_new(dims, json_integer(tensor->dims[d]));
    if (tensor->dtype == BERTH_DTYPE_STRING)
        return json_pack("{s:o, s:s, s:o, s:o}", "name", berth_cli_json_text(name), "dtype",
                         berth_dtype_name(tensor->dtype), "shape", dims, "first",
                         strings_json(tensor));
    tensor_summary summary = summarise(tensor);
    json_t *top = json_array();
    for (int i = 0; i < summary.top_count; ++i) {
        double value = berth_tensor_get_f64(tensor, summary.top[i]);  // JSON has no infinity: null
        json_array_append_new(top,
                              json_pack("{s:I, s:o}", "index", (json_int_t)summary.top[i], "value",
                                        isfinite(value) ? json_real(value) : json_null()));
    }
    json_t *json = json_pack("{s:o, s:s, s:o, s:o}", "name", berth_cli_json_text(name), "dtype",
                             berth_dtype_name(tensor->dtype), "shape", dims, "top", top);
    if (summary.nan_count) json_object_set_new(json, "nan", json_integer(summary.nan_count));
    if (isfinite(summary.least) && isfinite(summary.most)) {
        json_object_set_new(json, "min", json_real(summary.least));
        json_object_set_new(json, "max", json_real(summary.most));
    }
    return json;
}
