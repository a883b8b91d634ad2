// Dimensions and inputs of the public compiler (<berth/compile.h>).
#include <berth/compile.h>
#include <string.h>

#include "api/compile/compiler.h"

typedef struct input_job {
    berth_api_inputs *given;
    berth_arena *arena;
    const char *name;
    const char *value;
    int64_t extent, most;
    const berth_tensor *tensor;
    bool constant, keeps_data;
} input_job;

static berth_status set_dim(void *user) {
    const input_job *job = user;
    berth_api_inputs *given = job->given;
    for (uint32_t i = 0; i < given->dims.count; ++i) {
        if (strcmp(given->dims.data[i].name, job->name) != 0) continue;
        given->dims.data[i].extent = job->extent;
        return BERTH_OK;
    }
    const char *name = berth_arena_strdup(job->arena, job->name);
    berth_vec_push(job->arena, &given->dims, (berth_dim_binding){name, job->extent});
    return BERTH_OK;
}

berth_status berth_compiler_set_dim(berth_compiler *compiler, const char *name, int64_t extent) {
    if (extent < 0)
        return berth_status_make(BERTH_OUT_OF_RANGE, "dimension %s cannot be %lld", name,
                                 (long long)extent);
    berth_arena *arena = berth_api__compiler_arena(compiler);
    input_job job = {.given = berth_api__compiler_inputs(compiler),
                     .arena = arena,
                     .name = name,
                     .extent = extent};
    return berth_arena_try(arena, set_dim, &job);
}

static berth_status set_dim_bounds(void *user) {
    const input_job *job = user;
    berth_api_inputs *given = job->given;
    berth_dim_bounds made = {job->name, job->extent, job->most};
    for (uint32_t i = 0; i < given->bounds.count; ++i) {
        if (strcmp(given->bounds.data[i].name, job->name) != 0) continue;
        made.name = given->bounds.data[i].name;
        given->bounds.data[i] = made;
        return BERTH_OK;
    }
    made.name = berth_arena_strdup(job->arena, job->name);
    berth_vec_push(job->arena, &given->bounds, made);
    return BERTH_OK;
}

berth_status berth_compiler_set_dim_bounds(berth_compiler *compiler, const char *name,
                                           int64_t least, int64_t most) {
    if (least < 0 || least > most)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "dimension %s: the bounds %lld..%lld hold no extent", name,
                                 (long long)least, (long long)most);
    berth_arena *arena = berth_api__compiler_arena(compiler);
    input_job job = {.given = berth_api__compiler_inputs(compiler),
                     .arena = arena,
                     .name = name,
                     .extent = least,
                     .most = most};
    return berth_arena_try(arena, set_dim_bounds, &job);
}

static berth_status set_dim_expression(void *user) {
    const input_job *job = user;
    berth_api_inputs *given = job->given;
    berth_dim_relation made = {job->name, berth_arena_strdup(job->arena, job->value)};
    for (uint32_t i = 0; i < given->relations.count; ++i) {
        if (strcmp(given->relations.data[i].name, job->name) != 0) continue;
        given->relations.data[i].expression = made.expression;
        return BERTH_OK;
    }
    made.name = berth_arena_strdup(job->arena, job->name);
    berth_vec_push(job->arena, &given->relations, made);
    return BERTH_OK;
}

berth_status berth_compiler_set_dim_expression(berth_compiler *compiler, const char *name,
                                               const char *expression) {
    berth_arena *arena = berth_api__compiler_arena(compiler);
    input_job job = {.given = berth_api__compiler_inputs(compiler),
                     .arena = arena,
                     .name = name,
                     .value = expression};
    return berth_arena_try(arena, set_dim_expression, &job);
}

static berth_status set_input(void *user) {
    const input_job *job = user;
    berth_api_inputs *given = job->given;
    berth_input_binding binding = {.tensor = *job->tensor, .as_constant = job->constant};
    binding.tensor.data = NULL;
    if (job->constant || job->keeps_data)
        binding.tensor = berth_tensor_copy(job->arena, job->tensor);
    uint32_t at = 0;
    while (at < given->inputs.count && strcmp(given->inputs.data[at].name, job->name) != 0) ++at;
    binding.name = berth_arena_strdup(job->arena, job->name);
    if (at == given->inputs.count)
        berth_vec_push(job->arena, &given->inputs, binding);
    else
        given->inputs.data[at] = binding;
    return BERTH_OK;
}

berth_status berth_compiler_set_input(berth_compiler *compiler, const char *name,
                                      const berth_tensor *value, int constant) {
    berth_status status = BERTH_OK;
    if (constant)
        status = berth_tensor_check(value);
    else
        status = berth_shape_size_bytes(value->dtype, value->rank, value->dims, NULL, NULL);
    if (status) return berth_status_prefix(status, "input \"%s\"", name);
    berth_arena *arena = berth_api__compiler_arena(compiler);
    input_job job = {.given = berth_api__compiler_inputs(compiler),
                     .arena = arena,
                     .name = name,
                     .tensor = value,
                     .constant = constant != 0};
    return berth_arena_try(arena, set_input, &job);
}

berth_status berth_compiler_set_input_value(berth_compiler *compiler, const char *name,
                                            const berth_tensor *value) {
    BERTH_TRY(berth_status_prefix(berth_tensor_check(value), "input \"%s\"", name));
    berth_arena *arena = berth_api__compiler_arena(compiler);
    input_job job = {.given = berth_api__compiler_inputs(compiler),
                     .arena = arena,
                     .name = name,
                     .tensor = value,
                     .keeps_data = true};
    return berth_arena_try(arena, set_input, &job);
}

bool berth_api__knows_inputs(const berth_api_inputs *given) {
    for (uint32_t i = 0; i < given->inputs.count; ++i) {
        const berth_tensor *tensor = &given->inputs.data[i].tensor;
        if (!tensor->data && berth_tensor_size_bytes(tensor)) return false;
    }
    return given->inputs.count > 0;
}
