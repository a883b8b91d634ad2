// Casts and quantisation, also of narrow element types (base/narrow.h): those are computed here, by
// operations on their bytes.
#include <string.h>

#include "compiler/onnx/compose.h"
#include "compiler/onnx/ops.h"

// ---- from narrow types ----

// The values of all codes.
static berth_value_id value_table(onnx_compose *c, const berth_narrow_type *type) {
    if (c->status) return BERTH_NONE;
    int64_t count = (int64_t)1 << type->bits;
    berth_tensor table = berth_tensor_create(c->call->im->arena, BERTH_DTYPE_F32, 1, &count);
    for (int64_t i = 0; i < count; ++i)
        berth_tensor_set_f64(&table, i, berth_narrow_value(type, (int)i));
    return onnx_call_literal(c->call, &table);
}

static berth_value_id decode(onnx_compose *c, berth_value_id x, const berth_narrow_type *type,
                             berth_dtype to) {
    if (type->exponent)
        x = onnx_gathered(c, value_table(c, type), onnx_cast_to(c, x, BERTH_DTYPE_I32), 0);
    return onnx_cast_to(c, x, to);
}

// ---- to narrow types ----

static berth_value_id integer(onnx_compose *c, int64_t value) {
    return onnx_scalar(c, BERTH_DTYPE_I32, (double)value);
}

static berth_value_id bits_of(onnx_compose *c, berth_value_id x) {
    onnx_made made = onnx_start(c, BERTH_OP_BIT_CAST, &x, 1, 1);
    onnx_set_dtype(made, "to", BERTH_DTYPE_I32);
    return onnx_finish(made);
}

// a >> places, of numbers that are not negative.
static berth_value_id shifted(onnx_compose *c, berth_value_id a, int places) {
    return places ? onnx_div(c, a, integer(c, (int64_t)1 << places)) : a;
}

static berth_value_id low_bits(onnx_compose *c, berth_value_id a, int count) {
    return onnx_make2(c, BERTH_OP_BITWISE_AND, a, integer(c, ((int64_t)1 << count) - 1));
}

// float8e8m0: the exponent of f32, rounded as `round_mode` says. Codes 0 and 1 are both subnormal
// or nearly so in f32, where half a step is a bit of the mantissa.
static berth_value_id encode_exponent(onnx_compose *c, berth_value_id bits, bool saturate,
                                      const char *round_mode) {
    berth_value_id exponent = shifted(c, bits, 23), rest = low_bits(c, bits, 23);
    bool up = strcmp(round_mode, "up") == 0, nearest = strcmp(round_mode, "nearest") == 0;
    if (!up && !nearest && strcmp(round_mode, "down") != 0)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "round_mode is \"%.32s\", expected up, down or nearest", round_mode);
    berth_value_id small = onnx_make2(c, BERTH_OP_EQUAL, exponent, integer(c, 0));
    berth_value_id half = integer(c, 0x400000);
    berth_value_id more = up ? integer(c, 1) : nearest ? half : integer(c, 0x800000);
    berth_value_id small_more = up        ? integer(c, 0x400001)
                                : nearest ? integer(c, 0x600000)
                                          : integer(c, 0x800000);
    more = onnx_where(c, small, small_more, more);
    berth_value_id step = onnx_make2(c, BERTH_OP_GREATER_OR_EQUAL, rest, more);
    berth_value_id code = onnx_add(c, exponent, onnx_cast_to(c, step, BERTH_DTYPE_I32));
    berth_value_id beyond = onnx_make2(c, BERTH_OP_GREATER, code, integer(c, 254));
    code = onnx_where(c, beyond, integer(c, saturate ? 254 : 255), code);
    if (saturate) return code;
    berth_value_id zero = onnx_make2(c, BERTH_OP_EQUAL, bits, integer(c, 0));
    return onnx_where(c, zero, integer(c, 255), code);
}

// Codes without signs of magnitudes in f32. Normal numbers are rounded by what is added to their
// bits before the shift, to the nearest and then to the even one; smaller ones are multiples of the
// smallest.
static berth_value_id encode_magnitude(onnx_compose *c, berth_value_id magnitude,
                                       berth_value_id bits, const berth_narrow_type *type,
                                       bool saturate) {
    int drop = 23 - type->mantissa;
    berth_value_id odd = low_bits(c, shifted(c, bits, drop), 1);
    berth_value_id half = integer(c, ((int64_t)1 << (drop - 1)) - 1);
    berth_value_id code = shifted(c, onnx_add(c, onnx_add(c, bits, half), odd), drop);
    code = onnx_sub(c, code, integer(c, (int64_t)(127 - type->bias) << type->mantissa));
    double least = __builtin_ldexp(1, 1 - type->bias);
    berth_value_id steps = onnx_mul(
        c, magnitude, onnx_like(c, magnitude, __builtin_ldexp(1, type->bias - 1 + type->mantissa)));
    berth_value_id small = onnx_make2(c, BERTH_OP_LESS, magnitude, onnx_like(c, magnitude, least));
    steps = onnx_where(c, small, onnx_make1(c, BERTH_OP_ROUND, steps), onnx_like(c, magnitude, 0));
    code = onnx_where(c, small, onnx_cast_to(c, steps, BERTH_DTYPE_I32), code);
    int over = type->largest;
    if (!saturate && type->bits == 8) over = type->infinity >= 0 ? type->infinity : type->nan;
    berth_value_id beyond = onnx_make2(c, BERTH_OP_GREATER, code, integer(c, type->largest));
    return onnx_where(c, beyond, integer(c, over), code);
}

static berth_value_id encode_float(onnx_compose *c, berth_value_id x, const berth_narrow_type *type,
                                   bool saturate, const char *round_mode) {
    x = onnx_cast_to(c, x, BERTH_DTYPE_F32);
    berth_value_id none = onnx_make1(c, BERTH_OP_IS_NAN, x);
    berth_value_id negative = onnx_make2(c, BERTH_OP_LESS, bits_of(c, x), integer(c, 0));
    x = onnx_where(c, none, onnx_like(c, x, 0), x);
    berth_value_id magnitude = onnx_make1(c, BERTH_OP_ABS, x), bits = bits_of(c, magnitude);
    berth_value_id code;
    if (!type->mantissa) {
        code = encode_exponent(c, bits, saturate, round_mode);
    } else {
        code = encode_magnitude(c, magnitude, bits, type, saturate);
        int64_t sign = (int64_t)1 << (type->bits - 1);
        if (type->unsigned_zero) {
            // Zero, and NaN for what is beyond, have no sign.
            berth_value_id zero = onnx_make2(c, BERTH_OP_EQUAL, code, integer(c, 0));
            berth_value_id nan = onnx_make2(c, BERTH_OP_EQUAL, code, integer(c, type->nan));
            berth_value_id bare = onnx_make2(c, BERTH_OP_OR, zero, nan);
            negative = onnx_make2(c, BERTH_OP_AND, negative, onnx_make1(c, BERTH_OP_NOT, bare));
        }
        code = onnx_where(c, negative, onnx_add(c, code, integer(c, sign)), code);
    }
    if (type->nan >= 0) code = onnx_where(c, none, integer(c, type->nan), code);
    return onnx_cast_to(c, code, type->dtype);
}

// Integers keep their lowest bits.
static berth_value_id encode_integer(onnx_compose *c, berth_value_id x,
                                     const berth_narrow_type *type) {
    int64_t half = type->dtype == BERTH_DTYPE_I8 ? (int64_t)1 << (type->bits - 1) : 0;
    x = onnx_cast_to(c, x, BERTH_DTYPE_I32);
    if (half) x = onnx_add(c, x, integer(c, half));
    x = low_bits(c, x, type->bits);
    if (half) x = onnx_sub(c, x, integer(c, half));
    return onnx_cast_to(c, x, type->dtype);
}

static berth_value_id encode(onnx_compose *c, berth_value_id x, const berth_narrow_type *type,
                             bool saturate, const char *round_mode) {
    berth_value_id result = type->exponent ? encode_float(c, x, type, saturate, round_mode)
                                           : encode_integer(c, x, type);
    onnx_set_narrow(c->call->im, result, type->onnx);
    return result;
}

// ---- casts ----

// To an element type of ONNX: an own one, or a narrow one.
static berth_status cast_to_element(onnx_call *call, int64_t element) {
    onnx_compose c = {.call = call};
    berth_value_id x = call->inputs[0];
    const berth_narrow_type *from = onnx_narrow_of(call->im, x);
    const berth_narrow_type *to = berth_narrow_type_of(element);
    berth_dtype dtype = berth_storage_from_onnx(element);
    if (dtype == BERTH_DTYPE_NONE)
        return onnx_call_fail(call, BERTH_UNSUPPORTED,
                              "attribute to is element type %lld of ONNX (%s)", (long long)element,
                              onnx_element_name(element));
    if (from == to) {
        onnx_made made = onnx_start(&c, from ? BERTH_OP_IDENTITY : BERTH_OP_CAST, &x, 1, 1);
        if (!from) onnx_set_dtype(made, "to", dtype);
        x = onnx_finish(made);
        if (from) onnx_set_narrow(call->im, x, element);
    } else {
        bool text = dtype == BERTH_DTYPE_STRING;
        if (from) x = decode(&c, x, from, to || text ? BERTH_DTYPE_F32 : dtype);
        if (text) x = onnx_cast_to(&c, x, dtype);
        if (to)
            x = encode(&c, x, to, onnx_call_int(call, "saturate", 1) != 0,
                       onnx_call_string(call, "round_mode", "up"));
    }
    if (x == call->inputs[0]) x = onnx_make1(&c, BERTH_OP_IDENTITY, x);  // the bytes as numbers
    onnx_compose_output(&c, 0, x);
    return c.status;
}

berth_status onnx_build_cast(onnx_call *call) {
    if (!onnx_call_has(call, 0) || call->input_count != 1)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "one input is needed");
    return cast_to_element(call, onnx_call_int(call, "to", 0));
}

berth_status onnx_build_cast_like(onnx_call *call) {
    if (!onnx_call_has(call, 0) || !onnx_call_has(call, 1))
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT, "two inputs are needed");
    const berth_narrow_type *narrow = onnx_narrow_of(call->im, call->inputs[1]);
    berth_dtype to = onnx_call_type(call, call->inputs[1]).dtype;
    if (to == BERTH_DTYPE_NONE)
        return onnx_call_fail(call, BERTH_UNSUPPORTED,
                              "the element type of the second input is not known");
    return cast_to_element(call, narrow ? narrow->onnx : berth_dtype_to_onnx(to));
}

berth_status onnx_build_bit_cast(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 1, 1);
    int64_t element = onnx_call_int(call, "to", 0);
    berth_value_id x = onnx_compose_input(&c, 0);
    const berth_narrow_type *from = onnx_narrow_of(call->im, x);
    const berth_narrow_type *to = berth_narrow_type_of(element);
    berth_dtype dtype = berth_storage_from_onnx(element);
    if ((from && from->bits != 8) || (to && to->bits != 8) || dtype == BERTH_DTYPE_NONE)
        onnx_compose_fail(&c, BERTH_UNSUPPORTED, "elements of %s as %s",
                          from ? onnx_element_name(from->onnx) : "an input",
                          onnx_element_name(element));
    onnx_made made = onnx_start(&c, BERTH_OP_BIT_CAST, &x, 1, 1);
    onnx_set_dtype(made, "to", dtype);
    x = onnx_finish(made);
    if (!c.status) onnx_set_narrow(call->im, x, element);
    onnx_compose_output(&c, 0, x);
    return c.status;
}

// ---- QuantizeLinear, DequantizeLinear ----

// An element type given as a number of ONNX; NONE where the attribute is absent or 0.
static berth_status dtype_attr(const onnx_call *call, const char *name, berth_dtype *out_dtype) {
    int64_t wanted = onnx_call_int(call, name, 0);
    *out_dtype = wanted ? berth_dtype_from_onnx(wanted) : BERTH_DTYPE_NONE;
    if (!wanted || *out_dtype != BERTH_DTYPE_NONE) return BERTH_OK;
    return onnx_call_fail(call, BERTH_UNSUPPORTED, "attribute %s is element type %lld of ONNX (%s)",
                          name, (long long)wanted, onnx_element_name(wanted));
}

// Input `index`, cast where it has another element type.
static berth_status cast_input(onnx_call *call, uint32_t index, berth_dtype to) {
    onnx_compose c = {.call = call};
    if (onnx_call_has(call, index)) call->inputs[index] = onnx_cast_to(&c, call->inputs[index], to);
    return c.status;
}

// What is given per block of `block` indices of the axis, for each of x.
static berth_value_id along_blocks(onnx_compose *c, berth_value_id x, berth_value_id param,
                                   int64_t axis, int64_t block) {
    int64_t extent = onnx_compose_extent(c, x, (int)axis);
    int64_t blocks = onnx_compose_extent(c, param, (int)axis);
    if (extent >= 0 && blocks >= 0 && extent / block + (extent % block != 0) != blocks)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "%lld blocks of %lld do not make an axis of %lld", (long long)blocks,
                          (long long)block, (long long)extent);
    berth_value_id places = onnx_counting(c, onnx_extent_of(c, x, (int)axis));
    places = onnx_div(c, places, onnx_scalar(c, BERTH_DTYPE_I64, (double)block));
    return onnx_gathered(c, param, places, axis);
}

// A scale or zero point so that it broadcasts to x: one, one per index of the axis, or one per block
// of `block` indices.
static berth_value_id spread(onnx_compose *c, berth_value_id x, berth_value_id param) {
    int rank = onnx_compose_rank(c, x), own = onnx_compose_rank(c, param);
    int64_t axis = onnx_call_int(c->call, "axis", 1),
            block = onnx_call_int(c->call, "block_size", 0);
    if (block < 0)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "attribute block_size is %lld",
                          (long long)block);
    if (c->status || param == BERTH_NONE || (own == 0 && !block)) return param;
    if (own == 1 && rank == 1 && !block) axis = 0;
    if (own == 1 && onnx_compose_extent(c, param, 0) == 1 && !block) return param;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || own != (block ? rank : 1)) {
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "axis or block_size do not fit a scale of %d dimensions for %d", own,
                          rank);
        return BERTH_NONE;
    }
    if (block) return along_blocks(c, x, param, axis, block);
    int64_t dims[BERTH_MAX_RANK];
    for (int i = 0; i < rank; ++i) dims[i] = 1;
    dims[axis] = -1;
    return onnx_reshaped(c, param, dims, (uint32_t)rank);
}

static bool needs_parts(const onnx_call *call, const berth_narrow_type *type) {
    return type || onnx_call_int(call, "block_size", 0) != 0;
}

// y = (x - zero) * scale in the type of the result.
static berth_status dequantize_parts(onnx_call *call, berth_dtype dtype) {
    onnx_compose c = onnx_compose_begin(call, 2, 3);
    berth_value_id x = onnx_compose_input(&c, 0), zero = onnx_compose_input(&c, 2);
    const berth_narrow_type *type = onnx_narrow_of(call->im, x);
    if (zero != BERTH_NONE && onnx_narrow_of(call->im, zero) != type)
        onnx_compose_fail(&c, BERTH_INVALID_ARGUMENT, "the zero point has another element type");
    berth_value_id scale = onnx_compose_input(&c, 1);
    if (dtype == BERTH_DTYPE_NONE) dtype = onnx_compose_dtype(&c, scale);
    berth_dtype inner = type && type->exponent ? dtype : BERTH_DTYPE_I32;
    berth_value_id parts[2] = {x, zero};
    for (int i = 0; i < 2; ++i)
        if (parts[i] != BERTH_NONE)
            parts[i] = type ? decode(&c, parts[i], type, inner) : onnx_cast_to(&c, parts[i], inner);
    if (zero != BERTH_NONE) parts[0] = onnx_sub(&c, parts[0], spread(&c, x, parts[1]));
    scale = spread(&c, x, onnx_cast_to(&c, scale, dtype));
    onnx_compose_output(&c, 0, onnx_mul(&c, onnx_cast_to(&c, parts[0], dtype), scale));
    return c.status;
}

// y = saturate(round(x / scale) + zero); narrow floats are rounded by their encoding alone.
static berth_status quantize_parts(onnx_call *call, const berth_narrow_type *type,
                                   berth_dtype dtype) {
    onnx_compose c = onnx_compose_begin(call, 2, 3);
    berth_value_id x = onnx_compose_input(&c, 0), scale = onnx_compose_input(&c, 1);
    berth_value_id zero = onnx_compose_input(&c, 2);
    berth_value_id ratio = onnx_div(&c, x, spread(&c, x, scale));
    berth_dtype own = onnx_compose_dtype(&c, ratio);
    if (zero != BERTH_NONE) {
        zero = type ? decode(&c, zero, type, own) : onnx_cast_to(&c, zero, own);
        zero = spread(&c, x, zero);
    }
    bool floats = type && type->exponent;
    if (!floats) ratio = onnx_make1(&c, BERTH_OP_ROUND, ratio);
    if (zero != BERTH_NONE) ratio = onnx_add(&c, ratio, zero);
    if (floats) {
        ratio = encode(&c, ratio, type, onnx_call_int(call, "saturate", 1) != 0, "up");
    } else if (type) {
        bool has_sign = type->dtype == BERTH_DTYPE_I8;
        double half = __builtin_ldexp(1, type->bits - 1);
        berth_value_id low = onnx_like(&c, ratio, has_sign ? -half : 0);
        berth_value_id high = onnx_like(&c, ratio, has_sign ? half - 1 : 2 * half - 1);
        ratio = onnx_make3(&c, BERTH_OP_CLIP, ratio, low, high);
        ratio = onnx_cast_to(&c, ratio, type->dtype);
        if (!c.status) onnx_set_narrow(call->im, ratio, type->onnx);
    } else {
        // A quantisation by one, which saturates to the type.
        onnx_made made = onnx_start(&c, BERTH_OP_QUANTIZE_LINEAR,
                                    (berth_value_id[]){ratio, onnx_like(&c, ratio, 1)}, 2, 1);
        onnx_set_dtype(made, "output_dtype", dtype);
        ratio = onnx_finish(made);
    }
    onnx_compose_output(&c, 0, ratio);
    return c.status;
}

// What the result is: output_dtype's or the zero point's, else u8.
static berth_status quantized_type(const onnx_call *call, const berth_narrow_type **out_narrow,
                                   berth_dtype *out_dtype) {
    int64_t wanted = onnx_call_int(call, "output_dtype", 0);
    *out_narrow = berth_narrow_type_of(wanted);
    *out_dtype = BERTH_DTYPE_NONE;
    if (!*out_narrow) BERTH_TRY(dtype_attr(call, "output_dtype", out_dtype));
    if (!onnx_call_has(call, 2)) return BERTH_OK;
    const berth_narrow_type *zero = onnx_narrow_of(call->im, call->inputs[2]);
    if (wanted && zero != *out_narrow)
        return onnx_call_fail(call, BERTH_INVALID_ARGUMENT,
                              "the zero point has another element type than output_dtype");
    *out_narrow = zero;
    return BERTH_OK;
}

// Since opset 23 the input and the scale may have different types: the scale's, or the attribute
// precision, is that of the division.
berth_status onnx_build_quantize(onnx_call *call) {
    berth_dtype dtype, precision;
    const berth_narrow_type *narrow = NULL;
    BERTH_TRY(quantized_type(call, &narrow, &dtype));
    BERTH_TRY(dtype_attr(call, "precision", &precision));
    if (precision == BERTH_DTYPE_NONE && onnx_call_has(call, 1))
        precision = onnx_call_type(call, call->inputs[1]).dtype;
    for (uint32_t i = 0; i < 2; ++i) {
        if (onnx_call_has(call, i) && onnx_narrow_of(call->im, call->inputs[i])) {
            onnx_compose c = {.call = call};
            call->inputs[i] = decode(&c, call->inputs[i], onnx_narrow_of(call->im, call->inputs[i]),
                                     BERTH_DTYPE_F32);
            BERTH_TRY(c.status);
            precision = BERTH_DTYPE_F32;
        }
    }
    if (berth_dtype_is_float(precision)) {
        BERTH_TRY(cast_input(call, 0, precision));
        BERTH_TRY(cast_input(call, 1, precision));
    }
    if (needs_parts(call, narrow)) {
        if (dtype == BERTH_DTYPE_NONE && onnx_call_has(call, 2))
            dtype = onnx_call_type(call, call->inputs[2]).dtype;
        return quantize_parts(call, narrow, dtype ? dtype : BERTH_DTYPE_U8);
    }
    BERTH_TRY(onnx_build_plain(call));
    if (dtype == BERTH_DTYPE_NONE || !call->output_count) return BERTH_OK;
    const berth_graph *graph = berth_graph_get(call->im->module, call->im->function);
    berth_op_id op = graph->values.data[call->outputs[0]].op;
    berth_attrs_set(call->im->module, onnx_call_op_attrs(call, op), "output_dtype",
                    (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = dtype});
    return onnx_call_infer(call, op);
}

// Since opset 23 output_dtype is the type of the product and of the result, instead of the scale's.
berth_status onnx_build_dequantize(onnx_call *call) {
    berth_dtype dtype;
    BERTH_TRY(dtype_attr(call, "output_dtype", &dtype));
    if (onnx_call_has(call, 1)) {
        const berth_narrow_type *scale = onnx_narrow_of(call->im, call->inputs[1]);
        onnx_compose c = {.call = call};
        if (scale) call->inputs[1] = decode(&c, call->inputs[1], scale, BERTH_DTYPE_F32);
        BERTH_TRY(c.status);
    }
    const berth_narrow_type *type =
        onnx_call_has(call, 0) ? onnx_narrow_of(call->im, call->inputs[0]) : NULL;
    if (needs_parts(call, type)) return dequantize_parts(call, dtype);
    if (dtype != BERTH_DTYPE_NONE) BERTH_TRY(cast_input(call, 1, dtype));
    return onnx_build_plain(call);
}

// ---- GatherBlockQuantized of com.microsoft ----

berth_value_id onnx_unpacked(onnx_compose *c, berth_value_id bytes, int64_t bits) {
    int rank = onnx_compose_rank(c, bytes);
    if (c->status || bits == 8) return bytes;
    berth_value_id parts[4];
    int64_t dims[BERTH_MAX_RANK] = {0};  // 0 keeps an extent
    uint32_t per_byte = (uint32_t)(8 / bits);
    for (uint32_t i = 0; i < per_byte; ++i) {
        onnx_made made = onnx_start(
            c, BERTH_OP_BIT_SHIFT,
            (berth_value_id[]){bytes, onnx_like(c, bytes, (double)(i * (uint32_t)bits))}, 2, 1);
        onnx_set_string(made, "direction", "RIGHT");
        berth_value_id part = i ? onnx_finish(made) : bytes;
        part = onnx_make2(c, BERTH_OP_BITWISE_AND, part,
                          onnx_like(c, bytes, (double)((1 << bits) - 1)));
        parts[i] = onnx_unsqueezed(c, part, rank);
    }
    dims[rank - 1] = -1;
    return onnx_reshaped(c, onnx_concatenated(c, parts, per_byte, rank), dims, (uint32_t)rank);
}

typedef struct block_gather {
    const berth_narrow_type *type;  // NULL: bytes
    berth_dtype dtype;              // of the result
    int64_t bits, block;
    int64_t gather_axis, axis;
} block_gather;

static int64_t axis_attr(onnx_compose *c, const char *name, int64_t fallback, int rank) {
    int64_t axis = onnx_call_int(c->call, name, fallback);
    if (axis < -rank || axis >= rank)
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "%s %lld of %d dimensions", name,
                          (long long)axis, rank);
    return axis < 0 ? axis + rank : axis;
}

static block_gather read_block_gather(onnx_compose *c) {
    berth_value_id data = onnx_compose_input(c, 0), scale = onnx_compose_input(c, 2);
    int rank = onnx_compose_want_rank(c, data, "data", 2, BERTH_MAX_RANK - 1);
    onnx_compose_want_rank(c, scale, "scales", rank, rank);
    block_gather g = {.type = onnx_narrow_of(c->call->im, data),
                      .dtype = onnx_compose_dtype(c, scale),
                      .bits = onnx_call_int(c->call, "bits", 4),
                      .block = onnx_call_int(c->call, "block_size", 128)};
    g.gather_axis = axis_attr(c, "gather_axis", 0, rank);
    g.axis = axis_attr(c, "quantize_axis", 1, rank);
    bool bytes = !g.type && onnx_compose_dtype(c, data) == BERTH_DTYPE_U8;
    if (!bytes && (!g.type || g.type->exponent || g.type->bits != 4))
        onnx_compose_fail(c, BERTH_UNSUPPORTED, "data of other types than int4, uint4 and uint8");
    else if (bytes && (g.gather_axis || (g.bits != 2 && g.bits != 4 && g.bits != 8)))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "%lld bits gathered along axis %lld of bytes",
                          (long long)g.bits, (long long)g.gather_axis);
    if (g.gather_axis == g.axis || g.block < 16 || g.block & (g.block - 1))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT,
                          "blocks of %lld along axis %lld, gathered along %lld", (long long)g.block,
                          (long long)g.axis, (long long)g.gather_axis);
    berth_value_id zero = onnx_compose_input(c, 3);
    if (zero != BERTH_NONE && (onnx_narrow_of(c->call->im, zero) != g.type ||
                               onnx_compose_dtype(c, zero) != onnx_compose_dtype(c, data)))
        onnx_compose_fail(c, BERTH_INVALID_ARGUMENT, "the zero points have another element type");
    return g;
}

// Numbers of few bits as i32, gathered.
static berth_value_id gathered_numbers(onnx_compose *c, const block_gather *g, berth_value_id value,
                                       berth_value_id indices) {
    value = onnx_gathered(c, value, indices, g->gather_axis);
    if (g->type) return decode(c, value, g->type, BERTH_DTYPE_I32);
    return onnx_cast_to(c, onnx_unpacked(c, value, g->bits), BERTH_DTYPE_I32);
}

// Rows of (data - zero points) scales, each given per block; those of indices that are out of range
// are 0.
berth_status onnx_build_ms_gather_block_quantized(onnx_call *call) {
    onnx_compose c = onnx_compose_begin(call, 3, 4);
    block_gather g = {0};
    if (!c.status) g = read_block_gather(&c);
    if (c.status) return c.status;
    berth_value_id data = onnx_compose_input(&c, 0), scale = onnx_compose_input(&c, 2);
    berth_value_id at = onnx_cast_to(&c, onnx_compose_input(&c, 1), BERTH_DTYPE_I64);
    berth_value_id zero = onnx_compose_input(&c, 3);
    int inside = onnx_compose_rank(&c, at), rank = onnx_compose_rank(&c, data) + inside - 1;
    if (!c.status && rank > BERTH_MAX_RANK - 1)
        onnx_compose_fail(&c, BERTH_UNSUPPORTED, "a result of %d dimensions", rank);
    if (c.status) return c.status;
    berth_value_id count = onnx_extent_of(&c, data, (int)g.gather_axis);
    berth_value_id none = onnx_scalar(&c, BERTH_DTYPE_I64, 0);
    berth_value_id known = onnx_make2(
        &c, BERTH_OP_AND, onnx_make2(&c, BERTH_OP_GREATER_OR_EQUAL, at, onnx_sub(&c, none, count)),
        onnx_make2(&c, BERTH_OP_LESS, at, count));
    at = onnx_where(&c, known, at, none);
    int64_t axis = g.axis > g.gather_axis ? g.axis + inside - 1 : g.axis;
    berth_value_id numbers = gathered_numbers(&c, &g, data, at);
    scale = onnx_gathered(&c, scale, at, g.gather_axis);
    if (zero != BERTH_NONE) {
        zero = gathered_numbers(&c, &g, zero, at);
        if (!g.type)
            zero = onnx_sliced(&c, zero, rank - 1, 0,
                               onnx_compose_known_extent(&c, scale, "scales", rank - 1), 1);
        numbers = onnx_sub(&c, numbers, along_blocks(&c, numbers, zero, axis, g.block));
    } else if (!g.type) {
        numbers = onnx_sub(&c, numbers, onnx_like(&c, numbers, (double)(1 << (g.bits - 1))));
    }
    berth_value_id y = onnx_mul(&c, onnx_cast_to(&c, numbers, g.dtype),
                                along_blocks(&c, numbers, scale, axis, g.block));
    for (int i = 0; i < rank - (int)g.gather_axis - inside; ++i)
        known = onnx_unsqueezed(&c, known, inside + i);
    onnx_compose_output(&c, 0, onnx_where(&c, known, y, onnx_like(&c, y, 0)));
    return c.status;
}
