// Finds every operator that cannot be imported before anything is built, so that they are reported
// together.
#include <string.h>

#include "base/str.h"
#include "compiler/onnx/importer.h"

typedef struct missing_op {
    const char *op_type;
    const char *domain;
    const char *reason;
    const char *nodes[3];  // the first ones
    uint32_t count;
} missing_op;

typedef struct survey {
    onnx_importer *im;
    BERTH_VEC(missing_op) missing;
    onnx_scope index;  // of `missing`
    bool *visited;     // per model-local function
} survey;

// One id for the names of an operator or a function.
static berth_str_id qualified(const onnx_importer *im, const char *domain, const char *name,
                              const char *overload) {
    if (!*domain && !*overload) return berth_module_intern(im->module, name);
    return berth_module_intern(
        im->module, berth_arena_printf(im->scratch, "%s\n%s\n%s", domain, name, overload));
}

void onnx_index_functions(onnx_importer *im) {
    im->functions = berth_arena_new(im->scratch, onnx_scope);
    for (uint32_t i = 0; i < im->model.functions.count; ++i) {
        const onnx_function *function = &im->model.functions.data[i];
        berth_str_id id = qualified(im, function->domain, function->name, function->overload);
        if (onnx_scope_find_here(im->functions, id) == BERTH_NONE)
            onnx_scope_add(im->scratch, im->functions, id, i);
    }
}

const onnx_function *onnx_find_function(const onnx_importer *im, const onnx_node *node) {
    if (!im->model.functions.count) return NULL;
    uint32_t found = onnx_scope_find_here(
        im->functions, qualified(im, node->domain, node->op_type, node->overload));
    return found == BERTH_NONE ? NULL : &im->model.functions.data[found];
}

static void add_missing(survey *s, const onnx_node *node, const char *reason) {
    berth_str_id id = qualified(s->im, node->domain, node->op_type, "");
    uint32_t index = onnx_scope_find_here(&s->index, id);
    if (index == BERTH_NONE) {
        index = s->missing.count;
        onnx_scope_add(s->im->scratch, &s->index, id, index);
        berth_vec_push(
            s->im->scratch, &s->missing,
            (missing_op){.op_type = node->op_type, .domain = node->domain, .reason = reason});
    }
    missing_op *op = &s->missing.data[index];
    if (op->count < 3) op->nodes[op->count] = node->name;
    op->count++;
}

const char *onnx_missing_reason(const onnx_node *node) {
    const onnx_row *row = onnx_row_find(node);
    if (row) return NULL;
    return *node->domain ? "not ONNX's own operator set" : "unknown operator";
}

static void survey_graph(survey *s, const onnx_graph *graph, int depth);

static void survey_node(survey *s, const onnx_node *node, int depth) {
    const onnx_function *function = onnx_find_function(s->im, node);
    if (function) {
        uint32_t index = (uint32_t)(function - s->im->model.functions.data);
        if (s->visited[index]) return;
        s->visited[index] = true;
        survey_graph(s, &function->body, depth + 1);
        return;
    }
    const char *reason = onnx_missing_reason(node);
    if (reason) add_missing(s, node, reason);
    if (!*node->domain && strcmp(node->op_type, "If") == 0) return;
    for (uint32_t i = 0; i < node->attrs.count; ++i)
        if (node->attrs.data[i].graph) survey_graph(s, node->attrs.data[i].graph, depth + 1);
}

// Depth is bounded by the parser's limit on graphs and by the number of functions (each is visited
// once).
static void survey_graph(survey *s, const onnx_graph *graph, int depth) {
    if (depth > 256) return;  // a chain of functions that long is refused while inlining
    for (uint32_t i = 0; i < graph->nodes.count; ++i) survey_node(s, &graph->nodes.data[i], depth);
}

static void describe(berth_strbuf *text, const missing_op *op) {
    berth_strbuf_addf(text, "%s%s%s%s x%u (%s; ", text->length ? ", " : "", op->domain,
                      *op->domain ? "." : "", op->op_type, op->count, op->reason);
    for (uint32_t i = 0; i < op->count && i < 3; ++i)
        berth_strbuf_addf(text, "%s\"%s\"", i ? ", " : "node ", op->nodes[i]);
    berth_strbuf_add(text, op->count > 3 ? ", ...)" : ")");
}

berth_status onnx_check_operators(onnx_importer *im) {
    survey s = {.im = im,
                .visited = berth_arena_new_array(im->scratch, bool, im->model.functions.count)};
    survey_graph(&s, &im->model.graph, 0);
    if (!s.missing.count) return BERTH_OK;
    berth_strbuf text = berth_strbuf_make(im->scratch);
    enum { most = 20 };
    for (uint32_t i = 0; i < s.missing.count && i < most; ++i) describe(&text, &s.missing.data[i]);
    if (s.missing.count > most)
        berth_strbuf_addf(&text, ", and %u other operators", s.missing.count - most);
    return berth_status_make(BERTH_UNSUPPORTED, "%s uses operators that cannot be imported: %s",
                             im->file, berth_strbuf_text(&text));
}
