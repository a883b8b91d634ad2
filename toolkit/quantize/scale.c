#include "toolkit/quantize/scale.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LEVELS = 256, STEPS = 64 };

void berth_quantize__range_add(berth_quantize__range *range, const berth_tensor *tensor) {
    const float *data = tensor->data;
    int64_t count = berth_tensor_element_count(tensor);
    range->is_seen = true;
    range->count += (uint64_t)count;
    for (int64_t i = 0; i < count; ++i) {
        double value = (double)data[i];
        if (!isfinite(value)) range->is_infinite = true;
        if (value < range->low) range->low = value;
        if (value > range->high) range->high = value;
    }
}

void berth_quantize__range_count(berth_quantize__range *range, const berth_tensor *tensor) {
    const float *data = tensor->data;
    int64_t count = berth_tensor_element_count(tensor);
    double width = range->high - range->low;
    if (!(width > 0)) return;
    for (int64_t i = 0; i < count; ++i) {
        if (data[i] == 0) continue;
        double at = ((double)data[i] - range->low) / width * BERTH_QUANTIZE__BINS;
        int bin = at < 0 ? 0 : at >= BERTH_QUANTIZE__BINS ? BERTH_QUANTIZE__BINS - 1 : (int)at;
        range->bins[bin] += 1;
    }
}

void berth_quantize__range_join(berth_quantize__range *range, const berth_quantize__range *other) {
    range->low = fmin(range->low, other->low);
    range->high = fmax(range->high, other->high);
    range->count += other->count;
    range->is_seen |= other->is_seen;
    range->is_infinite |= other->is_infinite;
}

static double value_of(const berth_quantize__range *range, int bin) {
    return range->low + (range->high - range->low) * (bin + 0.5) / BERTH_QUANTIZE__BINS;
}

double berth_quantize__round(const berth_quantize__scale *scale, double value) {
    double q = nearbyint(value / (double)scale->scale) + scale->zero;
    q = q < scale->least ? scale->least : q > scale->most ? scale->most : q;
    return (q - scale->zero) * (double)scale->scale;
}

// ---- scales that stand for an interval ----------------------------------------------------------

// The least power of two with which `most` levels reach `reach`, times 2^-finer.
static float power_of_two(double reach, double most, int finer) {
    int exponent = 0;
    double mantissa = frexp(reach / most, &exponent);
    return (float)ldexp(1, (mantissa == 0.5 ? exponent - 1 : exponent) - finer);
}

static bool is_signed(const berth_quantize__range *range) {
    return range->low < 0;
}

static berth_quantize__scale make_scale(const berth_quantize__range *range, double low, double high,
                                        int finer, const berth_quantize_options *options) {
    berth_quantize__scale s = {.is_signed = options->whole,
                               .least = options->whole ? -128 : 0,
                               .most = options->whole ? 127 : 255};
    bool symmetric = options->whole || options->power_of_two;
    double reach = fmax(-low, high);
    if (!(reach > 0)) {
        s.scale = 1;
    } else if (symmetric) {
        bool one_sided = !options->whole && !is_signed(range);
        double levels = one_sided ? 255 : 127;
        s.zero = options->whole || one_sided ? 0 : 128;
        s.scale =
            options->power_of_two ? power_of_two(reach, levels, finer) : (float)(reach / levels);
    } else {
        s.scale = (float)fmax((high - low) / 255, (double)FLT_MIN);
        s.zero = (int)nearbyint(-low / (double)s.scale);
    }
    if (!(s.scale >= FLT_MIN)) s.scale = FLT_MIN;
    return s;
}

// ---- what a scale costs -------------------------------------------------------------------------

static double squared_error(const berth_quantize__range *range, const berth_quantize__scale *s) {
    double sum = 0;
    for (int i = 0; i < BERTH_QUANTIZE__BINS; ++i) {
        if (range->bins[i] == 0) continue;
        double value = value_of(range, i);
        double error = value - berth_quantize__round(s, value);
        sum += range->bins[i] * error * error;
    }
    return sum;
}

// Kullback-Leibler divergence of the values, clipped to what the scale reaches, from the same ones
// spread over each level's bins (Migacz).
static double divergence(const berth_quantize__range *range, const berth_quantize__scale *s) {
    double level_sum[LEVELS] = {0}, level_bins[LEVELS] = {0};
    double low = (s->least - s->zero) * (double)s->scale,
           high = (s->most - s->zero) * (double)s->scale;
    double below = 0, above = 0, total = 0, sum = 0;
    int first = -1, last = -1;
    for (int i = 0; i < BERTH_QUANTIZE__BINS; ++i) {
        double value = value_of(range, i);
        total += range->bins[i];
        if (value < low) below += range->bins[i];
        if (value > high) above += range->bins[i];
        if (value < low || value > high) continue;
        if (first < 0) first = i;
        last = i;
        int level =
            (int)nearbyint(berth_quantize__round(s, value) / (double)s->scale) + s->zero - s->least;
        level_sum[level] += range->bins[i];
        level_bins[level] += range->bins[i] > 0;
    }
    if (first < 0 || total == 0) return INFINITY;
    double kept = total - below - above;
    for (int i = first; i <= last; ++i) {
        double p = range->bins[i] + (i == first ? below : 0) + (i == last ? above : 0);
        if (p == 0) continue;
        int level =
            (int)nearbyint(berth_quantize__round(s, value_of(range, i)) / (double)s->scale) +
            s->zero - s->least;
        double q = range->bins[i] > 0 ? level_sum[level] / level_bins[level] / fmax(kept, 1) : 0;
        sum += p / total * log(p / total / fmax(q, 1e-9));
    }
    return sum;
}

typedef double cost_function(const berth_quantize__range *range, const berth_quantize__scale *s);

// ---- the search ---------------------------------------------------------------------------------

static berth_quantize__scale best_power(const berth_quantize__range *range,
                                        const berth_quantize_options *options,
                                        cost_function *cost) {
    berth_quantize__scale best = make_scale(range, range->low, range->high, 0, options);
    double least = cost(range, &best);
    for (int finer = 1; finer < 8; ++finer) {
        berth_quantize__scale s = make_scale(range, range->low, range->high, finer, options);
        double now = cost(range, &s);
        if (!(now < least)) continue;
        least = now;
        best = s;
    }
    return best;
}

// Both ends drawn in together, then, where they are free, each on its own.
static berth_quantize__scale best_interval(const berth_quantize__range *range,
                                           const berth_quantize_options *options,
                                           cost_function *cost) {
    double ends[2] = {1, 1};
    berth_quantize__scale best = make_scale(range, range->low, range->high, 0, options);
    double least = cost(range, &best);
    bool free_ends = !options->whole && is_signed(range);
    for (int turn = 0; turn < (free_ends ? 3 : 1); ++turn) {
        double start[2] = {ends[0], ends[1]};
        for (int step = 1; step < STEPS; ++step) {
            double share = 1 - (double)step / STEPS;
            double low = turn == 2 ? start[0] : turn == 1 ? share : share;
            double high = turn == 1 ? start[1] : share;
            berth_quantize__scale s =
                make_scale(range, range->low * low, range->high * high, 0, options);
            double now = cost(range, &s);
            if (!(now < least)) continue;
            least = now;
            best = s;
            ends[0] = low;
            ends[1] = high;
        }
    }
    return best;
}

// All but a share of the values: half of it may lie beyond each end.
static berth_quantize__scale at_percentile(const berth_quantize__range *range,
                                           const berth_quantize_options *options) {
    double share = options->percentile > 0 ? options->percentile : 0.9999;
    double outside = (1 - share) * (double)range->count / (is_signed(range) ? 2 : 1);
    double width = (range->high - range->low) / BERTH_QUANTIZE__BINS;
    double low = range->low, high = range->high, sum = 0;
    for (int i = 0; i < BERTH_QUANTIZE__BINS && low < 0; ++i) {
        sum += range->bins[i];
        if (sum > outside) break;
        low = fmin(0, range->low + width * (i + 1));
    }
    sum = 0;
    for (int i = BERTH_QUANTIZE__BINS; i-- > 0 && high > 0;) {
        sum += range->bins[i];
        if (sum > outside) break;
        high = fmax(0, range->low + width * i);
    }
    return make_scale(range, low, high, 0, options);
}

berth_quantize__scale berth_quantize__choose(const berth_quantize__range *range,
                                             const berth_quantize_options *options) {
    cost_function *cost = options->method == BERTH_QUANTIZE_ENTROPY ? divergence : squared_error;
    if (!range->bins || options->method == BERTH_QUANTIZE_MINMAX || !(range->high > range->low))
        return make_scale(range, range->low, range->high, 0, options);
    if (options->method == BERTH_QUANTIZE_PERCENTILE) return at_percentile(range, options);
    return options->power_of_two ? best_power(range, options, cost)
                                 : best_interval(range, options, cost);
}

// ---- weights ------------------------------------------------------------------------------------

int8_t berth_quantize__weight_round(float value, float scale, bool power_of_two) {
    double q = nearbyint((double)value / (double)scale);
    double least = power_of_two ? -128 : -127;
    return (int8_t)(q < least ? least : q > 127 ? 127 : q);
}

static double slice_error(const berth_quantize__slice *slice, float scale, bool power_of_two) {
    double sum = 0;
    for (int64_t o = 0; o < slice->outer; ++o)
        for (int64_t i = 0; i < slice->inner; ++i) {
            float value = slice->data[o * slice->outer_stride + i];
            double error = (double)value -
                           (double)scale * berth_quantize__weight_round(value, scale, power_of_two);
            sum += error * error;
        }
    return sum;
}

float berth_quantize__weight_scale(const berth_quantize__slice *slice,
                                   const berth_quantize_options *options) {
    enum { CANDIDATES = 24 };
    double reach = 0;
    for (int64_t o = 0; o < slice->outer; ++o)
        for (int64_t i = 0; i < slice->inner; ++i)
            reach = fmax(reach, fabs((double)slice->data[o * slice->outer_stride + i]));
    if (!(reach / 127 >= (double)FLT_MIN)) return options->power_of_two ? 0x1p-20F : 1;
    bool two = options->power_of_two;
    float best = two ? power_of_two(reach, 127, 0) : (float)(reach / 127);
    if (options->method != BERTH_QUANTIZE_MSE) return best;
    double least = slice_error(slice, best, two);
    for (int k = 1; k < (two ? 4 : CANDIDATES); ++k) {
        float scale =
            two ? power_of_two(reach, 127, k) : (float)(reach / 127 * (1 - 0.6 * k / CANDIDATES));
        double now = slice_error(slice, scale, two);
        if (!(now < least)) continue;
        least = now;
        best = scale;
    }
    return best;
}

double berth_quantize__decibels(double signal, double noise) {
    if (!(signal > 0)) return noise > 0 ? 0 : INFINITY;
    return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}
