// Storages that are the same bytes: parts of a whole, and results over operands that end.
#include <stdlib.h>
#include <string.h>

#include "compiler/package/live.h"
#include "compiler/package/package.h"

uint32_t berth_packager__root(const berth_sharing *s, uint32_t storage, uint64_t *offset) {
    for (; s->into[storage] != BERTH_NO_INDEX; storage = s->into[storage])
        *offset += s->offset_bytes[storage];
    return storage;
}

static uint32_t root_of_tensor(const berth_packager *p, const berth_sharing *s, uint32_t tensor,
                               uint64_t *out_offset) {
    *out_offset = 0;
    return berth_packager__root(s, p->storage_of.data[tensor], out_offset);
}

static berth_sharing make_sharing(const berth_packager *p, berth_arena *arena) {
    uint32_t count = p->storages.count;
    berth_sharing s = {.into = berth_arena_new_array(arena, uint32_t, count),
                       .offset_bytes = berth_arena_new_array(arena, uint64_t, count),
                       .first_step = berth_arena_new_array(arena, uint32_t, count),
                       .last_step = berth_arena_new_array(arena, uint32_t, count),
                       .own_first_step = berth_arena_new_array(arena, uint32_t, count)};
    memset(s.into, 0xff, count * sizeof(*s.into));
    return s;
}

static void copy_sharing(const berth_packager *p, const berth_sharing *from, berth_sharing *to) {
    uint32_t count = p->storages.count;
    memcpy(to->into, from->into, count * sizeof(*to->into));
    memcpy(to->offset_bytes, from->offset_bytes, count * sizeof(*to->offset_bytes));
}

static void find_lifetimes(const berth_packager *p, berth_sharing *s) {
    size_t bytes = p->storages.count * sizeof(uint32_t);
    memset(s->first_step, 0xff, bytes);
    memset(s->last_step, 0xff, bytes);
    memset(s->own_first_step, 0xff, bytes);
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        if (p->facts.data[i].removed) continue;
        uint32_t bindings = berth_packager__binding_count(p, i);
        for (uint32_t b = 0; b < bindings; ++b) {
            uint32_t own = p->storage_of.data[p->steps.data[i].bindings[b]];
            uint64_t offset = 0;
            uint32_t root = berth_packager__root(s, own, &offset);
            if (s->own_first_step[own] == BERTH_NO_INDEX) s->own_first_step[own] = i;
            if (s->first_step[root] == BERTH_NO_INDEX) s->first_step[root] = i;
            s->last_step[root] = i;
        }
    }
}

// ---- tensors of storages ------------------------------------------------------------------------

static bool is_whole(const berth_packager *p, uint32_t tensor, uint32_t root, uint64_t offset) {
    return offset == 0 && p->tensors.data[tensor].size_bytes == p->storages.data[root].size_bytes;
}

// Whether a result may take over this storage from a tensor that begins it. Where results of other
// sizes took it over before, the tensor need not fill it.
static bool may_take(const berth_packager *p, uint32_t tensor, uint32_t root, uint64_t offset) {
    bool small = p->target->executor == BERTH_EXECUTOR_AOT;
    return is_whole(p, tensor, root, offset) || (small && offset == 0);
}

static uint32_t count_bindings(const berth_packager *p, const berth_sharing *s, uint32_t step,
                               uint32_t root) {
    uint32_t count = 0;
    uint32_t bindings = berth_packager__binding_count(p, step);
    for (uint32_t b = 0; b < bindings; ++b) {
        uint64_t offset = 0;
        count += root_of_tensor(p, s, p->steps.data[step].bindings[b], &offset) == root;
    }
    return count;
}

// ---- what is live -------------------------------------------------------------------------------

// Of a storage that has bytes of its own: adds them to what is live, or takes them away (sign -1).
static void count_one(const berth_packager *p, const berth_sharing *s, uint32_t i, int sign,
                      berth_live *live) {
    const berth_storage *storage = &p->storages.data[i];
    if (storage->usage == BERTH_POOL_WORKSPACE && s->into[i] == BERTH_NO_INDEX &&
        s->first_step[i] != BERTH_NO_INDEX)
        berth_live_add(live, s->first_step[i], s->last_step[i],
                       sign * (int64_t)storage->size_bytes);
}

static void add_place(const berth_packager *p, const berth_sharing *s, uint32_t place, int sign,
                      berth_live *live) {
    for (uint32_t k = p->place_first[place]; k < p->place_first[place + 1]; ++k)
        count_one(p, s, p->place_storages[k], sign, live);
}

static berth_live *count_place(const berth_packager *p, const berth_sharing *s, uint32_t place,
                               berth_arena *arena) {
    berth_live *live = berth_live_create(arena, p->steps.count);
    add_place(p, s, place, 1, live);
    return live;
}

// The largest live sum of each memory, added up.
static uint64_t live_peaks(const berth_packager *p, const berth_sharing *s) {
    berth_arena *scratch = berth_arena_create_child(p->arena);
    berth_live *live = berth_live_create(scratch, p->steps.count);
    uint64_t sum = 0;
    for (uint32_t place = 0; place < berth_packager__place_count(p); ++place) {
        add_place(p, s, place, 1, live);
        sum += berth_live_peak(live);
        add_place(p, s, place, -1, live);  // nothing again: one tree does for all
    }
    berth_arena_destroy(scratch);
    return sum;
}

// ---- results over operands ----------------------------------------------------------------------

// All results over operands, one after the other.
typedef struct taking {
    const berth_packager *p;
    berth_sharing *s;
    bool eager;  // even where more is live at once then, because of what may follow
    berth_arena *arena;
    berth_live **live;  // per place: NULL = nobody asked
} taking;

// Two storages of one place, before they change (sign -1) and afterwards.
static void count_both(const taking *t, uint32_t a, uint32_t b, int sign) {
    berth_live *live = t->live[t->p->storages.data[a].place];
    if (!live) return;
    count_one(t->p, t->s, a, sign, live);
    count_one(t->p, t->s, b, sign, live);
}

// The smaller of an operand and a result that may begin at the same byte gets the place of the larger,
// which is then live for both, unless that makes more live at once.
static bool share_larger(taking *t, uint32_t from, uint32_t to) {
    berth_sharing *s = t->s;
    const berth_storage *source = &t->p->storages.data[from], *target = &t->p->storages.data[to];
    berth_live **live = &t->live[source->place];
    if (!t->eager && !*live) *live = count_place(t->p, s, source->place, t->arena);
    uint64_t before = *live ? berth_live_peak(*live) : 0;
    bool grows = target->size_bytes > source->size_bytes;
    uint32_t kept = grows ? to : from, lost = grows ? from : to;
    uint32_t first = s->first_step[kept], last = s->last_step[kept];
    count_both(t, from, to, -1);
    s->into[lost] = kept;
    s->offset_bytes[lost] = 0;
    s->first_step[kept] = s->first_step[from];
    s->last_step[kept] = s->last_step[to];
    count_both(t, from, to, 1);
    if (t->eager || berth_live_peak(*live) <= before) return true;
    count_both(t, from, to, -1);
    s->into[lost] = BERTH_NO_INDEX;
    s->first_step[kept] = first;
    s->last_step[kept] = last;
    count_both(t, from, to, 1);
    return false;
}

// Whether a step's result may have the bytes of an operand: no other step touches these later, and none touched
// the result's place before.
static bool may_be_in_place(const taking *t, const berth_in_place_step *pair, uint32_t from,
                            uint64_t from_offset, uint32_t to) {
    const berth_packager *p = t->p;
    const berth_storage *source = &p->storages.data[from], *target = &p->storages.data[to];
    return from != to && source->usage == BERTH_POOL_WORKSPACE &&
           target->usage != BERTH_POOL_CONSTANT && source->place == target->place &&
           may_take(p, pair->from, from, from_offset) && t->s->last_step[from] == pair->step &&
           count_bindings(p, t->s, pair->step, from) == 1 &&
           t->s->own_first_step[p->storage_of.data[pair->to]] == pair->step;
}

// Lets the result of a step have the bytes of an operand. A result with a place of its own elsewhere (an
// output, a part of a whole that is live anyway) takes the operand there. True when it was done.
static bool apply_in_place(taking *t, const berth_in_place_step *pair) {
    const berth_packager *p = t->p;
    berth_sharing *s = t->s;
    uint64_t from_offset = 0, to_offset = 0;
    uint32_t from = root_of_tensor(p, s, pair->from, &from_offset);
    uint32_t to = root_of_tensor(p, s, pair->to, &to_offset);
    if (!may_be_in_place(t, pair, from, from_offset, to)) return false;
    bool inner = p->storages.data[to].usage == BERTH_POOL_WORKSPACE;
    bool whole = is_whole(p, pair->to, to, to_offset);
    if (whole && s->first_step[to] != pair->step) return false;
    uint32_t *taken_since = &s->own_first_step[p->storage_of.data[pair->to]];
    uint32_t taken = s->first_step[from];  // the result's place, for another operand of the step
    if (p->tensors.data[pair->from].size_bytes != p->tensors.data[pair->to].size_bytes) {
        if (!whole || !inner || !share_larger(t, from, to)) return false;
    } else if (whole && inner) {
        count_both(t, from, to, -1);
        s->into[to] = from;
        s->offset_bytes[to] = 0;
        s->last_step[from] = s->last_step[to];
        count_both(t, from, to, 1);
    } else {
        if (!is_whole(p, pair->from, from, from_offset) ||
            (!whole && inner && s->first_step[to] > s->first_step[from]))
            return false;
        count_both(t, from, to, -1);
        s->into[from] = to;
        s->offset_bytes[from] = to_offset;
        if (s->first_step[from] < s->first_step[to]) s->first_step[to] = s->first_step[from];
        count_both(t, from, to, 1);
    }
    *taken_since = taken;
    return true;
}

static uint32_t apply_with(const berth_packager *p, berth_sharing *s, bool eager) {
    uint32_t count = 0;
    berth_arena *scratch = berth_arena_create_child(p->arena);
    taking t = {.p = p,
                .s = s,
                .eager = eager,
                .arena = scratch,
                .live =
                    berth_arena_new_array(scratch, berth_live *, berth_packager__place_count(p))};
    for (uint32_t i = 0; i < p->in_place.count; ++i)
        if (!p->facts.data[p->in_place.data[i].step].removed)
            count += apply_in_place(&t, &p->in_place.data[i]);
    berth_arena_destroy(scratch);
    return count;
}

// One by one as each makes it no worse, or for small memories all, where that ends better.
// What *s then has may be in `arena`.
static uint32_t apply_all_in_place(const berth_packager *p, berth_sharing *s, berth_arena *arena) {
    if (p->target->executor != BERTH_EXECUTOR_AOT) return apply_with(p, s, false);
    berth_sharing eager = make_sharing(p, arena);
    copy_sharing(p, s, &eager);
    size_t bytes = p->storages.count * sizeof(uint32_t);
    memcpy(eager.first_step, s->first_step, bytes);
    memcpy(eager.last_step, s->last_step, bytes);
    memcpy(eager.own_first_step, s->own_first_step, bytes);
    uint32_t eager_count = apply_with(p, &eager, true), count = apply_with(p, s, false);
    if (live_peaks(p, &eager) >= live_peaks(p, s)) return count;
    *s = eager;
    return eager_count;
}

// The largest live sum of each memory, added up.
static uint64_t measure(berth_packager *p, const berth_sharing *given, bool in_place) {
    berth_arena *scratch = berth_arena_create_child(p->arena);
    berth_sharing s = make_sharing(p, scratch);
    copy_sharing(p, given, &s);
    find_lifetimes(p, &s);
    if (in_place) apply_all_in_place(p, &s, scratch);
    uint64_t sum = live_peaks(p, &s);
    berth_arena_destroy(scratch);
    return sum;
}

// ---- parts of a whole ---------------------------------------------------------------------------

// What joins parts, one joint or several at a time.
typedef struct joining {
    berth_packager *p;
    berth_sharing *s;
    uint64_t best;   // peak of what is joined
    bool *joined;    // by joint
    uint32_t *seen;  // by storage: when a part in it was last met
    uint32_t now;
} joining;

// A part must be an intermediate value alone in its storage, in one piece and once in the list;
// results of a split are not touched before it.
static bool may_join(joining *j, uint32_t at) {
    const berth_packager *p = j->p;
    const berth_sharing *s = j->s;
    const berth_joint *joint = &p->joints.data[at];
    const uint32_t now = ++j->now;
    uint32_t whole = p->storage_of.data[joint->whole];
    const berth_storage *held = &p->storages.data[whole];
    if (joint->gathers && (s->into[whole] != BERTH_NO_INDEX || held->usage == BERTH_POOL_CONSTANT))
        return false;
    for (uint32_t i = 0; i < joint->part_count; ++i) {
        uint32_t tensor = joint->parts[i];
        uint32_t part = p->storage_of.data[tensor];
        const berth_storage *storage = &p->storages.data[part];
        if (s->into[part] != BERTH_NO_INDEX || storage->usage != BERTH_POOL_WORKSPACE ||
            storage->place != held->place || part == whole || !is_whole(p, tensor, part, 0) ||
            joint->offsets[i] % berth_packager__alignment(p, held->place) != 0 ||
            j->seen[part] == now)
            return false;
        j->seen[part] = now;
    }
    return true;
}

static void set_parts(const berth_packager *p, berth_sharing *s, const berth_joint *joint,
                      bool joined) {
    for (uint32_t i = 0; i < joint->part_count; ++i) {
        uint32_t part = p->storage_of.data[joint->parts[i]];
        s->into[part] = joined ? p->storage_of.data[joint->whole] : BERTH_NO_INDEX;
        s->offset_bytes[part] = joined ? (uint64_t)joint->offsets[i] : 0;
    }
    for (uint32_t i = 0; i < joint->step_count; ++i)
        p->facts.data[joint->first_step + i].removed = joined;
}

static void take_apart(joining *j, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; ++i)
        if (j->joined[i]) set_parts(j->p, j->s, &j->p->joints.data[i], j->joined[i] = false);
}

// Joints [first, end) without their steps, unless that makes the peak higher (a whole is live from its first part on): then
// each half of them by itself. Looking at a peak takes time in proportion to the steps, so it is done `most` times; the
// joints that are left then keep their steps.
static void join_some(joining *j, uint32_t first, uint32_t end, uint32_t most) {
    uint32_t count = 0;
    if (j->p->report->join_trials >= most) return;
    for (uint32_t i = first; i < end; ++i) {
        if (!may_join(j, i)) continue;
        set_parts(j->p, j->s, &j->p->joints.data[i], j->joined[i] = true);
        count++;
    }
    if (count == 0) return;
    j->p->report->join_trials++;
    uint64_t bytes = measure(j->p, j->s, true);
    if (bytes <= j->best) {
        j->best = bytes;
        return;
    }
    take_apart(j, first, end);
    if (end - first == 1) return;
    uint32_t middle = first + (end - first) / 2;
    join_some(j, first, middle, most);
    join_some(j, middle, end, most);
}

// Of few joints each is looked at by itself: what one of them saves is not given to another.
static void join_parts(berth_packager *p, berth_sharing *s) {
    enum { few = 128, most_trials = 256 };
    const uint32_t count = p->joints.count;
    joining j = {.p = p,
                 .s = s,
                 .best = measure(p, s, true),
                 .joined = berth_arena_new_array(p->arena, bool, count + 1),
                 .seen = berth_arena_new_array(p->arena, uint32_t, p->storages.count + 1)};
    if (count > few) join_some(&j, 0, count, most_trials);
    for (uint32_t i = 0; count <= few && i < count; ++i) join_some(&j, i, i + 1, few);
}

// The best order's peak without joints, which stay as they are.
static berth_status find_plain_peak(berth_packager *p, const berth_sharing *s, const bool *joined,
                                    uint64_t *out_bytes) {
    berth_sharing plain = make_sharing(p, p->arena), kept = make_sharing(p, p->arena);
    berth_memory_order order;
    copy_sharing(p, s, &kept);
    for (uint32_t i = 0; i < p->joints.count; ++i)
        if (joined[i]) set_parts(p, &plain, &p->joints.data[i], false);
    berth_status status = berth_packager__find_order(p, &plain, &order);
    for (uint32_t i = 0; i < p->joints.count; ++i)
        if (joined[i]) set_parts(p, &kept, &p->joints.data[i], true);
    *out_bytes = order.peak_bytes;
    return status;
}

// Joints that keep the best order from being as good as it is without them are taken back. *out_order is the best one of what
// then is.
static berth_status take_joints_back(berth_packager *p, berth_sharing *s,
                                     berth_memory_order *out_order) {
    enum { most = 64 };  // orders that are looked for
    uint64_t aim = 0;
    bool any = false;
    bool *joined = berth_arena_new_array(p->arena, bool, p->joints.count);
    for (uint32_t i = 0; i < p->joints.count; ++i)
        any |= joined[i] = p->facts.data[p->joints.data[i].first_step].removed;
    BERTH_TRY(berth_packager__find_order(p, s, out_order));
    if (!any || !out_order->nodes) return BERTH_OK;
    BERTH_TRY(find_plain_peak(p, s, joined, &aim));
    for (uint32_t i = 0; i < p->joints.count && i < most && out_order->peak_bytes > aim; ++i) {
        berth_memory_order order;
        if (!joined[i]) continue;
        set_parts(p, s, &p->joints.data[i], false);
        BERTH_TRY(berth_packager__find_order(p, s, &order));
        if (order.peak_bytes >= out_order->peak_bytes)
            set_parts(p, s, &p->joints.data[i], true);
        else
            *out_order = order;
    }
    return BERTH_OK;
}

static void count_joints(berth_packager *p) {
    for (uint32_t i = 0; i < p->joints.count; ++i) {
        const berth_joint *joint = &p->joints.data[i];
        if (!p->facts.data[joint->first_step].removed) continue;
        p->report->removed_steps += joint->step_count;
        for (uint32_t k = 0; k < joint->part_count; ++k)
            p->report->removed_bytes += p->tensors.data[joint->parts[k]].size_bytes;
    }
}

// ---- entry --------------------------------------------------------------------------------------

static int compare_in_place(const void *left, const void *right) {
    const berth_in_place_step *a = left;
    const berth_in_place_step *b = right;
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

// Puts steps into a new order (a list of old indices), those that are not in it left out.
static void permute(berth_packager *p, const uint32_t *order, uint32_t count) {
    uint32_t *now_at = berth_arena_new_array(p->arena, uint32_t, p->steps.count);
    memset(now_at, 0xff, p->steps.count * sizeof(*now_at));
    berth_program_step *steps =
        berth_arena_copy(p->arena, p->steps.data, p->steps.count * sizeof(*steps));
    berth_step_facts *facts =
        berth_arena_copy(p->arena, p->facts.data, p->facts.count * sizeof(*facts));
    p->steps.count = p->facts.count = count;
    for (uint32_t i = 0; i < count; ++i) {
        now_at[order[i]] = i;
        p->steps.data[i] = steps[order[i]];
        p->facts.data[i] = facts[order[i]];
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->in_place.count; ++i) {
        berth_in_place_step pair = p->in_place.data[i];
        if (now_at[pair.step] == BERTH_NO_INDEX) continue;
        pair.step = now_at[pair.step];
        p->in_place.data[kept++] = pair;
    }
    p->in_place.count = kept;
    if (kept > 0) qsort(p->in_place.data, kept, sizeof(*p->in_place.data), compare_in_place);
}

// And from an order, which leaves them out already.
static void drop_removed(berth_packager *p, const berth_memory_order *order) {
    uint32_t *kept = berth_arena_new_array(p->arena, uint32_t, p->steps.count);
    uint32_t *now_at = berth_arena_new_array(p->arena, uint32_t, p->steps.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->steps.count; ++i) {
        now_at[i] = count;
        if (!p->facts.data[i].removed) kept[count++] = i;
    }
    for (uint32_t i = 0; order->nodes && i < count; ++i) order->nodes[i] = now_at[order->nodes[i]];
    permute(p, kept, count);
}

static void permute_back(berth_packager *p, const uint32_t *order) {
    uint32_t *back = berth_arena_new_array(p->arena, uint32_t, p->steps.count);
    for (uint32_t i = 0; i < p->steps.count; ++i) back[order[i]] = i;
    permute(p, back, p->steps.count);
}

// How many bytes more values may take for an order that ends earlier: a quarter, or what is next to nothing of
// every device's memory. None where somebody asked for less than there is.
static uint64_t allowed_growth(const berth_packager *p, uint64_t source_bytes) {
    enum { part_of_values = 4, part_of_memory = 256 };
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < p->target->memory_count; ++i)
        if (p->target->memories[i].budget_bytes != p->target->memories[i].capacity_bytes) return 0;
    for (uint32_t d = 0; d < p->target->device_count; ++d) {
        const berth_target_memory *own = &p->target->memories[p->target->devices[d].own_memory];
        if (own->capacity_bytes < least) least = own->capacity_bytes;
    }
    uint64_t part = least / part_of_memory;
    return part > source_bytes / part_of_values ? part : source_bytes / part_of_values;
}

// What runs earlier on several devices lives longer. Where memory is short, steps keep their order.
static void end_earlier_by_order(berth_packager *p, const berth_sharing *s) {
    uint64_t source_bytes = measure(p, s, true);
    uint64_t growth = allowed_growth(p, source_bytes);
    const uint32_t *order = growth ? berth_packager__order_beside(p, s) : NULL;
    if (!order) return;
    permute(p, order, p->steps.count);
    if (measure(p, s, true) <= source_bytes + growth) return;
    permute_back(p, order);
    for (uint32_t i = 0; i < p->steps.count; ++i) p->facts.data[i].held = false;
}

static void lower_peak_by_order(berth_packager *p, const berth_sharing *s,
                                const berth_memory_order *order) {
    p->report->order_bound_bytes = order->lower_bound_bytes;
    p->report->order_states = order->states;
    if (!order->nodes || order->peak_bytes >= order->source_bytes) return;
    uint64_t source_bytes = measure(p, s, true);
    permute(p, order->nodes, p->steps.count);
    if (measure(p, s, true) >= source_bytes) permute_back(p, order->nodes);
}

// Lifetimes, and results over operands, in the order that the steps have.
static void share_bytes(berth_packager *p, const berth_sharing *given) {
    berth_sharing s = make_sharing(p, p->arena);
    copy_sharing(p, given, &s);
    find_lifetimes(p, &s);
    p->report->in_place_count = apply_all_in_place(p, &s, p->arena);
    p->report->ordered_bytes = measure(p, &s, false);
    for (uint32_t i = 0; i < p->storages.count; ++i) {
        berth_storage *storage = &p->storages.data[i];
        storage->into = s.into[i];
        storage->into_offset_bytes = s.offset_bytes[i];
        storage->first_step = s.first_step[i];
        storage->last_step = s.last_step[i];
    }
    if (p->target->executor == BERTH_EXECUTOR_AOT) berth_packager__lend(p);
}

static bool has_several_memories(const berth_packager *p) {
    for (uint32_t m = 0; m < p->target->memory_count; ++m)
        if (berth_packager__takes_values(p->target, m)) return p->steps.count > 0;
    return false;
}

// Where a device has several memories, its values wait for them less in some orders than in others, and fit in
// some. The order of the least peak is kept where none is better.
static berth_status order_for_memories(berth_packager *p, const berth_sharing *s) {
    if (!has_several_memories(p)) return BERTH_OK;
    const uint32_t place = berth_packager__place(p, p->steps.data[0].device, NULL);
    const size_t bytes = p->storages.count * sizeof(*p->storages.data);
    const berth_storage *plain = berth_arena_copy(p->arena, p->storages.data, bytes);
    berth_packager_memories given, found;
    berth_memory_order_pools order;
    share_bytes(p, s);
    BERTH_TRY(berth_packager__find_memories(p, place, &given));
    BERTH_TRY(berth_packager__find_order_of_memories(p, s, place, &given, &order));
    memcpy(p->storages.data, plain, bytes);
    if (!order.fits) return BERTH_OK;
    permute(p, order.nodes, p->steps.count);
    share_bytes(p, s);
    BERTH_TRY(berth_packager__find_memories(p, place, &found));
    memcpy(p->storages.data, plain, bytes);
    p->report->ordered_for_memories = found.cost < given.cost;
    if (found.cost >= given.cost) permute_back(p, order.nodes);
    return BERTH_OK;
}

berth_status berth_packager__share_memory(berth_packager *p) {
    berth_packager__index_places(p);
    berth_sharing s = make_sharing(p, p->arena);
    p->report->plain_bytes = measure(p, &s, false);
    p->report->in_place_bytes = measure(p, &s, true);
    join_parts(p, &s);
    berth_memory_order order;
    BERTH_TRY(take_joints_back(p, &s, &order));
    count_joints(p);
    drop_removed(p, &order);
    p->report->views_bytes = measure(p, &s, true);
    lower_peak_by_order(p, &s, &order);
    end_earlier_by_order(p, &s);
    BERTH_TRY(order_for_memories(p, &s));
    share_bytes(p, &s);
    if (p->report->ordered_bytes < p->report->order_bound_bytes)
        p->report->order_bound_bytes = 0;  // a bound where no result is over one of another size
    return BERTH_OK;
}
