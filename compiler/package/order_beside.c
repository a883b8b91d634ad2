// An order of the steps of several devices: the better of two, as the planner's model of time has it
// (planner/solve/problem/evaluate_list.h). List scheduling with insertion: step by step, those first from
// which the way to the end is longest, each at the earliest time at which it can begin and its device,
// or its device's copies, has nothing else to do for as long as it takes (HEFT with the devices given: Topcuoglu,
// Hariri & Wu, IEEE Transactions on Parallel and Distributed Systems 13, 2002). A copy that a kernel needs goes as
// soon as its value is there; the copies of results, from which the way is shortest, fill what is left.
// Or taking turns (Graham 1969): what is free takes the step with the longest way among those that could begin.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost.h"
#include "compiler/package/package.h"

// An order is taken only where it ends so much earlier: what it is judged by is an estimate.
static const double least_gain = 0.02;

typedef struct ns_range {
    double begin, end;
} ns_range;

// When something is at work: times that follow each other, with gaps between them.
typedef struct busy_row {
    BERTH_VEC(ns_range) times;
} busy_row;

typedef struct lister {
    berth_packager *p;
    berth_arena *arena;             // scratch
    uint32_t count;                 // of steps
    uint32_t *after_first, *after;  // per step and one more, into `after`: those that come after it
    double *ns;                     // per step
    double *left_ns;                // per step: from its start to the end of all that needs it
    double *ready_ns;               // per step
    uint32_t *row, *link;           // per step: in `rows`, that it takes; no link: BERTH_NO_INDEX
    uint32_t rows;                  // kernels of each device, then its copies, then ways of links
} lister;

// From the end of a step to the beginning of one that needs it.
static double between_ns(const lister *l, uint32_t from, uint32_t to) {
    const berth_program_step *a = &l->p->steps.data[from], *b = &l->p->steps.data[to];
    if (a->device == b->device || a->kind == BERTH_STEP_COPY || b->kind == BERTH_STEP_COPY)
        return 0;
    return berth_cost_hand_over_ns(l->p->target, NULL, a->device, b->device, 0);
}

// A short copy is one of its device's steps: it gets no queue of its own.
static void take_facts(lister *l, uint32_t step) {
    const berth_multi_target *target = l->p->target;
    const berth_program_step *s = &l->p->steps.data[step];
    bool copies = s->kind == BERTH_STEP_COPY;
    uint32_t way = BERTH_NO_INDEX;
    l->ns[step] = copies ? berth_packager__copy_ns(l->p, step, &way)
                         : berth_packager__work_ns(l->p, step, BERTH_DTYPE_F32);
    bool apart = copies && l->ns[step] >= berth_packager_queue_switch_ns;
    l->row[step] = apart ? target->device_count + s->device
                         : berth_multi_target_resource_of(target, s->device);
    l->link[step] = way == BERTH_NO_INDEX ? way : 2 * target->device_count + way;
}

static lister start(berth_packager *p, const berth_sharing *sharing) {
    lister l = {.p = p, .arena = berth_arena_create_child(p->arena), .count = p->steps.count};
    uint32_t edge_count = 0;
    const berth_memory_order_edge *edges =
        berth_packager__find_dependencies(p, sharing, l.arena, &edge_count);
    l.rows = 2 * (p->target->device_count + p->target->link_count);
    l.after_first = berth_arena_new_array(l.arena, uint32_t, (size_t)l.count + 2);
    l.after = berth_arena_new_array(l.arena, uint32_t, (size_t)edge_count + 1);
    l.ns = berth_arena_new_array(l.arena, double, l.count);
    l.left_ns = berth_arena_new_array(l.arena, double, l.count);
    l.ready_ns = berth_arena_new_array(l.arena, double, l.count);
    l.row = berth_arena_new_array(l.arena, uint32_t, l.count);
    l.link = berth_arena_new_array(l.arena, uint32_t, l.count);
    for (uint32_t i = 0; i < edge_count; ++i) l.after_first[edges[i].before + 2]++;
    for (uint32_t i = 0; i < l.count; ++i) l.after_first[i + 2] += l.after_first[i + 1];
    for (uint32_t i = 0; i < edge_count; ++i)
        l.after[l.after_first[edges[i].before + 1]++] = edges[i].after;
    for (uint32_t i = l.count; i-- > 0;) {
        take_facts(&l, i);
        for (uint32_t k = l.after_first[i]; k < l.after_first[i + 1]; ++k)
            l.left_ns[i] =
                fmax(l.left_ns[i], between_ns(&l, i, l.after[k]) + l.left_ns[l.after[k]]);
        l.left_ns[i] += l.ns[i];
    }
    return l;
}

// What comes after a step can begin at its end.
static void finish(lister *l, uint32_t step, double end_ns) {
    for (uint32_t k = l->after_first[step]; k < l->after_first[step + 1]; ++k) {
        uint32_t next = l->after[k];
        l->ready_ns[next] = fmax(l->ready_ns[next], end_ns + between_ns(l, step, next));
    }
}

// When the last step ends, each row in this order; NULL: that of the steps.
static double end_of_order(lister *l, const uint32_t *order) {
    double last_ns = 0;
    double *free_ns = berth_arena_new_array(l->arena, double, l->rows);
    memset(l->ready_ns, 0, l->count * sizeof(*l->ready_ns));
    for (uint32_t i = 0; i < l->count; ++i) {
        uint32_t step = order ? order[i] : i;
        uint32_t row = l->row[step], link = l->link[step];
        double end_ns = fmax(free_ns[row], l->ready_ns[step]);
        if (link != BERTH_NO_INDEX) end_ns = fmax(end_ns, free_ns[link]);
        end_ns += l->ns[step];
        free_ns[row] = end_ns;
        if (link != BERTH_NO_INDEX) free_ns[link] = end_ns;
        finish(l, step, end_ns);
        last_ns = fmax(last_ns, end_ns);
    }
    return last_ns;
}

// The first time of a row that ends after `ns`.
static uint32_t find_time(const busy_row *row, double ns) {
    uint32_t low = 0, high = row->times.count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (row->times.data[middle].end > ns)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

// From when on a row has `ns` free, at `from_ns` or later.
static double find_gap(const busy_row *row, double from_ns, double ns) {
    uint32_t i = find_time(row, from_ns);
    for (; i < row->times.count && row->times.data[i].begin < from_ns + ns; ++i)
        from_ns = fmax(from_ns, row->times.data[i].end);
    return from_ns;
}

static void fill_gap(const lister *l, busy_row *row, double begin_ns, double ns) {
    uint32_t at = find_time(row, begin_ns);
    if (ns == 0) return;
    if (at > 0 && row->times.data[at - 1].end == begin_ns) {
        row->times.data[at - 1].end += ns;
        return;
    }
    berth_vec_push(l->arena, &row->times, ((ns_range){0}));
    memmove(&row->times.data[at + 1], &row->times.data[at],
            (row->times.count - 1 - at) * sizeof(ns_range));
    row->times.data[at] = (ns_range){begin_ns, begin_ns + ns};
}

// Puts a step where its row and its link are both free; returns its beginning.
static double insert(const lister *l, busy_row *rows, uint32_t step) {
    busy_row *row = &rows[l->row[step]];
    busy_row *link = l->link[step] == BERTH_NO_INDEX ? NULL : &rows[l->link[step]];
    double begin_ns = l->ready_ns[step], tried_ns = -1;
    while (begin_ns > tried_ns) {
        tried_ns = begin_ns;
        begin_ns = find_gap(row, begin_ns, l->ns[step]);
        if (link) begin_ns = find_gap(link, begin_ns, l->ns[step]);
    }
    fill_gap(l, row, begin_ns, l->ns[step]);
    if (link) fill_gap(l, link, begin_ns, l->ns[step]);
    return begin_ns;
}

// A step and what it is put in order by.
typedef struct keyed_step {
    double key;
    uint32_t tie, step;
} keyed_step;

static int compare_keys(const void *left, const void *right) {
    const keyed_step *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->tie < b->tie ? -1 : a->tie > b->tie;
}

// ---- turns ----

typedef BERTH_VEC(keyed_step) step_heap;

static void push(berth_arena *arena, step_heap *heap, keyed_step one) {
    berth_vec_push(arena, heap, one);
    uint32_t at = heap->count - 1;
    for (; at > 0 && compare_keys(&one, &heap->data[(at - 1) / 2]) < 0; at = (at - 1) / 2)
        heap->data[at] = heap->data[(at - 1) / 2];
    heap->data[at] = one;
}

static keyed_step pop(step_heap *heap) {
    keyed_step top = heap->data[0], moved = heap->data[--heap->count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < heap->count; child = 2 * at + 1) {
        if (child + 1 < heap->count && compare_keys(&heap->data[child + 1], &heap->data[child]) < 0)
            ++child;
        if (compare_keys(&heap->data[child], &moved) >= 0) break;
        heap->data[at] = heap->data[child];
        at = child;
    }
    heap->data[at] = moved;
    return top;
}

// Events are steps that can begin and, from l->count on, rows that are free.
typedef struct turns {
    step_heap events;
    step_heap *ready;   // per row, longest ways first
    double *free_ns;    // per row
    uint32_t *waiting;  // per step: for how many others
    uint32_t *changed;  // rows with an event now
    uint32_t changed_count;
    bool *is_changed;  // per row
} turns;

static void begin_step(lister *l, turns *t, uint32_t step, double now_ns) {
    uint32_t row = l->row[step], link = l->link[step];
    double begin_ns = link == BERTH_NO_INDEX ? now_ns : fmax(now_ns, t->free_ns[link]);
    double end_ns = begin_ns + l->ns[step];
    t->free_ns[row] = end_ns;
    if (link != BERTH_NO_INDEX) t->free_ns[link] = end_ns;
    finish(l, step, end_ns);
    push(l->arena, &t->events, (keyed_step){end_ns, l->count + row, l->count + row});
    for (uint32_t k = l->after_first[step]; k < l->after_first[step + 1]; ++k) {
        uint32_t next = l->after[k];
        if (--t->waiting[next] == 0)
            push(l->arena, &t->events, (keyed_step){l->ready_ns[next], next, next});
    }
}

static void take_event(lister *l, turns *t) {
    uint32_t step = pop(&t->events).step;
    bool begins = step < l->count;
    uint32_t row = begins ? l->row[step] : step - l->count;
    if (begins) push(l->arena, &t->ready[row], (keyed_step){-l->left_ns[step], step, step});
    if (!t->is_changed[row]) t->changed[t->changed_count++] = row;
    t->is_changed[row] = true;
}

// Fills `order` with the steps as they begin.
static void take_turns(lister *l, uint32_t *order) {
    turns t = {.ready = berth_arena_new_array(l->arena, step_heap, l->rows),
               .free_ns = berth_arena_new_array(l->arena, double, l->rows),
               .waiting = berth_arena_new_array(l->arena, uint32_t, l->count),
               .changed = berth_arena_new_array(l->arena, uint32_t, l->rows),
               .is_changed = berth_arena_new_array(l->arena, bool, l->rows)};
    uint32_t count = 0;
    memset(l->ready_ns, 0, l->count * sizeof(*l->ready_ns));
    for (uint32_t k = 0; k < l->after_first[l->count]; ++k) t.waiting[l->after[k]]++;
    for (uint32_t i = 0; i < l->count; ++i)
        if (t.waiting[i] == 0) push(l->arena, &t.events, (keyed_step){0, i, i});
    while (t.events.count > 0) {
        double now_ns = t.events.data[0].key;
        while (t.events.count > 0 && t.events.data[0].key == now_ns) take_event(l, &t);
        for (; t.changed_count > 0; --t.changed_count) {
            uint32_t row = t.changed[t.changed_count - 1];
            t.is_changed[row] = false;
            if (t.free_ns[row] > now_ns || t.ready[row].count == 0) continue;
            order[count] = pop(&t.ready[row]).step;
            begin_step(l, &t, order[count++], now_ns);
        }
    }
}

// ---- insertion ----

// Fills `order`.
static void list(lister *l, uint32_t *order) {
    busy_row *rows = berth_arena_new_array(l->arena, busy_row, l->rows);
    keyed_step *steps = berth_arena_new_array(l->arena, keyed_step, l->count);
    for (uint32_t i = 0; i < l->count; ++i) steps[i] = (keyed_step){-l->left_ns[i], i, i};
    qsort(steps, l->count, sizeof(*steps), compare_keys);
    memset(l->ready_ns, 0, l->count * sizeof(*l->ready_ns));
    for (uint32_t i = 0; i < l->count; ++i) {
        uint32_t step = steps[i].step;
        double begin = insert(l, rows, step);
        finish(l, step, begin + l->ns[step]);
        steps[i] = (keyed_step){begin, i, step};
    }
    qsort(steps, l->count, sizeof(*steps), compare_keys);
    for (uint32_t i = 0; i < l->count; ++i) order[i] = steps[i].step;
}

const uint32_t *berth_packager__order_beside(berth_packager *p, const berth_sharing *sharing) {
    bool several = false;
    for (uint32_t i = 1; i < p->steps.count; ++i)
        several |= p->steps.data[i].device != p->steps.data[0].device;
    if (!several) return NULL;
    lister l = start(p, sharing);
    uint32_t *order = berth_arena_new_array(p->arena, uint32_t, l.count);
    uint32_t *other = berth_arena_new_array(p->arena, uint32_t, l.count);
    list(&l, order);
    take_turns(&l, other);
    double before_ns = end_of_order(&l, NULL), after_ns = end_of_order(&l, order);
    double other_ns = end_of_order(&l, other);
    if (other_ns < after_ns) {
        after_ns = other_ns;
        order = other;
    }
    bool gains = after_ns < before_ns * (1 - least_gain);
    for (uint32_t i = 0; i < l.count; ++i)
        p->facts.data[i].held = gains && p->steps.data[i].kind == BERTH_STEP_COPY &&
                                l.after_first[i] == l.after_first[i + 1];
    berth_arena_destroy(l.arena);
    return gains ? order : NULL;
}
