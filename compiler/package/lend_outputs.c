// Values in the memory of outputs that are written later (executor aot).
#include <string.h>

#include "compiler/package/package.h"

// At most so many values are moved, so that time stays linear in the program.
enum { most_values = 256 };

typedef struct lender {
    berth_packager *p;
    const berth_dtype *dtypes;  // per storage: of its elements
    const bool *mixed;          // per storage: they are of several types
    const bool *written_first;  // per storage: nothing reads what it had before
    BERTH_VEC(uint32_t) lent;   // storages that were moved
    int64_t *change;            // [step_count + 1] for find_peak
} lender;

static uint32_t root_of(const berth_packager *p, uint32_t tensor) {
    uint32_t root = p->storage_of.data[tensor];
    while (p->storages.data[root].into != BERTH_NO_INDEX) root = p->storages.data[root].into;
    return root;
}

static void look_at_tensors(lender *l, berth_dtype *dtypes, bool *mixed, bool *written_first) {
    berth_packager *p = l->p;
    bool *known = berth_arena_new_array(p->arena, bool, p->storages.count);
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        berth_dtype dtype = p->tensors.data[t].dtype;
        uint32_t root = root_of(p, t);
        if (known[root] && dtypes[root] != dtype) mixed[root] = true;
        known[root] = true;
        dtypes[root] = dtype;
    }
    for (uint32_t i = 0; i < p->steps.count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            uint32_t root = root_of(p, p->steps.data[i].bindings[b]);
            if (p->storages.data[root].first_step == i && p->facts.data[i].written[b])
                written_first[root] = true;
        }
    l->dtypes = dtypes;
    l->mixed = mixed;
    l->written_first = written_first;
}

// The most that is live at one step in the place, of values that are nowhere else.
static uint64_t find_peak(const lender *l, uint32_t place, uint32_t *out_step) {
    const berth_packager *p = l->p;
    int64_t *change = l->change;
    memset(change, 0, (p->steps.count + 1) * sizeof(*change));
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        const berth_storage *s = &p->storages.data[i];
        if (s->place != place || s->usage != BERTH_POOL_WORKSPACE || s->into != BERTH_NO_INDEX ||
            s->first_step == BERTH_NO_INDEX)
            continue;
        change[s->first_step] += (int64_t)s->size_bytes;
        change[s->last_step + 1] -= (int64_t)s->size_bytes;
    }
    int64_t live = 0, most = 0;
    *out_step = 0;
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        live += change[i];
        if (live <= most) continue;
        most = live;
        *out_step = i;
    }
    return (uint64_t)most;
}

static bool is_at(const berth_packager *p, uint32_t value, uint32_t place, uint32_t step) {
    const berth_storage *s = &p->storages.data[value];
    return s->place == place && s->usage == BERTH_POOL_WORKSPACE && s->into == BERTH_NO_INDEX &&
           s->first_step != BERTH_NO_INDEX && s->first_step <= step && s->last_step >= step;
}

// The caller has declared its array: C lets it be used as what it is, or as bytes.
static bool may_alias(const lender *l, uint32_t value, uint32_t output) {
    if (l->mixed[value] || l->mixed[output]) return false;
    berth_dtype dtype = l->dtypes[value];
    return dtype == l->dtypes[output] || dtype == BERTH_DTYPE_U8 || dtype == BERTH_DTYPE_I8;
}

// The lowest offset in the output at which the value lies beside those that are lent already.
static bool find_offset(const lender *l, uint32_t value, uint32_t output, uint64_t *out_offset) {
    const berth_packager *p = l->p;
    const berth_storage *v = &p->storages.data[value], *o = &p->storages.data[output];
    uint64_t offset = 0;
    if (v->last_step >= o->first_step || !may_alias(l, value, output)) return false;
    for (uint32_t i = 0; i < l->lent.count; ++i) {
        const berth_storage *other = &p->storages.data[l->lent.data[i]];
        uint64_t end = other->into_offset_bytes + other->size_bytes;
        bool apart = other->into != output || other->last_step < v->first_step ||
                     v->last_step < other->first_step || end <= offset ||
                     offset + v->size_bytes <= other->into_offset_bytes;
        if (apart) continue;
        const uint64_t unit = BERTH_PLAIN_ALIGNMENT_BYTES;
        offset = (end + unit - 1) / unit * unit;
        i = UINT32_MAX;  // from the first one again
    }
    *out_offset = offset;
    return offset + v->size_bytes <= o->size_bytes;
}

static bool is_output(const lender *l, uint32_t storage, uint32_t place) {
    const berth_storage *s = &l->p->storages.data[storage];
    return s->place == place && s->usage == BERTH_POOL_IO && s->into == BERTH_NO_INDEX &&
           l->written_first[storage];
}

// Bytes that are live at one step when the value is in the output.
static uint64_t peak_with(const lender *l, uint32_t value, uint32_t output) {
    berth_storage *s = &l->p->storages.data[value];
    uint32_t step = 0;
    s->into = output;
    uint64_t peak = find_peak(l, s->place, &step);
    s->into = BERTH_NO_INDEX;
    return peak;
}

static uint64_t weight(const berth_packager *p, uint32_t value) {
    const berth_storage *s = &p->storages.data[value];
    return s->size_bytes * (s->last_step - s->first_step + (uint64_t)1);
}

// Moves one of the values at the fullest step: that without which the least is live at once, among equal
// ones the largest for the longest time.
static bool lend_one(lender *l, uint32_t place) {
    berth_packager *p = l->p;
    uint32_t best = BERTH_NO_INDEX, into = BERTH_NO_INDEX, step = 0;
    uint64_t best_offset = 0, best_peak = 0;
    if (find_peak(l, place, &step) == 0) return false;
    for (uint32_t o = 0; o < p->storages.count; ++o) {
        if (!is_output(l, o, place)) continue;
        for (uint32_t v = 0; v < p->storages.count; ++v) {
            uint64_t offset = 0;
            if (!is_at(p, v, place, step) || !find_offset(l, v, o, &offset)) continue;
            uint64_t peak = peak_with(l, v, o);
            if (best != BERTH_NO_INDEX &&
                (peak > best_peak || (peak == best_peak && weight(p, v) <= weight(p, best))))
                continue;
            best = v;
            into = o;
            best_offset = offset;
            best_peak = peak;
        }
    }
    if (best == BERTH_NO_INDEX) return false;
    p->storages.data[best].into = into;
    p->storages.data[best].into_offset_bytes = best_offset;
    berth_vec_push(p->arena, &l->lent, best);
    return true;
}

void berth_packager__lend_outputs(berth_packager *p) {
    berth_arena *scratch = berth_arena_create_child(p->arena);
    lender l = {.p = p};
    look_at_tensors(&l, berth_arena_new_array(scratch, berth_dtype, p->storages.count),
                    berth_arena_new_array(scratch, bool, p->storages.count),
                    berth_arena_new_array(scratch, bool, p->storages.count));
    l.change = berth_arena_new_array(scratch, int64_t, p->steps.count + 1);
    for (uint32_t place = 0; place < berth_packager__place_count(p); ++place)
        while (l.lent.count < most_values && lend_one(&l, place)) {
        }
    berth_arena_destroy(scratch);
}
