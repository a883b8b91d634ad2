// Values in memory that something else has, and does not use meanwhile (executor aot): in outputs that are written
// later, and in what is left of a place whose values over each other have different sizes.
#include <stdlib.h>
#include <string.h>

#include "compiler/package/live.h"
#include "compiler/package/package.h"

// At most so many values are moved, so that time stays linear in the program.
enum { most_values = 256 };

typedef struct touch {
    uint32_t root;         // the storage that the tensor is in
    uint32_t first, last;  // steps; BERTH_NO_INDEX: none
    uint64_t size_bytes;
} touch;

// A value at the fullest step.
typedef struct candidate {
    uint32_t value;
    uint64_t peak_bytes;  // without it
} candidate;

typedef struct lender {
    berth_packager *p;
    touch *touches;       // per tensor
    touch *by_root;       // the same, those of a storage together in order of their first steps
    uint32_t *first_of;   // per storage, and behind the last one: where its own begin in by_root
    berth_dtype *dtypes;  // per storage: of its elements
    bool *mixed;          // per storage: they are of several types
    bool *written_first;  // per storage: nothing reads what it had before
    // Per storage: its values have different sizes, begin at its first byte and take over from each other at
    // one step each, so that what is behind them is free.
    bool *is_chain;
    BERTH_VEC(uint32_t) lent;      // storages that were moved
    BERTH_VEC(candidate) at_peak;  // values
    berth_live *live;              // of the place that is looked at: values that are nowhere else
} lender;

static void look_at_steps(lender *l) {
    berth_packager *p = l->p;
    for (uint32_t i = 0; i < p->steps.count; ++i)
        for (uint32_t b = 0; b < berth_packager__binding_count(p, i); ++b) {
            touch *t = &l->touches[p->steps.data[i].bindings[b]];
            if (t->first == BERTH_NO_INDEX) t->first = i;
            t->last = i;
            if (p->storages.data[t->root].first_step == i && p->facts.data[i].written[b])
                l->written_first[t->root] = true;
        }
}

static void look_at_tensors(lender *l) {
    berth_packager *p = l->p;
    bool *known = berth_arena_new_array(p->arena, bool, p->storages.count);
    for (uint32_t t = 0; t < p->tensors.count; ++t) {
        const berth_program_tensor *tensor = &p->tensors.data[t];
        uint32_t root = p->storage_of.data[t];
        uint64_t offset = 0;
        for (; p->storages.data[root].into != BERTH_NO_INDEX; root = p->storages.data[root].into)
            offset += p->storages.data[root].into_offset_bytes;
        const berth_storage *held = &p->storages.data[root];
        if (!known[root]) l->is_chain[root] = held->usage == BERTH_POOL_WORKSPACE;
        if (offset) l->is_chain[root] = false;
        if (known[root] && l->dtypes[root] != tensor->dtype) l->mixed[root] = true;
        known[root] = true;
        l->dtypes[root] = tensor->dtype;
        l->touches[t] = (touch){root, BERTH_NO_INDEX, BERTH_NO_INDEX, tensor->size_bytes};
    }
}

static int compare_touches(const void *left, const void *right) {
    const touch *a = left, *b = right;
    if (a->root != b->root) return a->root < b->root ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static void sort_touches(lender *l) {
    const uint32_t count = l->p->tensors.count, storages = l->p->storages.count;
    if (count > 0) qsort(l->by_root, count, sizeof(*l->by_root), compare_touches);
    for (uint32_t i = 0, root = 0; root <= storages; ++root) {
        while (i < count && l->by_root[i].root < root) ++i;
        l->first_of[root] = i;
    }
}

// Between two values that do not share a step something may have to be kept that no tensor shows.
static void find_chains(lender *l) {
    uint32_t last = 0;
    for (uint32_t i = 0; i < l->p->tensors.count; ++i) {
        const touch *t = &l->by_root[i];
        bool begins = i == l->first_of[t->root];
        if (t->first == BERTH_NO_INDEX || (!begins && t->first > last))
            l->is_chain[t->root] = false;
        if (begins || t->last > last) last = t->last;
    }
}

// Whether it is in the place, and nowhere else.
static bool is_in(const berth_packager *p, uint32_t value, uint32_t place) {
    const berth_storage *s = &p->storages.data[value];
    return s->place == place && s->usage == BERTH_POOL_WORKSPACE && s->into == BERTH_NO_INDEX &&
           s->first_step != BERTH_NO_INDEX;
}

static void count_value(lender *l, const berth_storage *s, int sign) {
    berth_live_add(l->live, s->first_step, s->last_step, sign * (int64_t)s->size_bytes);
}

static void count_place(lender *l, uint32_t place, berth_arena *arena) {
    const berth_packager *p = l->p;
    l->live = berth_live_create(arena, p->steps.count);
    for (uint32_t i = 0; i < p->storages.count; ++i)
        if (is_in(p, i, place)) count_value(l, &p->storages.data[i], 1);
}

static bool is_at(const berth_packager *p, uint32_t value, uint32_t place, uint32_t step) {
    const berth_storage *s = &p->storages.data[value];
    return is_in(p, value, place) && s->first_step <= step && s->last_step >= step;
}

// The caller has declared its array: C lets it be used as what it is, or as bytes.
static bool may_alias(const lender *l, uint32_t value, uint32_t output) {
    if (l->mixed[value] || l->mixed[output]) return false;
    berth_dtype dtype = l->dtypes[value];
    return dtype == l->dtypes[output] || dtype == BERTH_DTYPE_U8 || dtype == BERTH_DTYPE_I8;
}

static bool is_owner(const lender *l, uint32_t storage, uint32_t place) {
    const berth_storage *s = &l->p->storages.data[storage];
    if (s->place != place || s->into != BERTH_NO_INDEX || s->first_step == BERTH_NO_INDEX)
        return false;
    return s->usage == BERTH_POOL_IO ? l->written_first[storage] : l->is_chain[storage];
}

// Bytes at its beginning that an owner needs itself while the value lives.
static uint64_t used_meanwhile(const lender *l, uint32_t owner, uint32_t value) {
    const berth_packager *p = l->p;
    const berth_storage *v = &p->storages.data[value], *o = &p->storages.data[owner];
    uint64_t used = 0;
    if (o->usage == BERTH_POOL_IO) return v->last_step < o->first_step ? 0 : o->size_bytes;
    for (uint32_t i = l->first_of[owner]; i < l->first_of[owner + 1]; ++i) {
        const touch *own = &l->by_root[i];
        if (v->last_step < own->first) break;
        if (own->last >= v->first_step && own->size_bytes > used) used = own->size_bytes;
    }
    return used;
}

static uint64_t align_up(uint64_t bytes) {
    const uint64_t unit = BERTH_PLAIN_ALIGNMENT_BYTES;
    return (bytes + unit - 1) / unit * unit;
}

// The lowest offset in the owner's memory at which the value lies beside what is there.
static bool find_offset(const lender *l, uint32_t value, uint32_t owner, uint64_t *out_offset) {
    const berth_packager *p = l->p;
    const berth_storage *v = &p->storages.data[value], *o = &p->storages.data[owner];
    if (value == owner || v->size_bytes > o->size_bytes) return false;
    if (o->usage == BERTH_POOL_IO && !may_alias(l, value, owner)) return false;
    uint64_t offset = align_up(used_meanwhile(l, owner, value));
    for (uint32_t i = 0; i < l->lent.count; ++i) {
        const berth_storage *other = &p->storages.data[l->lent.data[i]];
        uint64_t end = other->into_offset_bytes + other->size_bytes;
        bool apart = other->into != owner || other->last_step < v->first_step ||
                     v->last_step < other->first_step || end <= offset ||
                     offset + v->size_bytes <= other->into_offset_bytes;
        if (apart) continue;
        offset = align_up(end);
        i = UINT32_MAX;  // from the first one again
    }
    *out_offset = offset;
    return offset + v->size_bytes <= o->size_bytes;
}

typedef struct loan {
    uint32_t value, owner;
    uint64_t offset_bytes;
    uint64_t peak_bytes;  // live at one step afterwards
} loan;

// The owner lives as long as what it has.
static void lend(lender *l, const loan *made) {
    berth_storage *v = &l->p->storages.data[made->value], *o = &l->p->storages.data[made->owner];
    count_value(l, v, -1);
    v->into = made->owner;
    v->into_offset_bytes = made->offset_bytes;
    if (o->usage == BERTH_POOL_IO) return;
    count_value(l, o, -1);
    if (v->first_step < o->first_step) o->first_step = v->first_step;
    if (v->last_step > o->last_step) o->last_step = v->last_step;
    count_value(l, o, 1);
}

static uint64_t peak_without(lender *l, uint32_t value) {
    const berth_storage *v = &l->p->storages.data[value];
    count_value(l, v, -1);
    uint64_t peak = berth_live_peak(l->live);
    count_value(l, v, 1);
    return peak;
}

// `without` is the peak without the value.
static uint64_t peak_with(lender *l, const loan *made, uint64_t without) {
    berth_storage *v = &l->p->storages.data[made->value], *o = &l->p->storages.data[made->owner];
    const berth_storage value = *v, owner = *o;
    if (o->usage == BERTH_POOL_IO ||
        (o->first_step <= v->first_step && o->last_step >= v->last_step))
        return without;
    lend(l, made);
    uint64_t peak = berth_live_peak(l->live);
    count_value(l, o, -1);
    *v = value;
    *o = owner;
    count_value(l, v, 1);
    count_value(l, o, 1);
    return peak;
}

static uint64_t weight(const berth_packager *p, uint32_t value) {
    const berth_storage *s = &p->storages.data[value];
    return s->size_bytes * (s->last_step - s->first_step + (uint64_t)1);
}

// That without which the least is live at once; among equal ones the largest for the longest time, in an
// output before all else.
static bool is_better(const lender *l, const loan *a, const loan *b) {
    const berth_packager *p = l->p;
    if (b->value == BERTH_NO_INDEX) return true;
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes;
    bool a_out = p->storages.data[a->owner].usage == BERTH_POOL_IO;
    bool b_out = p->storages.data[b->owner].usage == BERTH_POOL_IO;
    return a_out != b_out ? a_out : weight(p, a->value) > weight(p, b->value);
}

// Whether it is certain without a look that more is live at once than before: what is larger than the value
// would be live at the fullest step in its place.
static bool is_worse(const lender *l, uint32_t value, uint32_t owner, uint32_t peak_step) {
    const berth_storage *v = &l->p->storages.data[value], *o = &l->p->storages.data[owner];
    return o->usage != BERTH_POOL_IO && o->size_bytes > v->size_bytes &&
           (o->first_step > peak_step || o->last_step < peak_step);
}

static void find_values_at_peak(lender *l, uint32_t place, uint32_t step) {
    berth_packager *p = l->p;
    l->at_peak.count = 0;
    for (uint32_t v = 0; v < p->storages.count; ++v)
        if (is_at(p, v, place, step))
            berth_vec_push(p->arena, &l->at_peak, (candidate){v, peak_without(l, v)});
}

// Moves one of the values at the fullest step.
static bool lend_one(lender *l, uint32_t place) {
    berth_packager *p = l->p;
    loan best = {.value = BERTH_NO_INDEX};
    uint64_t peak_bytes = berth_live_peak(l->live);
    uint32_t step = berth_live_peak_step(l->live);
    if (peak_bytes == 0) return false;
    find_values_at_peak(l, place, step);
    for (uint32_t o = 0; o < p->storages.count; ++o) {
        if (!is_owner(l, o, place)) continue;
        for (uint32_t i = 0; i < l->at_peak.count; ++i) {
            const candidate *c = &l->at_peak.data[i];
            loan tried = {.value = c->value, .owner = o, .peak_bytes = c->peak_bytes};
            // The peak is not lower than without the value.
            if (!is_better(l, &tried, &best) || is_worse(l, tried.value, o, step) ||
                !find_offset(l, tried.value, o, &tried.offset_bytes))
                continue;
            tried.peak_bytes = peak_with(l, &tried, c->peak_bytes);
            if (tried.peak_bytes <= peak_bytes && is_better(l, &tried, &best)) best = tried;
        }
    }
    if (best.value == BERTH_NO_INDEX) return false;
    lend(l, &best);
    if (l->mixed[best.value] || l->dtypes[best.value] != l->dtypes[best.owner])
        l->mixed[best.owner] = true;
    berth_vec_push(p->arena, &l->lent, best.value);
    return true;
}

void berth_packager__lend(berth_packager *p) {
    berth_arena *scratch = berth_arena_create_child(p->arena);
    lender l = {.p = p,
                .touches = berth_arena_new_array(scratch, touch, p->tensors.count + 1),
                .dtypes = berth_arena_new_array(scratch, berth_dtype, p->storages.count),
                .mixed = berth_arena_new_array(scratch, bool, p->storages.count),
                .written_first = berth_arena_new_array(scratch, bool, p->storages.count),
                .first_of = berth_arena_new_array(scratch, uint32_t, p->storages.count + 1),
                .is_chain = berth_arena_new_array(scratch, bool, p->storages.count)};
    look_at_tensors(&l);
    look_at_steps(&l);
    l.by_root = berth_arena_copy(scratch, l.touches, p->tensors.count * sizeof(touch));
    sort_touches(&l);
    find_chains(&l);
    for (uint32_t place = 0; place < berth_packager__place_count(p); ++place) {
        count_place(&l, place, scratch);
        while (l.lent.count < most_values && lend_one(&l, place)) {
        }
    }
    berth_arena_destroy(scratch);
}
