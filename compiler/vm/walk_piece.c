// What segments and host operations give for inputs of which a walk knows the types, and some values.
#include <string.h>

#include "base/str.h"
#include "compiler/passes/fold.h"
#include "compiler/vm/walker.h"
#include "ir/eval.h"

enum { piece_buckets = 1024, most_by_value = 8 };

// Of one question about a piece; kept, since the same ones come again and again.
typedef struct walk_known_piece {
    struct walk_known_piece *next;
    berth_hash128 key;
    const walk_value **outputs;
} walk_known_piece;

// A piece as a segment: host operations are segments of one operation, whose inputs may be left out.
static berth_vm_segment segment_of(const berth_module *module, const berth_vm_code *code,
                                   uint32_t piece, bool *known, berth_arena *arena) {
    uint32_t segment_count = code->program->segment_count;
    if (piece < segment_count) {
        berth_vm_segment segment = code->segments[piece];
        memcpy(known, segment.known, segment.input_count * sizeof(*known));
        segment.known = known;
        return segment;
    }
    const berth_vm_host_operation *held = &code->host_operations[piece - segment_count];
    const berth_op *op = &berth_graph_get(module, held->function)->ops.data[held->op];
    uint32_t decides = berth_op_facts_get(op->kind)->host_operands;
    bool sees_shape = op->kind == BERTH_OP_SHAPE_OF || op->kind == BERTH_OP_SIZE_OF;
    for (uint32_t i = 0; i < op->input_count; ++i)
        known[i] = op->inputs[i] != BERTH_NONE && i < 32 && (decides >> i & 1u) && !sees_shape;
    return (berth_vm_segment){.function = held->function,
                              .ops = berth_arena_copy(arena, &held->op, sizeof(held->op)),
                              .op_count = 1,
                              .inputs = op->inputs,
                              .known = known,
                              .input_count = op->input_count,
                              .outputs = op->outputs,
                              .output_count = op->output_count};
}

static bool has_value(const berth_tensor *tensor) {
    return tensor->dtype && (tensor->data || berth_tensor_size_bytes(tensor) == 0);
}

berth_module *berth_vm_reach_module(const berth_module *module, const berth_vm_code *code,
                                    const berth_vm_reach *reach, berth_arena *arena) {
    const berth_vm_piece *piece = berth_vm_piece_at(code->program, reach->piece);
    bool *known = berth_arena_new_array(arena, bool, piece->input_count + 1);
    berth_vm_segment segment = segment_of(module, code, reach->piece, known, arena);
    return berth_vm_segment_module(module, &segment, piece->name, reach->inputs, arena);
}

// ---- one question -------------------------------------------------------------------------------

typedef struct question {
    walker *w;
    uint32_t piece;
    const berth_vm_piece *facts;
    berth_vm_segment segment;
    berth_tensor *inputs;  // data where it is known
    bool *decides;         // per input: its value decides shapes
    bool assumed;          // one of the values that are known is the walk's assumption
    bool all_known;
    berth_arena *scratch;
} question;

static berth_status refuse(const question *q, uint32_t input, const char *what) {
    return berth_status_make(BERTH_UNSUPPORTED,
                             "%s (%s): %s of its input %u %s known before a run, so a program file "
                             "cannot have code for it",
                             q->facts->name, q->facts->op, what, input,
                             strcmp(what, "the value") == 0 ? "decides a shape and is not"
                                                            : "is not");
}

static berth_status take_inputs(question *q, const walk_value *const *inputs) {
    q->all_known = true;
    for (uint32_t i = 0; i < q->facts->input_count; ++i) {
        if (!inputs[i]) continue;
        if (inputs[i]->kind != WALK_TENSOR) return refuse(q, i, "the kind");
        if (!walk_is_static(inputs[i])) return refuse(q, i, "the shape");
        q->inputs[i] = inputs[i]->tensor;
        q->assumed |= inputs[i]->assumed;
        q->all_known &= has_value(&q->inputs[i]);
    }
    for (uint32_t i = 0; i < q->facts->input_count; ++i)
        if (q->decides[i] && !has_value(&q->inputs[i])) return refuse(q, i, "the value");
    return BERTH_OK;
}

// The results' types, with data where they are constants. `known`: inputs that are constants for it.
static berth_status sample(const question *q, const bool *known, berth_tensor *out) {
    walker *w = q->w;
    berth_vm_segment segment = q->segment;
    segment.known = known;
    berth_module *module =
        berth_vm_segment_module(w->module, &segment, "sample", q->inputs, q->scratch);
    berth_func_id main = berth_module_find_function(module, "main");
    berth_fold_options options = {.keep_quantized = true};
    BERTH_TRY(berth_pass_fold(module, main, &options));
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_value_id *results = graph->regions.data[0].results.data;
    for (uint32_t i = 0; i < segment.output_count; ++i) {
        const berth_type *type = berth_type_get(module, graph->values.data[results[i]].type);
        const berth_tensor *constant = berth_graph_constant_of(module, graph, results[i]);
        out[i] = (berth_tensor){.rank = -1};
        if (type->kind == BERTH_TYPE_TENSOR) out[i].dtype = type->dtype;
        if (type->kind == BERTH_TYPE_TENSOR) out[i].rank = type->rank;
        for (int d = 0; d < out[i].rank; ++d)
            out[i].dims[d] = berth_dim_is_symbol(type->dims[d]) ? -1 : type->dims[d];
        if (constant) out[i] = *constant;
    }
    return BERTH_OK;
}

static bool are_constant(const berth_tensor *results, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        bool is_static = results[i].dtype && results[i].rank >= 0;
        for (int d = 0; is_static && d < results[i].rank; ++d) is_static = results[i].dims[d] >= 0;
        if (!is_static || !has_value(&results[i])) return false;
    }
    return true;
}

static bool are_static(const berth_tensor *results, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        if (!results[i].dtype || results[i].rank < 0) return false;
        for (int d = 0; d < results[i].rank; ++d)
            if (results[i].dims[d] < 0) return false;
    }
    return true;
}

// ---- what is reached ----------------------------------------------------------------------------

static void add_key(berth_strbuf *text, const berth_tensor *tensor) {
    int64_t head[] = {tensor->dtype, tensor->rank, tensor->data != NULL};
    berth_strbuf_add_n(text, (const char *)head, sizeof(head));
    berth_strbuf_add_n(text, (const char *)tensor->dims,
                       (size_t)tensor->rank * sizeof(*tensor->dims));
    if (tensor->data) berth_strbuf_add_n(text, tensor->data, berth_tensor_size_bytes(tensor));
}

static berth_tensor *keep_tensors(berth_arena *arena, const berth_tensor *tensors, uint32_t count,
                                  const bool *with_data) {
    berth_tensor *kept = berth_arena_new_array(arena, berth_tensor, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        bool keeps = tensors[i].dtype && tensors[i].data && (!with_data || with_data[i]);
        size_t size_bytes = keeps ? berth_tensor_size_bytes(&tensors[i]) : 0;
        kept[i] = tensors[i];
        kept[i].data = NULL;
        if (!size_bytes) continue;
        kept[i] =
            berth_tensor_create_unset(arena, tensors[i].dtype, tensors[i].rank, tensors[i].dims);
        memcpy(kept[i].data, tensors[i].data, size_bytes);
    }
    return kept;
}

// Adds what is not among them. True: it is new.
static bool reach(const question *q, const bool *with_data, const berth_tensor *results) {
    berth_vm_reached *reached = q->w->reached;
    berth_strbuf text = berth_strbuf_make(q->scratch);
    berth_strbuf_addf(&text, "%u ", q->piece);
    berth_tensor *inputs =
        keep_tensors(reached->arena, q->inputs, q->facts->input_count, with_data);
    for (uint32_t i = 0; i < q->facts->input_count; ++i) add_key(&text, &inputs[i]);
    berth_vm_reach made = {.piece = q->piece, .inputs = inputs};
    made.key = berth_hash128_of(text.data, text.length);
    for (uint32_t i = 0; i < reached->list.count; ++i)
        if (berth_hash128_equal(reached->list.data[i].key, made.key)) return false;
    if (results) made.results = keep_tensors(reached->arena, results, q->facts->output_count, NULL);
    berth_vec_push(reached->arena, &reached->list, made);
    return true;
}

static berth_status evaluate(const question *q, berth_tensor *out) {
    walker *w = q->w;
    const berth_vm_host_operation *held =
        &w->code->host_operations[q->piece - w->code->program->segment_count];
    return berth_eval_op(w->module, held->function, held->op, q->inputs, out, q->scratch);
}

// Results for these very values. For few of them only, where code would do for all.
static bool goes_by_value(const question *q, bool must) {
    if (q->piece < q->w->code->program->segment_count || !q->all_known) return false;
    return must || (!q->assumed && q->w->by_value[q->piece] < most_by_value);
}

// The operation on values that are all known. `*out_done`: it was reached so.
static berth_status answer_by_value(question *q, bool must, berth_tensor *results, bool *out_done) {
    *out_done = false;
    if (!goes_by_value(q, must)) return BERTH_OK;
    BERTH_TRY(evaluate(q, results));
    if (!are_constant(results, q->facts->output_count)) return BERTH_OK;
    bool *all = berth_arena_new_array(q->scratch, bool, q->facts->input_count + 1);
    for (uint32_t i = 0; i < q->facts->input_count; ++i) all[i] = true;
    if (reach(q, all, results)) q->w->by_value[q->piece]++;
    *out_done = true;
    return BERTH_OK;
}

static berth_status say_dynamic(const question *q) {
    return berth_status_make(BERTH_UNSUPPORTED,
                             "%s (%s): the shape of what it gives depends on data, so a program "
                             "file cannot have code for what comes after it",
                             q->facts->name, q->facts->op);
}

static berth_status answer(question *q, berth_tensor *results) {
    uint32_t count = q->facts->output_count;
    bool done = false;
    BERTH_TRY(answer_by_value(q, false, results, &done));
    if (done) return BERTH_OK;
    berth_status status = sample(q, q->decides, results);
    if (!status && are_static(results, count)) {
        reach(q, q->decides, are_constant(results, count) ? results : NULL);
    } else {
        berth_status by_value = answer_by_value(q, true, results, &done);
        if (by_value) berth_status_free(status);
        BERTH_TRY(by_value);
        if (!done) return status ? status : say_dynamic(q);
        berth_status_free(status);
        return BERTH_OK;
    }
    // What follows may be known from values that this code is not only for.
    bool *known = berth_arena_new_array(q->scratch, bool, q->facts->input_count + 1);
    bool more = false;
    for (uint32_t i = 0; i < q->facts->input_count; ++i) {
        known[i] = q->inputs[i].dtype && has_value(&q->inputs[i]);
        more |= known[i] && !q->decides[i];
    }
    return more ? sample(q, known, results) : BERTH_OK;
}

static berth_hash128 key_of(const question *q, const walk_value *const *inputs) {
    berth_strbuf text = berth_strbuf_make(q->scratch);
    berth_hash128 none = {0};
    berth_strbuf_addf(&text, "%u ", q->piece);
    for (uint32_t i = 0; i < q->facts->input_count; ++i)
        berth_strbuf_add_n(&text, (const char *)(inputs[i] ? &inputs[i]->hash : &none),
                           sizeof(none));
    return berth_hash128_of(text.data, text.length);
}

static berth_status ask(question *q, const walk_value *const *inputs, const walk_value **outputs) {
    walker *w = q->w;
    if (!w->pieces) w->pieces = berth_arena_new_array(w->arena, walk_known_piece, piece_buckets);
    berth_hash128 key = key_of(q, inputs);
    walk_known_piece *bucket = &w->pieces[key.low % piece_buckets];
    size_t bytes = q->facts->output_count * sizeof(*outputs);
    for (const walk_known_piece *known = bucket->next; known; known = known->next) {
        if (!berth_hash128_equal(known->key, key)) continue;
        memcpy(outputs, known->outputs, bytes);
        return BERTH_OK;
    }
    uint32_t count = q->facts->input_count + 1;
    q->inputs = berth_arena_new_array(q->scratch, berth_tensor, count);
    q->decides = berth_arena_new_array(q->scratch, bool, count);
    q->segment = segment_of(w->module, w->code, q->piece, q->decides, q->scratch);
    BERTH_TRY(take_inputs(q, inputs));
    berth_tensor *results =
        berth_arena_new_array(q->scratch, berth_tensor, q->facts->output_count + 1);
    BERTH_TRY(answer(q, results));
    for (uint32_t i = 0; i < q->facts->output_count; ++i)
        outputs[i] = walk_tensor(w->arena, &results[i], q->assumed);
    walk_known_piece *made = berth_arena_new(w->arena, walk_known_piece);
    made->key = key;
    made->outputs = berth_arena_array(w->arena, q->facts->output_count + 1, sizeof(*outputs));
    memcpy(made->outputs, outputs, bytes);
    made->next = bucket->next;
    bucket->next = made;
    return BERTH_OK;
}

berth_status walk_piece(walker *w, uint32_t piece, const walk_value *const *inputs,
                        const walk_value **outputs) {
    question q = {.w = w, .piece = piece, .facts = berth_vm_piece_at(w->code->program, piece)};
    q.scratch = berth_arena_create_child(w->arena);
    berth_status status = ask(&q, inputs, outputs);
    berth_arena_destroy(q.scratch);
    return status;
}

// Whether `wide` serves all that `narrow` does.
static bool serves(const berth_vm_reach *wide, const berth_vm_reach *narrow, uint32_t count) {
    if (wide->piece != narrow->piece || berth_hash128_equal(wide->key, narrow->key)) return false;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_tensor *a = &wide->inputs[i], *b = &narrow->inputs[i];
        if (a->dtype != b->dtype || (a->dtype && !berth_tensor_same_shape(a, b))) return false;
        if (!a->data) continue;
        if (!b->data || memcmp(a->data, b->data, berth_tensor_size_bytes(a)) != 0) return false;
    }
    return true;
}

void berth_vm_reached_simplify(berth_vm_reached *reached, const berth_vm_code *code) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < reached->list.count; ++i) {
        const berth_vm_reach held = reached->list.data[i];
        uint32_t input_count = berth_vm_piece_at(code->program, held.piece)->input_count;
        bool is_served = false;
        for (uint32_t k = 0; k < reached->list.count && held.results && !is_served; ++k)
            is_served = (k < kept || k > i) && serves(&reached->list.data[k], &held, input_count);
        if (!is_served) reached->list.data[kept++] = held;
    }
    reached->list.count = kept;
}
