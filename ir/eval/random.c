// Random numbers: the Mersenne Twister MT19937 (Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS
// 8, 1998), seeded by its authors' init_genrand with one number. A double in [0, 1) takes two outputs, 53
// bits of them; normal numbers come in pairs by Marsaglia's polar method ("A convenient method for
// generating normal variables", SIAM Review 6, 1964).
#include <math.h>
#include <string.h>

#include "ir/eval/internal.h"

enum { state_size = 624, middle = 397 };

typedef struct twister {
    uint32_t state[state_size];
    int next;
    bool has_spare;
    double spare;
} twister;

static void seed_twister(twister *t, uint32_t seed) {
    *t = (twister){.next = state_size};
    t->state[0] = seed;
    for (uint32_t i = 1; i < state_size; ++i)
        t->state[i] = 1812433253u * (t->state[i - 1] ^ t->state[i - 1] >> 30) + i;
}

static void renew(twister *t) {
    for (int i = 0; i < state_size; ++i) {
        uint32_t joined =
            (t->state[i] & 0x80000000u) | (t->state[(i + 1) % state_size] & 0x7fffffffu);
        uint32_t twist = joined & 1 ? 0x9908b0dfu : 0;
        t->state[i] = t->state[(i + middle) % state_size] ^ joined >> 1 ^ twist;
    }
    t->next = 0;
}

static uint32_t next_bits(twister *t) {
    if (t->next == state_size) renew(t);
    uint32_t x = t->state[t->next++];
    x ^= x >> 11;
    x ^= x << 7 & 0x9d2c5680u;
    x ^= x << 15 & 0xefc60000u;
    return x ^ x >> 18;
}

static double next_uniform(twister *t) {
    uint32_t high = next_bits(t) >> 5, low = next_bits(t) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

static double next_normal(twister *t) {
    if (t->has_spare) {
        t->has_spare = false;
        return t->spare;
    }
    double x, y, square;
    do {
        x = 2 * next_uniform(t) - 1;
        y = 2 * next_uniform(t) - 1;
        square = x * x + y * y;
    } while (square >= 1 || square == 0);
    double factor = sqrt(-2 * log(square) / square);
    t->spare = factor * x;
    t->has_spare = true;
    return factor * y;
}

berth_status berth_eval__random(berth_eval_context *ctx) {
    int64_t dims[BERTH_MAX_RANK];
    int rank = 0;
    twister t;
    bool normal = strcmp(berth_eval__string(ctx, "distribution", "uniform"), "normal") == 0;
    double low = berth_eval__float(ctx, "low", 0), high = berth_eval__float(ctx, "high", 1);
    double mean = berth_eval__float(ctx, "mean", 0), scale = berth_eval__float(ctx, "scale", 1);
    BERTH_TRY(berth_eval__vector(&ctx->inputs[0], "shape", dims, &rank));
    BERTH_TRY(
        berth_eval__output(ctx, 0, berth_eval__dtype(ctx, "dtype", BERTH_DTYPE_F32), rank, dims));
    seed_twister(&t, (uint32_t)berth_eval__int(ctx, "seed", 0));
    int64_t count = berth_tensor_element_count(&ctx->outputs[0]);
    for (int64_t i = 0; i < count; ++i)
        berth_eval__set_f64(&ctx->outputs[0], i,
                            normal ? mean + scale * next_normal(&t)
                                   : low + (high - low) * next_uniform(&t));
    return BERTH_OK;
}
