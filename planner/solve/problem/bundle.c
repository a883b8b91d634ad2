// The proximal bundle method: the next prices are best for the known pieces less a quadratic in the
// distance from the best prices so far. Its dual, over convex combinations of pieces, is solved by
// moving weight between pairs of pieces.
#include "planner/solve/problem/bundle.h"

#include <math.h>
#include <string.h>

enum { PIECE_LIMIT = 80, PATIENCE = 10 };

struct berth_place_bundle {
    uint32_t item_count;
    double *scale;   // [items] of the quadratic
    double *center;  // [items] best prices so far
    double *prices;  // [items] to look at now
    double center_value;
    bool has_center;
    double expected;  // value that the pieces allowed at `prices`
    double reach;     // weight against the quadratic
    int nulls;        // steps since the center moved
    uint32_t piece_count;
    double *pieces[PIECE_LIMIT];               // [items]
    double level[PIECE_LIMIT];                 // piece . center
    double weight[PIECE_LIMIT];                // of the convex combination
    double product[PIECE_LIMIT][PIECE_LIMIT];  // of projected pieces, scaled
};

berth_place_bundle *berth_place__bundle(berth_arena *arena, uint32_t item_count,
                                        const double *start) {
    berth_place_bundle *b = berth_arena_new(arena, berth_place_bundle);
    b->item_count = item_count;
    b->scale = berth_arena_new_array(arena, double, (size_t)item_count + 1);
    b->center = berth_arena_new_array(arena, double, (size_t)item_count + 1);
    b->prices = berth_arena_new_array(arena, double, (size_t)item_count + 1);
    for (int i = 0; i < PIECE_LIMIT; ++i)
        b->pieces[i] = berth_arena_new_array(arena, double, (size_t)item_count + 1);
    berth_place__bundle_restart(b, start);
    return b;
}

void berth_place__bundle_restart(berth_place_bundle *b, const double *start) {
    double sum = 0;
    for (uint32_t i = 0; i < b->item_count; ++i) {
        b->prices[i] = start[i];
        b->scale[i] = fmax(start[i], 0.1 / b->item_count);
        sum += b->scale[i];
    }
    for (uint32_t i = 0; i < b->item_count; ++i) b->scale[i] /= sum;
    b->reach = 0;
    b->nulls = 0;
    b->piece_count = 0;
    b->has_center = false;
}

double *berth_place__bundle_prices(berth_place_bundle *bundle) {
    return bundle->prices;
}

static double dot(const double *a, const double *b, uint32_t count) {
    double sum = 0;
    for (uint32_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
}

// The part of a piece along which the sum of prices changes does not count.
static void project(const berth_place_bundle *b, double *piece) {
    double mean = dot(piece, b->scale, b->item_count);  // scales sum up to 1
    for (uint32_t i = 0; i < b->item_count; ++i) piece[i] -= mean;
}

static void add_piece(berth_place_bundle *b, const double *piece, double value) {
    uint32_t at = b->piece_count;
    if (at == PIECE_LIMIT) {
        at = 0;
        for (uint32_t i = 1; i < PIECE_LIMIT; ++i)
            if (b->weight[i] < b->weight[at] ||
                (b->weight[i] == b->weight[at] && b->level[i] > b->level[at]))
                at = i;
    } else {
        b->piece_count++;
    }
    memcpy(b->pieces[at], piece, b->item_count * sizeof(*piece));
    project(b, b->pieces[at]);
    // All is linear: the projected piece and the value at one point tell the value everywhere.
    b->level[at] = value + dot(b->pieces[at], b->center, b->item_count) -
                   dot(b->pieces[at], b->prices, b->item_count);
    b->weight[at] = b->piece_count == 1 ? 1 : 0;
    for (uint32_t i = 0; i < b->piece_count; ++i) {
        double sum = 0;
        for (uint32_t v = 0; v < b->item_count; ++v)
            sum += b->pieces[i][v] * b->pieces[at][v] * b->scale[v];
        b->product[i][at] = b->product[at][i] = sum;
    }
}

static void move_center(berth_place_bundle *b) {
    for (uint32_t i = 0; i < b->piece_count; ++i)
        b->level[i] += dot(b->pieces[i], b->prices, b->item_count) -
                       dot(b->pieces[i], b->center, b->item_count);
    memcpy(b->center, b->prices, b->item_count * sizeof(*b->center));
}

// Minimises level . weight + reach / 2 * |sum of weight * piece|^2 over convex combinations.
static void solve_dual(berth_place_bundle *b) {
    enum { ROUNDS = 400 };
    double slope[PIECE_LIMIT];
    double sum = 0;
    for (uint32_t i = 0; i < b->piece_count; ++i) sum += b->weight[i];
    for (uint32_t i = 0; i < b->piece_count; ++i)
        b->weight[i] = sum > 0 ? b->weight[i] / sum : 1.0 / b->piece_count;
    for (uint32_t i = 0; i < b->piece_count; ++i)
        slope[i] = b->level[i] + b->reach * dot(b->product[i], b->weight, b->piece_count);
    for (int round = 0; round < ROUNDS; ++round) {
        uint32_t to = 0;
        uint32_t from = UINT32_MAX;
        for (uint32_t i = 0; i < b->piece_count; ++i) {
            if (slope[i] < slope[to]) to = i;
            if (b->weight[i] > 0 && (from == UINT32_MAX || slope[i] > slope[from])) from = i;
        }
        double gain = slope[from] - slope[to];
        if (from == to || gain <= 1e-9) return;
        double bend =
            b->reach * (b->product[to][to] + b->product[from][from] - 2 * b->product[to][from]);
        double step = bend > 0 ? gain / bend : b->weight[from];
        if (step > b->weight[from]) step = b->weight[from];
        b->weight[to] += step;
        b->weight[from] -= step;
        for (uint32_t i = 0; i < b->piece_count; ++i)
            slope[i] += b->reach * step * (b->product[i][to] - b->product[i][from]);
    }
}

// Prices from the weights. Returns the value that the pieces allow there.
static double move_prices(berth_place_bundle *b) {
    uint32_t n = b->item_count;
    double sum = 0;
    for (uint32_t v = 0; v < n; ++v) {
        double slope = 0;
        for (uint32_t i = 0; i < b->piece_count; ++i)
            if (b->weight[i] > 0) slope += b->weight[i] * b->pieces[i][v];
        double price = b->center[v] + b->reach * b->scale[v] * slope;
        b->prices[v] = price > 0 ? price : 0;
        sum += b->prices[v];
    }
    for (uint32_t v = 0; v < n; ++v) b->prices[v] /= sum;
    double least = INFINITY;
    for (uint32_t i = 0; i < b->piece_count; ++i)
        least = fmin(least, b->level[i] + dot(b->pieces[i], b->prices, n) -
                                dot(b->pieces[i], b->center, n));
    return least;
}

void berth_place__bundle_widen(berth_place_bundle *b) {
    double mean = 0;
    for (uint32_t i = 0; i < b->piece_count; ++i) mean += b->product[i][i] / b->piece_count;
    b->reach = fmax(b->reach, fmax(-b->center_value, 1e-3) / fmax(mean, 1e-12));
}

double berth_place__bundle_step(berth_place_bundle *b, double value, const double *piece) {
    if (!b->has_center) {
        b->has_center = true;
        b->center_value = value;
        memcpy(b->center, b->prices, b->item_count * sizeof(*b->center));
        add_piece(b, piece, value);
        berth_place__bundle_widen(b);
    } else {
        add_piece(b, piece, value);
        double hoped = b->expected - b->center_value;
        if (value > b->center_value + 0.1 * hoped) {
            if (value > b->center_value + 0.5 * hoped) b->reach *= 1.5;
            b->center_value = value;
            move_center(b);
            b->nulls = 0;
        } else if (++b->nulls > PATIENCE && value < b->center_value - 2 * hoped) {
            b->reach *= 0.95;
        }
    }
    solve_dual(b);
    b->expected = move_prices(b);
    return b->expected - b->center_value;
}
