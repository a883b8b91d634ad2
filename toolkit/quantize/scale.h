// What values are over the data sets, and scales from it, private to toolkit/quantize.
#ifndef BERTH_TOOLKIT_QUANTIZE_SCALE_H_
#define BERTH_TOOLKIT_QUANTIZE_SCALE_H_

#include "base/tensor.h"
#include "toolkit/quantize/quantize.h"

enum { BERTH_QUANTIZE__BINS = 4096 };

// Zeros are counted apart: they are exact in every scale.
typedef struct berth_quantize__range {
    double low, high;  // of all values, 0 included
    uint64_t count;
    bool is_seen, is_infinite;  // of these, some are no finite numbers
    double *bins;               // [BINS] counts over [low, high] of what is not 0
} berth_quantize__range;

// q = round(x / scale) + zero, from `least` to `most`.
typedef struct berth_quantize__scale {
    float scale;
    int zero, least, most;
    bool is_signed;  // i8; else u8
} berth_quantize__scale;

void berth_quantize__range_add(berth_quantize__range *range, const berth_tensor *tensor);  // f32
// The range must be known; bins are allocated.
void berth_quantize__range_count(berth_quantize__range *range, const berth_tensor *tensor);
void berth_quantize__range_join(berth_quantize__range *range, const berth_quantize__range *other);

// The scale that the options' method gives. Without bins: of the range. O(BINS * candidates).
berth_quantize__scale berth_quantize__choose(const berth_quantize__range *range,
                                             const berth_quantize_options *options);
// The nearest value that the scale has.
double berth_quantize__round(const berth_quantize__scale *scale, double value);

// Weights that share a scale: `outer` blocks of `inner` neighbours, block after block `outer_stride`
// elements apart.
typedef struct berth_quantize__slice {
    const float *data;
    int64_t outer, outer_stride, inner;
} berth_quantize__slice;
// Symmetric to i8: -127 .. 127, with powers of two -128 .. 127. O(elements * candidates).
float berth_quantize__weight_scale(const berth_quantize__slice *slice,
                                   const berth_quantize_options *options);
int8_t berth_quantize__weight_round(float value, float scale, bool power_of_two);
// 10 log10(signal / noise); a noise of 0 is INFINITY, no signal 0.
double berth_quantize__decibels(double signal, double noise);

#endif  // BERTH_TOOLKIT_QUANTIZE_SCALE_H_
