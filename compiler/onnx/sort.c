// Nodes in an order in which every value is made before it is used. ONNX wants them sorted already;
// exporters do not always do it. Depth-first post-order in the given order: a sorted list stays as
// it is. O(nodes + uses).
#include "base/str.h"
#include "compiler/onnx/importer.h"

typedef struct sorter {
    onnx_importer *im;
    const onnx_graph *graph;
    onnx_scope producers;  // name → node
    BERTH_VEC(uint32_t) deps;
    uint32_t *first_dep;  // per node, and one after the last
    uint8_t *state;       // per node: NEW, OPEN, DONE
    uint32_t *order;
    uint32_t order_count;
} sorter;

enum { NEW, OPEN, DONE };

static berth_status find_producers(sorter *s) {
    for (uint32_t i = 0; i < s->graph->nodes.count; ++i) {
        const onnx_node *node = &s->graph->nodes.data[i];
        for (uint32_t k = 0; k < node->outputs.count; ++k) {
            const char *output = node->outputs.data[k];
            if (!*output) continue;
            berth_str_id name = berth_module_intern(s->im->module, output);
            uint32_t other = onnx_scope_find_here(&s->producers, name);
            if (other != BERTH_NONE)
                return berth_status_make(BERTH_INVALID_ARGUMENT,
                                         "%s: value \"%s\" is made by two nodes: \"%s\" and \"%s\"",
                                         s->im->file, output, s->graph->nodes.data[other].name,
                                         node->name);
            if (onnx_scope_find_here(s->im->scope, name) != BERTH_NONE)
                return berth_status_make(
                    BERTH_INVALID_ARGUMENT,
                    "%s: value \"%s\" of node \"%s\" is also an input or initializer", s->im->file,
                    output, node->name);
            onnx_scope_add(s->im->scratch, &s->producers, name, i);
        }
    }
    return BERTH_OK;
}

// inner: names that graphs inside give, which are not this graph's.
static void add_dep(sorter *s, const char *name, const onnx_scope *inner) {
    if (!*name) return;
    berth_str_id id = berth_module_intern(s->im->module, name);
    if (onnx_scope_find(inner, id) != BERTH_NONE) return;
    uint32_t producer = onnx_scope_find_here(&s->producers, id);
    if (producer != BERTH_NONE) berth_vec_push(s->im->scratch, &s->deps, producer);
}

static berth_status add_attr_deps(sorter *s, const onnx_node *node, const onnx_scope *around);

// Names that the subgraphs of a node use are uses of the node, but for those that they give themselves:
// graphs inside may name their values as graphs around them do, the results of the node among them.
// Depth is bounded by the parser.
static berth_status add_subgraph_deps(sorter *s, const onnx_graph *graph,
                                      const onnx_scope *around) {
    berth_arena *scratch = s->im->scratch;
    berth_module *module = s->im->module;
    onnx_scope own = {.parent = around};
    for (uint32_t i = 0; i < graph->inputs.count; ++i)
        onnx_scope_add(scratch, &own, berth_module_intern(module, graph->inputs.data[i].name), 0);
    for (uint32_t i = 0; i < graph->initializers.count; ++i) {
        berth_tensor_proto proto;
        BERTH_TRY(onnx_parse_tensor(s->im, &graph->initializers.data[i], &proto));
        onnx_scope_add(scratch, &own, berth_module_intern(module, proto.name), 0);
    }
    for (uint32_t i = 0; i < graph->nodes.count; ++i) {
        const onnx_node *node = &graph->nodes.data[i];
        for (uint32_t k = 0; k < node->outputs.count; ++k)
            onnx_scope_add(scratch, &own, berth_module_intern(module, node->outputs.data[k]), 0);
    }
    for (uint32_t i = 0; i < graph->nodes.count; ++i) {
        const onnx_node *node = &graph->nodes.data[i];
        for (uint32_t k = 0; k < node->inputs.count; ++k) add_dep(s, node->inputs.data[k], &own);
        BERTH_TRY(add_attr_deps(s, node, &own));
    }
    for (uint32_t i = 0; i < graph->outputs.count; ++i)
        add_dep(s, graph->outputs.data[i].name, &own);
    return BERTH_OK;
}

static berth_status add_attr_deps(sorter *s, const onnx_node *node, const onnx_scope *around) {
    for (uint32_t k = 0; k < node->attrs.count; ++k)
        if (node->attrs.data[k].graph)
            BERTH_TRY(add_subgraph_deps(s, node->attrs.data[k].graph, around));
    return BERTH_OK;
}

static berth_status add_deps(sorter *s, const onnx_node *node) {
    for (uint32_t k = 0; k < node->inputs.count; ++k) {
        const char *input = node->inputs.data[k];
        berth_str_id name = berth_module_intern(s->im->module, input);
        if (*input && onnx_scope_find_here(&s->producers, name) == BERTH_NONE &&
            onnx_scope_find(s->im->scope, name) == BERTH_NONE)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "%s: node \"%s\" (%s) reads \"%s\", which no node, "
                                     "initializer or graph input provides",
                                     s->im->file, node->name, node->op_type, input);
        add_dep(s, input, NULL);
    }
    return add_attr_deps(s, node, NULL);
}

// The nodes on the stack from `start` on read each other in a circle.
static berth_status cycle(const sorter *s, const uint32_t *stack, uint32_t count, uint32_t start) {
    berth_strbuf names = berth_strbuf_make(s->im->scratch);
    uint32_t from = count;
    while (from > 0 && stack[from - 1] != start) from--;
    for (uint32_t i = from ? from - 1 : 0; i < count && i < from + 7; ++i)
        berth_strbuf_addf(&names, "\"%s\" -> ", s->graph->nodes.data[stack[i]].name);
    return berth_status_make(BERTH_INVALID_ARGUMENT, "%s: the graph has a cycle: %s%s\"%s\"",
                             s->im->file, berth_strbuf_text(&names),
                             from + 7 < count ? "... -> " : "", s->graph->nodes.data[start].name);
}

static berth_status visit(sorter *s, uint32_t root, uint32_t *stack, uint32_t *next) {
    uint32_t depth = 0;
    stack[depth++] = root;
    s->state[root] = OPEN;
    while (depth) {
        uint32_t node = stack[depth - 1];
        if (s->first_dep[node] + next[node] < s->first_dep[node + 1]) {
            uint32_t dep = s->deps.data[s->first_dep[node] + next[node]++];
            if (s->state[dep] == OPEN) return cycle(s, stack, depth, dep);
            if (s->state[dep] == NEW) {
                s->state[dep] = OPEN;
                stack[depth++] = dep;
            }
            continue;
        }
        s->state[node] = DONE;
        s->order[s->order_count++] = node;
        depth--;
    }
    return BERTH_OK;
}

berth_status onnx_sort_nodes(onnx_importer *im, const onnx_graph *graph, uint32_t **out_order) {
    uint32_t count = graph->nodes.count;
    sorter s = {.im = im, .graph = graph};
    *out_order = NULL;
    s.first_dep = berth_arena_new_array(im->scratch, uint32_t, count + 1);
    s.state = berth_arena_new_array(im->scratch, uint8_t, count);
    s.order = berth_arena_new_array(im->scratch, uint32_t, count);
    uint32_t *stack = berth_arena_new_array(im->scratch, uint32_t, count);
    uint32_t *next = berth_arena_new_array(im->scratch, uint32_t, count);
    BERTH_TRY(find_producers(&s));
    for (uint32_t i = 0; i < count; ++i) {
        s.first_dep[i] = s.deps.count;
        BERTH_TRY(add_deps(&s, &graph->nodes.data[i]));
    }
    s.first_dep[count] = s.deps.count;
    for (uint32_t i = 0; i < count; ++i)
        if (s.state[i] == NEW) BERTH_TRY(visit(&s, i, stack, next));
    *out_order = s.order;
    return BERTH_OK;
}
