#include "tests/onnx/model_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(pb *out, const void *data, size_t size) {
    if (size > sizeof(out->data) - out->size) abort();  // the test's own mistake
    if (size) memcpy(out->data + out->size, data, size);
    out->size += size;
}

void pb_varint(pb *out, uint64_t value) {
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(out, &byte, 1);
        value >>= 7;
    } while (value);
}

void pb_int(pb *out, uint32_t field, int64_t value) {
    pb_varint(out, (uint64_t)field << 3);
    pb_varint(out, (uint64_t)value);
}

void pb_bytes(pb *out, uint32_t field, const void *data, size_t size) {
    pb_varint(out, (uint64_t)field << 3 | 2);
    pb_varint(out, size);
    put(out, data, size);
}

void pb_text(pb *out, uint32_t field, const char *text) {
    pb_bytes(out, field, text, strlen(text));
}

void pb_message(pb *out, uint32_t field, const pb *message) {
    pb_bytes(out, field, message->data, message->size);
}

void graph_node(pb *graph, const char *op_type, const char *name, const char *const *inputs,
                const char *const *outputs, const pb *attributes, int attribute_count) {
    pb node = {.size = 0};
    for (; *inputs; ++inputs) pb_text(&node, 1, *inputs);
    for (; *outputs; ++outputs) pb_text(&node, 2, *outputs);
    pb_text(&node, 3, name);
    pb_text(&node, 4, op_type);
    for (int i = 0; i < attribute_count; ++i) pb_message(&node, 5, &attributes[i]);
    pb_message(graph, 1, &node);
}

void graph_node1(pb *graph, const char *op_type, const char *name, const char *a, const char *b,
                 const char *out) {
    const char *inputs[] = {a, b, NULL};
    const char *outputs[] = {out, NULL};
    graph_node(graph, op_type, name, inputs, outputs, NULL, 0);
}

void graph_value(pb *graph, uint32_t field, const char *name, int element, int rank,
                 const int64_t *dims) {
    pb shape = {.size = 0};
    pb tensor = {.size = 0};
    pb type = {.size = 0};
    pb value = {.size = 0};
    for (int i = 0; i < rank; ++i) {
        pb dim = {.size = 0};
        char symbol[32];
        if (dims[i] < INT64_MIN + 1000) {
            snprintf(symbol, sizeof(symbol), "N%d", (int)(dims[i] - INT64_MIN));
            if (dims[i] == INT64_MIN + 998) snprintf(symbol, sizeof(symbol), "=2*(");
            if (dims[i] == INT64_MIN + 999) snprintf(symbol, sizeof(symbol), "?");
            pb_text(&dim, 2, symbol);
        } else {
            pb_int(&dim, 1, dims[i]);
        }
        pb_message(&shape, 1, &dim);
    }
    pb_int(&tensor, 1, element);
    pb_message(&tensor, 2, &shape);
    pb_message(&type, 1, &tensor);
    pb_text(&value, 1, name);
    pb_message(&value, 2, &type);
    pb_message(graph, field, &value);
}

void graph_input(pb *graph, const char *name, int rank, const int64_t *dims) {
    graph_value(graph, 11, name, 1, rank, dims);
}

void graph_output(pb *graph, const char *name, int rank, const int64_t *dims) {
    graph_value(graph, 12, name, 1, rank, dims);
}

void graph_floats(pb *graph, const char *name, int64_t count, size_t bytes_present) {
    static const float ones[64] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    pb tensor = {.size = 0};
    pb_int(&tensor, 1, count);
    pb_int(&tensor, 2, 1);
    pb_bytes(&tensor, 9, ones, bytes_present);
    pb_text(&tensor, 8, name);
    pb_message(graph, 5, &tensor);
}

pb attr_int(const char *name, int64_t value) {
    pb attr = {.size = 0};
    pb_text(&attr, 1, name);
    pb_int(&attr, 3, value);
    pb_int(&attr, 20, 2);
    return attr;
}

pb attr_ints(const char *name, const int64_t *values, int count) {
    pb attr = {.size = 0};
    pb_text(&attr, 1, name);
    for (int i = 0; i < count; ++i) pb_int(&attr, 8, values[i]);
    pb_int(&attr, 20, 7);
    return attr;
}

pb attr_floats(const char *name, const float *values, int count) {
    pb attr = {.size = 0};
    pb_text(&attr, 1, name);
    pb_bytes(&attr, 7, values, (size_t)count * sizeof(float));  // packed
    pb_int(&attr, 20, 6);
    return attr;
}

pb attr_graph(const char *name, const pb *graph) {
    pb attr = {.size = 0};
    pb_text(&attr, 1, name);
    pb_message(&attr, 6, graph);
    pb_int(&attr, 20, 5);
    return attr;
}

pb model_of(const pb *graph, int64_t opset) {
    pb version = {.size = 0};
    pb model = {.size = 0};
    pb_text(&version, 1, "");
    pb_int(&version, 2, opset);
    pb_int(&model, 1, 8);
    pb_message(&model, 8, &version);
    pb_message(&model, 7, graph);
    return model;
}
