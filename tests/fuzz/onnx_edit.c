// libFuzzer entry of the ONNX editor: what it reads it writes so that it reads the same again, changes
// are where they were made and nowhere else, and what could be imported still can.
#include <string.h>

#include "base/alloc.h"
#include "compiler/onnx/edit.h"
#include "compiler/onnx/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct input {
    berth_arena *arena;
    const uint8_t *data;
    size_t size_bytes;
} input;

static void must(bool holds) {
    if (!holds) __builtin_trap();
}

static void same_names(const berth_onnx_names *a, const berth_onnx_names *b) {
    must(a->count == b->count);
    for (uint32_t i = 0; i < a->count; ++i) must(strcmp(a->data[i], b->data[i]) == 0);
}

static void same_lists(const berth_onnx_byte_list *a, const berth_onnx_byte_list *b) {
    must(a->count == b->count);
    for (uint32_t i = 0; i < a->count; ++i)
        must(a->data[i].size_bytes == b->data[i].size_bytes &&
             memcmp(a->data[i].data, b->data[i].data, a->data[i].size_bytes) == 0);
}

static void same_nodes(const berth_onnx_edit *a, const berth_onnx_edit *b, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_onnx_node *x = a->nodes.data[i], *y = b->nodes.data[i];
        must(strcmp(x->name, y->name) == 0 && strcmp(x->op_type, y->op_type) == 0 &&
             strcmp(x->domain, y->domain) == 0 && x->has_graphs == y->has_graphs);
        same_names(&x->inputs, &y->inputs);
        same_names(&x->outputs, &y->outputs);
        same_lists(&x->attrs, &y->attrs);
        same_lists(&x->rest, &y->rest);
    }
}

static void same_models(const berth_onnx_edit *a, const berth_onnx_edit *b) {
    must(a->ir_version == b->ir_version && a->nodes.count == b->nodes.count &&
         a->constants.count == b->constants.count && a->inputs.count == b->inputs.count &&
         a->outputs.count == b->outputs.count && a->opsets.count == b->opsets.count);
    must(berth_onnx_edit_opset(a) == berth_onnx_edit_opset(b));
    same_nodes(a, b, a->nodes.count);
    for (uint32_t i = 0; i < a->constants.count; ++i)
        must(strcmp(a->constants.data[i]->name, b->constants.data[i]->name) == 0);
    same_lists(&a->graph_rest, &b->graph_rest);
    same_lists(&a->model_rest, &b->model_rest);
}

// Every constant and attribute is asked for; errors are allowed, and all that is read is there.
static berth_status read_all(berth_onnx_edit *model) {
    volatile double sum = 0;
    int64_t ints[4];
    float floats[4];
    berth_onnx_bytes proto;
    for (uint32_t i = 0; i < model->constants.count; ++i) {
        const berth_tensor *tensor = NULL;
        berth_status status = berth_onnx_edit_tensor(model, model->constants.data[i], &tensor);
        if (berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
        int64_t count = status ? 0 : berth_tensor_element_count(tensor);
        for (int64_t k = 0; k < count; k += 1 + count / 64) sum += berth_tensor_get_f64(tensor, k);
        berth_status_free(status);
    }
    static const char *const names[] = {"axis", "value", "pads", "scales", ""};
    for (uint32_t i = 0; i < model->nodes.count; ++i)
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); ++k) {
            const berth_onnx_node *node = model->nodes.data[i];
            sum += (double)berth_onnx_node_int(node, names[k], 1);
            sum += berth_onnx_node_float(node, names[k], 1);
            sum += berth_onnx_node_ints(node, names[k], ints, 4);
            sum += berth_onnx_node_floats(node, names[k], floats, 4);
            must(berth_onnx_node_tensor(node, names[k], &proto) <=
                 berth_onnx_node_has(node, names[k]));
        }
    (void)sum;
    return BERTH_OK;
}

// Changes to a copy: each is there afterwards, and the nodes before them are as they were.
static berth_status change(const input *in, const berth_onnx_edit *model) {
    static const float two[] = {1, 2};
    berth_onnx_edit *copy = berth_onnx_edit_copy(in->arena, model), *again = NULL;
    berth_onnx_node *node = berth_onnx_edit_add(copy, "Relu", "fuzz");
    berth_onnx_bytes bytes;
    berth_tensor tensor = {
        .dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {2}, .data = (void *)(uintptr_t)two};
    berth_vec_push(in->arena, &node->inputs, "fuzz in");
    berth_vec_push(in->arena, &node->outputs, "fuzz out");
    berth_onnx_node_set_int(in->arena, node, "axis", -3);
    berth_onnx_node_set_int(in->arena, node, "axis", 5);
    berth_onnx_node_set_int(in->arena, node, "keepdims", 1);
    berth_onnx_node_remove(node, "keepdims");
    berth_onnx_edit_remove_constant(copy, "fuzz in");
    berth_onnx_edit_add_constant(copy, "fuzz in", &tensor);
    uint32_t output = berth_onnx_edit_output(copy, "fuzz out");
    must(berth_onnx_edit_output(copy, "fuzz out") == output);
    berth_onnx_edit_set_opset(copy, 17);
    BERTH_TRY(berth_onnx_edit_write(in->arena, copy, &bytes));
    BERTH_TRY(berth_onnx_edit_read_memory(in->arena, bytes.data, bytes.size_bytes, "changed", NULL,
                                          &again));
    must(again->nodes.count == model->nodes.count + 1);
    same_nodes(model, again, model->nodes.count);
    node = again->nodes.data[model->nodes.count];
    must(berth_onnx_node_is(node, "Relu") && berth_onnx_node_int(node, "axis", 0) == 5);
    must(!berth_onnx_node_has(node, "keepdims"));
    must(berth_onnx_edit_opset(again) == 17 && berth_onnx_edit_output(again, "fuzz out") == output);
    berth_onnx_constant *constant = berth_onnx_edit_constant(again, "fuzz in");
    const berth_tensor *read = NULL;
    must(constant != NULL);
    BERTH_TRY(berth_onnx_edit_tensor(again, constant, &read));
    must(read->dtype == BERTH_DTYPE_F32 && memcmp(read->data, two, sizeof(two)) == 0);
    return BERTH_OK;
}

static bool imports(const void *data, size_t size_bytes) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (!status)
        status = berth_onnx_import_memory(arena, data, size_bytes, "m.onnx", NULL, NULL, &module);
    bool done = !status;
    berth_status_free(status);
    berth_arena_destroy(arena);
    return done;
}

static berth_status edit(void *user) {
    const input *in = user;
    berth_onnx_edit *model = NULL, *again = NULL;
    berth_onnx_bytes first, second;
    BERTH_TRY(berth_onnx_edit_read_memory(in->arena, in->data, in->size_bytes, "m", NULL, &model));
    BERTH_TRY(read_all(model));
    BERTH_TRY(berth_onnx_edit_write(in->arena, model, &first));
    berth_status status = berth_onnx_edit_read_memory(in->arena, first.data, first.size_bytes,
                                                      "written", NULL, &again);
    must(!status);  // what it wrote it reads
    same_models(model, again);
    BERTH_TRY(berth_onnx_edit_write(in->arena, again, &second));
    must(first.size_bytes == second.size_bytes &&
         memcmp(first.data, second.data, first.size_bytes) == 0);
    if (imports(in->data, in->size_bytes)) must(imports(first.data, first.size_bytes));
    return change(in, model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {.data = data, .size_bytes = size};
    berth_status status = berth_arena_create(berth_allocator_system(), &in.arena);
    if (!status) status = berth_arena_try(in.arena, edit, &in);
    berth_status_free(status);
    berth_arena_destroy(in.arena);
    return 0;
}
