// Contiguous placements by dynamic programming: exact when the graph has few enough ideals, along
// good orders of the nodes otherwise. For non-contiguous throughput it is a start for the searches.
#include <math.h>
#include <string.h>

#include "planner/solve/strategies/strategies.h"
#include "planner/solve/throughput/contiguous.h"

enum {
    IDEAL_BYTES = 400 * 1000 * 1000,  // memory of the program over ideals
    CELL_BYTES = 13,                  // per ideal and state
    LIST_BYTES = 128,                 // per ideal, apart from its set (twice, where arrays grow)
    ORDER_CELL_LIMIT = 16 * 1000 * 1000,  // (items + 1) * states
};

typedef struct dp_run {
    berth_place_search *search;
    berth_arena *arena;
    const berth_place_blocks *blocks;
    const berth_place_sorts *sorts;
    const berth_place_chain *chain;
    berth_place_parts parts;
    uint32_t *device_of_item;
    uint32_t *assignment;
} dp_run;

static double limit_of(const dp_run *run) {
    return run->search->best_value * (1 - BERTH_PLACE_EQUAL / 4);
}

// ------------------------------------------------------------------------------------------------
// orders

// Blocks by their distance from the sources.
static void order_by_level(const dp_run *run, uint32_t *out_order) {
    const berth_place_dag *dag = &run->blocks->dag;
    uint32_t *level = berth_arena_new_array(run->arena, uint32_t, (size_t)dag->count + 1);
    uint32_t *start = berth_arena_new_array(run->arena, uint32_t, (size_t)dag->count + 2);
    for (uint32_t b = 0; b < dag->count; ++b) {
        for (uint32_t p = dag->pred_start[b]; p < dag->pred_start[b + 1]; ++p)
            if (level[dag->preds[p]] + 1 > level[b]) level[b] = level[dag->preds[p]] + 1;
        start[level[b] + 1]++;
    }
    for (uint32_t i = 0; i < dag->count; ++i) start[i + 1] += start[i];
    for (uint32_t b = 0; b < dag->count; ++b) out_order[start[level[b]]++] = b;
}

// Puts every loose item after the last (or the first) of the blocks that it shares a net with.
static void insert_loose(const dp_run *run, const uint32_t *block_order, bool behind_last,
                         uint32_t *out_order) {
    const berth_place_nets *nets = run->blocks->nets;
    uint32_t blocks = run->blocks->block_count;
    size_t n = (size_t)nets->item_count + 2;
    uint32_t *position = berth_arena_new_array(run->arena, uint32_t, n);
    uint32_t *start = berth_arena_new_array(run->arena, uint32_t, n);
    for (uint32_t i = 0; i < blocks; ++i) position[block_order[i]] = i;
    for (uint32_t item = blocks; item < nets->item_count; ++item) {
        uint32_t at = behind_last ? 0 : blocks;
        for (uint32_t t = nets->inet_start[item]; t < nets->inet_start[item + 1]; ++t) {
            uint32_t net = nets->inets[t];
            for (uint32_t p = nets->pin_start[net]; p < nets->pin_start[net + 1]; ++p) {
                if (nets->pins[p] >= blocks) continue;
                uint32_t other = position[nets->pins[p]];
                if (behind_last ? other > at : other < at) at = other;
            }
        }
        position[item] = at;
    }
    for (uint32_t item = 0; item < nets->item_count; ++item) start[position[item] + 1]++;
    for (uint32_t i = 0; i <= blocks; ++i) start[i + 1] += start[i];
    for (uint32_t item = 0; item < nets->item_count; ++item)
        out_order[start[position[item]]++] = item;
}

// ------------------------------------------------------------------------------------------------
// placements from parts

// Gives the parts devices of their sorts, in order; items in no part are left as they are.
static void place_parts(const dp_run *run) {
    const berth_place_sorts *sorts = run->sorts;
    uint32_t used[BERTH_PLACE_DEVICE_LIMIT] = {0};
    for (uint32_t p = 0; p < run->parts.count; ++p) {
        uint32_t sort = run->parts.sort[p];
        uint32_t device = sorts->devices[sorts->device_start[sort] + used[sort]++];
        for (uint32_t i = run->parts.start[p]; i < run->parts.start[p + 1]; ++i)
            run->device_of_item[run->parts.items[i]] = device;
    }
}

static void offer_items(dp_run *run) {
    berth_place__nets_expand(run->search->problem, run->blocks->nets, run->device_of_item,
                             run->assignment);
    berth_place_offer(run->search, run->assignment);
}

static void search_orders(dp_run *run) {
    const berth_place_nets *nets = run->blocks->nets;
    size_t n = (size_t)nets->item_count + 1;
    uint32_t *plain = berth_arena_new_array(run->arena, uint32_t, n);
    uint32_t *order = berth_arena_new_array(run->arena, uint32_t, n);
    for (int variant = 0; variant < 4; ++variant) {
        if (variant % 2 == 1 && run->blocks->block_count == nets->item_count) continue;
        for (uint32_t b = 0; b < run->blocks->block_count; ++b) plain[b] = b;
        if (variant / 2 == 1) order_by_level(run, plain);
        insert_loose(run, plain, variant % 2 == 0, order);
        berth_arena *scratch = berth_arena_create_child(run->arena);
        double value =
            berth_place__chain_in_order(scratch, run->chain, order, limit_of(run), &run->parts);
        berth_arena_destroy(scratch);
        if (value < INFINITY) {
            place_parts(run);
            offer_items(run);
        }
        if (berth_place_spent(run->search, 1)) return;
    }
}

// ------------------------------------------------------------------------------------------------
// loose items

// How many parts want each loose item, and the device of one that does.
static void count_wishes(const dp_run *run, uint32_t *out_wishes) {
    const berth_place_nets *nets = run->blocks->nets;
    uint32_t blocks = run->blocks->block_count;
    bool *has = berth_arena_new_array(run->arena, bool, (size_t)nets->item_count + 1);
    berth_place_load *load =
        berth_place__load(run->arena, run->search->problem, nets, run->sorts, blocks);
    memset(out_wishes, 0, nets->item_count * sizeof(*out_wishes));
    for (uint32_t part = 0; part < run->parts.count; ++part) {
        const uint32_t *start = run->parts.start;
        berth_place__load_clear(load);
        for (uint32_t i = start[part]; i < start[part + 1]; ++i)
            berth_place__load_add(load, run->parts.items[i]);
        berth_place__loose_choose(run->chain->loose, load, run->parts.sort[part], has);
        for (uint32_t i = blocks; i < nets->item_count; ++i) {
            if (!has[i]) continue;
            if (out_wishes[i]++ == 0)
                run->device_of_item[i] = run->device_of_item[run->parts.items[start[part]]];
        }
    }
}

static bool can_have(const dp_run *run, uint32_t item, uint32_t device) {
    const berth_place_nets *nets = run->blocks->nets;
    uint32_t kind = run->search->problem->device_kind[device];
    if (isinf(nets->time[(size_t)item * nets->kind_count + kind])) return false;
    if (nets->pin[item] != BERTH_PLACE_NONE && nets->pin[item] != device) return false;
    double bytes = nets->size_bytes[item];
    for (uint32_t i = 0; i < nets->item_count; ++i)
        if (i != item && run->device_of_item[i] == device) bytes += nets->size_bytes[i];
    return bytes <= run->search->problem->kinds[kind].capacity_bytes;
}

// Largest load, and a little of all, so that steps between equal ones lead somewhere.
static double cost_of_items(const dp_run *run, double *loads) {
    const berth_place_problem *problem = run->search->problem;
    berth_place__nets_loads(problem, run->blocks->nets, run->device_of_item, loads);
    double most = 0;
    double sum = 0;
    for (uint32_t d = 0; d < problem->device_count; ++d) {
        most = fmax(most, loads[d]);
        sum += loads[d];
    }
    return most + sum * 1e-6;
}

// Moves loose items one by one to where they are best, until nothing changes. Returns whether all
// of them fit somewhere.
static bool settle_loose(dp_run *run) {
    enum { PASSES = 8 };
    const berth_place_problem *problem = run->search->problem;
    const berth_place_nets *nets = run->blocks->nets;
    double *loads = berth_arena_new_array(run->arena, double, (size_t)problem->device_count + 1);
    bool changed = true;
    for (int pass = 0; changed && pass < PASSES; ++pass) {
        changed = false;
        for (uint32_t i = run->blocks->block_count; i < nets->item_count; ++i) {
            uint32_t best = run->device_of_item[i];
            double least = can_have(run, i, best) ? cost_of_items(run, loads) : INFINITY;
            for (uint32_t d = 0; d < problem->device_count; ++d) {
                if (!can_have(run, i, d)) continue;
                run->device_of_item[i] = d;
                double cost = cost_of_items(run, loads);
                if (cost >= least) continue;
                least = cost;
                best = d;
                changed = true;
            }
            run->device_of_item[i] = best;
            if (isinf(least)) return false;
            if (berth_place_spent(run->search, 1 + nets->net_count / 32)) return true;
        }
    }
    return true;
}

// Of the loose items that are not wanted exactly once, makes the one a block that could cost most.
static bool bind_one(const dp_run *run, const uint32_t *wishes, bool *is_vertex) {
    const berth_place_problem *problem = run->search->problem;
    const berth_place_nets *nets = run->blocks->nets;
    uint32_t chosen = BERTH_PLACE_NONE;
    double most = -1;
    for (uint32_t i = run->blocks->block_count; i < nets->item_count; ++i) {
        double cost = run->chain->floor[i];
        for (uint32_t e = nets->inet_start[i]; e < nets->inet_start[i + 1]; ++e)
            cost += nets->cost[(size_t)nets->inets[e] * nets->kind_count];
        if (wishes[i] != 1) cost += 1e30;
        if (cost <= most) continue;
        most = cost;
        chosen = i;
    }
    if (chosen == BERTH_PLACE_NONE) return false;
    for (uint32_t g = 0; g < problem->group_count; ++g)
        if (nets->item_of_group[g] == chosen) is_vertex[g] = true;
    return true;
}

// ------------------------------------------------------------------------------------------------
// the program over ideals

// Blocks as few as they can be for placements below the limit. Without a chain when the budget is
// spent.
static void reduce(dp_run *run, const bool *is_vertex, double limit) {
    const berth_place_problem *problem = run->search->problem;
    berth_place_classes classes = berth_place__classes(run->arena, problem);
    uint32_t *partner = berth_arena_new_array(run->arena, uint32_t, (size_t)classes.count + 1);
    bool tied = false;
    run->chain = NULL;
    for (;;) {
        if (berth_place_spent(run->search, problem->node_count / 16)) return;
        run->blocks = berth_place__blocks(run->arena, problem, &classes, is_vertex);
        const berth_place_nets *nets = run->blocks->nets;
        uint32_t merged = 0;
        if (!tied)
            merged = berth_place__merge_free(run->arena, problem, nets, &run->blocks->dag, partner);
        if (merged == 0) {
            tied = true;
            merged = berth_place__merge_tied(run->arena, problem, nets, limit, partner);
        }
        if (merged == 0) break;
        berth_place__merge_apply(run->arena, nets, partner, &classes);
    }
    run->chain = berth_place__chain(run->arena, run->search, run->blocks, run->sorts);
}

// One round: true when there is more to do.
static bool search_ideals(dp_run *run, bool *is_vertex) {
    berth_place_search *search = run->search;
    double below = limit_of(run);
    reduce(run, is_vertex, below);
    if (!run->chain) return false;
    uint32_t set_bytes = 2 * 8 * (run->blocks->dag.count / 64 + 1);
    uint32_t limit = IDEAL_BYTES / (LIST_BYTES + set_bytes + CELL_BYTES * run->chain->state_count);
    berth_place_ideals *ideals = berth_place__ideals(run->arena, &run->blocks->dag, limit, search);
    if (!ideals || berth_place_spent(search, 0)) return false;
    double value;
    berth_place_outcome outcome =
        berth_place__chain_of_ideals(run->arena, run->chain, ideals, below, &value, &run->parts);
    if (outcome == BERTH_PLACE_STOPPED) return false;
    bool found = outcome == BERTH_PLACE_FOUND;
    if (search->options->contiguous && !found && isinf(below)) search->infeasible = true;
    if (search->options->contiguous && !search->infeasible)
        berth_place_bound(search, found ? value : below);
    if (!found) return false;
    uint32_t *wishes =
        berth_arena_new_array(run->arena, uint32_t, (size_t)run->blocks->nets->item_count + 1);
    place_parts(run);
    count_wishes(run, wishes);
    if (settle_loose(run)) offer_items(run);
    if (search->best_value <= value * (1 + BERTH_PLACE_EQUAL)) return false;
    return bind_one(run, wishes, is_vertex) && !berth_place_spent(search, 0);
}

static bool applies(const berth_place_problem *problem, const berth_place_options *options) {
    (void)problem;
    return options->objective == BERTH_PLACE_THROUGHPUT;
}

static berth_status run(berth_place_search *search) {
    const berth_place_problem *problem = search->problem;
    dp_run run = {.search = search, .arena = berth_arena_create_child(search->arena)};
    run.sorts = berth_place__sorts(run.arena, problem);
    bool *is_vertex = berth_arena_new_array(run.arena, bool, (size_t)problem->group_count + 1);
    reduce(&run, is_vertex, INFINITY);
    if (run.chain && !run.blocks->nets->contradiction) {
        size_t items = run.blocks->nets->item_count;
        run.parts.start = berth_arena_new_array(run.arena, uint32_t, problem->device_count + 1);
        run.parts.sort = berth_arena_new_array(run.arena, uint32_t, problem->device_count + 1);
        run.parts.items = berth_arena_new_array(run.arena, uint32_t, items + 1);
        run.device_of_item = berth_arena_new_array(run.arena, uint32_t, items + 1);
        run.assignment = berth_arena_new_array(run.arena, uint32_t, problem->node_count + 1);
        // Blocks hold what contiguity binds together: elsewhere their bound proves nothing.
        if (search->options->contiguous) berth_place_bound(search, run.chain->bound);
        if ((items + 1) * run.chain->state_count <= ORDER_CELL_LIMIT) search_orders(&run);
        while (search_ideals(&run, is_vertex)) {
        }
    }
    berth_arena_destroy(run.arena);
    return BERTH_OK;
}

const berth_place_strategy berth_place__dp = {
    .name = "dp",
    .doc = "contiguous placements by dynamic programming over ideals; throughput",
    .auto_percent = 60,
    .applies = applies,
    .run = run,
};
