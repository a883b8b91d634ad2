#include "compiler/passes/patches.h"

#include <stdlib.h>
#include <string.h>

#include "compiler/passes/patches_private.h"
#include "compiler/passes/rewrite.h"

enum {
    most_cuts = 64,
    most_candidates = 4096,
    slack_share = 8,
};

// ---- candidates ---------------------------------------------------------------------------------

static const char *node_of(const berth_patcher *p, berth_value_id cut) {
    const berth_op *op = &p->graph->ops.data[p->graph->values.data[cut].op];
    const char *name = berth_loc_names(p->module, op->loc, false, p->arena);
    return *name ? name : berth_module_str(p->module, p->graph->values.data[cut].name);
}

// A region ends where a kernel does: not before an elementwise operation that is fused.
static bool ends_kernel(const berth_patcher *p, berth_value_id cut) {
    if (p->uses[cut] != 1 || p->only_user[cut] == BERTH_NONE) return true;
    return !berth_op_has(p->graph->ops.data[p->only_user[cut]].kind, BERTH_TRAIT_ELEMENTWISE);
}

typedef struct cut_list {
    berth_value_id values[most_cuts];
    const char *nodes[most_cuts];
    uint32_t count;
} cut_list;

// The values that regions end with, in order, one for a name.
static void find_cuts(berth_patcher *p, cut_list *cuts) {
    const berth_region *root = &p->graph->regions.data[0];
    for (uint32_t i = 0; i < root->ops.count && cuts->count < most_cuts; ++i) {
        const berth_op *op = &p->graph->ops.data[root->ops.data[i]];
        if (op->output_count != 1 || !ends_kernel(p, op->outputs[0]) ||
            !berth_patches__find_region(p, op->outputs[0]))
            continue;
        const char *node = node_of(p, op->outputs[0]);
        if (!*node) continue;
        uint32_t at = 0;
        while (at < cuts->count && strcmp(cuts->nodes[at], node) != 0) ++at;
        if (at == cuts->count) ++cuts->count;
        cuts->values[at] = op->outputs[0];
        cuts->nodes[at] = node;
    }
}

static int compare_candidates(const void *left, const void *right) {
    const berth_patch_candidate *a = left, *b = right;
    if (a->extra_work != b->extra_work) return a->extra_work < b->extra_work ? -1 : 1;
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
    if (a->choice.count != b->choice.count) return a->choice.count < b->choice.count ? -1 : 1;
    return strcmp(a->choice.node, b->choice.node);
}

// Those that lower the peak of all with less work; nearly as low ones stay, for it is an estimate.
static uint32_t keep_best(berth_patch_candidate *list, uint32_t count, uint64_t whole_bytes) {
    uint64_t least = whole_bytes;
    uint32_t kept = 0;
    if (count) qsort(list, count, sizeof(*list), compare_candidates);
    for (uint32_t i = 0; i < count; ++i) {
        if (list[i].peak_bytes >= whole_bytes || list[i].peak_bytes > least + least / slack_share)
            continue;
        if (list[i].peak_bytes < least) least = list[i].peak_bytes;
        list[i].whole_bytes = whole_bytes;
        list[kept++] = list[i];
    }
    return kept;
}

void berth_patch_candidates(const berth_module *module, berth_func_id main,
                            berth_patch_memory memory, berth_arena *arena,
                            const berth_patch_candidate **out_candidates, uint32_t *out_count) {
    static const uint32_t counts[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32};
    berth_patcher p = berth_patches__begin(module, main, arena);
    berth_patch_candidate whole = {0};
    cut_list cuts = {.count = 0};
    uint32_t count = 0;
    berth_patch_candidate *list =
        berth_arena_new_array(arena, berth_patch_candidate, most_candidates);
    find_cuts(&p, &cuts);
    *out_count = 0;
    *out_candidates = list;
    if (cuts.count == 0 || !berth_patches__estimate(&p, BERTH_NONE, 0, memory, &whole)) return;
    for (uint32_t i = 0; i < cuts.count; ++i) {
        int64_t height = berth_patches__type(&p, cuts.values[i])->dims[2];
        if (!berth_patches__find_region(&p, cuts.values[i])) continue;
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); ++k) {
            berth_patch_candidate *next = &list[count];
            if (counts[k] > height || berth_patches__count(height, counts[k]) != counts[k])
                continue;
            *next = (berth_patch_candidate){.choice = {cuts.nodes[i], counts[k]}};
            if (berth_patches__estimate(&p, cuts.values[i], counts[k], memory, next)) ++count;
        }
    }
    *out_count = keep_best(list, count, whole.peak_bytes);
}

// ---- rewriting ----------------------------------------------------------------------------------

typedef struct patcher {
    berth_patcher p;
    berth_rewriter r;
    berth_value_id cut;
    berth_op_id position;  // of the operation that the cut comes from
    berth_value_id *made;  // per value of the function as it was: in this patch
} patcher;

static berth_graph *graph_of(const patcher *s) {
    return berth_graph_get(s->r.module, s->r.function);
}

static berth_value_id insert_i64(patcher *s, int64_t value, berth_loc_id loc) {
    berth_tensor *tensor = berth_arena_new(s->r.module->arena, berth_tensor);
    *tensor = berth_tensor_create(s->r.module->arena, BERTH_DTYPE_I64, 1, (int64_t[]){1});
    berth_tensor_set_i64(tensor, 0, value);
    return berth_rewriter_insert_constant(&s->r, s->position, tensor, loc);
}

// Like what it was made from: on the same device, where that is decided already.
static void put_on(patcher *s, berth_value_id value, berth_value_id like) {
    berth_graph *graph = graph_of(s);
    graph->values.data[value].device = graph->values.data[like].device;
    if (graph->values.data[like].op != BERTH_NONE)
        graph->ops.data[graph->values.data[value].op].device =
            graph->ops.data[graph->values.data[like].op].device;
}

static berth_status insert_slice(patcher *s, berth_value_id from, int64_t first, int64_t count,
                                 berth_loc_id loc, berth_value_id *out_value) {
    berth_value_id inputs[4] = {from, insert_i64(s, first, loc), insert_i64(s, first + count, loc),
                                insert_i64(s, 2, loc)};
    return berth_rewriter_insert(&s->r, s->position, BERTH_OP_SLICE, inputs, 4, NULL, loc,
                                 out_value);
}

// An operand's rows: the value itself where it has these alone.
static berth_status take_rows(patcher *s, berth_value_id value, berth_patch_rows needed,
                              berth_loc_id loc, berth_value_id *out_value) {
    berth_patch_rows there = {0, berth_patches__type(&s->p, value)->dims[2]};
    bool inside = s->made[value] != BERTH_NONE;
    if (inside) there = s->p.rows[value];
    *out_value = inside ? s->made[value] : value;
    if (needed.first == there.first && needed.end == there.end) return BERTH_OK;
    BERTH_TRY(insert_slice(s, *out_value, needed.first - there.first, needed.end - needed.first,
                           loc, out_value));
    put_on(s, *out_value, value);
    return BERTH_OK;
}

// Padding that is needed for as many columns as there are; a pool then rounds up to nothing.
static void set_pads(patcher *s, const berth_op *op, const int64_t pads[2], berth_attrs *attrs) {
    berth_window w;
    if (!berth_patches__window(&s->p, op, &w)) return;
    int64_t span = (w.kernel[1] - 1) * w.dilations[1] + 1;
    int64_t right = (w.output[1] - 1) * w.strides[1] + span - w.input[1] - w.pads_begin[1];
    int64_t all[4] = {pads[0], w.pads_begin[1], pads[1], right > 0 ? right : 0};
    berth_attrs_set_ints(s->r.module, attrs, "pads", all, 4);
    berth_attrs_remove(s->r.module, attrs, "auto_pad");
    berth_attrs_remove(s->r.module, attrs, "ceil_mode");
}

static berth_status copy_op(patcher *s, berth_op_id id) {
    berth_module *module = s->r.module;
    const berth_op op = graph_of(s)->ops.data[id];
    berth_value_id *inputs = berth_arena_new_array(module->arena, berth_value_id, op.input_count);
    int64_t window_pads[2] = {0, 0};
    berth_attrs attrs = {0};
    for (uint32_t i = 0; i < op.attrs.items.count; ++i)
        berth_attrs_set(module, &attrs, berth_module_str(module, op.attrs.items.data[i].name),
                        op.attrs.items.data[i]);
    for (uint32_t i = 0; i < op.input_count; ++i) {
        berth_patch_rows needed;
        int64_t pads[2];
        inputs[i] = op.inputs[i];
        if (op.inputs[i] == BERTH_NONE || berth_patches__is_constant(&s->p, op.inputs[i])) continue;
        if (!berth_patches__rows_of(&s->p, &op, i, s->p.rows[op.outputs[0]], &needed, pads))
            return berth_status_make(BERTH_INTERNAL, "a patch has no rows");
        if (i == 0) memcpy(window_pads, pads, sizeof(pads));
        BERTH_TRY(take_rows(s, op.inputs[i], needed, op.loc, &inputs[i]));
    }
    if (berth_patches__has_window(op.kind)) set_pads(s, &op, window_pads, &attrs);
    berth_value_id *made = &s->made[op.outputs[0]];
    BERTH_TRY(berth_rewriter_insert(&s->r, s->position, op.kind, inputs, op.input_count, &attrs,
                                    op.loc, made));
    put_on(s, *made, op.outputs[0]);
    return BERTH_OK;
}

static berth_status insert_patches(patcher *s, uint32_t count) {
    berth_arena *arena = s->r.module->arena;
    int64_t height = berth_patches__type(&s->p, s->cut)->dims[2];
    berth_loc_id loc = graph_of(s)->ops.data[s->position].loc;
    berth_value_id *parts = berth_arena_new_array(arena, berth_value_id, count);
    uint32_t values = s->p.value_count;
    s->made = berth_arena_new_array(arena, berth_value_id, values + 1);
    for (uint32_t i = 0; i < count; ++i) {
        memset(s->made, 0xff, values * sizeof(*s->made));
        if (!berth_patches__find_rows(&s->p, s->cut, berth_patches__patch(height, count, i)))
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "%u patches are too many: one of them would be padding alone",
                                     count);
        for (uint32_t k = 0; k < s->p.op_count; ++k) BERTH_TRY(copy_op(s, s->p.ops[k]));
        parts[i] = s->made[s->cut];
    }
    berth_attrs axis = {0};
    berth_attrs_set_int(s->r.module, &axis, "axis", 2);
    berth_value_id whole = BERTH_NONE;
    BERTH_TRY(berth_rewriter_insert(&s->r, s->position, BERTH_OP_CONCAT, parts, count, &axis, loc,
                                    &whole));
    put_on(s, whole, s->cut);
    berth_rewriter_replace(&s->r, s->cut, whole);
    return BERTH_OK;
}

// Names of the regions' ends, for a message.
static const char *list_nodes(const cut_list *cuts, berth_arena *arena) {
    enum { most = 12 };
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < cuts->count && i < most; ++i)
        berth_strbuf_addf(&text, "%s\"%s\"", i ? ", " : "", cuts->nodes[i]);
    if (cuts->count > most) berth_strbuf_add(&text, ", ...");
    return berth_strbuf_text(&text);
}

static berth_status find_choice(patcher *s, const berth_patch_choice *choice) {
    cut_list cuts = {.count = 0};
    find_cuts(&s->p, &cuts);
    uint32_t at = 0;
    while (at < cuts.count && strcmp(cuts.nodes[at], choice->node) != 0) ++at;
    if (at == cuts.count)
        return berth_status_make(
            BERTH_NOT_FOUND,
            "no first stages of @main end at node \"%s\", so that they could run in "
            "patches%s%s",
            choice->node, cuts.count ? "; they can end at " : ": nothing here can",
            list_nodes(&cuts, s->p.arena));
    s->cut = cuts.values[at];
    s->position = s->p.graph->values.data[s->cut].op;
    int64_t height = berth_patches__type(&s->p, s->cut)->dims[2];
    if (choice->count < 2 || choice->count > height)
        return berth_status_make(
            BERTH_OUT_OF_RANGE, "%u patches of \"%s\", which has %lld rows: 2 to %lld are possible",
            choice->count, choice->node, (long long)height, (long long)height);
    return BERTH_OK;
}

berth_status berth_pass_patches(berth_module *module, berth_func_id main,
                                const berth_patch_choice *choice, berth_patch_candidate *out_done) {
    berth_patch_candidate done = {.choice = *choice}, whole = {0};
    patcher s = {.p = berth_patches__begin(module, main, module->arena)};
    BERTH_TRY(find_choice(&s, choice));
    uint32_t count = berth_patches__count(berth_patches__type(&s.p, s.cut)->dims[2], choice->count);
    done.choice.count = count;
    if (berth_patches__estimate(&s.p, BERTH_NONE, 0, BERTH_PATCH_ANY, &whole))
        done.whole_bytes = whole.peak_bytes;
    if (!berth_patches__find_region(&s.p, s.cut) ||
        !berth_patches__estimate(&s.p, s.cut, count, BERTH_PATCH_ANY, &done))
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "%u patches of \"%s\" are too many: one of them would be padding "
                                 "alone",
                                 choice->count, choice->node);
    berth_rewriter_begin(&s.r, module, main);
    berth_status status = insert_patches(&s, count);
    berth_rewriter_finish(&s.r);
    if (!status && out_done) *out_done = done;
    return status;
}
