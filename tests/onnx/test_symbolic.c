// Symbolic shapes against fixed ones: every conformance model is inferred once with the extents of
// its inputs and once with symbols in their place; the expressions that come out, with the extents
// put in, are the shapes that the first inference found.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "compiler/onnx/import.h"
#include "ir/dim.h"
#include "ir/infer.h"

static const char folder[] = "/usr/share/libonnx-testdata/data/node";

typedef struct run {
    berth_arena *arena;
    const char *path;
    bool by_extent;  // equal extents of inputs get one symbol; else every dimension its own
    berth_module *module;
    uint32_t symbols;   // dimensions that are symbols after inference
    uint32_t computed;  // of those: expressions, not only a name
    const char *difference;
} run;

// Symbols are called "sEXTENT" or "sEXTENT_NUMBER".
static int64_t extent_of(void *user, const char *symbol) {
    (void)user;
    long long extent = 0;
    return sscanf(symbol, "s%lld", &extent) == 1 ? extent : BERTH_DIM_UNKNOWN;
}

static void make_symbolic(run *r, berth_graph *graph) {
    const berth_region *root = &graph->regions.data[0];
    uint32_t number = 0;
    for (uint32_t i = 0; i < root->params.count; ++i) {
        berth_value *value = &graph->values.data[root->params.data[i]];
        berth_type type = *berth_type_get(r->module, value->type);
        for (int d = 0; d < type.rank; ++d) {
            const char *name =
                r->by_extent
                    ? berth_arena_printf(r->arena, "s%lld", (long long)type.dims[d])
                    : berth_arena_printf(r->arena, "s%lld_%u", (long long)type.dims[d], number++);
            if (type.dims[d] >= 0)
                type.dims[d] = berth_dim_symbol(berth_module_intern(r->module, name));
        }
        value->type = berth_type_tensor(r->module, type.dtype, type.rank, type.dims);
    }
}

static void compare(run *r, const berth_type *fixed, const berth_type *symbolic,
                    const berth_value *value) {
    if (fixed->kind != BERTH_TYPE_TENSOR || symbolic->kind != BERTH_TYPE_TENSOR) return;
    bool ranks = fixed->rank >= 0 && symbolic->rank >= 0;
    if (ranks && fixed->rank != symbolic->rank) r->difference = "ranks differ";
    for (int d = 0; ranks && d < fixed->rank && !r->difference; ++d) {
        int64_t dim = symbolic->dims[d];
        int64_t extent =
            berth_dim_is_symbol(dim) ? berth_dim_substitute(r->module, dim, extent_of, NULL) : dim;
        r->symbols += dim < 0 && dim != BERTH_DIM_UNKNOWN;
        r->computed += berth_dim_is_expression(r->module, dim);
        if (extent < 0 || fixed->dims[d] < 0 || extent == fixed->dims[d]) continue;
        berth_strbuf text = berth_strbuf_make(r->arena);
        berth_dim_print(r->module, dim, &text);
        r->difference =
            berth_arena_printf(r->arena, "dimension %d of \"%s\" is %lld, but %s is %lld", d,
                               berth_module_str(r->module, value->name), (long long)fixed->dims[d],
                               berth_strbuf_text(&text), (long long)extent);
    }
}

static berth_status infer_both(void *user) {
    run *r = user;
    berth_func_id main = berth_module_find_function(r->module, "main");
    berth_graph *graph = berth_graph_get(r->module, main);
    berth_status status = berth_infer_function(r->module, main);
    berth_status_free(status);
    if (status) return BERTH_OK;  // not this test's matter
    uint32_t count = graph->values.count;
    berth_type_id *fixed = berth_arena_new_array(r->arena, berth_type_id, count);
    for (uint32_t i = 0; i < count; ++i) fixed[i] = graph->values.data[i].type;
    make_symbolic(r, graph);
    BERTH_TRY(berth_infer_function(r->module, main));
    for (uint32_t i = 0; i < count && !r->difference; ++i) {
        const berth_type a = *berth_type_get(r->module, fixed[i]);
        const berth_type b = *berth_type_get(r->module, graph->values.data[i].type);
        compare(r, &a, &b, &graph->values.data[i]);
    }
    return BERTH_OK;
}

// False when the model cannot be imported.
static bool check(run *r) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &r->arena));
    berth_status status = berth_onnx_import(r->arena, r->path, NULL, &r->module);
    bool imported = status == BERTH_OK;
    if (imported) status = berth_arena_try(r->arena, infer_both, r);
    if (imported && status)
        r->difference = berth_arena_printf(r->arena, "%s", berth_status_message(status));
    cr_expect_null(r->difference, "%s: %s", r->path, r->difference);
    berth_status_free(status);
    berth_arena_destroy(r->arena);
    return imported;
}

Test(symbolic, conformance_models) {
    DIR *all = opendir(folder);
    if (!all) {
        fprintf(stderr, "%s is not here (package libonnx-testdata): nothing checked\n", folder);
        return;
    }
    uint32_t models = 0, symbols = 0, computed = 0;
    for (const struct dirent *entry; (entry = readdir(all));) {
        char path[1024];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%s/%s/model.onnx", folder, entry->d_name);
        for (int by_extent = 0; by_extent < 2; ++by_extent) {
            run r = {.path = path, .by_extent = by_extent};
            models += check(&r);
            symbols += r.symbols;
            computed += r.computed;
        }
    }
    closedir(all);
    fprintf(stderr, "%u inferences, %u symbolic dimensions, %u of them computed\n", models, symbols,
            computed);
    cr_expect_gt(models, 1500);
    cr_expect_gt(symbols, 6000);
    cr_expect_gt(computed, 150);
}
