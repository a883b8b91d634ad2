#include "compiler/passes/slice_weights.h"

#include "compiler/passes/slice_private.h"

static uint64_t result_bytes(const berth_slicer *s, const berth_slice_chain *c, uint32_t i) {
    return berth_slice__bytes(s, berth_slice__graph(s)->ops.data[c->ops[i]].outputs[0]);
}

// Up to the last of those whose result is the smallest: a quantisation rather than what makes numbers of it again.
static void keep_to_smallest(const berth_slicer *s, berth_slice_chain *c) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < c->count; ++i)
        if (result_bytes(s, c, i) <= result_bytes(s, c, best)) best = i;
    c->count = best + 1;
}

// A product with the weights in columns, or a convolution of group 1, and what follows it.
static bool find_chain(const berth_slicer *s, berth_op_id id, berth_slice_chain *c) {
    const berth_op *op = &berth_slice__graph(s)->ops.data[id];
    bool product = op->kind == BERTH_OP_MATMUL || op->kind == BERTH_OP_MATMUL_INTEGER;
    if (!product && !berth_slice__is_convolution(op->kind)) return false;
    if (!product && berth_slice__group(s, op) != 1) return false;
    const berth_type *y = berth_slice__type(s, op->outputs[0]);
    if (y->rank < 2 || !berth_type_is_static(y)) return false;
    int axis = product ? y->rank - 1 : 1;
    *c = (berth_slice_chain){
        .ops = {id}, .count = 1, .depthwise = BERTH_NONE, .channels = y->dims[axis], .axis = axis};
    if (c->channels < 2 || !berth_slice__has_constant_operands(s, c, op)) return false;
    berth_slice__extend(s, c);
    keep_to_smallest(s, c);
    return true;
}

// Channels that are read at once, of which most fit: a whole number of pieces, or of fours (what kernels compute at
// once), where that takes at most twice as many reads.
static int64_t whole_pieces(int64_t channels, int64_t most) {
    for (int64_t n = most; n * 2 > most && n > 1; --n)
        if (channels % n == 0 && (n % 4 == 0 || most < 8)) return n;
    return most >= 4 ? most / 4 * 4 : most;
}

// 0 = weights that are read whole, or that no cut helps.
static int64_t choose_piece(const berth_slicer *s, const berth_slice_chain *c, uint32_t device,
                            uint64_t spare_bytes) {
    const berth_target_device *on = &s->target->devices[device];
    const berth_op *op = &berth_slice__graph(s)->ops.data[c->ops[0]];
    const berth_type *y = berth_slice__type(s, op->outputs[0]);
    uint64_t budget = s->target->memories[on->own_memory].budget_bytes;
    uint64_t bytes = berth_slice__bytes(s, op->inputs[1]);
    uint64_t beside = berth_slice__beside_bytes(s, c) + spare_bytes,
             column = bytes / (uint64_t)c->channels;
    for (int i = 0; i < c->axis; ++i)
        if (y->dims[i] > 1) {  // the parts are copied to their places in it
            beside += result_bytes(s, c, c->count - 1);
            break;
        }
    if (budget == 0 || bytes + beside <= budget || beside + column > budget) return 0;
    int64_t piece = whole_pieces(c->channels, (int64_t)((budget - beside) / column));
    // A kernel binds all parts and the whole.
    int64_t most = (int64_t)berth_target_max_bindings(on->target) - 1;
    return (c->channels + piece - 1) / piece <= most ? piece : 0;
}

static uint64_t constant_bytes(const berth_slicer *s) {
    const berth_graph *graph = berth_slice__graph(s);
    const berth_region *root = &graph->regions.data[0];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        if (op->kind == BERTH_OP_CONSTANT) bytes += berth_slice__bytes(s, op->outputs[0]);
    }
    return bytes;
}

// Whether the device reads constants that flash has no room for from a store.
static bool reads_constants(const berth_slicer *s, uint32_t device, uint64_t bytes) {
    const berth_target_device *on = &s->target->devices[device];
    uint64_t flash_bytes = s->target->memories[on->constant_memory].budget_bytes;
    return on->constant_memory != on->own_memory && flash_bytes > 0 && bytes > flash_bytes &&
           berth_multi_target_memory_of(s->target, device, BERTH_TARGET_SCOPE_STORE) !=
               BERTH_NO_INDEX;
}

berth_status berth_pass_slice_weights(berth_module *module, berth_func_id main,
                                      const berth_multi_target *target, uint64_t spare_bytes,
                                      const char **out_slices) {
    *out_slices = "";
    if (target->executor != BERTH_EXECUTOR_AOT) return BERTH_OK;
    berth_slicer s;
    berth_slice__begin(&s, module, main, target);
    const berth_region *root = &berth_slice__graph(&s)->regions.data[0];
    uint32_t count = root->ops.count;
    uint64_t bytes = constant_bytes(&s);
    berth_op_id *ids =
        berth_arena_copy(module->arena, root->ops.data, count * sizeof(*root->ops.data));
    berth_strbuf text = berth_strbuf_make(module->arena);
    for (uint32_t i = 0; i < count; ++i) {
        berth_slice_chain c;
        if (!find_chain(&s, ids[i], &c)) continue;
        uint32_t device = berth_slice__device(&s, &c);
        if (device == BERTH_NO_INDEX || !reads_constants(&s, device, bytes)) continue;
        int64_t piece = choose_piece(&s, &c, device, spare_bytes);
        if (piece == 0) continue;
        berth_strbuf_addf(&text, "%u=%lld ", ids[i], (long long)piece);
        BERTH_TRY(berth_slice__run(&s, &c, piece));
    }
    *out_slices = berth_strbuf_text(&text);
    berth_rewriter_finish(&s.r);
    return BERTH_OK;
}
