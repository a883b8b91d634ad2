// Every model at hand is imported and folded, or refused with a reason; the inferred types of its
// outputs are those of the expected outputs beside it. Models: Debian's libonnx-testdata and
// ../shared/models; absent ones are skipped and counted. The expected outputs are the independent
// reference: they come from ONNX itself.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/tensor_proto.h"
#include "compiler/onnx/import.h"
#include "compiler/passes/fold.h"
#include "ir/pass.h"

#define MAX_TENSORS 32
#define MAX_REFUSALS 64

typedef struct refusal {
    char reason[160];  // the operators, without the model's name and the nodes
    int count;
} refusal;

typedef struct tally {
    int imported;
    int checked_outputs;
    int dynamic_outputs;  // whose shape depends on the data
    int refused;
    refusal refusals[MAX_REFUSALS];
    int refusal_count;
} tally;

typedef struct attempt {
    berth_arena *arena;
    const char *folder;  // of the model
    char data[540];      // its first data set
    berth_module *module;
    berth_func_id main;
    berth_tensor inputs[MAX_TENSORS];
    berth_input_binding bindings[MAX_TENSORS];
    uint32_t binding_count;
} attempt;

// ---- reading ----

static bool read_tensor(berth_arena *arena, const char *path, berth_tensor *out) {
    char *data = NULL;
    size_t size = 0;
    berth_tensor_proto proto;
    if (!berth_file_exists(path)) return false;
    berth_status status = berth_file_read(arena, path, (size_t)1 << 30, &data, &size);
    if (!status)
        status = berth_tensor_proto_parse(arena, berth_wire_make(data, size), false, &proto);
    bool ok = status == BERTH_OK;
    berth_status_free(status);
    if (ok) *out = proto.tensor;
    return ok;
}

static berth_status fold_and_verify(void *user) {
    attempt *a = user;
    BERTH_TRY(berth_module_verify(a->module));
    BERTH_TRY(berth_pass_fold(a->module, a->main, NULL));
    return berth_module_verify(a->module);
}

static berth_status import_once(attempt *a) {
    char path[640];
    berth_import_options options = {.inputs = a->bindings, .input_count = a->binding_count};
    snprintf(path, sizeof(path), "%s/model.onnx", a->folder);
    BERTH_TRY(berth_onnx_import(a->arena, path, &options, &a->module));
    a->main = berth_module_find_function(a->module, "main");
    return BERTH_OK;
}

// ---- binding the data set's inputs ----

// Marks the values that some operation needs on the host (shapes, axes, sizes), and what those are
// made from. Operations are in order, so one walk backwards is enough.
static bool *find_host_values(attempt *a, const berth_graph *graph) {
    bool *needed = berth_arena_new_array(a->arena, bool, graph->values.count);
    for (uint32_t i = graph->ops.count; i-- > 0;) {
        const berth_op *op = &graph->ops.data[i];
        bool all = false;
        for (uint32_t k = 0; k < op->output_count; ++k) all |= needed[op->outputs[k]];
        all &= op->kind != BERTH_OP_SHAPE_OF && op->kind != BERTH_OP_SIZE_OF;
        for (uint32_t k = 0; k < op->input_count && k < 32; ++k)
            if (op->inputs[k] != BERTH_NONE &&
                (all || (berth_op_facts_get(op->kind)->host_operands >> k & 1)))
                needed[op->inputs[k]] = true;
    }
    return needed;
}

// The test data was written by a version of numpy without bfloat16: its tensors say uint16.
static void relabel_bf16(berth_tensor *tensor, berth_dtype declared) {
    if (declared == BERTH_DTYPE_BF16 && tensor->dtype == BERTH_DTYPE_U16) tensor->dtype = declared;
}

// Inputs that are shapes, axes or sizes count as constants; the others fix the dimensions.
static void bind_inputs(attempt *a) {
    const berth_graph *graph = berth_graph_get(a->module, a->main);
    const berth_region *root = &graph->regions.data[0];
    const bool *host = find_host_values(a, graph);
    for (uint32_t i = 0; i < root->params.count && i < MAX_TENSORS; ++i) {
        char path[640];
        snprintf(path, sizeof(path), "%s/input_%u.pb", a->data, i);
        if (!read_tensor(a->arena, path, &a->inputs[i])) continue;
        berth_type_id type = graph->values.data[root->params.data[i]].type;
        if (berth_type_is_static(berth_type_get(a->module, type)) && !host[root->params.data[i]])
            continue;  // nothing to learn from it
        relabel_bf16(&a->inputs[i], berth_type_get(a->module, type)->dtype);
        const char *name =
            berth_module_str(a->module, graph->values.data[root->params.data[i]].name);
        a->bindings[a->binding_count++] = (berth_input_binding){
            .name = name, .tensor = a->inputs[i], .as_constant = host[root->params.data[i]]};
    }
}

// ---- checking ----

static bool data_dependent(const berth_graph *graph) {
    for (uint32_t i = 0; i < graph->ops.count; ++i)
        if (graph->ops.data[i].region != BERTH_NONE &&
            (berth_op_has(graph->ops.data[i].kind, BERTH_TRAIT_DATA_DEPENDENT) ||
             graph->ops.data[i].kind == BERTH_OP_LOOP || graph->ops.data[i].kind == BERTH_OP_IF ||
             graph->ops.data[i].kind ==
                 BERTH_OP_SEQUENCE_AT ||  // elements have shapes of their own
             graph->ops.data[i].kind == BERTH_OP_CONCAT_FROM_SEQUENCE ||
             graph->ops.data[i].kind == BERTH_OP_OPTIONAL_GET_ELEMENT))
            return true;
    return false;
}

static void check_output(attempt *a, uint32_t index, berth_tensor *expected, tally *t) {
    const berth_graph *graph = berth_graph_get(a->module, a->main);
    const berth_type *type = berth_type_get(
        a->module, graph->values.data[graph->regions.data[0].results.data[index]].type);
    relabel_bf16(expected, type->dtype);
    bool is_static = berth_type_is_static(type);
    bool unknown = type->kind == BERTH_TYPE_UNKNOWN || type->dtype == BERTH_DTYPE_NONE;
    bool same = (type->dtype == expected->dtype || (unknown && data_dependent(graph))) &&
                (type->rank == expected->rank || type->rank < 0 || unknown);
    for (int i = 0; i < type->rank && same && !unknown; ++i)
        same = type->dims[i] == expected->dims[i] || berth_dim_is_symbol(type->dims[i]);
    cr_expect(same, "%s: output %u is %s of rank %d, expected %s of rank %d, or an extent differs",
              a->folder, index, berth_dtype_name(type->dtype), type->rank,
              berth_dtype_name(expected->dtype), expected->rank);
    cr_expect(is_static || data_dependent(graph), "%s: the shape of output %u is not inferred",
              a->folder, index);
    t->checked_outputs += is_static;
    t->dynamic_outputs += !is_static;
}

static void add_refusal(tally *t, const char *message) {
    char reason[160];
    const char *at = strstr(message, "cannot be imported: ");
    snprintf(reason, sizeof(reason), "%.100s", at ? at + strlen("cannot be imported: ") : message);
    if (at)
        reason[strcspn(reason, ";")] = '\0';
    else
        snprintf(reason, sizeof(reason), "%.100s",
                 strchr(message, ')') ? strchr(message, '(') : message);
    t->refused++;
    for (int i = 0; i < t->refusal_count; ++i) {
        if (strcmp(t->refusals[i].reason, reason) == 0) {
            t->refusals[i].count++;
            return;
        }
    }
    if (t->refusal_count == MAX_REFUSALS) return;
    snprintf(t->refusals[t->refusal_count].reason, sizeof(reason), "%s", reason);
    t->refusals[t->refusal_count++].count = 1;
}

static void check_model(const char *folder, tally *t) {
    attempt a = {.folder = folder};
    cr_assert(!berth_arena_create(berth_allocator_system(), &a.arena));
    snprintf(a.data, sizeof(a.data), "%s/test_data_set_0", folder);
    berth_status status = import_once(&a);
    if (!status) {
        bind_inputs(&a);
        if (a.binding_count) status = import_once(&a);
    }
    if (!status) status = berth_arena_try(a.arena, fold_and_verify, &a);
    if (status) {
        cr_expect_eq(berth_status_code(status), BERTH_UNSUPPORTED, "%s: %s", folder,
                     berth_status_message(status));
        add_refusal(t, berth_status_message(status));
        berth_status_free(status);
    } else {
        const berth_graph *graph = berth_graph_get(a.module, a.main);
        t->imported++;
        for (uint32_t i = 0; i < graph->regions.data[0].results.count; ++i) {
            char path[640];
            berth_tensor expected;
            snprintf(path, sizeof(path), "%s/output_%u.pb", a.data, i);
            if (read_tensor(a.arena, path, &expected)) check_output(&a, i, &expected, t);
        }
    }
    berth_arena_destroy(a.arena);
}

static int check_folder(const char *root, tally *t) {
    int found = 0;
    DIR *folder = opendir(root);
    if (!folder) return 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[512];
        char model[540];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%.200s/%.200s", root, entry->d_name);
        snprintf(model, sizeof(model), "%s/model.onnx", path);
        if (!berth_file_exists(model)) continue;
        check_model(path, t);
        found++;
    }
    closedir(folder);
    return found;
}

static void report(const char *what, const tally *t) {
    fprintf(stderr, "%s: %d imported (%d static output types checked, %d dynamic), %d refused\n",
            what, t->imported, t->checked_outputs, t->dynamic_outputs, t->refused);
    for (int i = 0; i < t->refusal_count; ++i)
        fprintf(stderr, "  refused %3d: %s\n", t->refusals[i].count, t->refusals[i].reason);
}

Test(models, libonnx_testdata) {
    static const char *const parts[] = {"node", "simple", "pytorch-converted", "pytorch-operator"};
    tally t = {.imported = 0};
    int found = 0;
    for (int i = 0; i < 4; ++i) {
        char root[128];
        snprintf(root, sizeof(root), "/usr/share/libonnx-testdata/data/%s", parts[i]);
        found += check_folder(root, &t);
    }
    if (!found) cr_skip("skipped: libonnx-testdata is not installed\n");
    report("libonnx-testdata", &t);
    cr_expect_geq(t.imported, 900, "%d models are imported",
                  t.imported);  // 904 of 1072 with version 1.12
}

Test(models, shared_models) {
    tally t = {.imported = 0};
    int found = check_folder("../shared/models", &t);
    if (!found) cr_skip("skipped: ../shared/models is not here\n");
    report("../shared/models", &t);
    // Scan is not supported yet; outputs are dynamic where loops and branches make them so.
    for (int i = 0; i < t.refusal_count; ++i)
        cr_expect_not_null(strstr(t.refusals[i].reason, "Scan"), "%s", t.refusals[i].reason);
}
