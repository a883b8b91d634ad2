// The problem in the form of the search: independent parts, cliques, units, neighbours.
#include <stdlib.h>
#include <string.h>

#include "base/divisor.h"
#include "memory/exact_private.h"
#include "memory/measure.h"

static uint64_t divisor(uint64_t a, uint64_t b) {
    return (uint64_t)berth_greatest_divisor((int64_t)a, (int64_t)b);
}

// Greatest unit: sizes are rounded up to the least alignment (offsets are multiples of it, so that
// nothing fits into the remainder), and alignments that divide every size hold by themselves, since
// items rest on each other.
static uint64_t find_unit(const berth_memory_interval *intervals, uint32_t count,
                          uint64_t *out_least_alignment) {
    uint64_t least = UINT64_MAX;
    uint64_t greatest = 1;
    for (uint32_t i = 0; i < count; ++i) {
        if (intervals[i].alignment_bytes < least) least = intervals[i].alignment_bytes;
        if (intervals[i].alignment_bytes > greatest) greatest = intervals[i].alignment_bytes;
    }
    uint64_t unit = 0;
    for (uint32_t i = 0; i < count; ++i)
        unit = divisor(unit, berth_memory_align_up(intervals[i].size_bytes, least));
    *out_least_alignment = least;
    if (unit % greatest == 0) return unit;
    for (uint32_t i = 0; i < count; ++i) unit = divisor(unit, intervals[i].alignment_bytes);
    return unit;
}

static int compare_items(const void *left, const void *right) {
    const exact_item *a = left;
    const exact_item *b = right;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    if (a->alignment != b->alignment) return a->alignment < b->alignment ? -1 : 1;
    if (a->latest != b->latest) return a->latest < b->latest ? -1 : 1;
    return a->source < b->source ? -1 : a->source > b->source;
}

static void find_twins(exact_part *part) {
    for (uint32_t i = 0; i < part->item_count; ++i) {
        exact_item *item = &part->items[i];
        const exact_item *before = i > 0 ? &part->items[i - 1] : NULL;
        bool same = before && before->first == item->first && before->end == item->end &&
                    before->size == item->size && before->alignment == item->alignment &&
                    before->latest == item->latest;
        item->twin = same ? i - 1 : i;
    }
}

// False: too many.
static bool list_members(berth_arena *arena, exact_part *part) {
    uint32_t n = part->item_count;
    uint32_t m = part->clique_count;
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; ++i) total += part->items[i].end - part->items[i].first;
    if (total > EXACT_MEMBER_LIMIT) return false;
    part->item_begin = berth_arena_new_array(arena, uint32_t, m + 1);
    part->member_begin = berth_arena_new_array(arena, uint32_t, m + 1);
    for (uint32_t i = 0; i < n; ++i) {
        part->item_begin[part->items[i].first + 1]++;
        for (uint32_t c = part->items[i].first; c < part->items[i].end; ++c)
            part->member_begin[c + 1]++;
    }
    for (uint32_t c = 0; c < m; ++c) {
        part->item_begin[c + 1] += part->item_begin[c];
        part->member_begin[c + 1] += part->member_begin[c];
    }
    part->members = berth_arena_new_array(arena, uint32_t, part->member_begin[m]);
    uint32_t *at = berth_arena_copy(arena, part->member_begin, (m + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t c = part->items[i].first; c < part->items[i].end; ++c)
            part->members[at[c]++] = i;
    return true;
}

static uint64_t random_word(uint64_t *state) {  // splitmix64 (Steele, Lea, Flood 2014)
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Clique ranges that no interval crosses: begin of each part, and the end.
static uint32_t *find_cuts(berth_arena *arena, const berth_memory_cliques *cliques, uint32_t count,
                           uint32_t *out_count) {
    uint32_t *reach = berth_arena_new_array(arena, uint32_t, cliques->count + 1);
    uint32_t *cuts = berth_arena_new_array(arena, uint32_t, cliques->count + 1);
    for (uint32_t i = 0; i < count; ++i)
        if (cliques->end[i] > reach[cliques->first[i]]) reach[cliques->first[i]] = cliques->end[i];
    uint32_t cut_count = 0;
    uint32_t farthest = 0;
    for (uint32_t c = 0; c < cliques->count; ++c) {
        if (c >= farthest) cuts[cut_count++] = c;
        if (reach[c] > farthest) farthest = reach[c];
    }
    cuts[cut_count] = cliques->count;
    *out_count = cut_count;
    return cuts;
}

static berth_memory_interval *part_intervals(berth_arena *arena, const exact_part *part,
                                             const berth_memory_interval *intervals) {
    berth_memory_interval *own =
        berth_arena_new_array(arena, berth_memory_interval, part->item_count);
    for (uint32_t i = 0; i < part->item_count; ++i) own[i] = intervals[part->items[i].source];
    return own;
}

static void choose_measures(berth_arena *arena, exact_part *part) {
    uint32_t n = part->item_count;
    berth_arena *scratch = berth_arena_create_child(arena);
    berth_memory_span *spans = berth_arena_new_array(scratch, berth_memory_span, n);
    for (uint32_t i = 0; i < n; ++i) {
        const exact_item *item = &part->items[i];
        spans[i] = (berth_memory_span){(uint64_t)item->size, (uint64_t)item->alignment, item->first,
                                       item->end};
    }
    berth_memory_measure found[EXACT_MEASURES];
    part->measure_count =
        berth_memory__find_measures(scratch, spans, n, part->clique_count, found, EXACT_MEASURES);
    part->cover = berth_arena_new_array(arena, exact_points, n);
    for (uint32_t m = 0; m < part->measure_count; ++m) {
        exact_measure *measure = &part->measures[m];
        *measure = (exact_measure){.period = (int64_t)found[m].period,
                                   .residue = (int64_t)found[m].residue};
        while ((int64_t)1 << measure->shift < measure->period) ++measure->shift;
        for (uint32_t i = 0; i < n; ++i)
            part->cover[i].of[m] = (int64_t)berth_memory__least_points(
                spans[i].size, spans[i].alignment, found[m].period, found[m].residue);
    }
    // The points of measures that there are not: all below, so that they never lack.
    for (uint32_t m = part->measure_count; m < EXACT_MEASURES; ++m)
        part->measures[m] = (exact_measure){.period = 1, .residue = INT64_MAX / 2};
    exact_all_points_below(part, part->capacity, &part->all_points);
    berth_arena_destroy(scratch);
}

static void fill_part(berth_arena *arena, exact_part *part, const berth_memory_interval *intervals,
                      uint64_t capacity_bytes, const uint64_t *offsets) {
    berth_memory_interval *own = part_intervals(arena, part, intervals);
    uint64_t least = 1;
    uint64_t unit = find_unit(own, part->item_count, &least);
    part->unit_bytes = (int64_t)unit;
    uint64_t seed = 1;
    part->height_bytes = offsets ? 0 : UINT64_MAX;
    for (uint32_t i = 0; i < part->item_count; ++i) {
        exact_item *item = &part->items[i];
        item->size = (int64_t)(berth_memory_align_up(own[i].size_bytes, least) / unit);
        item->alignment =
            own[i].alignment_bytes > unit ? (int64_t)(own[i].alignment_bytes / unit) : 1;
        // The last item's rounding may stick out of the capacity: `latest` is what counts at the
        // top.
        item->latest = capacity_bytes >= own[i].size_bytes
                           ? (int64_t)((capacity_bytes - own[i].size_bytes) / unit)
                           : -1;
        part->aligned |= item->alignment != 1;
        if (offsets && offsets[item->source] + own[i].size_bytes > part->height_bytes)
            part->height_bytes = offsets[item->source] + own[i].size_bytes;
    }
    part->capacity = (int64_t)((capacity_bytes + least - 1) / least * least / unit);
    qsort(part->items, part->item_count, sizeof(*part->items), compare_items);
    for (uint32_t i = 0; i < part->item_count; ++i) part->items[i].hash = random_word(&seed);
    find_twins(part);
    if (!list_members(arena, part)) return;
    if (part->aligned) choose_measures(arena, part);
}

// Parts with their items' sources and clique ranges.
static exact_part *split_parts(berth_arena *arena, const berth_memory_interval *intervals,
                               uint32_t count, uint32_t *out_count) {
    berth_memory_cliques cliques = berth_memory_find_cliques(arena, intervals, count);
    uint32_t *cuts = find_cuts(arena, &cliques, count, out_count);
    exact_part *parts = berth_arena_new_array(arena, exact_part, *out_count);
    uint32_t *part_of = berth_arena_new_array(arena, uint32_t, cliques.count);
    for (uint32_t p = 0; p < *out_count; ++p) {
        parts[p].clique_count = cuts[p + 1] - cuts[p];
        for (uint32_t c = cuts[p]; c < cuts[p + 1]; ++c) part_of[c] = p;
    }
    for (uint32_t i = 0; i < count; ++i) parts[part_of[cliques.first[i]]].item_count++;
    for (uint32_t p = 0; p < *out_count; ++p) {
        parts[p].items = berth_arena_new_array(arena, exact_item, parts[p].item_count);
        parts[p].item_count = 0;
    }
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t p = part_of[cliques.first[i]];
        parts[p].items[parts[p].item_count++] = (exact_item){
            .source = i, .first = cliques.first[i] - cuts[p], .end = cliques.end[i] - cuts[p]};
    }
    return parts;
}

exact_part *berth_memory__exact_parts(berth_arena *arena, const berth_memory_interval *intervals,
                                      uint32_t count, uint64_t capacity_bytes,
                                      const uint64_t *offsets, uint32_t *out_count) {
    exact_part *parts = split_parts(arena, intervals, count, out_count);
    for (uint32_t p = 0; p < *out_count; ++p)
        fill_part(arena, &parts[p], intervals, capacity_bytes, offsets);
    return parts;
}

void berth_memory__exact_units(berth_arena *arena, const berth_memory_interval *intervals,
                               uint32_t count, uint64_t *out_units) {
    berth_arena *scratch = berth_arena_create_child(arena);
    uint32_t part_count = 0;
    exact_part *parts = split_parts(scratch, intervals, count, &part_count);
    for (uint32_t p = 0; p < part_count; ++p) {
        berth_memory_interval *own = part_intervals(scratch, &parts[p], intervals);
        uint64_t least = 1;
        uint64_t unit = find_unit(own, parts[p].item_count, &least);
        for (uint32_t i = 0; i < parts[p].item_count; ++i)
            out_units[parts[p].items[i].source] = unit;
    }
    berth_arena_destroy(scratch);
}
