#include "base/dtype.h"

#include <string.h>

static const struct {
    char name[7];
    uint8_t size_bytes;
    char class;
} dtypes[BERTH_DTYPE_COUNT] = {[BERTH_DTYPE_NONE] = {"none", 0, 'n'},
#define ROW(suffix, name, size, class_) [BERTH_DTYPE_##suffix] = {name, size, class_},
                               BERTH_DTYPES(ROW)
#undef ROW
};

static const char string_name[] = "string";

size_t berth_dtype_size_bytes(berth_dtype dtype) {
    if (dtype == BERTH_DTYPE_STRING) return sizeof(berth_string);
    return (unsigned)dtype < BERTH_DTYPE_COUNT ? dtypes[dtype].size_bytes : 0;
}

const char *berth_dtype_name(berth_dtype dtype) {
    if (dtype == BERTH_DTYPE_STRING) return string_name;
    return (unsigned)dtype < BERTH_DTYPE_COUNT ? dtypes[dtype].name : "none";
}

berth_dtype berth_dtype_from_name(const char *name) {
    if (strcmp(name, string_name) == 0) return BERTH_DTYPE_STRING;
    for (int i = 1; i < BERTH_DTYPE_COUNT; ++i)
        if (strcmp(dtypes[i].name, name) == 0) return (berth_dtype)i;
    return BERTH_DTYPE_NONE;
}

bool berth_dtype_is_float(berth_dtype dtype) {
    return (unsigned)dtype < BERTH_DTYPE_COUNT && dtypes[dtype].class == 'f';
}

bool berth_dtype_is_integer(berth_dtype dtype) {
    return (unsigned)dtype < BERTH_DTYPE_COUNT &&
           (dtypes[dtype].class == 'i' || dtypes[dtype].class == 'u');
}

bool berth_dtype_is_signed(berth_dtype dtype) {
    return (unsigned)dtype < BERTH_DTYPE_COUNT &&
           (dtypes[dtype].class == 'i' || dtypes[dtype].class == 'f');
}

static float bits_to_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t float_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

float berth_f16_to_f32(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    if (exponent == 0x1f) return bits_to_float(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0) return bits_to_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
    float value = (float)mantissa * 0x1p-24f;  // subnormal: exact in float
    return sign ? -value : value;
}

uint16_t berth_f32_to_f16(float value) {
    uint32_t bits = float_to_bits(value);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);  // rounds to infinity
    if (magnitude < 0x38800000u) {                                    // subnormal or zero
        float scaled = bits_to_float(magnitude) * 0x1p24f;  // exact; round to nearest even below
        uint32_t integer = (uint32_t)scaled;
        float rest = scaled - (float)integer;
        if (rest > 0.5f || (rest == 0.5f && (integer & 1u))) integer++;
        return (uint16_t)(sign | integer);
    }
    uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
}

float berth_bf16_to_f32(uint16_t bits) {
    return bits_to_float((uint32_t)bits << 16);
}

uint16_t berth_f32_to_bf16(float value) {
    uint32_t bits = float_to_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
