// Which operations of a graph a library can stand for.
#include "compiler/libraries/use.h"

#include <string.h>

#include "base/str.h"

static const berth_library_facts libraries[] = {
#define LIBRARY(id, name, kind, file, package) {name, BERTH_DEVICE_##kind, file, package},
#include "compiler/libraries/functions.def"
};

static const struct {
    berth_library_id library;
    berth_op_kind kind;
    berth_dtype dtype;
    const char *what;
} functions[] = {
#define FUNCTION(library, operation, dtype, what)                                                  \
    {BERTH_LIBRARY_##library, BERTH_OP_##operation, BERTH_DTYPE_##dtype, what},
#include "compiler/libraries/functions.def"
};

const berth_library_facts *berth_library_facts_get(berth_library_id id) {
    return &libraries[id];
}

bool berth_library_from_name(const char *name, berth_device_kind kind, berth_library_id *out_id) {
    for (int i = 0; i < BERTH_LIBRARY_COUNT; ++i) {
        if (libraries[i].kind != kind || strcmp(libraries[i].name, name) != 0) continue;
        *out_id = (berth_library_id)i;
        return true;
    }
    return false;
}

bool berth_library_any_for(berth_device_kind kind) {
    for (int i = 0; i < BERTH_LIBRARY_COUNT; ++i)
        if (libraries[i].kind == kind) return true;
    return false;
}

const char *berth_library_names(berth_device_kind kind, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    for (int i = 0; i < BERTH_LIBRARY_COUNT; ++i)
        if (libraries[i].kind == kind)
            berth_strbuf_addf(&text, "%s%s", text.length ? ", " : "", libraries[i].name);
    return berth_strbuf_text(&text);
}

const berth_op_id *berth_library_users(const berth_graph *graph, berth_arena *arena) {
    berth_op_id *users = berth_arena_new_array(arena, berth_op_id, graph->values.count + 1);
    const berth_region *root = &graph->regions.data[0];
    memset(users, 0xff, graph->values.count * sizeof(*users));
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        for (uint32_t k = 0; k < op->input_count; ++k) {
            if (op->inputs[k] == BERTH_NONE) continue;
            berth_op_id *user = &users[op->inputs[k]];
            *user = *user == BERTH_NONE ? root->ops.data[i] : BERTH_LIBRARY_MANY_USERS;
        }
    }
    for (uint32_t i = 0; i < root->results.count; ++i)
        users[root->results.data[i]] = BERTH_LIBRARY_MANY_USERS;
    return users;
}

// ---- one operation ------------------------------------------------------------------------------

typedef struct finder {
    const berth_module *module;
    const berth_graph *graph;
    const berth_op *op;
    const berth_op_id *users;
    uint32_t user_count;
    const berth_target *target;
    berth_library_use *use;
} finder;

static const berth_type *type_of(const finder *f, berth_value_id value) {
    return berth_type_get(f->module, value == BERTH_NONE ? 0 : f->graph->values.data[value].type);
}

static bool is_tensor(const finder *f, berth_value_id value) {
    const berth_type *type = type_of(f, value);
    if (type->kind != BERTH_TYPE_TENSOR || !berth_type_is_static(type)) return false;
    for (int d = 0; d < type->rank; ++d)
        if (type->dims[d] < 1 || type->dims[d] > INT32_MAX) return false;
    return type->dtype == f->use->dtype;
}

static bool is_constant(const finder *f, berth_value_id value) {
    return value != BERTH_NONE && berth_graph_raw_constant_of(f->module, f->graph, value) != NULL;
}

// Columns and rows of the matrices at the end of both operands; what is before them is one batch, or
// rows of the first where the second has none.
static bool find_product(const finder *f) {
    berth_library_product *p = &f->use->product;
    const berth_type *a = type_of(f, f->op->inputs[0]), *b = type_of(f, f->op->inputs[1]);
    bool gemm = f->op->kind == BERTH_OP_GEMM;
    if (!is_tensor(f, f->op->inputs[0]) || !is_tensor(f, f->op->inputs[1]) || a->rank < 2 ||
        b->rank < 2 || b->layout)
        return false;
    p->transposed_a = gemm && berth_attrs_int(f->module, &f->op->attrs, "transA", 0) != 0;
    p->transposed_b = gemm && berth_attrs_int(f->module, &f->op->attrs, "transB", 0) != 0;
    p->rows = a->dims[a->rank - (p->transposed_a ? 1 : 2)];
    p->depth = a->dims[a->rank - (p->transposed_a ? 2 : 1)];
    p->columns = b->dims[b->rank - (p->transposed_b ? 2 : 1)];
    p->batch = 1;
    p->shared_b = b->rank == 2;
    if (!p->shared_b && a->rank != b->rank) return false;
    for (int d = 0; d < a->rank - 2; ++d) {
        if (!p->shared_b && a->dims[d] != b->dims[d]) return false;
        p->batch *= a->dims[d];
        if (p->batch > INT32_MAX || p->batch * p->rows > INT32_MAX) return false;
    }
    if (p->shared_b) {
        p->rows *= p->batch;
        p->batch = 1;
    }
    if (gemm && berth_attrs_float(f->module, &f->op->attrs, "alpha", 1) != 1) return false;
    f->use->flops = 2 * (double)p->batch * (double)p->rows * (double)p->depth * (double)p->columns;
    return f->op->input_count <= 2 || f->op->inputs[2] == BERTH_NONE;
}

// Blocks of channels as oneDNN has kernels for: as wide as a register where both sides fill them.
static bool has_blocks(const finder *f) {
    berth_library_convolution *c = &f->use->convolution;
    bool wide = f->target->vector_bits >= 512 && c->outputs % 16 == 0 &&
                (c->inputs % 16 == 0 || c->inputs < 8);
    c->block = wide ? 16 : 8;
    c->plain_input = c->inputs < 8;
    if (c->window.group > 1 && !c->depthwise) return false;
    return c->outputs % c->block == 0 && (c->plain_input || c->inputs % c->block == 0) &&
           !(c->plain_input && c->depthwise);
}

// Plain maps, as cuDNN takes them: padded alike on both sides.
static bool is_even(const finder *f) {
    berth_library_convolution *c = &f->use->convolution;
    const berth_window *w = &c->window;
    c->block = 1;
    c->plain_input = true;
    return w->pads_begin[0] == w->pads_end[0] && w->pads_begin[1] == w->pads_end[1];
}

static bool find_convolution(const finder *f) {
    berth_library_convolution *c = &f->use->convolution;
    const berth_type *x = type_of(f, f->op->inputs[0]), *w = type_of(f, f->op->inputs[1]);
    if (!is_tensor(f, f->op->inputs[0]) || !is_tensor(f, f->op->inputs[1]) || x->rank != 4 ||
        w->rank != 4 || w->layout || !is_constant(f, f->op->inputs[1]))
        return false;
    berth_status status =
        berth_window_resolve(f->module, f->op, x->dims, x->rank, w->dims + 2, &c->window);
    if (status) {
        berth_status_free(status);  // said where the operation is compiled
        return false;
    }
    c->images = x->dims[0];
    c->inputs = x->dims[1];
    c->outputs = w->dims[0];
    c->depthwise = c->window.group > 1 && w->dims[1] == 1 && c->window.group == c->outputs;
    f->use->flops = 2 * (double)c->images * (double)c->outputs * (double)w->dims[1] *
                    (double)(c->window.kernel[0] * c->window.kernel[1]) *
                    (double)(c->window.output[0] * c->window.output[1]);
    bool bias = f->op->input_count > 2 && f->op->inputs[2] != BERTH_NONE;
    if (bias && !is_constant(f, f->op->inputs[2])) return false;
    if (bias) f->use->operands[f->use->operand_count++] = f->op->inputs[2];
    f->use->bias = bias;
    return f->use->library == BERTH_LIBRARY_CUDNN ? is_even(f) : has_blocks(f);
}

// The only operation that uses the latest result, on the same device; NULL = there is none.
static const berth_op *next_of(const finder *f, berth_op_id *out_id) {
    berth_value_id value = f->graph->ops.data[f->use->last].outputs[0];
    *out_id = value < f->user_count ? f->users[value] : BERTH_NONE;
    if (*out_id == BERTH_NONE || *out_id == BERTH_LIBRARY_MANY_USERS) return NULL;
    const berth_op *next = &f->graph->ops.data[*out_id];
    bool here =
        next->device == f->op->device && next->output_count == 1 && next->region == f->op->region;
    return here ? next : NULL;
}

// The addition of a constant per column after a product.
static void take_bias(const finder *f) {
    berth_op_id id;
    const berth_op *next = next_of(f, &id);
    if (!next || next->kind != BERTH_OP_ADD) return;
    berth_value_id sum = f->graph->ops.data[f->use->last].outputs[0];
    berth_value_id bias = next->inputs[next->inputs[0] == sum];
    const berth_type *type = type_of(f, bias), *out = type_of(f, next->outputs[0]);
    const berth_type *before = type_of(f, sum);
    bool same = out->rank == before->rank;
    if (bias == sum || !is_constant(f, bias) || !is_tensor(f, bias) || !same) return;
    for (int d = 0; d < out->rank; ++d)
        if (out->dims[d] != before->dims[d]) return;
    for (int d = 0; d < type->rank; ++d)
        if (type->dims[d] != (d + 1 < type->rank ? 1 : f->use->product.columns)) return;
    if (type->rank == 0) return;
    f->use->operands[f->use->operand_count++] = bias;
    f->use->bias = true;
    f->use->last = id;
}

// Whether a value is there when the operation runs, or only to be brought: calls are made in the order of operations.
static bool is_made_before(const finder *f, berth_value_id value) {
    berth_op_id producer = f->graph->values.data[value].op;
    const berth_region *root = &f->graph->regions.data[0];
    while (producer != BERTH_NONE && f->graph->ops.data[producer].kind == BERTH_OP_DEVICE_COPY)
        producer = f->graph->values.data[f->graph->ops.data[producer].inputs[0]].op;
    for (uint32_t i = 0; producer != BERTH_NONE && i < root->ops.count; ++i) {
        if (root->ops.data[i] == producer) return true;
        if (root->ops.data[i] == f->use->op) return false;
    }
    return producer == BERTH_NONE;
}

// The sum with another value of the result's type, as after the branches of residual networks.
static void take_sum(const finder *f) {
    berth_op_id id;
    const berth_op *next = next_of(f, &id);
    if (!next || next->kind != BERTH_OP_ADD) return;
    berth_value_id result = f->graph->ops.data[f->use->last].outputs[0];
    berth_value_id other = next->inputs[next->inputs[0] == result];
    const berth_type *type = type_of(f, result), *added = type_of(f, other);
    if (other == result || is_constant(f, other) || !is_tensor(f, other) ||
        added->rank != type->rank)
        return;
    for (int d = 0; d < type->rank; ++d)
        if (added->dims[d] != type->dims[d]) return;
    if (!is_made_before(f, other)) return;
    f->use->operands[f->use->operand_count++] = other;
    f->use->sum = true;
    f->use->last = id;
}

static void take_relu(const finder *f) {
    berth_op_id id;
    const berth_op *next = next_of(f, &id);
    if (!next || next->kind != BERTH_OP_RELU) return;
    f->use->relu = true;
    f->use->last = id;
}

// What a GPU's library may use. NVIDIA asks for 32 MiB on Hopper, 4 MiB elsewhere (cuBLAS's documentation, cublasSetWorkspace);
// cuDNN's faster algorithms lay maps out in it.
static void set_means(const finder *f) {
    enum { mebibyte = 1 << 20 };
    if (berth_device_kind_is_host(libraries[f->use->library].kind)) return;
    bool large = f->use->library == BERTH_LIBRARY_CUDNN || strncmp(f->target->arch, "sm_9", 4) == 0;
    f->use->workspace_bytes = (large ? 32 : 4) * mebibyte;
    f->use->tf32 = f->use->dtype == BERTH_DTYPE_F32 && berth_target_has_feature(f->target, "tf32");
}

bool berth_library_find(const berth_module *module, berth_func_id function,
                        const berth_op_id *users, uint32_t user_count, berth_op_id id,
                        berth_library_id library, const berth_target *target,
                        berth_library_use *out_use) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_op *op = &graph->ops.data[id];
    *out_use = (berth_library_use){.library = library, .op = id, .last = id};
    finder f = {module, graph, op, users, user_count, target, out_use};
    if (op->input_count < 2 || op->output_count != 1) return false;
    out_use->dtype = type_of(&f, op->outputs[0])->dtype;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
        if (functions[i].library == library && functions[i].kind == op->kind &&
            functions[i].dtype == out_use->dtype)
            out_use->what = functions[i].what;
    if (!out_use->what || !is_tensor(&f, op->outputs[0])) return false;
    out_use->kind = op->kind == BERTH_OP_CONV ? BERTH_OP_CONV : BERTH_OP_MATMUL;
    out_use->operands[0] = op->inputs[0];
    out_use->operands[1] = op->inputs[1];
    out_use->operand_count = 2;
    bool conv = out_use->kind == BERTH_OP_CONV;
    if (!(conv ? find_convolution(&f) : find_product(&f))) return false;
    if (!conv) take_bias(&f);
    take_sum(&f);
    take_relu(&f);
    set_means(&f);
    out_use->result_bytes = (double)berth_type_size_bytes(
        module, graph->values.data[graph->ops.data[out_use->last].outputs[0]].type);
    return true;
}

// ---- its name -----------------------------------------------------------------------------------

static void add_product(const berth_library_use *use, berth_strbuf *text) {
    const berth_library_product *p = &use->product;
    berth_strbuf_addf(text, "matmul %s", berth_dtype_name(use->dtype));
    if (p->batch > 1) berth_strbuf_addf(text, " %lld x", (long long)p->batch);
    berth_strbuf_addf(text, " [%lld,%lld]%s*[%lld,%lld]%s", (long long)p->rows, (long long)p->depth,
                      p->transposed_a ? "t" : "", (long long)p->depth, (long long)p->columns,
                      p->transposed_b ? "t" : "");
}

static void add_convolution(const berth_library_use *use, berth_strbuf *text) {
    const berth_library_convolution *c = &use->convolution;
    const berth_window *w = &c->window;
    berth_strbuf_addf(text, "conv %s [%lld,%lld,%lld,%lld] to %lld, window %lldx%lld",
                      berth_dtype_name(use->dtype), (long long)c->images, (long long)c->inputs,
                      (long long)w->input[0], (long long)w->input[1], (long long)c->outputs,
                      (long long)w->kernel[0], (long long)w->kernel[1]);
    if (c->depthwise) berth_strbuf_add(text, " per channel");
    if (c->window.group > 1 && !c->depthwise)
        berth_strbuf_addf(text, " in %lld groups", (long long)c->window.group);
    berth_strbuf_addf(text, ", strides %lldx%lld, dilations %lldx%lld, pads %lld,%lld,%lld,%lld",
                      (long long)w->strides[0], (long long)w->strides[1],
                      (long long)w->dilations[0], (long long)w->dilations[1],
                      (long long)w->pads_begin[0], (long long)w->pads_begin[1],
                      (long long)w->pads_end[0], (long long)w->pads_end[1]);
}

const char *berth_library_key(const berth_library_use *use, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    if (use->kind == BERTH_OP_CONV)
        add_convolution(use, &text);
    else
        add_product(use, &text);
    if (use->bias) berth_strbuf_add(&text, ", bias");
    if (use->sum) berth_strbuf_add(&text, ", sum");
    if (use->relu) berth_strbuf_add(&text, ", relu");
    if (use->tf32) berth_strbuf_add(&text, ", tf32");
    return berth_strbuf_text(&text);
}
