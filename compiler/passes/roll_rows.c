#include "compiler/passes/roll_rows.h"

#include "compiler/passes/concat.h"
#include "compiler/pipeline.h"

enum { most_stages = 32 };

typedef struct roller {
    berth_module *module;
    const berth_graph *graph;
    const berth_op_id *ops;  // of @main, in order
    uint32_t op_count;
    berth_row_stage **stages;   // per place in that order; NULL = the operation is no stage
    uint32_t *made, *last_use;  // per value: places; BERTH_NONE = by none
    berth_value_id *root;       // per value: whose bytes it is (views)
    bool *counts;               // per value: it is in memory that is planned
    int64_t *in_place;          // per place: bytes of results that may lie over operands that end
} roller;

typedef struct candidate {
    uint32_t first, last;  // places
    uint64_t peak_bytes;
} candidate;

static const berth_op *op_at(const roller *r, uint32_t place) {
    return &r->graph->ops.data[r->ops[place]];
}

static const berth_type *type_of(const roller *r, berth_value_id value) {
    return berth_type_get(r->module, r->graph->values.data[value].type);
}

static int64_t bytes_of(const roller *r, berth_value_id value) {
    return (int64_t)berth_type_size_bytes(r->module, r->graph->values.data[value].type);
}

static berth_func_id callee_of(const roller *r, const berth_op *op) {
    const berth_attr *callee =
        op->kind == BERTH_OP_CALL ? berth_attrs_find(r->module, &op->attrs, "callee") : NULL;
    return callee ? callee->function : BERTH_NONE;
}

// Of a call; BERTH_NONE = it has none.
static berth_func_id rows_form_of(const roller *r, const berth_op *op) {
    berth_func_id callee = callee_of(r, op);
    if (callee == BERTH_NONE) return BERTH_NONE;
    const berth_attr *form = berth_attrs_find(
        r->module, &berth_module_function(r->module, callee)->attrs, BERTH_ATTR_ROWS_FORM);
    return form ? form->function : BERTH_NONE;
}

// ---- what there is ------------------------------------------------------------------------------

static void find_stage(roller *r, uint32_t place) {
    const berth_op *op = op_at(r, place);
    berth_func_id form = rows_form_of(r, op);
    berth_tfn *fn = form == BERTH_NONE ? NULL : berth_tfn_get(r->module, form);
    if (!fn || fn->param_count != op->input_count + op->output_count ||
        berth_attrs_find(r->module, &op->attrs, BERTH_ATTR_PARTS_AT) ||
        berth_attrs_find(r->module, &op->attrs, BERTH_ATTR_SLICES_AT))
        return;
    for (uint32_t i = 0; i < op->input_count; ++i)
        if (op->inputs[i] == BERTH_NONE) return;
    berth_row_stage *stage = berth_arena_new(r->module->arena, berth_row_stage);
    if (berth_row_stage_find(fn, stage)) r->stages[place] = stage;
}

// Bytes of results of a call that are written over operands which it reads last.
static int64_t in_place_bytes(const roller *r, uint32_t place) {
    const berth_op *op = op_at(r, place);
    berth_func_id callee = callee_of(r, op);
    uint32_t count = 0;
    const int64_t *triples =
        callee == BERTH_NONE
            ? NULL
            : berth_attrs_ints(r->module, &berth_module_function(r->module, callee)->attrs,
                               BERTH_ATTR_IN_PLACE, &count);
    for (uint32_t i = 0; i + 3 <= count; i += 3) {
        int64_t from = triples[i + 1], to = triples[i + 2] - op->input_count;
        if (from < 0 || from >= op->input_count || to < 0 || to >= op->output_count) continue;
        berth_value_id operand = op->inputs[from], result = op->outputs[to];
        if (operand == BERTH_NONE || !r->counts[r->root[operand]] || !r->counts[result] ||
            r->last_use[r->root[operand]] != place)
            continue;
        int64_t a = bytes_of(r, operand), b = bytes_of(r, result);
        return a < b ? a : b;
    }
    return 0;
}

static void find_uses(roller *r) {
    const berth_region *region = &r->graph->regions.data[0];
    for (uint32_t i = 0; i < r->op_count; ++i) {
        const berth_op *op = op_at(r, i);
        for (uint32_t k = 0; k < op->output_count; ++k) {
            berth_value_id result = op->outputs[k];
            bool view = berth_op_has(op->kind, BERTH_TRAIT_VIEW) && op->inputs[0] != BERTH_NONE;
            r->made[result] = i;
            if (view) r->root[result] = r->root[op->inputs[0]];
            r->counts[result] = !view && op->kind != BERTH_OP_CONSTANT;
        }
        for (uint32_t k = 0; k < op->input_count; ++k)
            if (op->inputs[k] != BERTH_NONE) r->last_use[r->root[op->inputs[k]]] = i;
    }
    for (uint32_t i = 0; i < region->results.count; ++i) {
        r->counts[r->root[region->results.data[i]]] = false;  // the caller's
        r->last_use[r->root[region->results.data[i]]] = r->op_count;
    }
}

static roller make_roller(berth_module *module, berth_func_id main) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *region = &graph->regions.data[0];
    berth_arena *arena = module->arena;
    uint32_t values = graph->values.count, count = region->ops.count;
    roller r = {.module = module,
                .graph = graph,
                .ops = region->ops.data,
                .op_count = count,
                .stages = berth_arena_new_array(arena, berth_row_stage *, count + 1),
                .made = berth_arena_new_array(arena, uint32_t, values + 1),
                .last_use = berth_arena_new_array(arena, uint32_t, values + 1),
                .root = berth_arena_new_array(arena, berth_value_id, values + 1),
                .counts = berth_arena_new_array(arena, bool, values + 1),
                .in_place = berth_arena_new_array(arena, int64_t, count + 1)};
    memset(r.made, 0xff, values * sizeof(*r.made));
    memset(r.last_use, 0xff, values * sizeof(*r.last_use));
    for (uint32_t v = 0; v < values; ++v) r.root[v] = v;
    find_uses(&r);
    for (uint32_t i = 0; i < count; ++i) find_stage(&r, i);
    for (uint32_t i = 0; i < count; ++i) r.in_place[i] = in_place_bytes(&r, i);
    return r;
}

// ---- a chain ------------------------------------------------------------------------------------

static bool is_inside(const roller *r, const candidate *c, berth_value_id value) {
    return r->made[value] != BERTH_NONE && r->made[value] >= c->first && r->made[value] <= c->last;
}

static berth_roll_stage *stage_of(berth_roll_chain *chain, berth_op_id op) {
    for (uint32_t i = 0; i < chain->count; ++i)
        if (chain->stages[i].op == op) return &chain->stages[i];
    return NULL;
}

// Rows of an operand that is made in the chain: from when on they are there.
static bool follow(const roller *r, berth_roll_chain *chain, berth_roll_stage *s,
                   const berth_row_reads *reads, berth_value_id operand) {
    const berth_roll_stage *from = stage_of(chain, r->graph->values.data[operand].op);
    if (!from || !reads->by_rows) return false;
    int64_t period = from->period * reads->step, delay = from->delay + from->period * reads->high;
    if (s->period && s->period != period) return false;
    s->period = period;
    if (delay > s->delay) s->delay = delay;
    return true;
}

// When it begins: after its operands, of which one at least is cut in rows.
static bool place_stage(const roller *r, const candidate *c, berth_roll_chain *chain,
                        uint32_t place) {
    const berth_op *op = op_at(r, place);
    berth_roll_stage s = {
        .op = r->ops[place], .function = rows_form_of(r, op), .stage = r->stages[place]};
    int64_t outside = 1;  // rows of an operand from outside that are passed in a turn
    if (!s.stage) return false;
    for (uint32_t i = 0; i < op->input_count; ++i) {
        const berth_row_reads *reads = &s.stage->reads[i];
        if (is_inside(r, c, op->inputs[i])) {
            if (op_at(r, r->made[op->inputs[i]])->kind == BERTH_OP_CONSTANT) continue;
            if (!follow(r, chain, &s, reads, op->inputs[i])) return false;
        } else if (reads->by_rows && r->counts[r->root[op->inputs[i]]])
            outside = reads->step;
    }
    if (!s.period) s.period = outside;
    chain->stages[chain->count++] = s;
    return true;
}

// Rows that a value's readers may still need when they run.
static int64_t ring_rows(const roller *r, berth_roll_chain *chain, berth_value_id value) {
    const berth_roll_stage *from = stage_of(chain, r->graph->values.data[value].op);
    int64_t rows = 1, height = type_of(r, value)->dims[BERTH_ROW_DIM];
    for (uint32_t i = 0; i < chain->count; ++i) {
        const berth_roll_stage *s = &chain->stages[i];
        const berth_op *op = &r->graph->ops.data[s->op];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            if (op->inputs[k] != value) continue;
            int64_t ahead = berth_floor_div(s->delay - from->delay, from->period);
            int64_t needed = ahead - s->stage->reads[k].low + 1;
            if (needed > rows) rows = needed;
        }
    }
    return rows < height ? rows : height;
}

// A value of the chain is used in it alone, or outside alone.
static bool is_closed(const roller *r, const candidate *c, berth_roll_chain *chain) {
    for (uint32_t i = c->first; i <= c->last; ++i) {
        const berth_op *op = op_at(r, i);
        if (op->kind == BERTH_OP_CONSTANT) continue;
        for (uint32_t k = 0; k < op->output_count; ++k) {
            berth_value_id value = op->outputs[k];
            bool inside = false;
            for (uint32_t j = c->first; j <= c->last; ++j)
                for (uint32_t m = 0; m < op_at(r, j)->input_count; ++m)
                    inside |= op_at(r, j)->inputs[m] == value;
            chain->ring_rows[value] = 0;
            if (!inside) continue;
            if (r->last_use[value] > c->last) return false;
            chain->ring_rows[value] = ring_rows(r, chain, value);
        }
    }
    return true;
}

static int64_t ring_bytes(const roller *r, const berth_roll_chain *chain, berth_value_id value) {
    return bytes_of(r, value) / type_of(r, value)->dims[BERTH_ROW_DIM] * chain->ring_rows[value];
}

// ---- the peak -----------------------------------------------------------------------------------

// The largest sum of values that are live at once; `c` NULL = without a chain.
static uint64_t peak_of(const roller *r, const candidate *c, const berth_roll_chain *chain) {
    int64_t live = 0, peak = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < r->op_count; i = next) {
        bool rolled = c && i == c->first;
        int64_t own = 0, ended = 0;
        next = rolled ? c->last + 1 : i + 1;
        for (uint32_t k = i; k < next; ++k) {
            const berth_op *op = op_at(r, k);
            for (uint32_t m = 0; m < op->output_count; ++m) {
                berth_value_id value = op->outputs[m];
                if (!r->counts[value]) continue;
                bool ring = rolled && chain->ring_rows[value];
                own += ring ? ring_bytes(r, chain, value) : bytes_of(r, value);
                if (ring || r->last_use[value] == BERTH_NONE)
                    ended += ring ? ring_bytes(r, chain, value) : bytes_of(r, value);
            }
            for (uint32_t m = 0; m < op->input_count; ++m) {
                berth_value_id value = op->inputs[m] == BERTH_NONE ? 0 : r->root[op->inputs[m]];
                bool last = op->inputs[m] != BERTH_NONE && r->counts[value] &&
                            r->last_use[value] == k && !(rolled && chain->ring_rows[value]);
                for (uint32_t n = 0; n < m; ++n)
                    last &= op->inputs[n] == BERTH_NONE || r->root[op->inputs[n]] != value;
                if (last) ended += bytes_of(r, value);
            }
        }
        live += own;
        int64_t now = live - (rolled ? 0 : r->in_place[i]);
        if (now > peak) peak = now;
        live -= ended;
    }
    return (uint64_t)peak;
}

// ---- the pass -----------------------------------------------------------------------------------

// Whether operations [first, last] are a chain, with its times and rings.
static bool make_chain(const roller *r, const candidate *c, berth_roll_chain *chain) {
    chain->count = 0;
    for (uint32_t i = c->first; i <= c->last; ++i) {
        if (op_at(r, i)->kind == BERTH_OP_CONSTANT) continue;
        if (chain->count == most_stages || !place_stage(r, c, chain, i)) return false;
    }
    return chain->count > 1 && op_at(r, c->last)->kind != BERTH_OP_CONSTANT;
}

static bool find_best(const roller *r, berth_roll_chain *chain, candidate *best) {
    uint64_t least = peak_of(r, NULL, NULL);
    uint32_t least_stages = 0;
    for (uint32_t first = 0; first < r->op_count; ++first) {
        if (!r->stages[first]) continue;
        uint32_t stages = 1;
        for (uint32_t last = first + 1; last < r->op_count && stages < most_stages; ++last) {
            candidate c = {.first = first, .last = last};
            if (op_at(r, last)->kind == BERTH_OP_CONSTANT) continue;
            ++stages;
            if (!make_chain(r, &c, chain)) break;
            if (!is_closed(r, &c, chain)) continue;
            c.peak_bytes = peak_of(r, &c, chain);
            if (c.peak_bytes > least || (c.peak_bytes == least && stages >= least_stages)) continue;
            least = c.peak_bytes;
            least_stages = stages;
            *best = c;
        }
    }
    return least_stages > 0;
}

static void describe(const roller *r, const berth_roll_chain *chain, berth_rolled *out) {
    berth_op_id *ops = berth_arena_new_array(r->module->arena, berth_op_id, chain->count);
    for (uint32_t i = 0; i < chain->count; ++i) {
        const berth_op *op = &r->graph->ops.data[chain->stages[i].op];
        ops[i] = chain->stages[i].op;
        for (uint32_t k = 0; k < op->output_count; ++k) {
            if (!chain->ring_rows[op->outputs[k]]) continue;
            out->ring_bytes += (uint64_t)ring_bytes(r, chain, op->outputs[k]);
            out->unrolled_bytes += (uint64_t)bytes_of(r, op->outputs[k]);
        }
    }
    out->ops = ops;
    out->stage_count = chain->count;
}

static void remove_forms(berth_module *module) {
    for (berth_func_id f = 0; f < module->functions.count; ++f) {
        berth_attrs *attrs = &berth_module_function(module, f)->attrs;
        const berth_attr *form = berth_attrs_find(module, attrs, BERTH_ATTR_ROWS_FORM);
        if (!form) continue;
        berth_module_function(module, form->function)->removed = true;
        berth_attrs_remove(module, attrs, BERTH_ATTR_ROWS_FORM);
    }
}

static void roll_best(berth_module *module, berth_func_id main, berth_rolled *out_rolled) {
    roller r = make_roller(module, main);
    candidate best = {0};
    berth_roll_chain chain = {
        .stages = berth_arena_new_array(module->arena, berth_roll_stage, most_stages),
        .ring_rows = berth_arena_new_array(module->arena, int64_t, r.graph->values.count + 1)};
    if (!find_best(&r, &chain, &best)) return;
    memset(chain.ring_rows, 0, r.graph->values.count * sizeof(*chain.ring_rows));
    if (!make_chain(&r, &best, &chain) || !is_closed(&r, &best, &chain)) return;
    describe(&r, &chain, out_rolled);
    berth_roll__build(module, main, &chain);
}

void berth_pass_roll_rows(berth_module *module, berth_func_id main, berth_rolled *out_rolled) {
    *out_rolled = (berth_rolled){0};
    roll_best(module, main, out_rolled);
    remove_forms(module);
}
