#include "base/tensor.h"

#include <stdio.h>
#include <string.h>

int64_t berth_tensor_element_count(const berth_tensor *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; ++i) count *= tensor->dims[i];
    return count;
}

size_t berth_tensor_size_bytes(const berth_tensor *tensor) {
    return (size_t)berth_tensor_element_count(tensor) * berth_dtype_size_bytes(tensor->dtype);
}

bool berth_tensor_same_shape(const berth_tensor *a, const berth_tensor *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; ++i)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

berth_status berth_shape_size_bytes(berth_dtype dtype, int rank, const int64_t *dims,
                                    int64_t *out_element_count, size_t *out_size_bytes) {
    if (rank < 0 || rank > BERTH_MAX_RANK)
        return berth_status_make(BERTH_OUT_OF_RANGE, "rank %d is outside 0..%d", rank,
                                 BERTH_MAX_RANK);
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < rank; ++i) {
        if (dims[i] < 0)
            return berth_status_make(BERTH_OUT_OF_RANGE, "dimension %d is negative (%lld)", i,
                                     (long long)dims[i]);
        if (dims[i] == 0) empty = true;
        if (dims[i] != 0 && __builtin_mul_overflow(count, dims[i], &count))
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "the shape has more elements than 64 bits can count");
    }
    int64_t size = 0;
    if (__builtin_mul_overflow(count, (int64_t)berth_dtype_size_bytes(dtype), &size) ||
        size > INT64_MAX / 4)
        return berth_status_make(BERTH_OUT_OF_RANGE, "the tensor is larger than memory can be");
    if (out_element_count) *out_element_count = empty ? 0 : count;
    if (out_size_bytes) *out_size_bytes = empty ? 0 : (size_t)size;
    return BERTH_OK;
}

berth_status berth_tensor_check(const berth_tensor *tensor) {
    if (!tensor) return berth_status_make(BERTH_INVALID_ARGUMENT, "the tensor is missing");
    if (berth_dtype_size_bytes(tensor->dtype) == 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "element type %u of the tensor is unknown",
                                 (unsigned)tensor->dtype);
    size_t size_bytes = 0;
    berth_status status =
        berth_shape_size_bytes(tensor->dtype, tensor->rank, tensor->dims, NULL, &size_bytes);
    if (status) {
        berth_status result = berth_status_make(BERTH_INVALID_ARGUMENT, "%s of the tensor",
                                                berth_status_message(status));
        berth_status_free(status);
        return result;
    }
    if (size_bytes && !tensor->data)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the tensor has no data");
    return BERTH_OK;
}

berth_tensor berth_tensor_create(berth_arena *arena, berth_dtype dtype, int rank,
                                 const int64_t *dims) {
    berth_tensor tensor = berth_tensor_create_unset(arena, dtype, rank, dims);
    memset(tensor.data, 0, berth_tensor_size_bytes(&tensor));
    return tensor;
}

berth_tensor berth_tensor_create_unset(berth_arena *arena, berth_dtype dtype, int rank,
                                       const int64_t *dims) {
    berth_tensor tensor = {.dtype = dtype, .rank = rank};
    for (int i = 0; i < rank; ++i) tensor.dims[i] = dims[i];
    tensor.data = berth_arena_alloc_unset(arena, berth_tensor_size_bytes(&tensor), 64);
    return tensor;
}

bool berth_tensor_is_aligned(const berth_tensor *tensor) {
    size_t size = tensor->dtype == BERTH_DTYPE_STRING ? _Alignof(berth_string)
                                                      : berth_dtype_size_bytes(tensor->dtype);
    return size == 0 || (uintptr_t)tensor->data % size == 0;
}

berth_tensor berth_tensor_align(berth_arena *arena, const berth_tensor *tensor) {
    if (berth_tensor_is_aligned(tensor)) return *tensor;
    berth_tensor copy = berth_tensor_create_unset(arena, tensor->dtype, tensor->rank, tensor->dims);
    memcpy(copy.data, tensor->data, berth_tensor_size_bytes(tensor));
    return copy;
}

// ---- strings ----

const berth_string *berth_tensor_strings(const berth_tensor *tensor) {
    return tensor->data;
}

bool berth_string_equal(berth_string a, berth_string b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

int berth_string_compare(berth_string a, berth_string b) {
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

berth_string berth_string_of(const char *text) {
    return (berth_string){text, strlen(text)};
}

const char *berth_string_text(berth_arena *arena, berth_string string) {
    return berth_arena_strndup(arena, string.length ? string.data : "", string.length);
}

berth_string berth_string_copy(berth_arena *arena, berth_string string) {
    if (!string.length) return (berth_string){NULL, 0};
    char *data = berth_arena_alloc_unset(arena, string.length, 1);
    memcpy(data, string.data, string.length);
    return (berth_string){data, string.length};
}

static bool same_bytes(berth_string a, berth_string b) {
    return a.data == b.data && a.length == b.length;
}

berth_status berth_tensor_string_bytes(const berth_tensor *tensor, size_t *out_size_bytes) {
    *out_size_bytes = 0;
    if (tensor->dtype != BERTH_DTYPE_STRING) return BERTH_OK;
    const berth_string *strings = tensor->data;
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i) {
        if (i > 0 && same_bytes(strings[i], strings[i - 1])) continue;
        if (__builtin_add_overflow(*out_size_bytes, strings[i].length, out_size_bytes) ||
            *out_size_bytes > (size_t)INT64_MAX / 4)
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "the strings are larger than memory can be");
    }
    return BERTH_OK;
}

void berth_tensor_move_strings(const berth_tensor *from, berth_tensor *to, char *bytes) {
    const berth_string *strings = from->data;
    berth_string *out = to->data;
    int64_t count = berth_tensor_element_count(from);
    berth_string last = {NULL, 0}, last_copy = {NULL, 0};
    for (int64_t i = 0; i < count; ++i) {
        if (i == 0 || !same_bytes(strings[i], last)) {
            last = strings[i];
            last_copy = (berth_string){last.length ? bytes : NULL, last.length};
            if (last.length) memcpy(bytes, last.data, last.length);
            bytes += last.length;
        }
        out[i] = last_copy;
    }
}

berth_tensor berth_tensor_copy(berth_arena *arena, const berth_tensor *tensor) {
    berth_tensor copy = berth_tensor_create_unset(arena, tensor->dtype, tensor->rank, tensor->dims);
    size_t size = berth_tensor_size_bytes(tensor), bytes = 0;
    if (tensor->dtype != BERTH_DTYPE_STRING) {
        if (size) memcpy(copy.data, tensor->data, size);
        return copy;
    }
    berth_status status = berth_tensor_string_bytes(tensor, &bytes);
    if (status) {
        berth_status_free(status);
        bytes = SIZE_MAX / 2;  // which no arena has: the caller's berth_arena_try fails
    }
    berth_tensor_move_strings(tensor, &copy, berth_arena_alloc_unset(arena, bytes, 1));
    return copy;
}

#define INTEGER_CASES(CASE)                                                                        \
    CASE(BERTH_DTYPE_I8, int8_t)                                                                   \
    CASE(BERTH_DTYPE_I16, int16_t)                                                                 \
    CASE(BERTH_DTYPE_I32, int32_t)                                                                 \
    CASE(BERTH_DTYPE_I64, int64_t)                                                                 \
    CASE(BERTH_DTYPE_U8, uint8_t)                                                                  \
    CASE(BERTH_DTYPE_U16, uint16_t)                                                                \
    CASE(BERTH_DTYPE_U32, uint32_t)                                                                \
    CASE(BERTH_DTYPE_U64, uint64_t)                                                                \
    CASE(BERTH_DTYPE_BOOL, uint8_t)

double berth_tensor_get_f64(const berth_tensor *tensor, int64_t index) {
    switch (tensor->dtype) {
    case BERTH_DTYPE_F32: return (double)((const float *)tensor->data)[index];
    case BERTH_DTYPE_F64: return ((const double *)tensor->data)[index];
    case BERTH_DTYPE_F16: return (double)berth_f16_to_f32(((const uint16_t *)tensor->data)[index]);
    case BERTH_DTYPE_BF16:
        return (double)berth_bf16_to_f32(((const uint16_t *)tensor->data)[index]);
#define CASE(dtype, type)                                                                          \
    case dtype: return (double)((const type *)tensor->data)[index];
        INTEGER_CASES(CASE)
#undef CASE
    default: return 0;
    }
}

int64_t berth_tensor_get_i64(const berth_tensor *tensor, int64_t index) {
    switch (tensor->dtype) {
#define CASE(dtype, type)                                                                          \
    case dtype: return (int64_t)((const type *)tensor->data)[index];
        INTEGER_CASES(CASE)
#undef CASE
    default: {
        double value = berth_tensor_get_f64(tensor, index);
        if (!(value > -9.2e18)) return value < 0 ? INT64_MIN : 0;
        return value < 9.2e18 ? (int64_t)value : INT64_MAX;
    }
    }
}

void berth_tensor_set_f64(berth_tensor *tensor, int64_t index, double value) {
    switch (tensor->dtype) {
    case BERTH_DTYPE_F32: ((float *)tensor->data)[index] = (float)value; break;
    case BERTH_DTYPE_F64: ((double *)tensor->data)[index] = value; break;
    case BERTH_DTYPE_F16: ((uint16_t *)tensor->data)[index] = berth_f32_to_f16((float)value); break;
    case BERTH_DTYPE_BF16:
        ((uint16_t *)tensor->data)[index] = berth_f32_to_bf16((float)value);
        break;
    case BERTH_DTYPE_BOOL: ((uint8_t *)tensor->data)[index] = value != 0; break;
    default: berth_tensor_set_i64(tensor, index, (int64_t)value); break;
    }
}

void berth_tensor_set_i64(berth_tensor *tensor, int64_t index, int64_t value) {
    switch (tensor->dtype) {
#define CASE(dtype, type)                                                                          \
    case dtype: ((type *)tensor->data)[index] = (type)value; break;
        INTEGER_CASES(CASE)
#undef CASE
    default: berth_tensor_set_f64(tensor, index, (double)value); break;
    }
}

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void fill_random_strings(berth_tensor *tensor, uint64_t state) {
    static const char words[] = "abcdefgh";
    berth_string *strings = tensor->data;
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i) {
        uint64_t bits = next_random(&state);
        size_t at = bits >> 61, most = sizeof(words) - 1 - at;
        strings[i] = (berth_string){words + at, (size_t)(bits >> 32 & 7) % (most + 1)};
    }
}

void berth_tensor_fill_random(berth_tensor *tensor, uint64_t seed) {
    uint64_t state = seed;
    int64_t count = berth_tensor_element_count(tensor);
    if (tensor->dtype == BERTH_DTYPE_STRING) {
        fill_random_strings(tensor, state);
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        uint64_t bits = next_random(&state);
        if (berth_dtype_is_float(tensor->dtype))
            berth_tensor_set_f64(tensor, i, (double)(bits >> 40) * 0x1p-23 - 1.0);
        else
            berth_tensor_set_i64(tensor, i,
                                 tensor->dtype == BERTH_DTYPE_BOOL ? (int64_t)(bits >> 63)
                                                                   : (int64_t)(bits >> 61));
    }
}

void berth_tensor_format_shape(const berth_tensor *tensor, char out[192]) {
    int length = snprintf(out, 192, "%s[", berth_dtype_name(tensor->dtype));
    for (int d = 0; d < tensor->rank; ++d)
        length += snprintf(out + length, 192 - (size_t)length, d ? ",%lld" : "%lld",
                           (long long)tensor->dims[d]);
    snprintf(out + length, 192 - (size_t)length, "]");
}
