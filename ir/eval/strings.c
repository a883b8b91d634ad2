// Strings: conversions from and to numbers, comparison, concatenation, splitting. Bytes are bytes: none of
// this asks for UTF-8, and a NUL is one of them.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval/strings.h"

// For messages: at most this much of a string.
enum { most_shown = 40 };

int berth_eval__shown(berth_string string) {
    return string.length < most_shown ? (int)string.length : most_shown;
}

// ---- numbers

// As ONNX Runtime: floats with 8 digits, whatever their size, integers in decimal, truth values as 1 and 0.
static berth_string format_number(berth_eval_context *ctx, const berth_tensor *x, int64_t i) {
    char text[40];
    if (berth_dtype_is_float(x->dtype)) {
        double value = berth_tensor_get_f64(x, i);
        if (isnan(value))
            snprintf(text, sizeof(text), "NaN");
        else if (isinf(value))
            snprintf(text, sizeof(text), value < 0 ? "-INF" : "INF");
        else
            snprintf(text, sizeof(text), "%.8g", value);
    } else if (x->dtype == BERTH_DTYPE_U64) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)berth_tensor_get_i64(x, i));
    } else {
        snprintf(text, sizeof(text), "%lld", (long long)berth_tensor_get_i64(x, i));
    }
    return berth_string_copy(ctx->arena, berth_string_of(text));
}

static berth_status no_number(berth_string string, int64_t index, berth_dtype to, bool range) {
    return berth_status_make(
        BERTH_INVALID_ARGUMENT, "element %lld, \"%.*s\", %s %s", (long long)index,
        berth_eval__shown(string), string.length ? string.data : "",
        range ? "is outside the range of" : "is no number for", berth_dtype_name(to));
}

// The number at the beginning of the string, as strtod and strtoll read it; what follows is not looked at,
// as ONNX Runtime does not. Integers wrap to fewer bits.
static berth_status parse_number(berth_eval_context *ctx, berth_string string, int64_t index,
                                 berth_tensor *out) {
    const char *text = berth_string_text(ctx->scratch, string);
    char *end = NULL;
    errno = 0;
    if (berth_dtype_is_float(out->dtype)) {
        double value = strtod(text, &end);
        if (end == text || errno) return no_number(string, index, out->dtype, end != text);
        berth_tensor_set_f64(out, index, value);
        return BERTH_OK;
    }
    int64_t value = berth_dtype_is_signed(out->dtype) ? strtoll(text, &end, 10)
                                                      : (int64_t)strtoull(text, &end, 10);
    if (end == text || errno) return no_number(string, index, out->dtype, end != text);
    berth_tensor_set_i64(out, index, out->dtype == BERTH_DTYPE_BOOL ? value != 0 : value);
    return BERTH_OK;
}

berth_status berth_eval__cast_strings(berth_eval_context *ctx, berth_dtype to) {
    const berth_tensor *x = &ctx->inputs[0];
    BERTH_TRY(berth_eval__output(ctx, 0, to, x->rank, x->dims));
    berth_tensor *out = &ctx->outputs[0];
    int64_t count = berth_tensor_element_count(x);
    if (x->dtype == to) {
        if (count) memcpy(out->data, x->data, berth_tensor_size_bytes(x));
        return BERTH_OK;
    }
    for (int64_t i = 0; i < count; ++i) {
        if (to == BERTH_DTYPE_STRING)
            ((berth_string *)out->data)[i] = format_number(ctx, x, i);
        else
            BERTH_TRY(parse_number(ctx, berth_tensor_strings(x)[i], i, out));
    }
    return BERTH_OK;
}

// ---- two operands

// Both operands of the operation at the shape that they broadcast to.
static berth_status broadcast_pair(berth_eval_context *ctx, int64_t dims[BERTH_MAX_RANK],
                                   int *out_rank, berth_tensor *a, berth_tensor *b) {
    BERTH_TRY(berth_eval__need_strings(ctx, 0));
    BERTH_TRY(berth_eval__need_strings(ctx, 1));
    BERTH_TRY(berth_eval__broadcast_shape(ctx, 0, 2, dims, out_rank));
    BERTH_TRY(berth_eval__expand(ctx, &ctx->inputs[0], *out_rank, dims, a));
    return berth_eval__expand(ctx, &ctx->inputs[1], *out_rank, dims, b);
}

berth_status berth_eval__equal_strings(berth_eval_context *ctx) {
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    berth_tensor a, b;
    BERTH_TRY(broadcast_pair(ctx, dims, &rank, &a, &b));
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_BOOL, rank, dims));
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_i64(
            &ctx->outputs[0], i,
            berth_string_equal(berth_tensor_strings(&a)[i], berth_tensor_strings(&b)[i]));
    return BERTH_OK;
}

berth_status berth_eval__string_concat(berth_eval_context *ctx) {
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    berth_tensor a, b;
    BERTH_TRY(broadcast_pair(ctx, dims, &rank, &a, &b));
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_STRING, rank, dims));
    berth_string *out = ctx->outputs[0].data;
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < count; ++i) {
        berth_string parts[2] = {berth_tensor_strings(&a)[i], berth_tensor_strings(&b)[i]};
        if (parts[0].length == 0 || parts[1].length == 0) {
            out[i] = parts[parts[0].length == 0];
            continue;
        }
        size_t length = 0;
        if (__builtin_add_overflow(parts[0].length, parts[1].length, &length))
            return berth_status_make(BERTH_OUT_OF_RANGE, "a string is longer than memory can be");
        char *data = berth_arena_alloc_unset(ctx->arena, length, 1);
        memcpy(data, parts[0].data, parts[0].length);
        memcpy(data + parts[0].length, parts[1].data, parts[1].length);
        out[i] = (berth_string){data, length};
    }
    return BERTH_OK;
}

// ---- splitting

// Where `needle` is in the string from `from` on; its length when it is nowhere.
static size_t find(berth_string string, size_t from, berth_string needle) {
    for (size_t i = from; i + needle.length <= string.length; ++i) {
        const char *hit = memchr(string.data + i, needle.data[0], string.length - i);
        if (!hit) return string.length;
        i = (size_t)(hit - string.data);
        if (i + needle.length <= string.length && memcmp(hit, needle.data, needle.length) == 0)
            return i;
    }
    return string.length;
}

static berth_string without_spaces(berth_string s) {
    while (s.length && s.data[0] == ' ') s = (berth_string){s.data + 1, s.length - 1};
    while (s.length && s.data[s.length - 1] == ' ') s.length--;
    return s;
}

// The parts of a string, at most `most` + 1 (< 0: any number); `out` may be NULL. An empty delimiter is any
// number of spaces, also before and after the string.
static int64_t split(berth_string s, berth_string delimiter, int64_t most, berth_string *out) {
    bool spaces = delimiter.length == 0;
    berth_string needle = spaces ? berth_string_of(" ") : delimiter;
    int64_t count = 0;
    if (spaces) s = without_spaces(s);
    if (s.length == 0) return 0;
    for (size_t at = 0;; ++count) {
        size_t end = count == most ? s.length : find(s, at, needle);
        if (out) out[count] = (berth_string){s.data + at, end - at};
        if (end == s.length) return count + 1;
        at = end + needle.length;
        while (spaces && s.data[at] == ' ') at++;  // the last byte is no space
        if (at == s.length) {                      // a delimiter at the end: an empty part follows
            if (out) out[count + 1] = (berth_string){NULL, 0};
            return count + 2;
        }
    }
}

berth_status berth_eval__string_split(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0];
    berth_string delimiter = berth_string_of(berth_eval__string(ctx, "delimiter", ""));
    int64_t most = berth_eval__int(ctx, "maxsplit", -1), width = 0;
    int64_t dims[BERTH_MAX_RANK];
    BERTH_TRY(berth_eval__need_strings(ctx, 0));
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 0, BERTH_MAX_RANK - 1));
    int64_t count = berth_tensor_element_count(x);
    BERTH_TRY(berth_eval__output(ctx, 1, BERTH_DTYPE_I64, x->rank, x->dims));
    for (int64_t i = 0; i < count; ++i) {
        int64_t parts = split(berth_tensor_strings(x)[i], delimiter, most, NULL);
        berth_tensor_set_i64(&ctx->outputs[1], i, parts);
        if (parts > width) width = parts;
    }
    memcpy(dims, x->dims, sizeof(dims));
    dims[x->rank] = width;
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_STRING, x->rank + 1, dims));
    berth_string *out = ctx->outputs[0].data;
    for (int64_t i = 0; i < count; ++i)
        split(berth_tensor_strings(x)[i], delimiter, most, out + i * width);
    return BERTH_OK;
}

berth_status berth_eval__need_strings(const berth_eval_context *ctx, uint32_t index) {
    if (ctx->inputs[index].dtype == BERTH_DTYPE_STRING) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "operand %u is %s; strings are expected",
                             index, berth_dtype_name(ctx->inputs[index].dtype));
}
