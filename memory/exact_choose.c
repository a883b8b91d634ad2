// Which clique to branch on. Scores are kept per clique and brought up to date where something
// changed, also by undoing, since the last choice; the least is found over blocks of 64 cliques.
#include <string.h>

#include "memory/exact_private.h"

void berth_memory__exact_touch_all(exact_search *search) {
    for (uint32_t c = 0; c < search->part->clique_count; ++c) exact_touch(search, c);
}

static bool is_set(const uint64_t *bits, uint32_t index) {
    return (bits[index >> 6] >> (index & 63) & 1) != 0;
}

static void set_bit(uint64_t *bits, uint32_t index) {
    bits[index >> 6] |= (uint64_t)1 << (index & 63);
}

static void clear_bits(uint64_t *bits, uint32_t begin, uint32_t end) {
    for (uint32_t at = begin; at < end;) {
        uint32_t next = (at | 63) + 1;
        uint64_t mask = UINT64_MAX << (at & 63);
        if (next > end) mask &= UINT64_MAX >> (next - end);
        bits[at >> 6] &= ~mask;
        at = next;
    }
}

// First index from `at` on, and before `end`, whose bit is set; `end` if there is none.
static uint32_t next_bit(const uint64_t *bits, uint32_t at, uint32_t end) {
    while (at < end) {
        uint64_t word = bits[at >> 6] >> (at & 63);
        if (word != 0) {
            at += (uint32_t)__builtin_ctzll(word);
            return at < end ? at : end;
        }
        at = (at | 63) + 1;
    }
    return end;
}

// The same for a bit that is not set.
static uint32_t next_clear(const uint64_t *bits, uint32_t at, uint32_t end) {
    while (at < end) {
        uint64_t word = ~bits[at >> 6] >> (at & 63);
        if (word != 0) {
            at += (uint32_t)__builtin_ctzll(word);
            return at < end ? at : end;
        }
        at = (at | 63) + 1;
    }
    return end;
}

// One after the last index in [begin, end) whose bit is set; `begin` if there is none.
static uint32_t bit_before(const uint64_t *bits, uint32_t begin, uint32_t end) {
    while (end > begin) {
        uint64_t word = bits[(end - 1) >> 6] << (63 - ((end - 1) & 63));
        if (word != 0) {
            end -= (uint32_t)__builtin_clzll(word);
            return end > begin ? end : begin;
        }
        end = (end - 1) & ~(uint32_t)63;
    }
    return begin;
}

static bool can_be_placed(const exact_search *search, uint32_t item) {
    const exact_item *it = &search->part->items[item];
    int64_t lowest = search->lowest[item];
    if (lowest == EXACT_PLACED) return false;
    for (uint32_t c = it->first; c < it->end; ++c)
        if (search->floor[c] != lowest) return false;
    return true;
}

static void update_candidate(exact_search *search, uint32_t item) {
    if (search->checked[item] == search->update) return;
    search->checked[item] = search->update;
    bool candidate = can_be_placed(search, item);
    if (candidate == search->candidate[item]) return;
    search->candidate[item] = candidate;
    const exact_item *it = &search->part->items[item];
    for (uint32_t c = it->first; c < it->end; ++c) {
        search->cover[c] += candidate ? 1 : UINT32_MAX;
        set_bit(search->rescore, c);
    }
}

// Is the floor on the other side of the boundary in front of the clique higher, or equal and so on
// up to something higher? Where no unplaced item crosses, nothing could lie across.
static bool wall_to_left(const exact_search *search, uint32_t clique) {
    if (search->crossing[clique] == 0) return true;
    if (search->floor[clique - 1] == search->floor[clique]) return search->left_wall[clique - 1];
    return search->floor[clique - 1] > search->floor[clique];
}

static bool wall_to_right(const exact_search *search, uint32_t clique) {
    if (search->crossing[clique + 1] == 0) return true;
    if (search->floor[clique + 1] == search->floor[clique]) return search->right_wall[clique + 1];
    return search->floor[clique + 1] > search->floor[clique];
}

// Walls of the touched cliques, of those beside them, and on through a run while they change.
static void update_walls(exact_search *search, uint32_t begin, uint32_t end) {
    for (uint32_t c = next_bit(search->touched, begin, end); c < end;) {
        bool wall = wall_to_left(search, c);
        bool on = wall != search->left_wall[c] || is_set(search->touched, c);
        search->left_wall[c] = wall;
        if (on) set_bit(search->rescore, c);
        c = on ? c + 1 : next_bit(search->touched, c + 1, end);
    }
    for (uint32_t at = bit_before(search->touched, begin, end); at > begin;) {
        uint32_t c = at - 1;
        bool wall = wall_to_right(search, c);
        bool on = wall != search->right_wall[c] || is_set(search->touched, c);
        search->right_wall[c] = wall;
        if (on) set_bit(search->rescore, c);
        at = on ? at - 1 : bit_before(search->touched, begin, c);
    }
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

// Slack of a clique as its measures see it, at most `slack`.
static int64_t slack_of_points(const exact_search *search, uint32_t clique, int64_t slack) {
    const exact_part *part = search->part;
    exact_points covered = {0};
    exact_points below;
    for (uint32_t k = part->member_begin[clique]; k < part->member_begin[clique + 1]; ++k)
        if (search->lowest[search->members[k]] != EXACT_PLACED)
            exact_add_points(&covered, &part->cover[search->members[k]]);
    exact_all_points_below(part, search->floor[clique], &below);
    for (uint32_t m = 0; m < part->measure_count; ++m) {
        int64_t left = part->all_points.of[m] - below.of[m] - covered.of[m];
        if (left * part->measures[m].period < slack) slack = left * part->measures[m].period;
    }
    return slack;
}

static int64_t score_of(const exact_search *search, uint32_t clique) {
    if (search->rest[clique] == 0 || !search->left_wall[clique] || !search->right_wall[clique])
        return INT64_MAX;
    int64_t slack = search->part->capacity - search->floor[clique] - search->rest[clique];
    if (search->part->cover && slack > 0) slack = slack_of_points(search, clique, slack);
    return rule_score(search->rule, search->floor[clique], slack, search->cover[clique]);
}

// Best of cliques [begin, end), which are in one block.
static uint32_t best_of(const exact_search *search, uint32_t begin, uint32_t end) {
    uint32_t best = begin;
    for (uint32_t c = begin + 1; c < end; ++c)
        if (search->score[c] < search->score[best] ||
            (search->score[c] == search->score[best] && search->from_end))
            best = c;
    return best;
}

static void update_scores(exact_search *search, uint32_t begin, uint32_t end) {
    uint32_t block = UINT32_MAX;
    for (uint32_t c = next_bit(search->rescore, begin, end); c < end;) {
        search->score[c] = score_of(search, c);
        uint32_t next = next_bit(search->rescore, c + 1, end);
        block = c >> 6;
        if (next >> 6 != block || next == end) {
            uint32_t block_end = (block + 1) << 6;
            if (block_end > search->part->clique_count) block_end = search->part->clique_count;
            search->block_best[block] = best_of(search, block << 6, block_end);
        }
        c = next;
    }
    clear_bits(search->rescore, begin, end);
}

// Brings scores of a piece's cliques up to date.
static void update(exact_search *search, uint32_t begin, uint32_t end) {
    const exact_part *part = search->part;
    search->update++;
    for (uint32_t c = next_bit(search->touched, begin, end); c < end;) {
        uint32_t run_end = next_clear(search->touched, c, end);
        for (uint32_t k = part->member_begin[c]; k < part->member_begin[c + 1]; ++k)
            update_candidate(search, search->members[k]);
        for (uint32_t i = part->item_begin[c + 1]; i < part->item_begin[run_end]; ++i)
            update_candidate(search, i);
        c = next_bit(search->touched, run_end, end);
    }
    update_walls(search, begin, end);
    clear_bits(search->touched, begin, end);
    update_scores(search, begin, end);
}

uint32_t berth_memory__exact_choose_clique(exact_search *search, uint32_t begin, uint32_t end) {
    update(search, begin, end);
    uint32_t best = begin;
    for (uint32_t at = begin; at < end;) {
        uint32_t block_end = (at | 63) + 1;
        bool whole = (at & 63) == 0 && block_end <= end;
        uint32_t c = whole ? search->block_best[at >> 6]
                           : best_of(search, at, block_end < end ? block_end : end);
        if (search->score[c] < search->score[best] ||
            (search->score[c] == search->score[best] && search->from_end))
            best = c;
        at = block_end;
    }
    return best;
}
