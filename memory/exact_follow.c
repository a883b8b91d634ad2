// Restarts that follow a solution which is a little too high: of the items at the bottom of a valley the one that is lowest there
// is tried first, but for some that are moved at random, or that follow another solution (solution-guided multi-point
// constructive search; Beck 2007, "Solution-guided multi-point constructive search for job shop scheduling").
#include <stdlib.h>

#include "memory/exact_private.h"

// What differs from the guide.
typedef enum follow_way {
    FOLLOW_WINDOW,  // items live in a window of time are moved
    FOLLOW_SOME,    // one item in ten, twice as far
    FOLLOW_ALL,     // all
    FOLLOW_JOINED,  // from some moment on, items follow the other solution
    FOLLOW_WAYS,
} follow_way;

enum {
    SHORT_NODES = 4,  // of a restart, for each item
    LONG_FACTOR = 5,  // one in LONG_EVERY restarts has so many times as many
    LONG_EVERY = 8,
    SCALES = 6,  // the largest move is a sixteenth of the height, or a half of that, ...
    LARGEST_SHARE = 16,
};

// Those that find solutions where little is free, as often as they do.
static const exact_rule rules[] = {EXACT_CHOICES_SLACK, EXACT_CHOICES_SLACK, EXACT_CHOICES_SLACK,
                                   EXACT_FLOOR_CHOICES, EXACT_FLOOR_CHOICES, EXACT_FLOOR_CHOICES,
                                   EXACT_CHOICES_FLOOR, EXACT_SLACK};

typedef struct follow_entry {
    double key;  // ascending
    uint32_t item;
} follow_entry;

static int compare_entries(const void *left, const void *right) {
    const follow_entry *a = left;
    const follow_entry *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

// How one restart differs. Cliques are numbered as in the part.
typedef struct follow_plan {
    follow_way way;
    double begin, end;  // of the window
    double amount;      // of a move, in bytes
    double moment;
    bool
        halfway;  // items that live across the moment follow both; otherwise the one where they live longer
} follow_plan;

static follow_plan make_plan(const exact_part *part, exact_guide *guide) {
    uint64_t *random = &guide->random;
    double cliques = part->clique_count;
    follow_plan plan = {.way = (follow_way)(exact_random(random) % FOLLOW_WAYS)};
    if (plan.way == FOLLOW_JOINED && !guide->other) plan.way = FOLLOW_ALL;
    double middle = exact_random_fraction(random) * cliques;
    double width = exact_random_fraction(random) * 0.3 * cliques + 2;
    plan.begin = middle - width;
    plan.end = middle + width;
    double height = (double)part->capacity * (double)part->unit_bytes;
    plan.amount = height / (double)(LARGEST_SHARE << exact_random(random) % SCALES);
    plan.moment = exact_random_fraction(random) * cliques;
    plan.halfway = exact_random(random) % 2 == 0;
    return plan;
}

static double moved_key(const exact_item *item, const follow_plan *plan, exact_guide *guide) {
    double own = (double)guide->offsets[item->source];
    double first = item->first;
    double end = item->end;
    if (plan->way == FOLLOW_JOINED) {
        double other = (double)guide->other[item->source];
        if (end <= plan->moment) return own;
        if (first >= plan->moment) return other;
        if (plan->halfway) return (own + other) / 2;
        return plan->moment - first < end - plan->moment ? other : own;
    }
    bool moved = plan->way == FOLLOW_ALL;
    if (plan->way == FOLLOW_WINDOW) moved = first < plan->end && end > plan->begin;
    if (plan->way == FOLLOW_SOME) moved = exact_random(&guide->random) % 10 == 0;
    double amount = plan->way == FOLLOW_SOME ? 2 * plan->amount : plan->amount;
    return moved ? own + (2 * exact_random_fraction(&guide->random) - 1) * amount : own;
}

void berth_memory__exact_follow(exact_search *search, exact_guide *guide) {
    const exact_part *part = search->part;
    berth_arena *scratch = berth_arena_create_child(search->arena);
    follow_entry *entries = berth_arena_new_array(scratch, follow_entry, part->item_count);
    follow_plan plan = make_plan(part, guide);
    for (uint32_t i = 0; i < part->item_count; ++i)
        entries[i] = (follow_entry){moved_key(&part->items[i], &plan, guide), i};
    qsort(entries, part->item_count, sizeof(*entries), compare_entries);
    for (uint32_t i = 0; i < part->item_count; ++i) search->rank[entries[i].item] = i;
    berth_arena_destroy(scratch);
    search->rule = rules[exact_random(&guide->random) % (sizeof(rules) / sizeof(rules[0]))];
    search->from_end = exact_random(&guide->random) % 2 == 0;
    search->nodes_left = SHORT_NODES * (uint64_t)part->item_count + 16;
    if (exact_random(&guide->random) % LONG_EVERY == 0) search->nodes_left *= LONG_FACTOR;
}
