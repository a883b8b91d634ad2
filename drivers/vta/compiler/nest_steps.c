// What the instructions of a scheduled nest are (schedule_steps.c makes them): of a register of
// accumulators, its reset, a reduction by the matrix unit or several, and steps of the ALU; then its
// results are stored. Nothing else is understood, arithmetic least of all.
#include "drivers/vta/compiler/compiler.h"
#include "drivers/vta/compiler/reader.h"

enum { doublings_of_digit = 7, most_shift = 15 };

typedef struct steps_reader {
    berth_vta_reader r;
    berth_buf copy;  // BERTH_NONE: there is none
    bool reduced;    // a reduction was there
} steps_reader;

static bool is_do(const steps_reader *s, berth_expr id, berth_vta_do which) {
    const berth_expr_node *e = berth_vta__expr(&s->r, id);
    return e->kind == BERTH_EXPR_INTRINSIC &&
           berth_vta_intrinsic_is((berth_intrinsic)e->op, which, s->r.block);
}

// 0, 1, ... of a register.
static bool is_whole(const steps_reader *s, berth_expr index) {
    const berth_expr_node *e = berth_vta__expr(&s->r, index);
    int64_t first = 1;
    return e->kind == BERTH_EXPR_RAMP && e->lanes == s->r.block &&
           berth_tfn_const_value(s->r.fn, e->a, &first) && first == 0;
}

// The load of a whole register. BERTH_NONE: it is something else.
static berth_buf register_of(const steps_reader *s, berth_expr id) {
    const berth_expr_node *e = berth_vta__expr(&s->r, id);
    if (e->kind != BERTH_EXPR_LOAD || e->index_count != 1 ||
        !is_whole(s, berth_tfn_load_indices(s->r.fn, id)[0]))
        return BERTH_NONE;
    bool known = e->load.buf == s->r.acc || e->load.buf == s->copy;
    return known ? e->load.buf : BERTH_NONE;
}

static bool whole_number(const steps_reader *s, berth_expr id, int32_t *out) {
    double value = 0;
    if (!berth_vta__constant(&s->r, id, &value) || value < INT32_MIN || value > INT32_MAX ||
        value != (double)(int32_t)value)
        return false;
    *out = (int32_t)value;
    return true;
}

// ---- steps of the ALU ---------------------------------------------------------------------------

// bias[o], or vta_add(bias[o], number).
static bool read_bias(steps_reader *s, berth_expr id) {
    berth_vta_nest *n = s->r.out;
    berth_vta_affine at, result;
    int32_t added = 0;
    if (is_do(s, id, BERTH_VTA_DO_ADD)) {
        if (!whole_number(s, berth_vta__expr(&s->r, id)->b, &added)) return false;
        id = berth_vta__expr(&s->r, id)->a;
    }
    const berth_expr_node *e = berth_vta__expr(&s->r, id);
    if (e->kind != BERTH_EXPR_LOAD || n->bias != BERTH_NONE || n->form != BERTH_VTA_PRODUCTS ||
        added < INT16_MIN || added > INT16_MAX)
        return false;
    const berth_buf_info *held = &s->r.fn->bufs.data[e->load.buf];
    n->bias = e->load.buf;
    n->steps.added_to_bias = added;
    return held->dtype == BERTH_DTYPE_I32 && held->rank == 1 && held->scope == BERTH_SCOPE_PARAM &&
           berth_vta__index_of(&s->r, id, 0, &at) && berth_vta__result_index(&s->r, 1, &result) &&
           berth_vta__same(&s->r, &at, &result);
}

static bool read_operand(steps_reader *s, berth_expr id, berth_vta_step *step) {
    berth_buf from = register_of(s, id);
    bool shift = step->code == BERTH_VTA_SHR;
    if (whole_number(s, id, &step->number)) {
        step->by = BERTH_VTA_BY_NUMBER;
        return !shift || (step->number >= 0 && step->number <= most_shift);
    }
    step->by = from == s->r.acc ? BERTH_VTA_BY_RESULTS : BERTH_VTA_BY_COPY;
    if (from == BERTH_NONE) {
        step->by = BERTH_VTA_BY_BIAS;
        return step->code == BERTH_VTA_ADD && !step->to_copy && read_bias(s, id);
    }
    return !shift;
}

static berth_status read_step(steps_reader *s, const berth_stmt_node *store) {
    static const struct {
        berth_vta_do which;
        uint8_t code;
    } codes[] = {{BERTH_VTA_DO_ADD, BERTH_VTA_ADD},
                 {BERTH_VTA_DO_MAX, BERTH_VTA_MAX},
                 {BERTH_VTA_DO_MIN, BERTH_VTA_MIN},
                 {BERTH_VTA_DO_SHR, BERTH_VTA_SHR}};
    berth_vta_step step = {.to_copy = store->buf == s->copy};
    const berth_expr_node *e = berth_vta__expr(&s->r, store->value);
    int32_t zero = 1;
    if (whole_number(s, store->value, &zero)) {
        if (zero || !step.to_copy) return berth_vta__refuse("a reset that is none of its");
        step.resets = true;
    } else {
        size_t i = 0, count = sizeof(codes) / sizeof(codes[0]);
        while (i < count && !is_do(s, store->value, codes[i].which)) i++;
        if (i == count || register_of(s, e->a) != store->buf)
            return berth_vta__refuse("arithmetic that is no instruction of its");
        step.code = codes[i].code;
        if (!read_operand(s, e->b, &step))
            return berth_vta__refuse("an operand of its ALU of this form");
    }
    return berth_vta_steps_add(&s->r.out->steps, step)
               ? BERTH_OK
               : berth_vta__refuse("so many operations of its ALU");
}

// ---- reductions ---------------------------------------------------------------------------------

static bool same_window(const berth_vta_nest *a, const berth_vta_nest *b) {
    return a->form == b->form && a->images == b->images && a->in_channels == b->in_channels &&
           a->height == b->height && a->width == b->width && a->kernel_h == b->kernel_h &&
           a->kernel_w == b->kernel_w && a->stride_h == b->stride_h && a->stride_w == b->stride_w &&
           a->pad_h == b->pad_h && a->pad_w == b->pad_w && a->dilation_h == b->dilation_h &&
           a->dilation_w == b->dilation_w && !a->part_count && !b->part_count;
}

static berth_status read_products(berth_vta_reader *r, berth_expr value) {
    berth_expr a = 0, b = 0, x = 0;
    int loops[3];
    r->own = false;
    r->out->form = BERTH_VTA_PRODUCTS;
    BERTH_TRY(berth_vta__take_product(r, value, &a, &b));
    if (!berth_vta__padded_load(r, a, 0, &x) || berth_vta__expr(r, b)->dtype != BERTH_DTYPE_I8)
        return berth_vta__refuse("operands of its matrix unit of this form");
    r->out->weights = berth_vta__expr(r, b)->load.buf;
    BERTH_TRY(berth_vta__read_window(r, x, loops));
    return berth_vta__weights_fit(r, b, loops) ? BERTH_OK
                                               : berth_vta__refuse("weights that are read so");
}

// What the matrix unit takes over, times a factor, from a window or an element.
static berth_status read_diagonal(berth_vta_reader *r, berth_expr value, double fill) {
    const berth_expr_node *e = berth_vta__expr(r, value);
    berth_vta_steps *steps = &r->out->steps;
    berth_expr x = 0;
    double factor = 0;
    if (!berth_vta__constant(r, e->c, &factor) || factor < 0 || factor > 127 ||
        factor != (double)(int)factor || steps->factor_count == BERTH_VTA_MOST_DIGITS)
        return berth_vta__refuse("a factor that is no whole number from 0 to 127");
    steps->factors[steps->factor_count++] = (uint32_t)factor;
    r->terms[0] = e->b;
    r->term_count = 1;
    bool element = r->count == r->outer && r->out->form == BERTH_VTA_SUMS;
    if (element && berth_vta__expr(r, e->b)->kind != BERTH_EXPR_SELECT &&
        berth_vta__read_slice(r, e->b))
        return BERTH_OK;
    r->out->first_channel = 0;
    if (berth_vta__padded_load(r, e->b, fill, &x)) return berth_vta__read_own_window(r, x);
    return element ? berth_vta__read_parts(r) : berth_vta__refuse("a window of this form");
}

// A second input, or the next digit of the factor: what came before was doubled seven times.
static berth_status join(steps_reader *s, const berth_vta_nest *next) {
    berth_vta_nest *n = s->r.out;
    uint32_t steps = n->steps.count;
    for (uint32_t i = 0; i < steps; ++i) {
        const berth_vta_step *step = &n->steps.steps[i];
        if (step->to_copy || step->resets || step->code != BERTH_VTA_ADD ||
            step->by != BERTH_VTA_BY_RESULTS)
            return berth_vta__refuse("a reduction after other operations");
    }
    bool digit = steps == doublings_of_digit && next->input == n->input && n->second == BERTH_NONE;
    bool source = steps == 0 && n->second == BERTH_NONE && n->steps.digits == 1 &&
                  n->in_channels == n->out_channels && n->height == n->out_height &&
                  n->width == n->out_width && n->kernel_h == 1 && n->kernel_w == 1;
    if (!same_window(n, next) || n->form != BERTH_VTA_SUMS || (!digit && !source))
        return berth_vta__refuse("several reductions");
    if (digit)
        n->steps.digits++;
    else
        n->second = next->input;
    n->steps.factors[n->steps.factor_count++] = next->steps.factors[0];
    n->steps.count = 0;
    return BERTH_OK;
}

static berth_status read_reduction(steps_reader *s, const berth_vta_reader *inside,
                                   berth_expr value) {
    berth_vta_reader r = *inside;
    berth_vta_nest next = *s->r.out;
    const berth_expr_node *e = berth_vta__expr(&r, value);
    bool maxima = is_do(s, value, BERTH_VTA_DO_MAX);
    double zero = 1;
    if (s->reduced) next.steps = (berth_vta_steps){.digits = 1};
    r.out = &next;
    if (is_do(s, value, BERTH_VTA_DO_GEMM)) {
        BERTH_TRY(read_products(&r, value));
    } else {
        next.form = maxima ? BERTH_VTA_MAXIMA : BERTH_VTA_SUMS;
        berth_expr taken = maxima ? e->b : value;
        if (register_of(s, e->a) != s->r.acc || !is_do(s, taken, BERTH_VTA_DO_DIAGONAL) ||
            (maxima &&
             (!berth_vta__constant(&r, berth_vta__expr(&r, taken)->a, &zero) || zero != 0)))
            return berth_vta__refuse("a reduction of this form");
        BERTH_TRY(read_diagonal(&r, taken, maxima ? INT8_MIN : 0));
        if (maxima && next.steps.factors[0] != 1)
            return berth_vta__refuse("a maximum with a scale");
    }
    if (s->reduced) return join(s, &next);
    *s->r.out = next;
    s->reduced = true;
    return BERTH_OK;
}

// ---- statements ---------------------------------------------------------------------------------

// A sequence of one statement is that.
static berth_stmt alone(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *t = berth_tfn_stmt(fn, id);
    return t->kind == BERTH_STMT_SEQ && t->count == 1 ? berth_tfn_seq_items(fn, id)[0] : id;
}

static bool is_reduction(const steps_reader *s, berth_expr value) {
    const berth_expr_node *e = berth_vta__expr(&s->r, value);
    return is_do(s, value, BERTH_VTA_DO_GEMM) || is_do(s, value, BERTH_VTA_DO_DIAGONAL) ||
           (is_do(s, value, BERTH_VTA_DO_MAX) && is_do(s, e->b, BERTH_VTA_DO_DIAGONAL));
}

static berth_status read_item(steps_reader *s, berth_stmt id) {
    berth_vta_reader inside = s->r;
    const berth_stmt_node *t = berth_tfn_stmt(s->r.fn, id);
    for (; t->kind == BERTH_STMT_FOR; t = berth_tfn_stmt(s->r.fn, alone(s->r.fn, t->body)))
        BERTH_TRY(berth_vta__open_loop(&inside, t));
    if (t->kind != BERTH_STMT_STORE || (t->buf != s->r.acc && t->buf != s->copy) ||
        !is_whole(s, s->r.fn->lists.data[t->first]))
        return berth_vta__refuse("a statement that is no instruction of its");
    if (t->buf == s->r.acc && is_reduction(s, t->value))
        return read_reduction(s, &inside, t->value);
    if (inside.count > s->r.count || !s->reduced)
        return berth_vta__refuse("operations of its ALU before or within a reduction");
    return read_step(s, t);
}

// The registers of the block, from `items` on; how many statements that are.
static uint32_t read_registers(steps_reader *s, const berth_stmt *items, uint32_t count) {
    uint32_t at = 0;
    for (; at < count && at < 2; ++at) {
        const berth_stmt_node *t = berth_tfn_stmt(s->r.fn, items[at]);
        if (t->kind != BERTH_STMT_ALLOC) break;
        const berth_buf_info *info = &s->r.fn->bufs.data[t->buf];
        if (info->rank != 1 || info->dtype != BERTH_DTYPE_I32) return 0;
        if (at == 0) s->r.block = info->dims[0];
        if (info->dims[0] != s->r.block) return 0;
        *(at ? &s->copy : &s->r.acc) = t->buf;
    }
    return at;
}

// for i in block { acc[i] = first }, and for oc in block { y[..] = i8(acc[oc]), or 0 in lanes that fill up }
static berth_status read_ends(steps_reader *s, berth_stmt init, berth_stmt result,
                              int32_t *out_first) {
    const berth_stmt_node *first = berth_tfn_stmt(s->r.fn, init);
    const berth_stmt_node *last = berth_tfn_stmt(s->r.fn, result);
    if (first->kind != BERTH_STMT_FOR || last->kind != BERTH_STMT_FOR)
        return berth_vta__refuse("a block of this form");
    s->r.lane = s->r.count;
    BERTH_TRY(berth_vta__open_loop(&s->r, last));
    s->r.outer = s->r.count;
    s->r.result = alone(s->r.fn, last->body);
    first = berth_tfn_stmt(s->r.fn, alone(s->r.fn, first->body));
    last = berth_tfn_stmt(s->r.fn, s->r.result);
    if (s->r.loops[s->r.lane].extent != s->r.block || first->kind != BERTH_STMT_STORE ||
        first->buf != s->r.acc || !whole_number(s, first->value, out_first) ||
        last->kind != BERTH_STMT_STORE || last->index_count != 4)
        return berth_vta__refuse("a block of this form");
    s->r.out->output = last->buf;
    const berth_expr_node *e = berth_vta__expr(&s->r, berth_vta__without_fill(&s->r, last->value));
    if (e->kind != BERTH_EXPR_CAST || e->dtype != BERTH_DTYPE_I8)
        return berth_vta__refuse("results that are no accumulators of 8 bits");
    berth_vta_affine at;
    berth_expr load = e->a;
    e = berth_vta__expr(&s->r, load);
    if (e->kind != BERTH_EXPR_LOAD || e->load.buf != s->r.acc ||
        !berth_vta__linear(&s->r, berth_tfn_load_indices(s->r.fn, load)[0], &at) ||
        at.by[s->r.lane] != 1 || at.constant)
        return berth_vta__refuse("results that are no accumulators of 8 bits");
    return BERTH_OK;
}

// What fills up blocks is 0 in the sums, and must be 0 in the results.
static bool keeps_zero(const berth_vta_steps *list) {
    int64_t value[2] = {0};  // results, copy
    for (uint32_t i = 0; i < list->count; ++i) {
        const berth_vta_step *s = &list->steps[i];
        int64_t by = s->by == BERTH_VTA_BY_NUMBER    ? s->number
                     : s->by == BERTH_VTA_BY_BIAS    ? list->added_to_bias
                     : s->by == BERTH_VTA_BY_RESULTS ? value[0]
                                                     : value[1];
        int64_t *to = &value[s->to_copy];
        if (s->resets)
            *to = 0;
        else if (s->code == BERTH_VTA_ADD)
            *to += by;
        else if (s->code == BERTH_VTA_SHR)
            *to = *to >= 0 ? *to >> by : -((-*to - 1) >> by) - 1;
        else if ((s->code == BERTH_VTA_MAX) == (by > *to))
            *to = by;
    }
    return value[0] == 0;
}

berth_status berth_vta_nest_read_scheduled(const berth_tfn *fn, berth_stmt nest,
                                           berth_vta_nest *out_nest) {
    steps_reader s = {.r = {.fn = fn, .out = out_nest, .own = true}, .copy = BERTH_NONE};
    *out_nest = (berth_vta_nest){.weights = BERTH_NONE,
                                 .bias = BERTH_NONE,
                                 .second = BERTH_NONE,
                                 .low = INT8_MIN,
                                 .high = INT8_MAX,
                                 .has_steps = true,
                                 .steps = {.digits = 1}};
    const berth_stmt_node *t = berth_tfn_stmt(fn, nest);
    for (; t->kind == BERTH_STMT_FOR; nest = t->body, t = berth_tfn_stmt(fn, nest))
        BERTH_TRY(berth_vta__open_loop(&s.r, t));
    if (t->kind != BERTH_STMT_SEQ) return berth_vta__refuse("a nest that is not scheduled for one");
    const berth_stmt *items = berth_tfn_seq_items(fn, nest);
    uint32_t count = t->count, at = read_registers(&s, items, count);
    int32_t first = 0;
    if (at == 0 || count < at + 3) return berth_vta__refuse("a nest that is not scheduled for one");
    BERTH_TRY(read_ends(&s, items[at], items[count - 1], &first));
    for (uint32_t i = at + 1; i + 1 < count; ++i) BERTH_TRY(read_item(&s, items[i]));
    if (!s.reduced || first != (out_nest->form == BERTH_VTA_MAXIMA ? INT8_MIN : 0))
        return berth_vta__refuse("a block of this form");
    if (out_nest->form == BERTH_VTA_MAXIMA && out_nest->steps.has_copy)
        return berth_vta__refuse("a maximum with such operations after it");
    if (!keeps_zero(&out_nest->steps))
        return berth_vta__refuse("results other than 0 in lanes that fill up blocks");
    return BERTH_OK;
}
