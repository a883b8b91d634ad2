// The form: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include "toolkit/npy.h"

#include <string.h>

#define BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};
enum { fixed_bytes = 8, header_alignment = 64, longest_header = 65536 };

static const struct {
    berth_dtype dtype;
    const char *descr;
} types[] = {
    {BERTH_DTYPE_F32, "<f4"}, {BERTH_DTYPE_F64, "<f8"}, {BERTH_DTYPE_F16, "<f2"},
    {BERTH_DTYPE_I8, "|i1"},  {BERTH_DTYPE_I16, "<i2"}, {BERTH_DTYPE_I32, "<i4"},
    {BERTH_DTYPE_I64, "<i8"}, {BERTH_DTYPE_U8, "|u1"},  {BERTH_DTYPE_U16, "<u2"},
    {BERTH_DTYPE_U32, "<u4"}, {BERTH_DTYPE_U64, "<u8"}, {BERTH_DTYPE_BOOL, "|b1"},
};
enum { type_count = sizeof(types) / sizeof(types[0]) };

bool berth_toolkit__npy_is(const void *data, size_t size_bytes) {
    return size_bytes >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
}

// ---- header: a Python dictionary of 'descr', 'fortran_order' and 'shape' ----

typedef struct cursor {
    const char *at;
    const char *end;
} cursor;

static void skip_spaces(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) c->at++;
}

static bool take(cursor *c, const char *text) {
    skip_spaces(c);
    size_t length = strlen(text);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, text, length) != 0) return false;
    c->at += length;
    return true;
}

static bool take_string(cursor *c, char *out, size_t capacity) {
    skip_spaces(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"')) return false;
    char quote = *c->at++;
    size_t length = 0;
    while (c->at < c->end && *c->at != quote && length + 1 < capacity) out[length++] = *c->at++;
    out[length] = 0;
    return c->at < c->end && *c->at++ == quote;
}

static bool take_number(cursor *c, int64_t *out) {
    skip_spaces(c);
    const char *start = c->at;
    *out = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; ++c->at)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *c->at - '0', out))
            return false;
    return c->at > start;
}

static berth_status take_shape(cursor *c, berth_tensor *tensor) {
    if (!take(c, "(")) return BAD("the header's shape is not a tuple");
    while (!take(c, ")")) {
        if (tensor->rank == BERTH_MAX_RANK) return BAD("more than %d dimensions", BERTH_MAX_RANK);
        if (!take_number(c, &tensor->dims[tensor->rank++]))
            return BAD("the header's shape is not a tuple of sizes");
        if (take(c, ",")) continue;
        if (take(c, ")")) return BERTH_OK;
        return BAD("the header's shape does not end");
    }
    return BERTH_OK;
}

// "<U12": strings of at most so many characters, 4 bytes each, filled up with zeros.
static bool is_text(const char *descr, size_t *out_characters) {
    if ((descr[0] != '<' && descr[0] != '=') || descr[1] != 'U' || !descr[2]) return false;
    *out_characters = 0;
    for (const char *digit = descr + 2; *digit; ++digit) {
        if (*digit < '0' || *digit > '9' || *out_characters > SIZE_MAX / 1000) return false;
        *out_characters = *out_characters * 10 + (size_t)(*digit - '0');
    }
    return true;
}

static berth_status take_dtype(cursor *c, berth_dtype *out_dtype, size_t *out_characters) {
    char descr[32];
    if (!take_string(c, descr, sizeof(descr)))
        return berth_status_make(BERTH_UNSUPPORTED, "the element type is not a plain one");
    if (is_text(descr, out_characters)) {
        *out_dtype = BERTH_DTYPE_STRING;
        return BERTH_OK;
    }
    for (int i = 0; i < type_count; ++i) {
        bool one_byte = types[i].descr[0] == '|';
        bool same_order =
            descr[0] == types[i].descr[0] || descr[0] == '=' || (one_byte && descr[0] == '<');
        if (same_order && strcmp(descr + 1, types[i].descr + 1) == 0) {
            *out_dtype = types[i].dtype;
            return BERTH_OK;
        }
    }
    return berth_status_make(
        BERTH_UNSUPPORTED,
        "element type \"%s\"; numbers, bools and text (\"<U\") in little-endian order are read",
        descr);
}

static berth_status parse_header(cursor c, berth_tensor *tensor, bool *out_fortran,
                                 size_t *out_characters) {
    enum { DESCR = 1, FORTRAN = 2, SHAPE = 4, ALL = 7 };
    int seen = 0;
    if (!take(&c, "{")) return BAD("the header is not a dictionary");
    while (!take(&c, "}")) {
        char key[32];
        if (!take_string(&c, key, sizeof(key)) || !take(&c, ":"))
            return BAD("the header is not a dictionary");
        int field = strcmp(key, "descr") == 0           ? DESCR
                    : strcmp(key, "fortran_order") == 0 ? FORTRAN
                                                        : SHAPE;
        if ((field == SHAPE && strcmp(key, "shape") != 0) || (seen & field))
            return BAD("the header has an unexpected \"%s\"", key);
        seen |= field;
        if (field == DESCR) BERTH_TRY(take_dtype(&c, &tensor->dtype, out_characters));
        if (field == SHAPE) BERTH_TRY(take_shape(&c, tensor));
        if (field == FORTRAN) {
            *out_fortran = take(&c, "True");
            if (!*out_fortran && !take(&c, "False"))
                return BAD("fortran_order is neither True nor False");
        }
        if (!take(&c, ",")) {
            if (take(&c, "}")) break;
            return BAD("the header does not end");
        }
    }
    return seen == ALL ? BERTH_OK : BAD("the header lacks descr, fortran_order or shape");
}

// ---- content ----

// Column-major source to row-major destination.
static void copy_fortran(berth_tensor *tensor, const uint8_t *source, int64_t element_count) {
    size_t element_bytes = berth_dtype_size_bytes(tensor->dtype);
    int64_t index[BERTH_MAX_RANK] = {0};
    uint8_t *out = tensor->data;
    for (int64_t i = 0; i < element_count; ++i) {
        int64_t from = 0;
        for (int d = tensor->rank - 1; d >= 0; --d) from = from * tensor->dims[d] + index[d];
        memcpy(out + (size_t)i * element_bytes, source + (size_t)from * element_bytes,
               element_bytes);
        for (int d = tensor->rank - 1; d >= 0 && ++index[d] == tensor->dims[d]; --d) index[d] = 0;
    }
}

static size_t put_utf8(uint32_t value, char out[4]) {
    size_t size = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; value >>= 6) out[i] = (char)(0x80 | (value & 0x3f));
    out[0] = (char)(size == 1 ? value : (0xf00u >> size & 0xff) | value);
    return size;
}

// One string, without the zeros behind it; what is no character of Unicode is an error.
static berth_status take_text(berth_arena *arena, const uint8_t *source, size_t characters,
                              berth_string *out) {
    while (characters > 0 && memcmp(source + 4 * (characters - 1), "\0\0\0", 4) == 0) characters--;
    char *data = berth_arena_alloc_unset(arena, 4 * characters, 1);
    size_t length = 0;
    for (size_t i = 0; i < characters; ++i) {
        const uint8_t *at = source + 4 * i;
        uint32_t value =
            (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        if (value > 0x10ffff) return BAD("the .npy file has a character of number %u", value);
        length += put_utf8(value, data + length);
    }
    *out = (berth_string){data, length};
    return BERTH_OK;
}

static berth_status take_texts(berth_arena *arena, const uint8_t *source, size_t size_bytes,
                               size_t characters, bool fortran, berth_tensor *tensor) {
    int64_t count = 0;
    size_t each = 4 * characters, needed = 0;
    BERTH_TRY(berth_shape_size_bytes(tensor->dtype, tensor->rank, tensor->dims, &count, NULL));
    if (fortran && tensor->rank > 1)
        return berth_status_make(BERTH_UNSUPPORTED, "text in Fortran order");
    if (__builtin_mul_overflow((size_t)count, each, &needed) || needed != size_bytes ||
        (each == 0 && count > 0))
        return BAD("the .npy file holds %zu bytes of text; its shape needs %zu", size_bytes,
                   needed);
    *tensor = berth_tensor_create(arena, tensor->dtype, tensor->rank, tensor->dims);
    for (int64_t i = 0; i < count; ++i)
        BERTH_TRY(take_text(arena, source + (size_t)i * each, characters,
                            (berth_string *)tensor->data + i));
    return BERTH_OK;
}

berth_status berth_toolkit__npy_parse(berth_arena *arena, const void *data, size_t size_bytes,
                                      berth_tensor *out_tensor) {
    *out_tensor = (berth_tensor){0};
    const uint8_t *bytes = data;
    if (size_bytes < fixed_bytes + 2) return BAD("the .npy file ends in its header");
    uint8_t version = bytes[6];
    if (version < 1 || version > 3)
        return berth_status_make(BERTH_UNSUPPORTED, ".npy version %u", version);
    size_t start = version == 1 ? fixed_bytes + 2 : fixed_bytes + 4;
    if (size_bytes < start) return BAD("the .npy file ends in its header");
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size_bytes - start || length > longest_header)
        return BAD("the .npy file has a header of %zu bytes, more than there are", length);
    berth_tensor tensor = {0};
    bool fortran = false;
    const char *text = (const char *)bytes + start;
    size_t characters = 0;
    BERTH_TRY(parse_header((cursor){text, text + length}, &tensor, &fortran, &characters));
    if (tensor.dtype == BERTH_DTYPE_STRING) {
        BERTH_TRY(take_texts(arena, bytes + start + length, size_bytes - start - length, characters,
                             fortran, &tensor));
        *out_tensor = tensor;
        return BERTH_OK;
    }
    int64_t element_count = 0;
    size_t content_bytes = 0;
    BERTH_TRY(berth_shape_size_bytes(tensor.dtype, tensor.rank, tensor.dims, &element_count,
                                     &content_bytes));
    if (content_bytes != size_bytes - start - length)
        return BAD("the .npy file holds %zu bytes of data; its shape needs %zu",
                   size_bytes - start - length, content_bytes);
    tensor.data = berth_arena_alloc_aligned(arena, content_bytes, 64);
    if (fortran)
        copy_fortran(&tensor, bytes + start + length, element_count);
    else if (content_bytes)
        memcpy(tensor.data, bytes + start + length, content_bytes);
    *out_tensor = tensor;
    return BERTH_OK;
}

berth_status berth_toolkit__npy_header(berth_strbuf *out, const berth_tensor *tensor) {
    const char *descr = NULL;
    for (int i = 0; i < type_count; ++i)
        if (types[i].dtype == tensor->dtype) descr = types[i].descr;
    if (!descr)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "NumPy has no element type for %s; write a .pb file",
                                 berth_dtype_name(tensor->dtype));
    berth_strbuf text = berth_strbuf_make(out->arena);
    berth_strbuf_addf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < tensor->rank; ++d)
        berth_strbuf_addf(&text,
                          tensor->rank == 1 ? "%lld,"
                          : d               ? ", %lld"
                                            : "%lld",
                          (long long)tensor->dims[d]);
    berth_strbuf_add(&text, "), }");
    while ((fixed_bytes + 2 + text.length + 1) % header_alignment) berth_strbuf_add(&text, " ");
    berth_strbuf_add(&text, "\n");
    const char version_and_length[4] = {1, 0, (char)(text.length & 0xff), (char)(text.length >> 8)};
    berth_strbuf_add_n(out, magic, sizeof(magic));
    berth_strbuf_add_n(out, version_and_length, sizeof(version_and_length));
    berth_strbuf_add_n(out, text.data, text.length);
    return BERTH_OK;
}
