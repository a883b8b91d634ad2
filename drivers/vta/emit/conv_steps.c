// What the ALU does to sums, from a scale, rounding and bounds.
#include "drivers/vta/emit/conv.h"
#include "drivers/vta/emit/emitter.h"
#include "drivers/vta/emit/rounding.h"

enum { most_shift = 15 };  // of one operation

int64_t berth_vta__conv_largest_sum(const berth_vta_shape *shape, const berth_vta_conv *c) {
    int64_t factors = c->factors[0] + (c->sources == 2 ? c->factors[1] : 0);
    return factors * c->kernel_h * c->kernel_w * ((int64_t)1 << (8 * shape->inp_bytes - 1));
}

static int32_t added_to_bias(const berth_vta_conv *c) {
    bool adds = c->form == BERTH_VTA_PRODUCTS && c->to_even && c->shift > 0 && !c->no_bias;
    return adds ? 1 << (c->shift - 1) : 0;
}

static berth_status find_rounding(const berth_vta_shape *shape, const berth_vta_conv *c,
                                  berth_vta_rounding *out) {
    *out = (berth_vta_rounding){.parts = 1, .multiplier = 1};
    if (c->form == BERTH_VTA_MAXIMA) return BERTH_OK;
    if (c->form == BERTH_VTA_SUMS) {
        BERTH_TRY(berth_vta_rounding_find(c->divisor, berth_vta__conv_largest_sum(shape, c), out));
        uint64_t total = (uint64_t)c->factors[0] * out->multiplier;
        if (out->multiplier > 1 && (c->sources > 1 || total >= 1u << 21))
            return berth_status_make(BERTH_UNSUPPORTED, "a divisor of %u of two inputs",
                                     c->divisor);
        return BERTH_OK;
    }
    out->shift = c->shift;
    if (!c->to_even || c->shift == 0) return BERTH_OK;
    out->parts = 2;
    out->shift = c->shift + 1;
    // What both parts add is in the biases, where there are some.
    int32_t common = added_to_bias(c);
    out->add[0] = 3 * (1 << (c->shift - 1)) - 1 - common;
    out->add[1] = (1 << (c->shift - 1)) - common;
    return BERTH_OK;
}

static void add(berth_vta_steps *w, bool to_copy, uint32_t code, berth_vta_operand by,
                int32_t number) {
    (void)berth_vta_steps_add(
        w, (berth_vta_step){
               .to_copy = to_copy, .code = (uint8_t)code, .by = (uint8_t)by, .number = number});
}

// (accumulators + add[part]) >> shift
static void add_part(berth_vta_steps *w, const berth_vta_rounding *r, bool to_copy, int part) {
    if (r->add[part]) add(w, to_copy, BERTH_VTA_ADD, BERTH_VTA_BY_NUMBER, r->add[part]);
    for (uint32_t left = r->shift; left > 0;) {
        uint32_t by = left < most_shift ? left : most_shift;
        add(w, to_copy, BERTH_VTA_SHR, BERTH_VTA_BY_NUMBER, (int32_t)by);
        left -= by;
    }
}

static void add_rounding(berth_vta_steps *w, const berth_vta_rounding *r) {
    if (r->parts == 2) {
        (void)berth_vta_steps_add(w, (berth_vta_step){.to_copy = true, .resets = true});
        add(w, true, BERTH_VTA_ADD, BERTH_VTA_BY_RESULTS, 0);
        add_part(w, r, true, 0);
    }
    add_part(w, r, false, (int)r->parts - 1);
    if (r->parts == 2) add(w, false, BERTH_VTA_ADD, BERTH_VTA_BY_COPY, 0);
}

static void add_bounds(const berth_vta_shape *shape, const berth_vta_conv *c, berth_vta_steps *w) {
    int64_t most = (int64_t)1 << (8 * shape->inp_bytes - 1), divisor = 1, gain = 1;
    bool high = true, low = true;
    if (c->form == BERTH_VTA_SUMS) {
        gain = berth_vta__conv_largest_sum(shape, c) / most;
        divisor = c->divisor;
    }
    if (c->form != BERTH_VTA_PRODUCTS) {
        high = c->high < 0 || gain * (most - 1) > c->high * divisor;
        low = gain * most > -c->low * divisor;
    }
    if (high) add(w, false, BERTH_VTA_MIN, BERTH_VTA_BY_NUMBER, c->high);
    if (low) add(w, false, BERTH_VTA_MAX, BERTH_VTA_BY_NUMBER, c->low);
}

static void set_factors(const berth_vta_conv *c, uint32_t multiplier, berth_vta_steps *w) {
    w->digits = 1;
    if (c->form == BERTH_VTA_PRODUCTS) return;
    w->factors[0] = c->form == BERTH_VTA_SUMS ? c->factors[0] : 1;
    w->factors[1] = c->factors[1];
    w->factor_count = c->form == BERTH_VTA_SUMS ? c->sources : 1;
    if (w->factor_count == 2) return;
    uint64_t factor = (uint64_t)w->factors[0] * multiplier;
    for (uint64_t rest = factor; rest > 127; rest >>= 7) w->digits++;
    w->factor_count = w->digits;
    for (uint32_t d = 0; d < w->digits; ++d)
        w->factors[d] = (uint32_t)(factor >> 7 * (w->digits - 1 - d) & 127);
}

berth_status berth_vta_conv_find_steps(const berth_vta_shape *shape, const berth_vta_conv *c,
                                       berth_vta_steps *out) {
    berth_vta_rounding rounding;
    *out = (berth_vta_steps){.digits = 1};
    if (c->work) {
        *out = *c->work;
        return BERTH_OK;
    }
    BERTH_TRY(find_rounding(shape, c, &rounding));
    set_factors(c, rounding.multiplier, out);
    out->added_to_bias = added_to_bias(c);
    if (c->form == BERTH_VTA_PRODUCTS && !c->no_bias)
        add(out, false, BERTH_VTA_ADD, BERTH_VTA_BY_BIAS, 0);
    add_rounding(out, &rounding);
    add_bounds(shape, c, out);
    return BERTH_OK;
}
