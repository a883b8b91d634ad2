// A nest's result as instructions: what it means is read (nest.h), the steps that compute that exactly
// are found (berth_vta_conv_find_steps, where the proof is), and stand in the function instead of its
// arithmetic.
//
//   y[..oc_i..] = max(i8(round(f32(sums[oc_i] + bias) / 4)), 0)
//   ->  sums = vta_add_16(sums, vta_add_16(bias, 2)); copy = 0; copy = vta_add_16(copy, sums)
//       copy = vta_add_16(copy, 3); copy = vta_shr_16(copy, 3); sums = vta_shr_16(sums, 3)
//       sums = vta_add_16(sums, copy); sums = vta_min_16(sums, 127); sums = vta_max_16(sums, 0)
//       for oc_i in 16 { y[..oc_i..] = i8(sums[oc_i]) }
//
// It holds where 32 bits hold the sums and what is added to them; the rules of the kind, which know the
// bias, place nothing else on a VTA (rules.c). Between f32 and the integers there is no difference there:
// up to 2^24 f32 has all of them, and what is larger is out of bounds after a shift by 14 at most.
#include "drivers/vta/compiler/schedule_steps.h"

#include "compiler/schedule/decisions.h"
#include "drivers/vta/compiler/compiler.h"

enum { most_items = 80, doublings_of_digit = 7 };

typedef struct builder {
    const berth_vta_block *b;
    const berth_vta_nest *nest;
    berth_vta_steps steps;
    berth_stmt items[most_items];
    uint32_t count;
    berth_expr at;  // all of a register
    berth_buf sums, copy;
    bool failed;
} builder;

static berth_tfn *fn_of(const builder *s) {
    return s->b->fn;
}

static berth_expr numbers(const builder *s, berth_dtype dtype, int64_t value) {
    return berth_tfn_broadcast(fn_of(s), berth_tfn_int(fn_of(s), dtype, value),
                               (uint16_t)s->b->block);
}

static berth_expr load(const builder *s, berth_buf buf) {
    return berth_tfn_load(fn_of(s), buf, &s->at, 1);
}

static void add(builder *s, berth_stmt item) {
    if (s->count == most_items)
        s->failed = true;
    else
        s->items[s->count++] = item;
}

static void set(builder *s, berth_buf buf, berth_expr value) {
    add(s, berth_tfn_store(fn_of(s), buf, &s->at, 1, value));
}

static berth_expr call(const builder *s, berth_vta_do which, berth_expr a, berth_expr b,
                       berth_expr c) {
    return berth_tfn_intrinsic(fn_of(s), berth_vta_intrinsic_of(which, s->b->block), a, b, c);
}

// ---- operands -----------------------------------------------------------------------------------

static berth_expr without_lane(const builder *s, berth_expr id) {
    return berth_replace_var(fn_of(s), id, s->b->lane.var, berth_tfn_index(fn_of(s), 0));
}

// The elements that a load has for the lanes of a block: channels, one after the other. 0: they lie
// otherwise.
static berth_expr block_of_load(builder *s, berth_expr id) {
    berth_tfn *fn = fn_of(s);
    const berth_expr_node node = *berth_tfn_expr(fn, id);
    berth_expr indices[BERTH_MAX_RANK];
    if (node.dtype != BERTH_DTYPE_I8 || node.index_count != 4) return 0;
    for (int i = 0; i < node.index_count; ++i) {
        indices[i] = berth_tfn_load_indices(fn, id)[i];
        bool uses = berth_tfn_uses_var(fn, indices[i], s->b->lane.var);
        if (uses != (i == 1)) return 0;
    }
    // That lanes count by one is checked where instructions are read (berth_vta_nest_read_scheduled).
    indices[1] = berth_tfn_ramp(fn, without_lane(s, indices[1]), (uint16_t)s->b->block);
    return berth_tfn_load(fn, node.load.buf, indices, node.index_count);
}

static bool number_of(const berth_tfn *fn, berth_expr id, int64_t *out) {
    const berth_expr_node *e = berth_tfn_expr(fn, id);
    return e->kind == BERTH_EXPR_CAST ? number_of(fn, e->a, out)
                                      : berth_tfn_const_value(fn, id, out);
}

// The bytes of a block that a term is: casts and zero points of 0 around them go. Whatever a condition
// says it says of the whole block. 0: they lie otherwise.
static berth_expr block_of(builder *s, berth_expr id) {
    berth_tfn *fn = fn_of(s);
    const berth_expr_node e = *berth_tfn_expr(fn, id);
    int64_t number = 0;
    if (number_of(fn, id, &number)) return numbers(s, BERTH_DTYPE_I8, number);
    if (e.kind == BERTH_EXPR_LOAD) return block_of_load(s, id);
    if (e.kind == BERTH_EXPR_CAST) return block_of(s, e.a);
    if (e.kind == BERTH_EXPR_BINARY && e.op == BERTH_BINARY_SUB && number_of(fn, e.b, &number))
        return number == 0 ? block_of(s, e.a) : 0;
    if (e.kind != BERTH_EXPR_SELECT) return 0;
    berth_expr value = block_of(s, e.b), other = value ? block_of(s, e.c) : 0;
    return other ? berth_tfn_select(fn, without_lane(s, e.a), value, other) : 0;
}

// ---- sums and maxima ----------------------------------------------------------------------------

// One reduction, over loops of its own, of a term times a factor.
static void reduce(builder *s, berth_expr term, uint32_t factor) {
    berth_tfn *fn = fn_of(s);
    berth_nest loops = s->b->reduction;
    berth_expr x = block_of(s, term), by = berth_tfn_int(fn, BERTH_DTYPE_I8, factor);
    if (!x) {
        s->failed = true;
        return;
    }
    for (int i = 0; i < loops.count; ++i) {
        berth_var var = berth_tfn_var(fn, i == 0 && loops.count > 1 ? "kh" : "kw");
        x = berth_replace_var(fn, x, loops.loops[i].var, berth_tfn_var_ref(fn, var));
        loops.loops[i].var = var;
    }
    berth_expr sums = load(s, s->sums), value = 0;
    if (s->nest->form == BERTH_VTA_MAXIMA) {
        berth_expr taken = call(s, BERTH_VTA_DO_DIAGONAL, numbers(s, BERTH_DTYPE_I32, 0), x, by);
        value = call(s, BERTH_VTA_DO_MAX, sums, taken, 0);
    } else {
        value = call(s, BERTH_VTA_DO_DIAGONAL, sums, x, by);
    }
    loops.body = berth_tfn_store(fn, s->sums, &s->at, 1, value);
    add(s, loops.count ? berth_nest_emit(fn, &loops) : loops.body);
}

static void add_reductions(builder *s) {
    const berth_vta_steps *w = &s->steps;
    if (s->nest->form == BERTH_VTA_PRODUCTS) {
        add(s, s->b->products);
        return;
    }
    for (uint32_t f = 0; f < w->factor_count; ++f) {
        for (int i = 0; w->digits > 1 && f > 0 && i < doublings_of_digit; ++i)
            set(s, s->sums, call(s, BERTH_VTA_DO_ADD, load(s, s->sums), load(s, s->sums), 0));
        reduce(s, s->nest->terms[s->nest->term_count == 2 ? f : 0], w->factors[f]);
    }
}

// ---- steps --------------------------------------------------------------------------------------

// Biases of the block: where its results' channels are.
static berth_expr bias_of(builder *s) {
    berth_tfn *fn = fn_of(s);
    berth_expr channel = without_lane(s, berth_tfn_store_indices(fn, s->b->result)[1]);
    berth_expr at = berth_tfn_ramp(fn, channel, (uint16_t)s->b->block);
    berth_expr bias = berth_tfn_load(fn, s->nest->bias, &at, 1);
    int32_t added = s->steps.added_to_bias;
    return added ? call(s, BERTH_VTA_DO_ADD, bias, numbers(s, BERTH_DTYPE_I32, added), 0) : bias;
}

static void add_step(builder *s, const berth_vta_step *step) {
    static const berth_vta_do instructions[] = {[BERTH_VTA_MIN] = BERTH_VTA_DO_MIN,
                                                [BERTH_VTA_MAX] = BERTH_VTA_DO_MAX,
                                                [BERTH_VTA_ADD] = BERTH_VTA_DO_ADD,
                                                [BERTH_VTA_SHR] = BERTH_VTA_DO_SHR};
    berth_buf to = step->to_copy ? s->copy : s->sums;
    berth_expr operand = 0;
    if (step->resets) {
        set(s, to, numbers(s, BERTH_DTYPE_I32, 0));
        return;
    }
    switch ((berth_vta_operand)step->by) {
    case BERTH_VTA_BY_NUMBER: operand = numbers(s, BERTH_DTYPE_I32, step->number); break;
    case BERTH_VTA_BY_BIAS: operand = bias_of(s); break;
    case BERTH_VTA_BY_RESULTS: operand = load(s, s->sums); break;
    case BERTH_VTA_BY_COPY: operand = load(s, s->copy); break;
    }
    set(s, to, call(s, instructions[step->code], load(s, to), operand, 0));
}

// Results as they are stored, 0 in lanes that fill up the last block.
static berth_stmt store_results(builder *s) {
    berth_tfn *fn = fn_of(s);
    const berth_stmt_node store = *berth_tfn_stmt(fn, s->b->result);
    berth_expr indices[BERTH_MAX_RANK], lane = berth_tfn_var_ref(fn, s->b->lane.var);
    for (int i = 0; i < store.index_count; ++i)
        indices[i] = berth_tfn_store_indices(fn, s->b->result)[i];
    berth_expr value = berth_tfn_cast(fn, BERTH_DTYPE_I8, berth_tfn_load(fn, s->sums, &lane, 1));
    if (s->nest->within)
        value = berth_tfn_select(fn, s->nest->within, value, berth_tfn_int(fn, BERTH_DTYPE_I8, 0));
    berth_nest last = {.loops = {s->b->lane}, .count = 1};
    last.body = berth_tfn_store(fn, store.buf, indices, store.index_count, value);
    return berth_nest_emit(fn, &last);
}

static berth_stmt reset_sums(builder *s) {
    berth_tfn *fn = fn_of(s);
    berth_nest first = {.loops = {{berth_tfn_var(fn, "i"), s->b->block, BERTH_LOOP_SERIAL}},
                        .count = 1};
    berth_expr at = berth_tfn_var_ref(fn, first.loops[0].var);
    int64_t value = s->nest->form == BERTH_VTA_MAXIMA ? INT8_MIN : 0;
    first.body = berth_tfn_store(fn, s->sums, &at, 1, berth_tfn_int(fn, BERTH_DTYPE_I32, value));
    return berth_nest_emit(fn, &first);
}

static berth_status find_steps(const berth_vta_config *config, const berth_vta_nest *nest,
                               berth_vta_steps *out) {
    berth_vta_shape shape;
    berth_vta_conv conv;
    BERTH_TRY(berth_vta_shape_make(config, &shape));
    BERTH_TRY(berth_vta_conv_of(nest, config, &conv));
    return berth_vta_conv_find_steps(&shape, &conv, out);
}

berth_stmt berth_vta_schedule_steps(const berth_vta_block *block, const berth_vta_config *config,
                                    berth_stmt whole) {
    berth_tfn *fn = block->fn;
    berth_vta_nest nest;
    builder s = {.b = block, .nest = &nest};
    berth_status status = berth_vta_nest_read(fn, whole, &nest);
    if (!status) status = find_steps(config, &nest, &s.steps);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    s.at = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), (uint16_t)block->block);
    s.sums = block->sums;
    if (nest.form != BERTH_VTA_PRODUCTS)
        s.sums =
            berth_tfn_buffer(fn, "sums", BERTH_DTYPE_I32, 1, &block->block, BERTH_SCOPE_PRIVATE);
    add(&s, berth_tfn_alloc(fn, s.sums));
    if (s.steps.has_copy) {
        s.copy =
            berth_tfn_buffer(fn, "copy", BERTH_DTYPE_I32, 1, &block->block, BERTH_SCOPE_PRIVATE);
        add(&s, berth_tfn_alloc(fn, s.copy));
    }
    add(&s, reset_sums(&s));
    add_reductions(&s);
    for (uint32_t i = 0; i < s.steps.count; ++i) add_step(&s, &s.steps.steps[i]);
    add(&s, store_results(&s));
    if (s.failed) {
        berth_decisions_refuse(
            fn, berth_status_make(BERTH_UNSUPPORTED,
                                  "operands in no blocks of channels, or more than %d steps",
                                  most_items));
        return 0;
    }
    berth_nest outer = block->outer;
    outer.body = berth_tfn_seq(fn, s.items, s.count);
    berth_stmt made = berth_nest_emit(fn, &outer);
    status = berth_vta_nest_read_scheduled(fn, made, &nest);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    return made;
}
