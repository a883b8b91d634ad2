// Depth-first search over which item covers the floor of one clique, or none.
#include <string.h>

#include "base/clock.h"
#include "memory/exact_private.h"

enum { FAILED_WAYS = 2, REMEMBERED_KEYS = 8 };

static exact_outcome solve(exact_search *search, uint32_t depth, uint32_t begin, uint32_t end);

static exact_frame *frame_at(exact_search *search, uint32_t depth) {
    while (search->frame_count <= depth) {
        const exact_part *part = search->part;
        int64_t *words = berth_arena_new_array(
            search->arena, int64_t, (size_t)part->item_count + 3 * (size_t)part->clique_count);
        exact_frame *frame = &search->frames[search->frame_count++];
        frame->lowest = words;
        frame->floor = words + part->item_count;
        frame->top = frame->floor + part->clique_count;
        frame->rest = frame->top + part->clique_count;
    }
    return &search->frames[depth];
}

static void copy_range(const exact_part *part, exact_frame *to, const exact_frame *from,
                       uint32_t begin, uint32_t end) {
    uint32_t first =
        part->members[part->member_begin[begin]];  // placed items may reach in from before
    size_t items = (part->item_begin[end] - first) * sizeof(int64_t);
    size_t cliques = (end - begin) * sizeof(int64_t);
    memcpy(to->lowest + first, from->lowest + first, items);
    memcpy(to->floor + begin, from->floor + begin, cliques);
    memcpy(to->top + begin, from->top + begin, cliques);
    memcpy(to->rest + begin, from->rest + begin, cliques);
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
}

// Identity of a state: which items of the range are unplaced, how high they are, and what they can
// rest on.
static uint64_t state_key(const exact_part *part, const exact_frame *frame, uint32_t begin,
                          uint32_t end) {
    uint64_t hash = mix(begin + 1, end);
    uint64_t unplaced = 0;
    for (uint32_t i = part->item_begin[begin]; i < part->item_begin[end]; ++i)
        if (frame->lowest[i] != EXACT_PLACED)
            unplaced ^= mix(part->items[i].hash, (uint64_t)frame->lowest[i]);
    hash = mix(hash, unplaced);
    for (uint32_t c = begin; c < end; ++c)
        if (frame->rest[c] != 0) {
            hash = mix(hash, (uint64_t)frame->floor[c]);
            hash = mix(hash,
                       part->aligned ? (uint64_t)frame->top[c] : frame->top[c] == frame->floor[c]);
        }
    return hash | 1;
}

static bool known_failed(const exact_search *search, uint64_t key) {
    const uint64_t *slot = &search->failed[((key >> 20) & search->failed_mask) * FAILED_WAYS];
    return slot[0] == key || slot[1] == key;
}

static void remember_failed(exact_search *search, uint64_t key) {
    uint64_t *slot = &search->failed[((key >> 20) & search->failed_mask) * FAILED_WAYS];
    slot[1] = slot[0];
    slot[0] = key;
}

// Counts for every clique the items that can be placed now and cover it.
static void count_cover(exact_search *search, const exact_frame *frame, uint32_t begin,
                        uint32_t end) {
    const exact_part *part = search->part;
    int32_t *cover = search->cover;
    memset(cover + begin, 0, (end - begin + 1) * sizeof(*cover));
    for (uint32_t i = part->item_begin[begin]; i < part->item_begin[end]; ++i) {
        const exact_item *it = &part->items[i];
        if (frame->lowest[i] == EXACT_PLACED || frame->floor[it->first] != frame->lowest[i] ||
            search->run_end[it->first] < it->end)
            continue;
        cover[it->first]++;
        cover[it->end]--;
    }
    for (uint32_t c = begin + 1; c < end; ++c) cover[c] += cover[c - 1];
}

// The less the better. Saturates rather than overflows: an order of choices, nothing that
// correctness rests on.
static int64_t rule_score(exact_rule rule, int64_t floor, int64_t slack, int64_t cover) {
    int64_t choices = 2 * cover + (slack > 0);  // with no slack the gap is no choice
    int64_t low_floor = floor < (int64_t)1 << 40 ? floor : (int64_t)1 << 40;
    int64_t low_slack = slack < (int64_t)1 << 20 ? slack : (int64_t)1 << 20;
    switch (rule) {
    case EXACT_CHOICES_SLACK: return (choices << 40) + slack;
    case EXACT_SLACK: return slack;
    case EXACT_CHOICES_FLOOR: return (choices << 40) + low_floor;
    case EXACT_FLOOR_SLACK: return (low_floor << 20) + low_slack;
    default: return (low_floor << 20) + choices;
    }
}

// The clique to branch on: in a valley, so that every item at its floor can be placed now; fewest
// choices.
static uint32_t choose_clique(exact_search *search, const exact_frame *frame, uint32_t begin,
                              uint32_t end) {
    const exact_part *part = search->part;
    berth_memory__exact_find_runs(search, frame, begin, end);
    count_cover(search, frame, begin, end);
    uint32_t best = UINT32_MAX;
    int64_t best_score = INT64_MAX;
    for (uint32_t run = begin; run < end; run = search->run_end[run]) {
        uint32_t run_end = search->run_end[run];
        if (run > begin && frame->floor[run - 1] < frame->floor[run]) continue;
        if (run_end < end && frame->floor[run_end] < frame->floor[run]) continue;
        for (uint32_t c = run; c < run_end; ++c) {
            if (frame->rest[c] == 0) continue;
            int64_t slack = part->capacity - frame->floor[c] - frame->rest[c];
            int64_t score = rule_score(search->rule, frame->floor[c], slack, search->cover[c]);
            if (score > best_score || (score == best_score && !search->from_end)) continue;
            best_score = score;
            best = c;
        }
    }
    return best;
}

// Next candidate at the floor of `clique` in rank order, behind `after`.
static uint32_t next_candidate(const exact_search *search, const exact_frame *frame,
                               uint32_t clique, int64_t after) {
    const exact_part *part = search->part;
    uint32_t best = UINT32_MAX;
    for (uint32_t k = part->member_begin[clique]; k < part->member_begin[clique + 1]; ++k) {
        uint32_t i = part->members[k];
        if (frame->lowest[i] != frame->floor[clique] || (int64_t)search->rank[i] <= after) continue;
        if (best == UINT32_MAX || search->rank[i] < search->rank[best]) best = i;
    }
    return best;
}

static bool has_free_twin(const exact_part *part, const exact_frame *frame, uint32_t item) {
    for (uint32_t twin = part->items[item].twin; twin != item;
         item = twin, twin = part->items[item].twin)
        if (frame->lowest[twin] != EXACT_PLACED) return true;
    return false;
}

static exact_outcome try_candidates(exact_search *search, uint32_t depth, uint32_t begin,
                                    uint32_t end, uint32_t clique) {
    const exact_part *part = search->part;
    exact_frame *frame = &search->frames[depth];
    exact_frame *child = frame_at(search, depth + 1);
    int64_t after = -1;
    for (;;) {
        uint32_t item = next_candidate(search, frame, clique, after);
        if (item == UINT32_MAX) return EXACT_FAILED;
        after = search->rank[item];
        if (has_free_twin(part, frame, item)) continue;
        copy_range(part, child, frame, begin, end);
        berth_memory__exact_place(search, child, item);
        exact_outcome outcome = solve(search, depth + 1, begin, end);
        if (outcome != EXACT_FAILED) return outcome;
    }
}

static bool out_of_budget(exact_search *search) {
    if (search->nodes_left == 0) return true;
    search->nodes_left--;
    search->nodes++;
    if (search->deadline_ns && (search->nodes & 63) == 0 && berth_clock_ns() > search->deadline_ns)
        search->out_of_time = true;
    return search->out_of_time;
}

// One independent range of cliques [begin, end), propagated: branches until found or failed.
static exact_outcome branch(exact_search *search, uint32_t depth, uint32_t begin, uint32_t end) {
    exact_frame *frame = &search->frames[depth];
    uint64_t keys[REMEMBERED_KEYS];
    uint32_t key_count = 0;
    for (;;) {
        if (out_of_budget(search)) return EXACT_STOPPED;
        uint64_t key = state_key(search->part, frame, begin, end);
        if (known_failed(search, key)) break;
        if (key_count < REMEMBERED_KEYS) keys[key_count++] = key;
        uint32_t clique = choose_clique(search, frame, begin, end);
        exact_outcome outcome = try_candidates(search, depth, begin, end, clique);
        if (outcome != EXACT_FAILED) return outcome;
        if (!berth_memory__exact_leave_gap(search, frame, clique) ||
            !berth_memory__exact_propagate(search, frame, begin, end))
            break;
    }
    for (uint32_t i = 0; i < key_count; ++i) remember_failed(search, keys[i]);
    return EXACT_FAILED;
}

// Splits [begin, end) where no unplaced item crosses, and solves the pieces one after another.
static exact_outcome solve(exact_search *search, uint32_t depth, uint32_t begin, uint32_t end) {
    const exact_part *part = search->part;
    exact_frame *frame = &search->frames[depth];
    if (!berth_memory__exact_propagate(search, frame, begin, end)) return EXACT_FAILED;
    uint32_t piece = begin;
    uint32_t reach = begin;
    for (uint32_t c = begin; c < end; ++c) {
        if (c >= reach) {
            if (reach > piece) {
                exact_outcome outcome = branch(search, depth, piece, reach);
                if (outcome != EXACT_FOUND) return outcome;
            }
            piece = reach = c;
        }
        if (frame->rest[c] == 0) {
            piece = reach = c + 1;
            continue;
        }
        for (uint32_t i = part->item_begin[c]; i < part->item_begin[c + 1]; ++i)
            if (frame->lowest[i] != EXACT_PLACED && part->items[i].end > reach)
                reach = part->items[i].end;
    }
    return reach > piece ? branch(search, depth, piece, reach) : EXACT_FOUND;
}

void berth_memory__exact_grow_table(exact_search *search, uint64_t slots) {
    uint64_t *old = search->failed;
    uint64_t old_words = old ? (search->failed_mask + 1) * FAILED_WAYS : 0;
    search->failed = berth_arena_new_array(search->arena, uint64_t, slots * FAILED_WAYS);
    search->failed_mask = slots - 1;
    for (uint64_t i = 0; i < old_words; ++i)
        if (old[i] != 0) remember_failed(search, old[i]);
}

exact_outcome berth_memory__exact_run(exact_search *search) {
    const exact_part *part = search->part;
    exact_frame *frame = frame_at(search, 0);
    memset(frame->lowest, 0, part->item_count * sizeof(int64_t));
    memset(frame->floor, 0, 3 * (size_t)part->clique_count * sizeof(int64_t));
    for (uint32_t i = 0; i < part->item_count; ++i)
        for (uint32_t c = part->items[i].first; c < part->items[i].end; ++c)
            frame->rest[c] += part->items[i].size;
    return solve(search, 0, 0, part->clique_count);
}
