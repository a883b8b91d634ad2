#include "toolkit/vm_symbols.h"

#include <string.h>

#include "ir/dim.h"
#include "ir/graph/graph.h"

int64_t berth_vm_symbols_find(void *user, const char *name) {
    const berth_vm_symbols *symbols = user;
    for (uint32_t i = 0; i < symbols->count; ++i)
        if (strcmp(symbols->data[i].name, name) == 0) return symbols->data[i].extent;
    return BERTH_DIM_UNKNOWN;
}

static const berth_graph *main_of(const berth_module *module) {
    return berth_graph_get(module, berth_module_find_function(module, "main"));
}

// The type of an input where it says the rank of what is given; NULL: it does not.
static const berth_type *type_at(const berth_module *module, uint32_t input,
                                 const berth_vm_value *given) {
    const berth_graph *graph = main_of(module);
    const berth_value *value = &graph->values.data[graph->regions.data[0].params.data[input]];
    const berth_type *type = berth_type_get(module, value->type);
    bool known = given && given->kind == BERTH_VM_VALUE_TENSOR && type->kind == BERTH_TYPE_TENSOR &&
                 type->rank == given->tensor.rank;
    return known ? type : NULL;
}

bool berth_vm_has_relations(const berth_module *module) {
    const berth_graph *graph = main_of(module);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i) {
        const berth_type *type =
            berth_type_get(module, graph->values.data[root->params.data[i]].type);
        for (int d = 0; type->kind == BERTH_TYPE_TENSOR && d < type->rank; ++d)
            if (type->dims[d] != BERTH_DIM_UNKNOWN && berth_dim_is_symbol(type->dims[d]) &&
                berth_dim_is_expression(module, type->dims[d]))
                return true;
    }
    return false;
}

// Symbols that are no dimension themselves, from those that follow from them: 160 is 32*a where a is 5.
static void add_followed(const berth_module *module, berth_vm_value *const *inputs,
                         uint32_t input_count, berth_arena *arena, berth_vm_symbols *symbols) {
    for (uint32_t i = 0; i < input_count; ++i) {
        const berth_type *type = type_at(module, i, inputs[i]);
        for (int d = 0; type && d < type->rank; ++d) {
            berth_dim_linear linear;
            if (!berth_dim_read_linear(module, type->dims[d], arena, &linear) ||
                berth_vm_symbols_find(symbols, linear.symbol) != BERTH_DIM_UNKNOWN)
                continue;
            int64_t extent = berth_dim_linear_solve(&linear, inputs[i]->tensor.dims[d]);
            if (extent < 0) continue;
            berth_vm_symbol symbol = {linear.symbol, extent};
            berth_vec_push(arena, symbols, symbol);
        }
    }
}

berth_vm_symbols berth_vm_symbols_of(const berth_module *module, berth_vm_value *const *inputs,
                                     berth_arena *arena) {
    berth_vm_symbols made = {0};
    uint32_t count = main_of(module)->regions.data[0].params.count;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_type *type = type_at(module, i, inputs[i]);
        for (int d = 0; type && d < type->rank; ++d) {
            int64_t dim = type->dims[d];
            if (!berth_dim_is_symbol(dim) || dim == BERTH_DIM_UNKNOWN ||
                berth_dim_is_expression(module, dim))
                continue;
            const char *name = berth_module_str(module, berth_dim_symbol_name(dim));
            if (berth_vm_symbols_find(&made, name) != BERTH_DIM_UNKNOWN) continue;
            berth_vm_symbol symbol = {name, inputs[i]->tensor.dims[d]};
            berth_vec_push(arena, &made, symbol);
        }
    }
    if (berth_vm_has_relations(module)) add_followed(module, inputs, count, arena, &made);
    return made;
}

typedef struct relations_job {
    const berth_module *module;
    berth_vm_value *const *inputs;
    berth_arena *arena;
} relations_job;

static berth_status check_dimension(const relations_job *job, berth_vm_symbols *symbols,
                                    uint32_t input, int64_t dim, int d) {
    const berth_module *module = job->module;
    const berth_graph *graph = main_of(module);
    int64_t wanted = 0, given = job->inputs[input]->tensor.dims[d];
    berth_dim_linear linear;
    if (dim == BERTH_DIM_UNKNOWN || !berth_dim_is_symbol(dim) ||
        !berth_dim_is_expression(module, dim))
        return BERTH_OK;
    const bool known =
        berth_dim_evaluate(module, dim, berth_vm_symbols_find, symbols, job->arena, &wanted);
    if (known && wanted == given) return BERTH_OK;
    if (!known && !berth_dim_read_linear(module, dim, job->arena, &linear)) return BERTH_OK;
    berth_strbuf text = berth_strbuf_make(job->arena);
    berth_dim_print(module, dim, &text);
    const char *name = berth_module_str(
        module, graph->values.data[graph->regions.data[0].params.data[input]].name);
    if (!known)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "input \"%s\": dimension %d is %lld, which %s is for no %s", name,
                                 d, (long long)given, berth_strbuf_text(&text), linear.symbol);
    return berth_status_make(BERTH_INCOMPATIBLE,
                             "input \"%s\": dimension %d is %lld, but %s makes it %lld", name, d,
                             (long long)given, berth_strbuf_text(&text), (long long)wanted);
}

static berth_status check_relations(void *user) {
    const relations_job *job = user;
    berth_vm_symbols symbols = berth_vm_symbols_of(job->module, job->inputs, job->arena);
    const uint32_t count = main_of(job->module)->regions.data[0].params.count;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_type *type = type_at(job->module, i, job->inputs[i]);
        for (int d = 0; type && d < type->rank; ++d)
            BERTH_TRY(check_dimension(job, &symbols, i, type->dims[d], d));
    }
    return BERTH_OK;
}

berth_status berth_vm_check_relations(const berth_module *module, berth_vm_value *const *inputs) {
    relations_job job = {.module = module, .inputs = inputs};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &job.arena));
    berth_status status = berth_arena_try(job.arena, check_relations, &job);
    berth_arena_destroy(job.arena);
    return status;
}
