// Clauses of the search that learns: two watched literals (Moskewicz and others 2001, "Chaff"), and
// learning at the first unique implication point (Marques-Silva and Sakallah 1999, "GRASP").
#include <stdlib.h>

#include "memory/learn_private.h"

static void watch(learn_search *search, learn_literal literal, uint32_t clause) {
    learn_watch entry = {clause, search->watch_heads[literal]};
    berth_vec_push(search->arena, &search->watches, entry);
    search->watch_heads[literal] = search->watches.count;
}

static void watch_first_two(learn_search *search, uint32_t clause) {
    const uint32_t *literals = search->clause_literals.data + search->clauses.data[clause].begin;
    watch(search, literals[0], clause);
    watch(search, literals[1], clause);
}

static bool conflict_of_clause(learn_search *search, uint32_t index) {
    const learn_clause *clause = &search->clauses.data[index];
    search->conflict.count = 0;
    for (uint32_t k = 0; k < clause->count; ++k)
        learn_push(search, &search->conflict, search->clause_literals.data[clause->begin + k] ^ 1);
    return false;
}

// The clause watches `gone`, which is false now: another literal is watched, or the last is true.
// *out_moved: it is watched elsewhere.
static bool update_clause(learn_search *search, uint32_t index, learn_literal gone,
                          bool *out_moved) {
    const learn_clause *clause = &search->clauses.data[index];
    learn_literal *literals = search->clause_literals.data + clause->begin;
    *out_moved = false;
    if (literals[0] == gone) {
        literals[0] = literals[1];
        literals[1] = gone;
    }
    if (learn_is_true(search, literals[0])) return true;
    for (uint32_t k = 2; k < clause->count; ++k) {
        if (learn_is_false(search, literals[k])) continue;
        literals[1] = literals[k];
        literals[k] = gone;
        *out_moved = true;
        return true;
    }
    if (learn_is_false(search, literals[0])) return conflict_of_clause(search, index);
    return berth_memory__learn_assign(search, literals[0], (learn_reason){LEARN_CLAUSE, index});
}

bool berth_memory__learn_propagate_clauses(learn_search *search) {
    while (search->clauses_seen < search->trail.count) {
        learn_literal gone = search->trail.data[search->clauses_seen++] ^ 1;
        uint32_t *link = &search->watch_heads[gone];
        while (*link != 0) {
            uint32_t entry = *link - 1;
            uint32_t clause = search->watches.data[entry].clause;
            bool moved = false;
            if (!update_clause(search, clause, gone, &moved)) return false;
            if (!moved) {
                link = &search->watches.data[entry].next;
                continue;
            }
            *link = search->watches.data[entry].next;
            learn_literal other =
                search->clause_literals.data[search->clauses.data[clause].begin + 1];
            search->watches.data[entry].next = search->watch_heads[other];
            search->watch_heads[other] = entry + 1;
        }
    }
    return true;
}

void berth_memory__learn_backtrack(learn_search *search, uint32_t level) {
    if (level >= search->level_marks.count) return;
    learn_level mark = search->level_marks.data[level];
    search->level_marks.count = level;
    while (search->trail.count > mark.trail) {
        learn_literal literal = search->trail.data[--search->trail.count];
        uint32_t pair = literal >> 1;
        search->phases[pair] = search->values[pair];
        search->values[pair] = 0;
        uint32_t low = learn_low(search, literal);
        uint32_t high = learn_high(search, literal);
        search->sides[(size_t)low * search->part->item_count + high] = 0;
        search->sides[(size_t)high * search->part->item_count + low] = 0;
        berth_memory__learn_reopen(search, pair);
    }
    search->clauses_seen = search->order_seen = search->trail.count;
    berth_memory__learn_undo_bounds(search, &mark);
}

static void bump_clause(learn_search *search, uint32_t index) {
    learn_clause *clause = &search->clauses.data[index];
    clause->activity += search->clause_step;
    if (clause->activity < 1e20f) return;
    for (uint32_t k = 0; k < search->clauses.count; ++k) search->clauses.data[k].activity *= 1e-20f;
    search->clause_step *= 1e-20f;
}

// Marks literals of a conflict or a reason. Those of earlier levels belong to the learned clause.
// Returns how many are new and of the current level.
static uint32_t mark_literals(learn_search *search, const learn_words *literals) {
    uint32_t open = 0;
    for (uint32_t k = 0; k < literals->count; ++k) {
        uint32_t pair = literals->data[k] >> 1;
        if (search->levels[pair] == 0 || search->marked[pair]) continue;
        search->marked[pair] = true;
        berth_memory__learn_bump(search, pair);
        if (search->levels[pair] == search->level_marks.count)
            open++;
        else
            learn_push(search, &search->learned, literals->data[k] ^ 1);
    }
    return open;
}

// The clause of the conflict: learned[0] is the only literal of the current level.
static void analyze(learn_search *search) {
    search->learned.count = 0;
    learn_push(search, &search->learned, 0);
    uint32_t open = mark_literals(search, &search->conflict);
    for (uint32_t at = search->trail.count; at > 0;) {
        learn_literal literal = search->trail.data[--at];
        uint32_t pair = literal >> 1;
        if (!search->marked[pair] || search->levels[pair] != search->level_marks.count) continue;
        search->marked[pair] = false;
        if (--open == 0) {
            search->learned.data[0] = literal ^ 1;
            break;
        }
        learn_reason reason = search->reasons[pair];
        if (reason.kind == LEARN_CLAUSE) bump_clause(search, reason.index);
        search->antecedents.count = 0;
        berth_memory__learn_explain(search, literal, reason, &search->antecedents);
        open += mark_literals(search, &search->antecedents);
    }
    for (uint32_t k = 1; k < search->learned.count; ++k)
        search->marked[search->learned.data[k] >> 1] = false;
}

// The second-highest level of the learned clause, whose literal comes second.
static uint32_t find_level(learn_search *search) {
    uint32_t *learned = search->learned.data;
    uint32_t level = 0;
    for (uint32_t k = 1; k < search->learned.count; ++k) {
        if (search->levels[learned[k] >> 1] <= level) continue;
        level = search->levels[learned[k] >> 1];
        uint32_t swapped = learned[1];
        learned[1] = learned[k];
        learned[k] = swapped;
    }
    return level;
}

static learn_reason add_clause(learn_search *search) {
    if (search->learned.count == 1) return (learn_reason){LEARN_DECIDED, 0};
    learn_clause clause = {search->clause_literals.count, search->learned.count,
                           search->clause_step};
    for (uint32_t k = 0; k < search->learned.count; ++k)
        learn_push(search, &search->clause_literals, search->learned.data[k]);
    berth_vec_push(search->arena, &search->clauses, clause);
    watch_first_two(search, search->clauses.count - 1);
    return (learn_reason){LEARN_CLAUSE, search->clauses.count - 1};
}

bool berth_memory__learn_resolve(learn_search *search) {
    uint32_t level = 0;
    for (uint32_t k = 0; k < search->conflict.count; ++k) {
        uint32_t own = search->levels[search->conflict.data[k] >> 1];
        if (own > level) level = own;
    }
    if (level == 0) return false;
    berth_memory__learn_backtrack(search, level);
    analyze(search);
    uint32_t back = find_level(search);
    berth_memory__learn_backtrack(search, back);
    learn_reason reason = add_clause(search);
    search->activity_step *= 1 / 0.95;
    search->clause_step *= 1 / 0.999f;
    return berth_memory__learn_assign(search, search->learned.data[0], reason);
}

static int compare_activity(const void *left, const void *right) {
    const learn_clause *a = left;
    const learn_clause *b = right;
    if (a->activity != b->activity) return a->activity > b->activity ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

// Copies a clause without its false literals. False: it is true, or gone into a literal.
static bool keep_clause(learn_search *search, const uint32_t *literals, uint32_t count) {
    search->learned.count = 0;
    for (uint32_t k = 0; k < count; ++k) {
        if (learn_is_true(search, literals[k])) return false;
        if (!learn_is_false(search, literals[k])) learn_push(search, &search->learned, literals[k]);
    }
    return search->learned.count > 1;
}

void berth_memory__learn_reduce(learn_search *search) {
    uint32_t count = search->clauses.count;
    uint32_t *old = search->clause_literals.data;
    if (count > 1) qsort(search->clauses.data, count, sizeof(learn_clause), compare_activity);
    uint32_t kept = count > search->clause_limit ? search->clause_limit / 2 : count;
    learn_clause *clauses = search->clauses.data;
    search->clauses.data = NULL;
    search->clauses.count = search->clauses.capacity = 0;
    search->clause_literals = (learn_words){0};
    search->watches.count = 0;
    for (uint32_t k = 0; k < 2 * search->pair_count; ++k) search->watch_heads[k] = 0;
    for (uint32_t k = 0; k < count; ++k) {
        if (k >= kept && clauses[k].count > 2) continue;
        if (!keep_clause(search, old + clauses[k].begin, clauses[k].count)) continue;
        learn_reason reason = add_clause(search);
        search->clauses.data[reason.index].activity = clauses[k].activity;
    }
}
