// Windows of time that grow. A part that is hard as a whole is often easy in pieces: what takes long
// is that the pieces must agree where they meet. A window begins around the fullest clique; its
// solutions (a few, that differ) guide restarts of the search of a window with a few more items
// (Beck 2007, "Solution-guided multi-point constructive search for job shop scheduling"): at the
// floor of a valley the candidate comes first that lies lowest in one of them, with some noise, and
// each restart chooses the rule for cliques anew. Lengths are Luby's.
#include "memory/exact_grow.h"

#include <stdlib.h>
#include <string.h>

enum {
    GUIDES = 3,             // solutions of a window
    BASE_NODES = 400,       // of a restart
    GUIDED = 9,             // of ten restarts
    STEPS = 24,             // windows until the whole part, about
    FIRST_LIMIT = 1 << 19,  // nodes of one window, doubled for each start
};
#define UNKNOWN_OFFSET INT64_MIN

typedef struct ranked {
    double key;
    uint32_t item;
} ranked;

struct exact_grow {
    berth_arena *arena;
    const exact_part *part;
    const berth_memory_interval *intervals;
    uint64_t capacity_bytes;
    int64_t deadline_ns;
    uint64_t random;
    uint64_t work;
    bool out_of_time;
    int64_t *offsets;  // [items] units

    // Solutions, in bytes; UNKNOWN_OFFSET: of items that are not in the window.
    int64_t *guides[GUIDES];  // [items] of the window before
    int64_t *found[GUIDES];   // [items] of this one
    uint32_t guide_count;

    // The window, and the piece of it that is being searched (no item crosses from piece to piece).
    uint32_t begin;
    uint32_t end;
    uint32_t edge;   // cliques that came last, on both sides
    uint64_t limit;  // nodes of a window
    berth_arena *scratch;
    berth_memory_interval *clipped;  // [items of the window] in cliques
    uint32_t *sources;               // [items of the window] items of the part
    exact_part *pieces;
    uint32_t piece_count;
    uint32_t piece;
    exact_search *search;
    uint32_t restart;
    uint32_t found_count;  // of the piece
    uint32_t least_found;  // of the pieces before
    uint64_t spent;        // nodes of this piece
    uint64_t first_after;  // nodes until its first solution
    ranked *order;         // [items] scratch
};

static uint32_t below(exact_grow *grow, uint32_t limit) {
    return (uint32_t)((exact_random(&grow->random) >> 32) * limit >> 32);
}

static double fraction(exact_grow *grow) {
    return (double)(exact_random(&grow->random) >> 11) * 0x1p-53;
}

// --- Windows ---

static void open_piece(exact_grow *grow) {
    grow->search = berth_memory__exact_search_create(grow->scratch, &grow->pieces[grow->piece],
                                                     grow->deadline_ns);
    berth_memory__exact_grow_table(grow->search, 1 << 12);
    grow->restart = grow->found_count = 0;
    grow->spent = grow->first_after = 0;
}

static void open_window(exact_grow *grow) {
    const exact_part *part = grow->part;
    if (grow->scratch) berth_arena_destroy(grow->scratch);
    grow->scratch = berth_arena_create_child(grow->arena);
    berth_memory_interval *clipped = grow->clipped =
        berth_arena_new_array(grow->scratch, berth_memory_interval, part->item_count);
    grow->sources = berth_arena_new_array(grow->scratch, uint32_t, part->item_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < part->item_count; ++i) {
        const exact_item *item = &part->items[i];
        if (item->first >= grow->end || item->end <= grow->begin) continue;
        clipped[count] = grow->intervals[item->source];
        clipped[count].lower = item->first > grow->begin ? item->first : grow->begin;
        clipped[count].upper = item->end < grow->end ? item->end : grow->end;
        grow->sources[count++] = i;
    }
    grow->pieces = berth_memory__exact_parts(grow->scratch, clipped, count, grow->capacity_bytes,
                                             NULL, &grow->piece_count);
    grow->piece = 0;
    grow->least_found = GUIDES;
    open_piece(grow);
}

// A window around a clique, of about one step to each side.
static void begin_anew(exact_grow *grow, uint32_t clique) {
    uint32_t step = grow->part->clique_count / STEPS + 1;
    grow->begin = clique > step ? clique - step : 0;
    grow->end = clique + step < grow->part->clique_count ? clique + step : grow->part->clique_count;
    grow->edge = 0;
    grow->guide_count = 0;
    open_window(grow);
}

static uint32_t fullest_clique(const exact_part *part) {
    uint32_t fullest = 0;
    int64_t most = 0;
    for (uint32_t c = 0; c < part->clique_count; ++c) {
        int64_t live = 0;
        for (uint32_t k = part->member_begin[c]; k < part->member_begin[c + 1]; ++k)
            live += part->items[part->members[k]].size;
        if (live <= most) continue;
        most = live;
        fullest = c;
    }
    return fullest;
}

static void widen(exact_grow *grow) {
    uint32_t all = grow->part->clique_count;
    grow->edge = all / (2 * STEPS) + 1;
    grow->begin = grow->begin > grow->edge ? grow->begin - grow->edge : 0;
    grow->end = grow->end + grow->edge < all ? grow->end + grow->edge : all;
    open_window(grow);
}

// --- Restarts ---

static int compare_ranked(const void *left, const void *right) {
    const ranked *a = left;
    const ranked *b = right;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static bool is_near_edge(const exact_grow *grow, const exact_item *item) {
    return (grow->begin > 0 && item->first < grow->begin + 6 * grow->edge) ||
           (grow->end < grow->part->clique_count && item->end + 6 * grow->edge > grow->end);
}

// The order of one of the solutions, with noise: a little everywhere, or more near the edges.
static void rank_by_guide(exact_grow *grow) {
    const exact_part *piece = &grow->pieces[grow->piece];
    const int64_t *guide = grow->guides[below(grow, grow->guide_count)];
    bool edges = below(grow, 2) == 0;
    double noise = (edges ? 0.2 : 0.05) * fraction(grow) * (double)grow->capacity_bytes;
    for (uint32_t i = 0; i < piece->item_count; ++i) {
        uint32_t item = grow->sources[piece->items[i].source];
        bool known = guide[item] != UNKNOWN_OFFSET;
        bool noisy = !edges || is_near_edge(grow, &grow->part->items[item]);
        double at = known ? (double)guide[item] : fraction(grow) * (double)grow->capacity_bytes;
        if (known && noisy) at += noise * (fraction(grow) - 0.5);
        grow->order[i] = (ranked){at, i};
    }
    qsort(grow->order, piece->item_count, sizeof(*grow->order), compare_ranked);
    for (uint32_t k = 0; k < piece->item_count; ++k) grow->search->rank[grow->order[k].item] = k;
}

static exact_outcome restart(exact_grow *grow, uint64_t *nodes_left) {
    exact_search *search = grow->search;
    uint32_t pair = below(grow, EXACT_ORDERS * EXACT_RULES);
    if (grow->guide_count > 0 && below(grow, 10) < GUIDED)
        rank_by_guide(grow);
    else
        berth_memory__exact_rank(grow->scratch, search->part, grow->clipped, pair / EXACT_RULES,
                                 1.0, exact_random(&grow->random) | 1, search->rank);
    search->rule = (exact_rule)(pair % EXACT_RULES);
    search->from_end = below(grow, 2) == 0;
    search->nodes_left = BASE_NODES * exact_luby(grow->restart++);
    if (search->nodes_left > *nodes_left) search->nodes_left = *nodes_left;
    uint64_t nodes = search->node_count;
    uint64_t work = search->work;
    exact_outcome outcome = berth_memory__exact_run(search);
    grow->spent += search->node_count - nodes;
    grow->work += search->work - work;
    *nodes_left -= search->node_count - nodes;
    grow->out_of_time |= search->out_of_time;
    return outcome;
}

static void keep_solution(exact_grow *grow) {
    const exact_part *piece = &grow->pieces[grow->piece];
    for (uint32_t i = 0; i < piece->item_count; ++i)
        grow->found[grow->found_count][grow->sources[piece->items[i].source]] =
            grow->search->offsets[i] * piece->unit_bytes;
    if (grow->found_count++ == 0) grow->first_after = grow->spent;
}

// All pieces of the window are solved.
static exact_outcome finish_window(exact_grow *grow) {
    uint32_t n = grow->part->item_count;
    if (grow->begin == 0 && grow->end == grow->part->clique_count) {
        for (uint32_t i = 0; i < n; ++i)
            grow->offsets[i] = grow->found[0][i] / grow->part->unit_bytes;
        return EXACT_FOUND;
    }
    for (uint32_t g = 0; g < GUIDES; ++g) {
        memcpy(grow->guides[g], grow->found[g], n * sizeof(**grow->guides));
        for (uint32_t i = 0; i < n; ++i) grow->found[g][i] = UNKNOWN_OFFSET;
    }
    grow->guide_count = grow->least_found;
    widen(grow);
    return EXACT_STOPPED;
}

exact_outcome berth_memory__grow_run(exact_grow *grow, uint64_t *nodes_left) {
    if (!grow->scratch) begin_anew(grow, fullest_clique(grow->part));
    exact_outcome outcome = restart(grow, nodes_left);
    if (outcome == EXACT_FAILED && grow->found_count == 0) return EXACT_FAILED;
    if (outcome == EXACT_FOUND) keep_solution(grow);
    bool whole =
        grow->piece_count == 1 && grow->begin == 0 && grow->end == grow->part->clique_count;
    bool enough = grow->found_count == GUIDES || (whole && grow->found_count > 0) ||
                  (grow->found_count > 0 && grow->spent >= 2 * grow->first_after);
    if (enough) {
        if (grow->found_count < grow->least_found) grow->least_found = grow->found_count;
        if (++grow->piece == grow->piece_count) return finish_window(grow);
        open_piece(grow);
    } else if (grow->found_count == 0 && grow->spent > grow->limit) {
        grow->limit *= 2;
        begin_anew(grow, below(grow, grow->part->clique_count));
    }
    return EXACT_STOPPED;
}

// --- Making it ---

exact_grow *berth_memory__grow_create(berth_arena *arena, const exact_part *part,
                                      const berth_memory_interval *intervals,
                                      uint64_t capacity_bytes, int64_t deadline_ns) {
    exact_grow *grow = berth_arena_new(arena, exact_grow);
    *grow = (exact_grow){.arena = arena,
                         .part = part,
                         .intervals = intervals,
                         .capacity_bytes = capacity_bytes,
                         .deadline_ns = deadline_ns,
                         .random = 1,
                         .limit = FIRST_LIMIT};
    uint32_t n = part->item_count;
    grow->offsets = berth_arena_new_array(arena, int64_t, n);
    for (uint32_t g = 0; g < GUIDES; ++g) {
        grow->guides[g] = berth_arena_new_array(arena, int64_t, n);
        grow->found[g] = berth_arena_new_array(arena, int64_t, n);
        for (uint32_t i = 0; i < n; ++i) grow->found[g][i] = UNKNOWN_OFFSET;
    }
    grow->order = berth_arena_new_array(arena, ranked, n);
    return grow;
}

const int64_t *berth_memory__grow_offsets(const exact_grow *grow) {
    return grow->offsets;
}
uint64_t berth_memory__grow_work(const exact_grow *grow) {
    return grow->work;
}
bool berth_memory__grow_out_of_time(const exact_grow *grow) {
    return grow->out_of_time;
}
