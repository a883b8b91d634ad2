// Stage choose: the strategy. `default` leaves everything to the rules (place.c); the others
// solve the placement problem of @main (placement.h) and decide its free classes, so that the rules
// only complete what the problem does not hold (called functions, annotations' contexts). Every
// plan is then valued in the same problem.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "planner/choice.h"
#include "planner/solve/solve.h"

enum { strategy_limit = 32 };

// Search nodes for the bound of a placement that another strategy made.
static const uint64_t bound_nodes = 20000;

// Whether a strategy is for problems such as the planner's at all: two devices, list scheduling.
static bool is_for_modules(const berth_place_strategy *strategy) {
    berth_place_kind kind = {.name = "device", .device_count = 2};
    uint32_t group[] = {0}, pin[] = {BERTH_PLACE_NONE};
    berth_place_problem sample = {.node_count = 1,
                                  .group = group,
                                  .pin = pin,
                                  .kind_count = 1,
                                  .kinds = &kind,
                                  .group_count = 1,
                                  .device_count = 2};
    static const berth_place_objective objectives[] = {BERTH_PLACE_LATENCY, BERTH_PLACE_THROUGHPUT,
                                                       BERTH_PLACE_MEMORY};
    for (size_t i = 0; i < sizeof(objectives) / sizeof(objectives[0]); ++i)
        if (strategy->applies(&sample, &(berth_place_options){.objective = objectives[i]}))
            return true;
    return false;
}

bool berth_plan_strategy_at(uint32_t index, const char **out_name, const char **out_doc) {
    static const struct {
        const char *name, *doc;
    } own[] = {{"default",
                "the rules: everything on the default device where it can run, with what "
                "it is connected to"},
               {"auto", "the best of the rules and of all strategies below that apply, within the "
                        "budget, with the best bound"}};
    enum { own_count = sizeof(own) / sizeof(own[0]) };
    if (index < own_count) {
        *out_name = own[index].name;
        *out_doc = own[index].doc;
        return true;
    }
    uint32_t at = own_count;
    for (const berth_place_strategy *const *all = berth_place_strategies(); *all; ++all) {
        if (!is_for_modules(*all) || at++ != index) continue;
        *out_name = (*all)->name;
        *out_doc = (*all)->doc;
        return true;
    }
    return false;
}

// ---- options ------------------------------------------------------------------------------------

static const char *strategy_of(const berth_planner_state *state) {
    return state->options->strategy ? state->options->strategy : "default";
}

static const char *objective_of(const berth_planner_state *state) {
    return state->options->objective ? state->options->objective : "latency";
}

static bool by_rules(const berth_planner_state *state) {
    return strcmp(strategy_of(state), "default") == 0;
}

static berth_status check_name(const berth_planner_state *state, const char *what,
                               const char *given, const char *const *known) {
    berth_strbuf list = berth_strbuf_make(state->arena);
    for (uint32_t i = 0; known[i]; ++i) {
        if (strcmp(given, known[i]) == 0) return BERTH_OK;
        berth_strbuf_addf(&list, "%s%s", i ? ", " : "", known[i]);
    }
    const char *close = berth_closest(given, known);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "unknown %s \"%s\"%s%s%s; there are %s", what,
                             given, close ? " (did you mean \"" : "", close ? close : "",
                             close ? "\"?)" : "", berth_strbuf_text(&list));
}

static berth_status read_options(const berth_planner_state *state,
                                 berth_place_objective *out_objective) {
    static const char *const objectives[] = {"latency", "throughput", "memory", NULL};
    static const berth_place_objective values[] = {BERTH_PLACE_LATENCY, BERTH_PLACE_THROUGHPUT,
                                                   BERTH_PLACE_MEMORY};
    const char *names[strategy_limit] = {0}, *doc = NULL;
    for (uint32_t i = 0; i + 1 < strategy_limit; ++i)
        if (!berth_plan_strategy_at(i, &names[i], &doc)) break;
    BERTH_TRY(check_name(state, "strategy", strategy_of(state), names));
    *out_objective = BERTH_PLACE_LATENCY;
    BERTH_TRY(check_name(state, "objective", objective_of(state), objectives));
    for (uint32_t i = 0; objectives[i]; ++i)
        if (strcmp(objective_of(state), objectives[i]) == 0) *out_objective = values[i];
    return BERTH_OK;
}

// ---- solving ------------------------------------------------------------------------------------

static berth_status build(berth_planner_state *state, berth_placement **out_placement) {
    berth_status status =
        berth_planner__placement_build(state, state->choice->arena, out_placement);
    if (!status) return BERTH_OK;
    bool too_large = berth_status_code(status) == BERTH_OUT_OF_RANGE;
    *out_placement = NULL;
    if (!too_large) return status;
    berth_status_free(status);
    return BERTH_OK;
}

// Frees a status whose step may fail, without harm but for a worse result. What memory ran out for
// could be any.
static berth_status allow_failure(berth_status status) {
    if (status && berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    berth_status_free(status);
    return BERTH_OK;
}

// What the rules alone would make of the module; false where they fail.
static berth_status rules_start(const berth_planner_state *state, uint32_t *out_assignment,
                                bool *out_found) {
    const berth_placement *placement = state->choice->placement;
    berth_plan_options options = *state->options;
    options.after_stage = NULL;
    options.strategy = NULL;
    berth_planner_state rules = {.module = state->module,
                                 .main = state->main,
                                 .behind = state->behind,
                                 .options = &options,
                                 .arena = state->choice->arena};
    *out_found = false;
    BERTH_TRY(berth_planner__constrain(&rules));
    berth_status status = berth_planner__place(&rules);
    if (!status) *out_found = berth_planner__placement_read(placement, &rules, out_assignment);
    return allow_failure(status);
}

static berth_status solve(const berth_planner_state *state, const char *strategy,
                          uint64_t node_budget, bool timed, berth_place_answer *out_answer) {
    berth_planner_choice *choice = state->choice;
    berth_place_options options = {.objective = choice->objective, .strategy = strategy};
    options.node_budget = node_budget;
    if (timed && state->options->time_budget_ns > 0) {
        options.node_budget = state->options->node_budget;
        options.deadline_ns = berth_clock_ns() + state->options->time_budget_ns;
    }
    return berth_place_solve(choice->arena, &choice->placement->problem, &options, out_answer);
}

// The device with the least constants in a memory, of those that have some there.
static uint32_t least_in_memory(const berth_multi_target *target, uint32_t memory,
                                const double *constants) {
    uint32_t least = BERTH_NO_INDEX;
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (target->devices[d].own_memory == memory && constants[d] > 0 &&
            (least == BERTH_NO_INDEX || constants[d] < constants[least]))
            least = d;
    return least;
}

// Whether constants and values of the placement fit; makes room for the values where they do not.
static bool values_fit(const berth_planner_state *state, const uint32_t *assignment) {
    const berth_planner_choice *choice = state->choice;
    const berth_placement *placement = choice->placement;
    const berth_multi_target *target = state->options->target;
    berth_arena *scratch = berth_arena_create_child(choice->arena);
    double *constants = berth_arena_new_array(scratch, double, target->device_count);
    double *in_memory = berth_arena_new_array(scratch, double, target->memory_count);
    uint64_t *live = berth_arena_new_array(scratch, uint64_t, target->device_count);
    berth_planner__placement_live(placement, assignment, scratch, live);
    for (uint32_t v = 0; v < placement->problem.node_count; ++v) {
        uint32_t d = placement->target_device[assignment[v]];
        constants[d] += placement->problem.size_bytes[v];
        in_memory[target->devices[d].constant_memory] += placement->problem.size_bytes[v];
    }
    bool fit = true;
    for (uint32_t d = 0; d < target->device_count; ++d) {
        uint32_t memory = target->devices[d].own_memory;
        uint64_t budget = target->memories[memory].budget_bytes;
        // Where constants are elsewhere, room from them is none for values.
        if (target->devices[d].constant_memory != memory) continue;
        const uint64_t *given = state->options->reserve_bytes;
        uint64_t wanted = live[d] + (given && given[d] < budget ? given[d] : 0);
        if (budget == 0 || in_memory[memory] + (double)wanted <= (double)budget) continue;
        // Of devices that share the memory, the one with the least in it makes do with what the
        // others leave.
        if (d == least_in_memory(target, memory, constants))
            wanted += (uint64_t)ceil(in_memory[memory] - constants[d]);
        if (wanted <= choice->reserve_bytes[d]) continue;  // asked for already
        choice->reserve_bytes[d] = wanted;
        fit = false;
    }
    berth_arena_destroy(scratch);
    return fit;
}

static bool is_infeasible(berth_status status) {
    return status && (berth_status_code(status) == BERTH_FAILED_PRECONDITION ||
                      berth_status_code(status) == BERTH_OUT_OF_RANGE);
}

// A bound on all placements, also those that another try of the memory plan ruled out.
static berth_status bound_without_reserve(const berth_planner_state *state, double *out_bound) {
    berth_planner_choice *choice = state->choice;
    berth_plan_options options = *state->options;
    options.reserve_bytes = NULL;
    berth_planner_state open = *state;
    open.options = &options;
    berth_placement *placement = NULL;
    berth_place_answer answer = {0};
    BERTH_TRY(berth_planner__placement_build(&open, choice->arena, &placement));
    berth_planner__placement_capacity(placement, NULL);
    berth_place_options solve_options = {
        .objective = choice->objective, .strategy = "auto", .node_budget = bound_nodes};
    berth_status status =
        berth_place_solve(choice->arena, &placement->problem, &solve_options, &answer);
    *out_bound = status ? 0 : answer.lower_bound;
    return allow_failure(status);
}

// Placements with more and more room for values, until the estimate of what they need fits. The
// bound is that of the first: it holds whatever values need. The memory plan decides in the end.
static berth_status solve_with_room(berth_planner_state *state, berth_place_answer *out_answer) {
    enum { rounds = 4 };
    berth_planner_choice *choice = state->choice;
    const berth_plan_options *options = state->options;
    uint64_t nodes = options->node_budget ? options->node_budget : BERTH_PLAN_DEFAULT_NODES;
    for (int round = 0; round < rounds; ++round) {
        berth_place_answer answer = {0};
        berth_planner__placement_capacity(choice->placement, choice->reserve_bytes);
        berth_status status = solve(state, strategy_of(state), nodes, true, &answer);
        if (round > 0 && is_infeasible(status)) {
            berth_status_free(status);
            choice->note = "the memory of values is tight: the memory plan decides";
            break;
        }
        BERTH_TRY(status);
        double bound = round == 0 ? answer.lower_bound : out_answer->lower_bound;
        bool reproducible = answer.reproducible && (round == 0 || out_answer->reproducible);
        *out_answer = answer;
        out_answer->lower_bound = bound;
        out_answer->reproducible = reproducible;
        out_answer->proven &= round == 0;
        if (values_fit(state, answer.assignment)) break;
    }
    if (!options->reserve_bytes) return BERTH_OK;
    out_answer->proven = false;
    return bound_without_reserve(state, &out_answer->lower_bound);
}

// The bound of a short run of everything, where a strategy proves less.
static berth_status tighten(const berth_planner_state *state, berth_place_answer *answer) {
    berth_place_answer other = {0};
    if (answer->proven) return BERTH_OK;
    berth_status status = solve(state, "auto", bound_nodes, false, &other);
    if (!status) answer->lower_bound = fmax(answer->lower_bound, other.lower_bound);
    return allow_failure(status);
}

berth_status berth_planner__value_of(const berth_planner_state *state, const uint32_t *assignment,
                                     double *out_value) {
    berth_planner_choice *choice = state->choice;
    berth_place_value value;
    berth_planner__placement_capacity(choice->placement, choice->reserve_bytes);
    berth_status status = berth_place_evaluate(choice->arena, &choice->placement->problem,
                                               choice->objective, false, assignment, &value);
    *out_value = status ? INFINITY : value.value;
    return allow_failure(status);
}

// Whether demands leave one placement only: in a module that is planned already, say.
static bool all_decided(const berth_planner_state *state) {
    const berth_place_problem *problem = &state->choice->placement->problem;
    bool *decided = berth_arena_new_array(state->choice->arena, bool, problem->group_count + 1);
    uint32_t count = 0;
    for (uint32_t v = 0; v < problem->node_count; ++v) {
        bool *group = &decided[problem->group[v]];
        count += problem->pin[v] != BERTH_PLACE_NONE && !*group;
        *group |= problem->pin[v] != BERTH_PLACE_NONE;
    }
    return count == problem->group_count;
}

// A strategy looks at placements of its own kind only (intervals of an order, one device, ...): none
// of them may keep what is demanded.
static berth_status leave_to_rules(berth_planner_state *state) {
    berth_place_answer answer = {.lower_bound = 0};
    berth_vec_push(state->arena, &state->warnings,
                   berth_arena_printf(state->arena,
                                      "the strategy %s has no placement that keeps all demands: "
                                      "placed by the rules",
                                      strategy_of(state)));
    BERTH_TRY(tighten(state, &answer));
    state->choice->lower_bound = answer.lower_bound;
    return BERTH_OK;
}

// Whether all memories together have room for the constants. Where they have not, no search is needed
// to say so, and none says it as well.
static berth_status check_total(const berth_planner_state *state) {
    const berth_placement *placement = state->choice->placement;
    const berth_multi_target *target = state->options->target;
    double needed = 0, room = 0;
    char need[32], have[32];
    for (uint32_t v = 0; v < placement->problem.node_count; ++v)
        needed += placement->problem.size_bytes[v];
    bool *counted = berth_arena_new_array(state->choice->arena, bool, target->memory_count);
    for (uint32_t d = 0; d < target->device_count; ++d) {
        uint64_t budget = berth_planner__constants_budget(target, d);
        uint32_t memory = target->devices[d].constant_memory;
        if (budget == 0) return BERTH_OK;  // not known
        if (!counted[memory]) room += (double)budget;
        counted[memory] = true;
    }
    if (needed <= room) return BERTH_OK;
    berth_format_bytes_f64(needed, need);
    berth_format_bytes_f64(room, have);
    return berth_status_make(BERTH_FAILED_PRECONDITION,
                             "placement: the model's constants need %s, and the memories of all "
                             "devices have %s",
                             need, have);
}

static berth_status search(berth_planner_state *state) {
    berth_planner_choice *choice = state->choice;
    uint32_t count = choice->placement->problem.node_count;
    uint32_t *start = berth_arena_new_array(choice->arena, uint32_t, count);
    bool found = false;
    double rules_value = INFINITY;
    BERTH_TRY(check_total(state));
    BERTH_TRY(rules_start(state, start, &found));
    if (found) BERTH_TRY(berth_planner__value_of(state, start, &rules_value));
    if (rules_value < INFINITY && all_decided(state)) {
        choice->lower_bound = rules_value;
        return BERTH_OK;
    }
    berth_place_answer answer = {0};
    berth_status status = solve_with_room(state, &answer);
    if (status && !(found && is_infeasible(status)))
        return berth_status_prefix(status, "placement");
    // Again: there may be less room for constants than before.
    berth_status again = found ? berth_planner__value_of(state, start, &rules_value) : BERTH_OK;
    if (!again && status && rules_value == INFINITY)
        return berth_status_prefix(status, "placement");
    if (again || status) {
        berth_status_free(status);
        return again ? again : leave_to_rules(state);
    }
    bool bounded = strcmp(strategy_of(state), "auto") == 0 || state->options->reserve_bytes;
    if (!bounded) BERTH_TRY(tighten(state, &answer));
    const uint32_t *assignment = answer.assignment;
    choice->found_by = answer.strategy;
    choice->lower_bound = answer.lower_bound;
    choice->reproducible = answer.reproducible;
    choice->search_nodes = answer.nodes;
    if (strcmp(strategy_of(state), "auto") == 0 && rules_value < INFINITY)
        BERTH_TRY(berth_planner__prefer_simple(state, start, rules_value, answer.value.value,
                                               &assignment));
    const char *reason = berth_arena_printf(state->arena, "strategy %s, for %s", strategy_of(state),
                                            objective_of(state));
    return berth_planner__placement_fix(choice->placement, state, assignment, reason);
}

static const char *left_out(const berth_planner_state *state) {
    const berth_multi_target *target = state->options->target;
    berth_strbuf names = berth_strbuf_make(state->arena);
    for (uint32_t d = 0; state->options->reserve_bytes && d < target->device_count; ++d)
        if (state->options->reserve_bytes[d] == UINT64_MAX)
            berth_strbuf_addf(&names, "%s%s", names.length ? ", " : "", target->devices[d].name);
    if (!names.length) return NULL;
    return berth_arena_printf(state->arena, "without %s, where the memory is too small for values",
                              berth_strbuf_text(&names));
}

berth_status berth_planner__choose(berth_planner_state *state) {
    berth_place_objective objective;
    BERTH_TRY(read_options(state, &objective));
    const berth_planner_function *f = &state->functions[state->main];
    bool large = f->order_count > BERTH_PLAN_SEARCH_LIMIT;
    if (large || (by_rules(state) && !state->options->cost.time_ns)) return BERTH_OK;
    state->choice = berth_arena_new(state->arena, berth_planner_choice);
    state->choice->arena = berth_arena_create_child(state->arena);
    state->choice->objective = objective;
    state->choice->found_by = "default";
    state->choice->reproducible = true;
    state->choice->note = left_out(state);
    state->choice->reserve_bytes =
        berth_arena_new_array(state->choice->arena, uint64_t, state->options->target->device_count);
    for (uint32_t d = 0; state->options->reserve_bytes && d < state->options->target->device_count;
         ++d)
        state->choice->reserve_bytes[d] = state->options->reserve_bytes[d];
    BERTH_TRY(build(state, &state->choice->placement));
    if (!state->choice->placement) {
        state->choice = NULL;
        return BERTH_OK;
    }
    // Where a group has no device at all the rules say which operations are to blame.
    if (by_rules(state) || state->choice->placement->impossible) return BERTH_OK;
    return search(state);
}

// ---- the finished plan --------------------------------------------------------------------------

// Largest shares are of capacities; elsewhere a plan that exceeds a memory has a value, too: that
// error is the memory plan's.
static void widen_capacities(berth_placement *placement, double factor) {
    for (uint32_t k = 0; k < placement->problem.kind_count; ++k)
        placement->problem.kinds[k].capacity_bytes *= factor;
}

// A bound for what the rules placed: a short run of everything.
static berth_status bound_rules(berth_planner_state *state) {
    berth_planner_choice *choice = state->choice;
    berth_place_answer answer = {0};
    berth_planner__placement_capacity(choice->placement, NULL);
    berth_status status = solve(state, "auto", bound_nodes, false, &answer);
    if (!status) {
        choice->lower_bound = answer.lower_bound;
        choice->search_nodes = answer.nodes;
    }
    return allow_failure(status);
}

// Name of a node's value.
static const char *value_name(const berth_planner_state *state, const berth_placement_node *node) {
    const berth_graph *graph = state->functions[state->main].graph;
    berth_value_id value = BERTH_NONE;
    if (node->sort == BERTH_PLACEMENT_VALUE) value = node->index;
    if (node->sort == BERTH_PLACEMENT_OP && graph->ops.data[node->index].output_count)
        value = graph->ops.data[node->index].outputs[0];
    if (value == BERTH_NONE) return "";
    return berth_planner__value_name(state, &state->functions[state->main], value);
}

// The schedule of one request, and its length in ms.
static berth_status fill_schedule(const berth_planner_state *state, const uint32_t *assignment,
                                  berth_plan *plan, double *out_latency_ms) {
    static const double ns_per_ms = 1e6;
    const berth_placement *placement = state->choice->placement;
    berth_planner_kernels kernels;
    berth_place_value value;
    berth_place_copy *copies = NULL;
    (void)berth_planner__by_kernels(state, assignment, &kernels);
    BERTH_TRY(berth_place_schedule(state->choice->arena, &kernels.problem, assignment, &value,
                                   &copies, &plan->transfer_count));
    berth_planner__fill_entries(state, &kernels, &value, plan);
    plan->transfers =
        berth_arena_new_array(state->arena, berth_plan_transfer, plan->transfer_count);
    for (uint32_t i = 0; i < plan->transfer_count; ++i)
        plan->transfers[i] =
            (berth_plan_transfer){.device = placement->target_device[copies[i].link],
                                  .to_host = copies[i].to == BERTH_PLACE_NONE,
                                  .value = value_name(state, &placement->nodes[copies[i].node]),
                                  .start_ns = copies[i].start * ns_per_ms,
                                  .time_ns = (copies[i].end - copies[i].start) * ns_per_ms};
    *out_latency_ms = value.value;
    return BERTH_OK;
}

static berth_status fill_value(berth_planner_state *state, const uint32_t *assignment,
                               berth_plan *plan) {
    static const double widening = 0x1p40;  // even where a budget is a byte
    berth_planner_choice *choice = state->choice;
    const berth_place_problem *problem = &choice->placement->problem;
    double latency_ms = 0, value = 0;
    bool memory = choice->objective == BERTH_PLACE_MEMORY, share = memory;
    berth_planner__placement_capacity(choice->placement, NULL);
    for (uint32_t k = 0; k < problem->kind_count; ++k)
        share &= problem->kinds[k].capacity_bytes < INFINITY;
    widen_capacities(choice->placement, widening);
    berth_place_value found;
    BERTH_TRY(
        berth_place_evaluate(choice->arena, problem, choice->objective, false, assignment, &found));
    value = share ? found.value * widening : found.value;
    BERTH_TRY(fill_schedule(state, assignment, plan, &latency_ms));
    double unit = memory ? 1 : 1e6;
    double bound = fmin(choice->lower_bound, value);
    plan->unit = !memory ? "ns" : share ? "of capacity" : "bytes";
    plan->value = value * unit;
    plan->proven = bound >= value * (1 - BERTH_PLACE_EQUAL);
    plan->lower_bound = plan->proven ? plan->value : bound * unit;
    plan->gap = plan->proven ? 0 : (value - bound) / value;
    plan->predicted_ns = latency_ms * 1e6;
    plan->valued = true;
    return BERTH_OK;
}

static berth_status value_choice(berth_planner_state *state, berth_plan *plan) {
    berth_planner_choice *choice = state->choice;
    const berth_placement *placement = choice->placement;
    uint32_t *assignment =
        berth_arena_new_array(choice->arena, uint32_t, placement->problem.node_count);
    if (!berth_planner__placement_read(placement, state, assignment)) return BERTH_OK;
    if (by_rules(state) && state->options->explain) BERTH_TRY(bound_rules(state));
    BERTH_TRY(berth_status_prefix(fill_value(state, assignment, plan), "the finished plan"));
    plan->found_by = choice->found_by;
    plan->reproducible = choice->reproducible;
    plan->search_nodes = choice->search_nodes;
    if (choice->note) berth_plan_add_note(plan, state->arena, choice->note);
    if (choice->objective == BERTH_PLACE_THROUGHPUT)
        berth_plan_add_note(plan, state->arena,
                            "the executor runs one request after the other; loads are for a "
                            "pipeline of requests");
    if (state->options->explain) berth_planner__reject(state, assignment, plan);
    return BERTH_OK;
}

berth_status berth_planner__value(berth_planner_state *state) {
    berth_plan *plan = state->plan;
    plan->strategy = berth_arena_strdup(state->arena, strategy_of(state));
    plan->objective = berth_arena_strdup(state->arena, objective_of(state));
    plan->found_by = "default";
    plan->unit = "ns";
    plan->reproducible = true;
    if (!state->choice) {
        if (!by_rules(state))
            berth_plan_add_note(
                plan, state->arena,
                berth_arena_printf(state->arena,
                                   "more than %u operations: placed by the rules, the prediction "
                                   "is a plain sum",
                                   BERTH_PLAN_SEARCH_LIMIT));
        return BERTH_OK;
    }
    berth_status status = value_choice(state, plan);
    berth_arena_destroy(state->choice->arena);
    state->choice = NULL;
    return status;
}
