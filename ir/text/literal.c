#include "ir/text/literal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool berth_text__is_name(const char *text, size_t length) {
    if (length == 0 || isdigit((unsigned char)text[0]) || text[0] == '.') return false;
    for (size_t i = 0; i < length; ++i) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80 || !(isalnum(c) || c == '_' || c == '.')) return false;
    }
    return true;
}

static bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void berth_text__add_string(berth_strbuf *out, const char *text, size_t length) {
    berth_strbuf_add(out, "\"");
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)text[i];
        size_t taken = 1;
        if (is_plain(c)) {
            while (i + taken < length && is_plain((unsigned char)text[i + taken])) taken++;
            berth_strbuf_add_n(out, text + i, taken);
        } else if (c == '"' || c == '\\') {
            berth_strbuf_addf(out, "\\%c", c);
        } else if (c == '\n') {
            berth_strbuf_add(out, "\\n");
        } else if (c == '\t') {
            berth_strbuf_add(out, "\\t");
        } else {
            // A character, or the numbers of its bytes.
            char bytes[5] = {0}, shown[20];
            const char *at = bytes;
            memcpy(bytes, text + i, length - i < 4 ? length - i : 4);
            berth_strbuf_add_n(out, shown, berth_shown_character(&at, shown));
            taken = (size_t)(at - bytes);
        }
        i += taken;
    }
    berth_strbuf_add(out, "\"");
}

void berth_text__add_name(berth_strbuf *out, const char *name) {
    size_t length = strlen(name);
    if (berth_text__is_name(name, length))
        berth_strbuf_add_n(out, name, length);
    else
        berth_text__add_string(out, name, length);
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

ptrdiff_t berth_text__unescape(const char *text, size_t length, berth_strbuf *out) {
    for (size_t i = 0; i < length;) {
        size_t plain = 0;
        while (i + plain < length && text[i + plain] != '\\') plain++;
        berth_strbuf_add_n(out, text + i, plain);
        i += plain;
        if (i == length) break;
        char c = i + 1 < length ? text[i + 1] : 0;
        size_t taken = 2;
        if (c == 'x') {
            int high = i + 2 < length ? hex_value(text[i + 2]) : -1;
            int low = i + 3 < length ? hex_value(text[i + 3]) : -1;
            if (high < 0 || low < 0) return (ptrdiff_t)i;
            c = (char)(high << 4 | low);
            taken = 4;
        } else if (c == 'n') {
            c = '\n';
        } else if (c == 't') {
            c = '\t';
        } else if (c != '"' && c != '\\') {
            return (ptrdiff_t)i;
        }
        berth_strbuf_add_n(out, &c, 1);
        i += taken;
    }
    return -1;
}

void berth_text__format_float(double value, char out[40]) {
    char text[32];
    berth_format_f64(value, text);
    snprintf(out, 40, "%s%s", text, strpbrk(text, ".eni") ? "" : ".0");
}

bool berth_text__parse_element(berth_tensor *tensor, int64_t index, const char *text) {
    char *end = NULL;
    errno = 0;
    if (berth_dtype_is_float(tensor->dtype)) {
        if (tensor->dtype == BERTH_DTYPE_F32)
            ((float *)tensor->data)[index] = strtof(text, &end);
        else
            berth_tensor_set_f64(tensor, index, strtod(text, &end));
        return end != text && *end == 0;
    }
    bool is_true = strcmp(text, "true") == 0;
    if (tensor->dtype == BERTH_DTYPE_BOOL && (is_true || strcmp(text, "false") == 0)) {
        berth_tensor_set_i64(tensor, index, is_true);
        return true;
    }
    if (tensor->dtype == BERTH_DTYPE_U64) {
        ((uint64_t *)tensor->data)[index] = strtoull(text, &end, 10);
        return *text != '-' && end != text && *end == 0 && errno == 0;
    }
    int64_t value = strtoll(text, &end, 10);
    if (end == text || *end || errno) return false;
    berth_tensor_set_i64(tensor, index, value);
    return berth_tensor_get_i64(tensor, index) == value &&
           (tensor->dtype != BERTH_DTYPE_BOOL || value == 0 || value == 1);
}

bool berth_text__format_element(const berth_tensor *tensor, int64_t index, char out[40]) {
    if (tensor->dtype == BERTH_DTYPE_F32)
        berth_format_f32(((const float *)tensor->data)[index], out);
    else if (berth_dtype_is_float(tensor->dtype))
        berth_format_f64(berth_tensor_get_f64(tensor, index), out);
    else if (tensor->dtype == BERTH_DTYPE_U64)
        snprintf(out, 40, "%llu", (unsigned long long)((const uint64_t *)tensor->data)[index]);
    else
        snprintf(out, 40, "%lld", (long long)berth_tensor_get_i64(tensor, index));
    uint64_t again = 0;
    berth_tensor one = {.dtype = tensor->dtype, .data = &again};
    size_t size = berth_dtype_size_bytes(tensor->dtype);
    return berth_text__parse_element(&one, 0, out) &&
           memcmp(&again, (const char *)tensor->data + (size_t)index * size, size) == 0;
}
