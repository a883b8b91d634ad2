#include "toolkit/vm_bounds.h"

#include "base/divisor.h"

typedef struct berth_vm_bounds_symbol symbol_bounds;

static bool changes(const berth_vm_bounds_seen *seen, uint32_t axis) {
    for (uint32_t r = 1; r < seen->count; ++r)
        if (seen->rows[r][axis] != seen->rows[0][axis]) return true;
    return false;
}

// The step between extents: two of them tell less than three, so they are taken for multiples of it.
static int64_t step_of(const berth_vm_bounds_seen *seen, uint32_t axis) {
    const int64_t first = seen->rows[0][axis];
    int64_t step = 0, second = first;
    bool has_third = false;
    for (uint32_t r = 1; r < seen->count; ++r) {
        const int64_t extent = seen->rows[r][axis];
        step = berth_greatest_divisor(step, extent - first);
        if (extent == first) continue;
        has_third |= second != first && extent != second;
        second = extent;
    }
    return has_third ? step : berth_greatest_divisor(first, second);
}

// Whether `axis` is a number of steps of a symbol that axis `leader` stands for.
static bool follows(const berth_vm_bounds_seen *seen, const berth_vm_bounds_axis *leading,
                    uint32_t leader, uint32_t axis, berth_vm_bounds_axis *out) {
    int64_t factor = 0;
    const int64_t *first = seen->rows[0];
    for (uint32_t r = 1; r < seen->count; ++r) {
        const int64_t steps = (seen->rows[r][leader] - first[leader]) / leading->factor;
        const int64_t more = seen->rows[r][axis] - first[axis];
        if (steps == 0 ? more != 0 : more % steps != 0) return false;
        if (steps == 0) continue;
        if (factor && more / steps != factor) return false;
        factor = more / steps;
    }
    const int64_t symbol = (first[leader] - leading->summand) / leading->factor;
    *out = (berth_vm_bounds_axis){leading->symbol, factor, first[axis] - factor * symbol};
    return factor > 0;
}

static int64_t symbol_at(const berth_vm_bounds_axis *axis, int64_t extent) {
    return (extent - axis->summand) / axis->factor;
}

static int64_t power_below(int64_t n) {
    int64_t power = n > 0;
    while (power && power <= n / 2) power *= 2;
    return power;
}

static int64_t power_above(int64_t n) {
    const int64_t below = power_below(n);
    return below == n || below > INT64_MAX / 2 ? n : 2 * below;
}

// What the model allows, and no extent below 1 where none was seen.
static void clip(const berth_vm_bounds_seen *seen, const berth_vm_bounds_axis *axes,
                 symbol_bounds *symbols) {
    for (uint32_t a = 0; a < seen->axis_count; ++a) {
        if (axes[a].symbol == UINT32_MAX) continue;
        symbol_bounds *s = &symbols[axes[a].symbol];
        const int64_t least = seen->least[a] > 1 ? seen->least[a] : 1;
        while (s->least < s->most && axes[a].summand + axes[a].factor * s->least < least)
            s->least++;
        if (seen->most[a] && symbol_at(&axes[a], seen->most[a]) < s->most)
            s->most = symbol_at(&axes[a], seen->most[a]);
    }
}

static uint64_t count_shapes(const berth_vm_bounds *bounds, uint64_t limit) {
    uint64_t count = bounds->symbol_count > 0;
    for (uint32_t i = 0; i < bounds->symbol_count; ++i) {
        const uint64_t values = (uint64_t)(bounds->symbols[i].most - bounds->symbols[i].least) + 1;
        if (values > limit / count) return 0;
        count *= values;
    }
    return count;
}

// Beyond what was seen: to the next power of two, and further by a factor of two.
typedef struct margin {
    bool to_powers, halves, doubles;
    enum { UP_TO_ROOMY, UP_TO_FEW, UP_TO_MOST } limit;
} margin;

enum { ROOMY_SHAPES = 32 };

static const margin margins[BERTH_VM_BOUNDS_LEVELS] = {
    {true, true, true, UP_TO_ROOMY},  {true, true, false, UP_TO_ROOMY},
    {true, false, false, UP_TO_FEW},  {false, false, false, UP_TO_FEW},
    {true, false, false, UP_TO_MOST}, {false, false, false, UP_TO_MOST}};

bool berth_vm_bounds_level_is_wide(uint32_t level) {
    return margins[level].to_powers;
}

static symbol_bounds widen(symbol_bounds of, const margin *by) {
    if (!by->to_powers) return of;
    symbol_bounds wide = {power_below(of.least), power_above(of.most)};
    if (by->halves && wide.least > 1) wide.least /= 2;
    if (by->doubles && wide.most <= INT64_MAX / 2) wide.most *= 2;
    return wide;
}

static void set_bounds(const berth_vm_bounds_seen *seen, berth_vm_bounds *out, const margin *by) {
    const uint64_t limits[] = {ROOMY_SHAPES, seen->few_shapes, seen->most_shapes};
    for (uint32_t a = 0; a < seen->axis_count; ++a) {
        const berth_vm_bounds_axis *axis = &out->axes[a];
        if (axis->symbol == UINT32_MAX) continue;
        int64_t least = INT64_MAX, most = 0;
        for (uint32_t r = 0; r < seen->count; ++r) {
            const int64_t symbol = symbol_at(axis, seen->rows[r][a]);
            least = symbol < least ? symbol : least;
            most = symbol > most ? symbol : most;
        }
        out->symbols[axis->symbol] = widen((symbol_bounds){least, most}, by);
    }
    if (by->to_powers) clip(seen, out->axes, out->symbols);
    out->shape_count = by->limit == UP_TO_ROOMY && out->symbol_count > 1
                           ? 0
                           : count_shapes(out, limits[by->limit]);
}

static void name_axes(const berth_vm_bounds_seen *seen, berth_vm_bounds_axis *axes,
                      uint32_t *leaders, uint32_t *out_count) {
    for (uint32_t a = 0; a < seen->axis_count; ++a) {
        axes[a] = (berth_vm_bounds_axis){UINT32_MAX, 0, seen->rows[0][a]};
        if (!changes(seen, a)) continue;
        uint32_t s = 0;
        while (s < *out_count && !follows(seen, &axes[leaders[s]], leaders[s], a, &axes[a])) ++s;
        if (s < *out_count) continue;
        const int64_t step = step_of(seen, a);
        axes[a] = (berth_vm_bounds_axis){*out_count, step, seen->rows[0][a] % step};
        leaders[(*out_count)++] = a;
    }
}

berth_vm_bounds berth_vm_bounds_choose(const berth_vm_bounds_seen *seen, berth_arena *arena) {
    berth_vm_bounds_axis *axes =
        berth_arena_new_array(arena, berth_vm_bounds_axis, seen->axis_count + 1);
    uint32_t *leaders = berth_arena_new_array(arena, uint32_t, seen->axis_count + 1);
    berth_vm_bounds made = {.axes = axes, .axis_count = seen->axis_count};
    name_axes(seen, axes, leaders, &made.symbol_count);
    made.symbols = berth_arena_new_array(arena, symbol_bounds, made.symbol_count + 1);
    for (uint32_t i = seen->first_level; i < BERTH_VM_BOUNDS_LEVELS && !made.shape_count; ++i) {
        made.level = i;
        set_bounds(seen, &made, &margins[i]);
    }
    return made;
}

bool berth_vm_bounds_hold(const berth_vm_bounds *bounds, const int64_t *row) {
    for (uint32_t s = 0; s < bounds->symbol_count; ++s) {
        bool has_value = false;
        int64_t value = 0;
        for (uint32_t a = 0; a < bounds->axis_count; ++a) {
            const berth_vm_bounds_axis *axis = &bounds->axes[a];
            if (axis->symbol != s) continue;
            const int64_t symbol = symbol_at(axis, row[a]);
            if (axis->summand + axis->factor * symbol != row[a] || (has_value && symbol != value))
                return false;
            value = symbol;
            has_value = true;
        }
        if (value < bounds->symbols[s].least || value > bounds->symbols[s].most) return false;
    }
    for (uint32_t a = 0; a < bounds->axis_count; ++a)
        if (bounds->axes[a].symbol == UINT32_MAX && bounds->axes[a].summand != row[a]) return false;
    return true;
}

void berth_vm_bounds_shape(const berth_vm_bounds *bounds, uint64_t number, int64_t *row) {
    for (uint32_t a = 0; a < bounds->axis_count; ++a) row[a] = bounds->axes[a].summand;
    for (uint32_t s = bounds->symbol_count; s-- > 0;) {
        const symbol_bounds *held = &bounds->symbols[s];
        const uint64_t values = (uint64_t)(held->most - held->least) + 1;
        const int64_t value = held->most - (int64_t)(number % values);
        number /= values;
        for (uint32_t a = 0; a < bounds->axis_count; ++a)
            if (bounds->axes[a].symbol == s) row[a] += bounds->axes[a].factor * value;
    }
}
