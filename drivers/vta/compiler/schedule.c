// The schedule of a VTA: sums of products become calls of the matrix unit (intrinsics.c),
//
//   for oc_i in 16 { acc = 0; for ic.. { acc += x[..ic..] * w[oc_i,ic..] }; y[..oc_i..] = narrow(acc) }
//   ->  for i in 16 { sums[i] = 0 }
//       for ic_o.. { sums = vta_gemm_16(sums, x[..a block of ic..], w[a block of oc, a block of ic..]) }
//       for oc_i in 16 { y[..oc_i..] = narrow(sums[oc_i]) }
// and what is done to the sums, or all that a nest without products does, becomes instructions of the ALU
// (schedule_steps.c).
//
// All other loops stay as they were lowered: tiles, their order and copies to the buffers are those of
// the stream (emit/conv.h), which are chosen when the sizes of the buffers are known to hold them.
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/decisions.h"

#include "compiler/schedule/tensorize.h"
#include "drivers/vta/compiler/compiler.h"
#include "drivers/vta/compiler/schedule_steps.h"

typedef struct products {
    berth_tfn *fn;
    berth_intrinsic gemm;
    int64_t block;
    berth_nest_loop lane;  // the results of a block
    berth_buf acc;
    berth_nest sum;  // body: the store that adds a product
    berth_expr x, w, load_x, load_w;
    berth_stmt result;
    berth_status failed;  // of reading what the instruction does
} products;

static bool is_zero(const berth_tfn *fn, berth_expr id) {
    const berth_expr_node *e = berth_tfn_expr(fn, id);
    return e->kind == BERTH_EXPR_CAST ? is_zero(fn, e->a) : e->kind == BERTH_EXPR_INT && e->i == 0;
}

// acc = 0; the sum, a loop or one product; one result of it.
static bool read_body(products *p, berth_stmt body) {
    const berth_tfn *fn = p->fn;
    const berth_stmt_node *seq = berth_tfn_stmt(fn, body);
    if (seq->kind != BERTH_STMT_SEQ || seq->count != 4) return false;
    const berth_stmt *items = berth_tfn_seq_items(fn, body);
    const berth_stmt_node *alloc = berth_tfn_stmt(fn, items[0]);
    const berth_stmt_node *init = berth_tfn_stmt(fn, items[1]);
    if (alloc->kind != BERTH_STMT_ALLOC || init->kind != BERTH_STMT_STORE ||
        init->buf != alloc->buf || !is_zero(fn, init->value))
        return false;
    p->acc = alloc->buf;
    if (!berth_nest_parse(fn, items[2], &p->sum)) p->sum.body = items[2];
    p->result = items[3];
    const berth_stmt_node *update = berth_tfn_stmt(fn, p->sum.body);
    const berth_stmt_node *result = berth_tfn_stmt(fn, p->result);
    return fn->bufs.data[p->acc].rank == 0 && fn->bufs.data[p->acc].dtype == BERTH_DTYPE_I32 &&
           update->kind == BERTH_STMT_STORE && update->buf == p->acc &&
           result->kind == BERTH_STMT_STORE && result->buf != p->acc;
}

// The bytes that a factor of 32 bits is made of, zeros around them included; 0: something else.
static berth_expr bytes_of(berth_tfn *fn, berth_expr id, berth_expr *out_load) {
    const berth_expr_node e = *berth_tfn_expr(fn, id);
    if (e.kind == BERTH_EXPR_LOAD) *out_load = id;
    if (e.kind == BERTH_EXPR_LOAD) return e.dtype == BERTH_DTYPE_I8 ? id : 0;
    if (e.kind == BERTH_EXPR_CAST)
        return berth_dtype_is_integer(e.dtype) ? bytes_of(fn, e.a, out_load) : 0;
    if (e.kind == BERTH_EXPR_BINARY && e.op == BERTH_BINARY_SUB && is_zero(fn, e.b))
        return bytes_of(fn, e.a, out_load);
    if (e.kind != BERTH_EXPR_SELECT || !is_zero(fn, e.c)) return 0;
    berth_expr value = bytes_of(fn, e.b, out_load);
    return value ? berth_tfn_select(fn, e.a, value, berth_tfn_int(fn, BERTH_DTYPE_I8, 0)) : 0;
}

// acc + x * w, where w is what the results of a block differ in.
static bool read_product(products *p) {
    berth_tfn *fn = p->fn;
    berth_expr_node e = *berth_tfn_expr(fn, berth_tfn_stmt(fn, p->sum.body)->value);
    berth_expr acc = e.c;
    if (e.kind == BERTH_EXPR_BINARY && e.op == BERTH_BINARY_ADD) {
        bool first = berth_tfn_expr(fn, e.a)->kind == BERTH_EXPR_LOAD;
        acc = first ? e.a : e.b;
        e = *berth_tfn_expr(fn, first ? e.b : e.a);
        if (e.kind != BERTH_EXPR_BINARY || e.op != BERTH_BINARY_MUL) return false;
    } else if (e.kind != BERTH_EXPR_FMA) {
        return false;
    }
    const berth_expr_node *from = berth_tfn_expr(fn, acc);
    if (from->kind != BERTH_EXPR_LOAD || from->load.buf != p->acc) return false;
    bool second = berth_tfn_uses_var(fn, e.b, p->lane.var);
    p->x = bytes_of(fn, second ? e.a : e.b, &p->load_x);
    p->w = bytes_of(fn, second ? e.b : e.a, &p->load_w);
    return p->x && p->w && p->w == p->load_w;
}

typedef struct moved {
    berth_buf buf;
    berth_expr by;
} moved;

static berth_expr move_channel(berth_tfn *fn, berth_expr load, void *user) {
    const moved *m = user;
    const berth_expr_node node = *berth_tfn_expr(fn, load);
    if (node.load.buf != m->buf) return 0;
    berth_expr indices[BERTH_MAX_RANK];
    for (int i = 0; i < node.index_count; ++i) indices[i] = berth_tfn_load_indices(fn, load)[i];
    indices[1] = berth_tfn_binary(fn, BERTH_BINARY_ADD, indices[1], m->by);
    return berth_tfn_load(fn, node.load.buf, indices, node.index_count);
}

// The loop over the channels of the sum: a new one where there is one channel.
static bool channel_loop(products *p, int *out_loop) {
    berth_tfn *fn = p->fn;
    const berth_expr_node *load = berth_tfn_expr(fn, p->load_w);
    if (load->index_count != 4 || berth_tfn_expr(fn, p->load_x)->index_count != 4) return false;
    const berth_expr_node *at = berth_tfn_expr(fn, berth_tfn_load_indices(fn, p->load_w)[1]);
    for (int i = 0; at->kind == BERTH_EXPR_VAR && i < p->sum.count; ++i)
        if (p->sum.loops[i].var == at->var) {
            *out_loop = i;
            return true;
        }
    if (at->kind != BERTH_EXPR_INT || p->sum.count == BERTH_NEST_MAX_LOOPS) return false;
    *out_loop = p->sum.count++;
    p->sum.loops[*out_loop] = (berth_nest_loop){berth_tfn_var(fn, "ic"), 1, BERTH_LOOP_SERIAL};
    berth_expr channel = berth_tfn_var_ref(fn, p->sum.loops[*out_loop].var);
    moved x = {berth_tfn_expr(fn, p->load_x)->load.buf, channel};
    moved w = {berth_tfn_expr(fn, p->load_w)->load.buf, channel};
    p->x = berth_replace_loads(fn, p->x, move_channel, &x);
    p->w = berth_replace_loads(fn, p->w, move_channel, &w);
    return true;
}

// The sum with the matrix unit as its step, into `sums`; 0: no product of blocks.
static berth_stmt block_sum(products *p, berth_buf sums) {
    berth_tfn *fn = p->fn;
    int loop = 0;
    if (!channel_loop(p, &loop)) return 0;
    // What fills up the last block is zero in both tensors (ir/layout.h).
    berth_nest_loop *channels = &p->sum.loops[loop];
    channels->extent = (channels->extent + p->block - 1) / p->block * p->block;
    berth_expr acc = berth_tfn_load(fn, p->acc, NULL, 0);
    berth_expr product =
        berth_tfn_binary(fn, BERTH_BINARY_MUL, berth_tfn_cast(fn, BERTH_DTYPE_I32, p->x),
                         berth_tfn_cast(fn, BERTH_DTYPE_I32, p->w));
    p->sum.body =
        berth_tfn_store(fn, p->acc, NULL, 0, berth_tfn_binary(fn, BERTH_BINARY_ADD, acc, product));
    berth_status status = berth_schedule_split(fn, &p->sum, loop, p->block);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    berth_var depth = p->sum.loops[loop + 1].var;
    for (int i = loop + 1; i + 1 < p->sum.count; ++i) p->sum.loops[i] = p->sum.loops[i + 1];
    p->sum.count--;
    berth_expr at = berth_tfn_ramp(fn, berth_tfn_index(fn, 0), (uint16_t)p->block);
    berth_expr value = 0;
    p->failed =
        berth_tensorize_update(fn, berth_tfn_stmt(fn, p->sum.body)->value, p->lane.var, depth,
                               p->gemm, p->acc, berth_tfn_load(fn, sums, &at, 1), &value);
    if (!value) return 0;
    p->sum.body = berth_tfn_store(fn, sums, &at, 1, value);
    return berth_nest_emit(fn, &p->sum);
}

typedef struct renamed {
    berth_buf from, to;
    berth_expr at;
} renamed;

static berth_expr rename_acc(berth_tfn *fn, berth_expr load, void *user) {
    const renamed *r = user;
    return berth_tfn_expr(fn, load)->load.buf == r->from ? berth_tfn_load(fn, r->to, &r->at, 1) : 0;
}

// The last loop over the results of one block. False: it has no whole blocks.
static bool take_block(products *p, berth_nest *nest) {
    int last = nest->count - 1;
    int64_t extent = nest->loops[last].extent;
    if (extent % p->block || !extent) return false;
    if (extent > p->block) {  // channels that lie as plain rows do
        berth_status status = berth_schedule_split(p->fn, nest, last, p->block);
        if (status) {
            berth_decisions_refuse(p->fn, status);
            return false;
        }
    }
    p->lane = nest->loops[--nest->count];
    return true;
}

// The nest with its sum of products by the matrix unit, and its result as it was. 0: it has none.
static berth_stmt multiply(products *p, const berth_nest *outer, berth_vta_block *out) {
    berth_tfn *fn = p->fn;
    if (!read_body(p, outer->body) || !read_product(p)) return 0;
    out->sums = berth_tfn_buffer(fn, "sums", BERTH_DTYPE_I32, 1, &p->block, BERTH_SCOPE_PRIVATE);
    out->products = block_sum(p, out->sums);
    out->result = p->result;
    if (!out->products) return 0;
    berth_nest first = {.loops = {{berth_tfn_var(fn, "i"), p->block, BERTH_LOOP_SERIAL}},
                        .count = 1};
    berth_expr at = berth_tfn_var_ref(fn, first.loops[0].var);
    first.body = berth_tfn_store(fn, out->sums, &at, 1, berth_tfn_int(fn, BERTH_DTYPE_I32, 0));
    renamed r = {p->acc, out->sums, berth_tfn_var_ref(fn, p->lane.var)};
    const berth_stmt_node store = *berth_tfn_stmt(fn, p->result);
    berth_expr value = berth_replace_loads(fn, store.value, rename_acc, &r);
    berth_expr indices[BERTH_MAX_RANK];
    for (int i = 0; i < store.index_count; ++i)
        indices[i] = berth_tfn_store_indices(fn, p->result)[i];
    berth_nest last = {.loops = {p->lane}, .count = 1};
    last.body = berth_tfn_store(fn, store.buf, indices, store.index_count, value);
    const berth_stmt items[] = {berth_tfn_alloc(fn, out->sums), berth_nest_emit(fn, &first),
                                out->products, berth_nest_emit(fn, &last)};
    berth_nest whole = *outer;
    whole.body = berth_tfn_seq(fn, items, 4);
    return berth_nest_emit(fn, &whole);
}

// A sum or maximum, or one element: its loops and its result. False: neither.
static bool read_others(const berth_tfn *fn, berth_stmt body, berth_vta_block *out) {
    const berth_stmt_node *s = berth_tfn_stmt(fn, body);
    out->reduction.count = 0;
    out->result = body;
    if (s->kind == BERTH_STMT_STORE) return true;
    if (s->kind != BERTH_STMT_SEQ || s->count != 4) return false;
    const berth_stmt *items = berth_tfn_seq_items(fn, body);
    out->result = items[3];
    if (!berth_nest_parse(fn, items[2], &out->reduction)) out->reduction.count = 0;
    return berth_tfn_stmt(fn, out->result)->kind == BERTH_STMT_STORE;
}

typedef struct given {
    berth_vta_config config;
    berth_intrinsic gemm;
    berth_status *failed;  // the first that did
} given;

static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const given *g = user;
    products p = {.fn = fn, .gemm = g->gemm, .block = (int64_t)1 << g->config.log_block};
    berth_nest outer = *nest, all = *nest;
    if (!take_block(&p, &outer)) return 0;
    berth_vta_block block = {.fn = fn, .block = p.block, .outer = outer, .lane = p.lane};
    berth_stmt multiplied = multiply(&p, &outer, &block), whole = multiplied;
    if (p.failed && !*g->failed)
        *g->failed = p.failed;
    else
        berth_status_free(p.failed);
    if (!multiplied) {
        block.sums = BERTH_NONE;
        if (!read_others(fn, outer.body, &block)) return 0;
        all = outer;
        all.loops[all.count++] = p.lane;
        whole = berth_nest_emit(fn, &all);
    }
    berth_stmt made = berth_vta_schedule_steps(&block, &g->config, whole);
    return made ? made : multiplied;
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    berth_status failed = BERTH_OK;
    given g = {.config = berth_vta_config_of(target), .failed = &failed};
    int64_t block = (int64_t)1 << g.config.log_block;
    g.gemm = berth_vta_intrinsic_of(BERTH_VTA_DO_GEMM, block);
    if (g.gemm == BERTH_INTRINSIC_COUNT)
        return berth_status_make(BERTH_UNSUPPORTED, "a VTA whose matrix unit has blocks of %lld",
                                 (long long)block);
    berth_status status = berth_schedule_nests(fn, schedule_nest, &g);
    berth_status_free(status ? failed : BERTH_OK);
    return status ? status : failed;
}

const berth_schedule_policy berth_vta_schedule = {.kind = "vta", .apply = apply};
