// A function per maximal region of a backend, as in "Bring Your Own Codegen to Deep Learning Compiler"
// (Chen et al., 2021). Each operation that a backend takes begins as a region of its own, and is joined
// with those of its operands as long as no circle comes to be: the union-find of Tarjan (1975), and
// a search of the graph of regions for a way from the one to the other over something else. What a
// way leads over and no backend takes stays where it is, so two regions that cannot be one never can.
#include <string.h>

#include "compiler/decompose/decompose.h"
#include "compiler/decompose/parts.h"
#include "compiler/libraries/choose.h"
#include "compiler/rules.h"

enum { search_most = 1 << 14 };  // operations that one search looks at; beyond, regions stay apart

typedef struct visit {
    berth_op_id region, op;  // op: whose operands come next
    uint32_t operand;
} visit;

typedef struct joiner {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    berth_arena *scratch;
    const berth_graph *graph;
    const char **backend;  // per operation
    uint32_t *device;      // per operation
    // Per operation its region, by union-find; per region (its root) a list of operations.
    berth_op_id *parent, *next, *last;
    uint32_t *stamp;  // per region: the search that saw it
    uint32_t search;
    BERTH_VEC(berth_op_id) stack;
    BERTH_VEC(visit) visits;
} joiner;

const char **berth_decompose__backends(const berth_module *module, berth_func_id function,
                                       const berth_multi_target *target, berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_region *root = &graph->regions.data[0];
    const char **names = berth_arena_new_array(arena, const char *, graph->ops.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_rules_question question;
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (!op->device || berth_op_has(op->kind, BERTH_TRAIT_STRUCTURE | BERTH_TRAIT_HOST) ||
            !berth_rules_of(module, function, root->ops.data[i], target, arena, &question))
            continue;
        names[root->ops.data[i]] = berth_device_kind_name(question.target->kind);
    }
    berth_libraries_taken(module, function, target, arena, names);
    return names;
}

static berth_op_id region_of(joiner *j, berth_op_id op) {
    while (j->parent[op] != op) op = j->parent[op] = j->parent[j->parent[op]];
    return op;
}

// The operation that makes operand `k`; BERTH_NONE: nobody, or it is a constant, which is anywhere.
static berth_op_id maker(const joiner *j, const berth_op *op, uint32_t k) {
    if (op->inputs[k] == BERTH_NONE) return BERTH_NONE;
    berth_op_id made = j->graph->values.data[op->inputs[k]].op;
    bool constant = made != BERTH_NONE && j->graph->ops.data[made].kind == BERTH_OP_CONSTANT;
    return constant ? BERTH_NONE : made;
}

// Puts regions that `region` takes operands from on the stack. Returns whether `wanted` is one of
// them; with `over`, that does not count.
static bool push_before(joiner *j, berth_op_id region, berth_op_id wanted, bool over,
                        uint32_t *looked_at) {
    bool found = false;
    for (berth_op_id id = region; id != BERTH_NONE; id = j->next[id]) {
        const berth_op *op = &j->graph->ops.data[id];
        ++*looked_at;
        for (uint32_t k = 0; k < op->input_count; ++k) {
            berth_op_id made = maker(j, op, k);
            berth_op_id before = made == BERTH_NONE ? BERTH_NONE : region_of(j, made);
            if (before == BERTH_NONE || before == region) continue;
            found |= before == wanted && !over;
            if (before == wanted || j->stamp[before] == j->search) continue;
            j->stamp[before] = j->search;
            berth_vec_push(j->scratch, &j->stack, before);
        }
    }
    return found;
}

// Whether there is a way from region `a` to region `b` over something else.
static bool leads_around(joiner *j, berth_op_id a, berth_op_id b) {
    uint32_t looked_at = 0;
    j->search++;
    j->stack.count = 0;
    (void)push_before(j, b, a, true, &looked_at);
    while (j->stack.count) {
        berth_op_id region = j->stack.data[--j->stack.count];
        if (push_before(j, region, a, false, &looked_at) || looked_at > search_most) return true;
    }
    return false;
}

static void join(joiner *j, berth_op_id a, berth_op_id b) {
    j->parent[b] = a;
    j->next[j->last[a]] = b;
    j->last[a] = j->last[b];
}

static void find_regions(joiner *j) {
    const berth_region *root = &j->graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        const berth_op *op = &j->graph->ops.data[id];
        for (uint32_t k = 0; j->backend[id] && k < op->input_count; ++k) {
            berth_op_id made = maker(j, op, k);
            if (made == BERTH_NONE || !j->backend[made] || j->device[made] != j->device[id] ||
                strcmp(j->backend[made], j->backend[id]) != 0)
                continue;
            berth_op_id before = region_of(j, made), own = region_of(j, id);
            if (before != own && !leads_around(j, before, own) && !leads_around(j, own, before))
                join(j, before, own);
        }
    }
}

// ---- order --------------------------------------------------------------------------------------

// The next region that has to stand before that of the visit; BERTH_NONE: none.
static berth_op_id next_before(joiner *j, visit *v) {
    for (; v->op != BERTH_NONE; v->op = j->next[v->op], v->operand = 0) {
        const berth_op *op = &j->graph->ops.data[v->op];
        while (v->operand < op->input_count) {
            berth_op_id made = maker(j, op, v->operand++);
            berth_op_id before = made == BERTH_NONE ? BERTH_NONE : region_of(j, made);
            if (before != BERTH_NONE && j->stamp[before] != j->search) return before;
        }
    }
    return BERTH_NONE;
}

static void enter(joiner *j, berth_op_id region) {
    j->stamp[region] = j->search;
    berth_vec_push(j->scratch, &j->visits, ((visit){region, region, 0}));
}

// Numbers regions: each after all that it needs, else as their operations stand (depth first).
static uint32_t number_regions(joiner *j, uint32_t *number) {
    const berth_region *root = &j->graph->regions.data[0];
    uint32_t count = 0;
    j->search++;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id region = region_of(j, root->ops.data[i]);
        if (j->stamp[region] != j->search) enter(j, region);
        while (j->visits.count) {
            berth_op_id before = next_before(j, &j->visits.data[j->visits.count - 1]);
            if (before != BERTH_NONE)
                enter(j, before);
            else
                number[j->visits.data[--j->visits.count].region] = count++;
        }
    }
    return count;
}

// Operations by the numbers of their regions, those of one as they stand (counting sort).
static berth_op_id *sorted(joiner *j) {
    const berth_region *root = &j->graph->regions.data[0];
    uint32_t *number = berth_arena_new_array(j->scratch, uint32_t, j->graph->ops.count + 1);
    uint32_t count = number_regions(j, number);
    uint32_t *begin = berth_arena_new_array(j->scratch, uint32_t, count + 2);
    berth_op_id *order = berth_arena_new_array(j->scratch, berth_op_id, root->ops.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i)
        begin[number[region_of(j, root->ops.data[i])] + 1]++;
    for (uint32_t i = 0; i < count; ++i) begin[i + 1] += begin[i];
    for (uint32_t i = 0; i < root->ops.count; ++i)
        order[begin[number[region_of(j, root->ops.data[i])]]++] = root->ops.data[i];
    return order;
}

// ---- functions ----------------------------------------------------------------------------------

static berth_decompose_parting parts_of(joiner *j) {
    uint32_t count = j->graph->regions.data[0].ops.count, part_count = 0;
    const berth_op_id *order = sorted(j);
    uint32_t *part = berth_arena_new_array(j->scratch, uint32_t, j->graph->ops.count + 1);
    berth_decompose_part *parts =
        berth_arena_new_array(j->scratch, berth_decompose_part, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        berth_op_id op = order[i];
        part[op] = BERTH_NONE;
        if (!j->backend[op]) continue;
        if (i == 0 || region_of(j, order[i - 1]) != region_of(j, op)) {
            parts[part_count] = (berth_decompose_part){
                .name = berth_decompose__name(j->module, j->main, j->backend[op], part_count,
                                              j->scratch),
                .device = j->target->devices[j->device[op]].name,
                .backend = j->backend[op]};
            part_count++;
        }
        part[op] = part_count - 1;
    }
    return (berth_decompose_parting){order, count, part, parts};
}

static berth_op_id *none_each(const joiner *j) {
    size_t count = j->graph->ops.count;
    berth_op_id *ids = berth_arena_new_array(j->scratch, berth_op_id, count + 1);
    memset(ids, 0xff, count * sizeof(*ids));
    return ids;
}

static berth_status take_apart(joiner *j) {
    const berth_region *root = &j->graph->regions.data[0];
    j->parent = none_each(j);
    j->next = none_each(j);
    j->last = none_each(j);
    j->device = none_each(j);
    j->stamp = berth_arena_new_array(j->scratch, uint32_t, j->graph->ops.count + 1);
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        berth_op_id id = root->ops.data[i];
        j->parent[id] = j->last[id] = id;
        BERTH_TRY(berth_decompose__device_of(j->module, &j->graph->ops.data[id], j->target,
                                             &j->device[id]));
    }
    j->backend = berth_decompose__backends(j->module, j->main, j->target, j->scratch);
    find_regions(j);
    berth_decompose_parting parting = parts_of(j);
    berth_decompose__move_out(j->module, j->main, &parting, j->scratch);
    return BERTH_OK;
}

berth_status berth_decompose_backends(berth_module *module, berth_func_id main,
                                      const berth_multi_target *target) {
    joiner j = {.module = module,
                .main = main,
                .target = target,
                .scratch = berth_arena_create_child(module->arena),
                .graph = berth_graph_get(module, main)};
    berth_status status = take_apart(&j);
    berth_arena_destroy(j.scratch);
    return status;
}
