#include "compiler/passes/einsum_order.h"

#include <math.h>
#include <string.h>

#include "ir/graph/einsum.h"

enum { most_labels = 52, most_exact = 8 };  // letters for all labels; sets of 8 operands are 256

// What is left to be multiplied: operands at first. Labels are numbers below most_labels, sets of them bits.
typedef struct factor {
    berth_value_id value;
    uint64_t labels;
    uint8_t term[BERTH_MAX_RANK];
    int rank;
} factor;

typedef struct problem {
    double extents[most_labels];
    factor factors[BERTH_EINSUM_MAX_OPERANDS];
    int count;
    uint64_t result;
    uint8_t result_term[BERTH_MAX_RANK];
    int result_rank;
} problem;

static double volume(const problem *p, uint64_t labels) {
    double product = 1;
    for (int i = 0; labels >> i && i < most_labels; ++i)
        if (labels >> i & 1) product *= p->extents[i];
    return product;
}

// Numbers of the equation's labels, -1 for those that there are not; false: too many.
static bool number_labels(const int64_t *extents, problem *p, int *numbers) {
    int count = 0;
    for (int label = 0; label < BERTH_EINSUM_MAX_LABELS; ++label) {
        numbers[label] = -1;
        if (extents[label] < 0) continue;
        if (count == most_labels) return false;
        p->extents[count] = (double)extents[label];
        numbers[label] = count++;
    }
    return true;
}

static uint64_t read_term(const berth_einsum *e, int term, const int *numbers, uint8_t *out) {
    uint64_t labels = 0;
    for (int i = 0; i < e->ranks[term]; ++i) {
        out[i] = (uint8_t)numbers[e->terms[term][i]];
        labels |= (uint64_t)1 << out[i];
    }
    return labels;
}

// False where it has no order of pairs.
static bool read_problem(const berth_rewriter *r, const berth_op *op, problem *p) {
    berth_einsum e;
    const berth_graph *graph = berth_graph_get(r->module, r->function);
    int ranks[BERTH_EINSUM_MAX_OPERANDS];
    const int64_t *dims[BERTH_EINSUM_MAX_OPERANDS];
    int64_t extents[BERTH_EINSUM_MAX_LABELS];
    int numbers[BERTH_EINSUM_MAX_LABELS];
    if (op->input_count < 3 || op->input_count > BERTH_EINSUM_MAX_OPERANDS) return false;
    for (uint32_t k = 0; k < op->input_count; ++k) {
        const berth_type *type = berth_type_get(r->module, graph->values.data[op->inputs[k]].type);
        ranks[k] = type->rank;
        dims[k] = type->dims;
        for (int i = 0; i < type->rank; ++i)
            if (type->dims[i] < 1) return false;
    }
    const char *equation = berth_attrs_string(r->module, &op->attrs, "equation", "");
    if (!berth_einsum_parse(equation, (int)op->input_count, ranks, &e) ||
        !berth_einsum_extents(&e, dims, extents) || !number_labels(extents, p, numbers))
        return false;
    p->count = e.operands;
    for (int k = 0; k < e.operands; ++k) {
        factor *f = &p->factors[k];
        *f = (factor){.value = op->inputs[k], .rank = e.ranks[k]};
        f->labels = read_term(&e, k, numbers, f->term);
    }
    p->result_rank = e.ranks[e.operands];
    p->result = read_term(&e, e.operands, numbers, p->result_term);
    return true;
}

// ---- orders -------------------------------------------------------------------------------------

// Two factors by number, the second one's place is free afterwards: the last one moves there.
typedef struct order {
    uint8_t a[BERTH_EINSUM_MAX_OPERANDS], b[BERTH_EINSUM_MAX_OPERANDS];
    int count;
    double cost;  // multiplications
} order;

// What a set of factors leaves: labels of it that others or the result have.
static uint64_t left_of(const problem *p, uint32_t set, uint64_t *out_all) {
    uint64_t inside = 0;
    uint64_t others = p->result;
    for (int k = 0; k < p->count; ++k) *(set >> k & 1 ? &inside : &others) |= p->factors[k].labels;
    *out_all = inside;
    return inside & others;
}

static int rank_of(uint64_t labels) {
    return __builtin_popcountll(labels);
}

// Multiplications of a product of what two sets leave; infinite where the result is no tensor.
static double cost_of_pair(const problem *p, uint32_t a, uint32_t b) {
    uint64_t all = 0;
    uint64_t of_a = a & (a - 1) ? left_of(p, a, &all) : p->factors[__builtin_ctz(a)].labels;
    uint64_t of_b = b & (b - 1) ? left_of(p, b, &all) : p->factors[__builtin_ctz(b)].labels;
    if (rank_of(left_of(p, a | b, &all)) > BERTH_MAX_RANK) return INFINITY;
    return volume(p, of_a | of_b);
}

// Sets of factors in the order in which they are made; returns the place of the set's value.
static int add_steps(const problem *p, const uint32_t *halves, uint32_t set, order *out) {
    if (!(set & (set - 1))) return __builtin_ctz(set);
    int a = add_steps(p, halves, halves[set], out);
    int b = add_steps(p, halves, set & ~halves[set], out);
    out->a[out->count] = (uint8_t)a;
    out->b[out->count++] = (uint8_t)b;
    return a;
}

// Of all orders, by dynamic programming over the sets of factors: O(3^n).
static void best_order(const problem *p, order *out) {
    double costs[1 << most_exact];
    uint32_t halves[1 << most_exact];
    uint32_t all = (1u << p->count) - 1;
    for (uint32_t set = 1; set <= all; ++set) {
        costs[set] = set & (set - 1) ? INFINITY : 0;
        halves[set] = set;
        for (uint32_t a = (set - 1) & set; a; a = (a - 1) & set) {
            double cost = costs[a] + costs[set & ~a];
            if (2 * a < set || cost >= costs[set]) continue;
            cost += cost_of_pair(p, a, set & ~a);
            if (cost >= costs[set]) continue;
            costs[set] = cost;
            halves[set] = a;
        }
    }
    out->cost = costs[all];
    if (isfinite(out->cost)) add_steps(p, halves, all, out);
}

// The cheapest pair, and so on.
static void greedy_order(const problem *p, order *out) {
    uint32_t sets[BERTH_EINSUM_MAX_OPERANDS];
    bool gone[BERTH_EINSUM_MAX_OPERANDS] = {false};
    for (int k = 0; k < p->count; ++k) sets[k] = 1u << k;
    while (out->count < p->count - 1 && isfinite(out->cost)) {
        double least = INFINITY;
        int at_a = 0, at_b = 0;
        for (int a = 0; a < p->count; ++a)
            for (int b = a + 1; b < p->count; ++b) {
                double cost = gone[a] || gone[b] ? INFINITY : cost_of_pair(p, sets[a], sets[b]);
                if (cost < least) least = cost, at_a = a, at_b = b;
            }
        out->cost += least;
        out->a[out->count] = (uint8_t)at_a;
        out->b[out->count++] = (uint8_t)at_b;
        sets[at_a] |= sets[at_b];
        gone[at_b] = true;
    }
}

// ---- the chain ----------------------------------------------------------------------------------

static char letter_of(uint8_t label) {
    return (char)(label < 26 ? 'a' + label : 'A' + label - 26);
}

static int write_term(char *text, const uint8_t *term, int rank) {
    for (int i = 0; i < rank; ++i) text[i] = letter_of(term[i]);
    return rank;
}

// The product of two factors takes the place of the first; `last`: it is the result.
static berth_status insert_pair(berth_rewriter *r, berth_op_id id, const berth_op *op, problem *p,
                                int a, int b, bool last) {
    factor *to = &p->factors[a];
    factor *from = &p->factors[b];
    uint64_t others = p->result;
    for (int k = 0; k < p->count; ++k)
        if (k != a && k != b) others |= p->factors[k].labels;
    factor product = {.labels = (to->labels | from->labels) & others};
    for (uint8_t i = 0; i < most_labels; ++i)
        if (product.labels >> i & 1) product.term[product.rank++] = i;
    if (last) {
        memcpy(product.term, p->result_term, sizeof(product.term));
        product.rank = p->result_rank;
    }
    char text[3 * BERTH_MAX_RANK + 4];
    int n = write_term(text, to->term, to->rank);
    text[n++] = ',';
    n += write_term(text + n, from->term, from->rank);
    text[n++] = '-';
    text[n++] = '>';
    n += write_term(text + n, product.term, product.rank);
    text[n] = 0;
    berth_attrs attrs = {0};
    berth_attrs_set_string(r->module, &attrs, "equation", text);
    const berth_value_id inputs[2] = {to->value, from->value};
    BERTH_TRY(
        berth_rewriter_insert(r, id, BERTH_OP_EINSUM, inputs, 2, &attrs, op->loc, &product.value));
    *to = product;
    *from = (factor){0};
    return BERTH_OK;
}

berth_status berth_order_einsum(berth_rewriter *r, berth_op_id id) {
    const berth_op op = berth_graph_get(r->module, r->function)->ops.data[id];
    problem p = {0};
    order best = {0};
    if (!read_problem(r, &op, &p)) return BERTH_OK;
    if (p.count <= most_exact)
        best_order(&p, &best);
    else
        greedy_order(&p, &best);
    uint64_t all = 0;
    for (int k = 0; k < p.count; ++k) all |= p.factors[k].labels;
    if (!(2 * best.cost <= volume(&p, all) * (p.count - 1))) return BERTH_OK;
    for (int i = 0; i < best.count; ++i)
        BERTH_TRY(insert_pair(r, id, &op, &p, best.a[i], best.b[i], i + 1 == best.count));
    berth_rewriter_replace(r, op.outputs[0], p.factors[best.a[best.count - 1]].value);
    return BERTH_OK;
}
