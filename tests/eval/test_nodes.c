// The ONNX conformance models of Debian's libonnx-testdata (one operator each), imported and run by
// the interpreter. unsupported.def lists what is not expected to pass, with reasons: a model that
// fails and is not listed, or passes and is listed, fails the test.
#include <criterion/criterion.h>
#include <dirent.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/tensor_proto.h"
#include "compiler/onnx/import.h"
#include "ir/eval.h"

static const char data_folder[] = "/usr/share/libonnx-testdata/data/node";

#define MAX_VALUES 16
#define MAX_MODELS 4096
#define RELATIVE_TOLERANCE 1e-3  // of ONNX's own backend tests
#define ABSOLUTE_TOLERANCE 1e-7

static const struct {
    const char *pattern, *reason;
} unsupported[] = {
#define UNSUPPORTED(pattern, reason) {pattern, reason},
#include "tests/eval/unsupported.def"
#undef UNSUPPORTED
};

static const char *unsupported_reason(const char *name) {
    for (size_t i = 0; i < sizeof(unsupported) / sizeof(unsupported[0]); ++i)
        if (fnmatch(unsupported[i].pattern, name, 0) == 0) return unsupported[i].reason;
    return NULL;
}

typedef struct node_run {
    berth_arena *arena;
    const char *name;
    berth_op_kind kind;      // of the last operation, for the summary
    const char *difference;  // NULL = passes
} node_run;

// Tensor file `kind`_`index`.pb; *out_found = false when there is none.
static berth_status read_tensor(const node_run *run, const char *kind, int index, bool *out_found,
                                berth_tensor_proto *out) {
    char *data = NULL;
    size_t size_bytes = 0;
    const char *path = berth_arena_printf(run->arena, "%s/%s/test_data_set_0/%s_%d.pb", data_folder,
                                          run->name, kind, index);
    *out_found = berth_file_exists(path);
    if (!*out_found) return BERTH_OK;
    BERTH_TRY(berth_file_read(run->arena, path, (size_t)64 << 20, &data, &size_bytes));
    return berth_tensor_proto_parse(run->arena, berth_wire_make(data, size_bytes), false, out);
}

static const char *compare(const node_run *run, berth_tensor got, berth_tensor expected) {
    // The data of some models holds bf16 as the bits in u16.
    if (got.dtype == BERTH_DTYPE_BF16 && expected.dtype == BERTH_DTYPE_U16)
        expected.dtype = BERTH_DTYPE_BF16;
    if (got.dtype != expected.dtype || !berth_tensor_same_shape(&got, &expected))
        return berth_arena_printf(run->arena, "%s of rank %d, expected %s of rank %d or other dims",
                                  berth_dtype_name(got.dtype), got.rank,
                                  berth_dtype_name(expected.dtype), expected.rank);
    double relative = got.dtype == BERTH_DTYPE_BF16 ? 0x1p-7 : RELATIVE_TOLERANCE;
    for (int64_t i = 0; i < berth_tensor_element_count(&got); ++i) {
        double a = berth_tensor_get_f64(&got, i), b = berth_tensor_get_f64(&expected, i);
        if (a == b || (isnan(a) && isnan(b))) continue;
        if (!(fabs(a - b) <= ABSOLUTE_TOLERANCE + relative * fabs(b)))
            return berth_arena_printf(run->arena, "element %lld is %g, expected %g", (long long)i,
                                      a, b);
    }
    return NULL;
}

static const char *input_name(const berth_module *module, const berth_graph *graph, uint32_t i) {
    berth_value_id param = graph->regions.data[0].params.data[i];
    return berth_module_str(module, graph->values.data[param].name);
}

// Imports once for the names of the inputs, then with the shapes of the data.
static berth_status import_bound(node_run *run, berth_tensor *inputs, uint32_t count,
                                 berth_module **out_module) {
    const char *path = berth_arena_printf(run->arena, "%s/%s/model.onnx", data_folder, run->name);
    berth_import_options options = {0};
    berth_input_binding bindings[MAX_VALUES];
    uint32_t bound = 0;
    BERTH_TRY(berth_onnx_import(run->arena, path, &options, out_module));
    berth_func_id main = berth_module_find_function(*out_module, "main");
    const berth_graph *graph = berth_graph_get(*out_module, main);
    const berth_region *root = &graph->regions.data[0];
    if (root->params.count != count)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "%u inputs for %u files",
                                 root->params.count, count);
    for (uint32_t i = 0; i < count; ++i) {
        const berth_type *type =
            berth_type_get(*out_module, graph->values.data[root->params.data[i]].type);
        if (type->dtype == BERTH_DTYPE_BF16 && inputs[i].dtype == BERTH_DTYPE_U16)
            inputs[i].dtype = BERTH_DTYPE_BF16;
        // The data of castlike with bf16 has another rank than its model says.
        if (type->rank >= 0 && type->rank != inputs[i].rank) continue;
        bindings[bound++] =
            (berth_input_binding){.name = input_name(*out_module, graph, i), .tensor = inputs[i]};
    }
    options = (berth_import_options){.inputs = bindings, .input_count = bound};
    return berth_onnx_import(run->arena, path, &options, out_module);
}

static berth_status run_body(void *user) {
    node_run *run = user;
    berth_tensor inputs[MAX_VALUES], got[MAX_VALUES];
    uint32_t count = 0;
    berth_module *module = NULL;
    berth_tensor_proto proto;
    for (bool found = true; count < MAX_VALUES;) {
        BERTH_TRY(read_tensor(run, "input", (int)count, &found, &proto));
        if (!found) break;
        inputs[count++] = proto.tensor;
    }
    BERTH_TRY(import_bound(run, inputs, count, &module));
    berth_func_id main = berth_module_find_function(module, "main");
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    if (root->ops.count) run->kind = graph->ops.data[root->ops.data[root->ops.count - 1]].kind;
    if (root->results.count > MAX_VALUES)
        return berth_status_make(BERTH_UNSUPPORTED, "too many results");
    BERTH_TRY(
        berth_eval_function(module, main, inputs, count, got, root->results.count, run->arena));
    run->difference = root->results.count ? NULL : "no results";
    for (uint32_t i = 0; i < root->results.count && !run->difference; ++i) {
        bool found = false;
        BERTH_TRY(read_tensor(run, "output", (int)i, &found, &proto));
        run->difference = found ? compare(run, got[i], proto.tensor) : "no expected output";
    }
    return BERTH_OK;
}

typedef struct totals {
    int passed[BERTH_OP_COUNT];
    int failed[BERTH_OP_COUNT];
    int pass_count, unsupported_count, wrong_count;
} totals;

static void run_model(const char *name, totals *t) {
    node_run run = {.name = name, .kind = BERTH_OP_CONSTANT, .difference = "not run"};
    berth_status status = berth_arena_create(berth_allocator_system(), &run.arena);
    cr_assert_null(status);
    status = berth_arena_try(run.arena, run_body, &run);
    bool passed = !status && !run.difference;
    const char *reason = unsupported_reason(name);
    (passed ? t->passed : t->failed)[run.kind]++;
    t->pass_count += passed;
    t->unsupported_count += !passed && reason;
    if (passed && reason) {
        ++t->wrong_count;
        printf("%s passes but is listed: %s\n", name, reason);
    } else if (!passed && !reason) {
        ++t->wrong_count;
        printf("%s: %s\n", name, status ? berth_status_message(status) : run.difference);
    }
    berth_status_free(status);
    berth_arena_destroy(run.arena);
}

Test(eval_nodes, conformance_models) {
    struct dirent **entries = NULL;
    int count = scandir(data_folder, &entries, NULL, alphasort);
    if (count < 0) cr_skip("skipped: %s is not there (libonnx-testdata)", data_folder);
    totals *t = calloc(1, sizeof(*t));
    cr_assert_not_null(t);
    for (int i = 0; i < count; ++i) {
        if (entries[i]->d_name[0] != '.') run_model(entries[i]->d_name, t);
        free(entries[i]);
    }
    free(entries);
    for (int k = 0; k < BERTH_OP_COUNT; ++k)
        if (t->passed[k] + t->failed[k])
            printf("%-28s %3d pass %3d do not\n",
                   k == BERTH_OP_CONSTANT ? "(constants, not imported)"
                                          : berth_op_facts_get((berth_op_kind)k)->name,
                   t->passed[k], t->failed[k]);
    printf("conformance models: %d pass, %d unsupported, %d unexpected\n", t->pass_count,
           t->unsupported_count, t->wrong_count);
    cr_assert_eq(t->wrong_count, 0);
    free(t);
}
