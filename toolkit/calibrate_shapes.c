#include "toolkit/calibrate_shapes.h"

typedef struct conv_row {
    int64_t inputs, outputs, extent, window, stride, group;
} conv_row;

// Maps and channels as image models have them: large and shallow to small and deep.
static const conv_row convs[] = {
    {3, 32, 112, 3, 2, 1},     {3, 64, 224, 7, 2, 1},    {1, 16, 28, 5, 1, 1},
    {64, 64, 56, 3, 1, 1},     {128, 128, 28, 3, 1, 1},  {256, 256, 14, 3, 1, 1},
    {512, 512, 7, 3, 1, 1},    {128, 128, 28, 3, 2, 1},  {32, 48, 14, 5, 1, 1},
    {16, 16, 8, 3, 1, 1},      {16, 64, 56, 3, 1, 1},    {48, 64, 27, 3, 1, 1},
    {128, 32, 28, 3, 1, 1},    {64, 32, 112, 3, 1, 1},   {64, 256, 56, 1, 1, 1},
    {512, 128, 28, 1, 1, 1},   {1024, 256, 14, 1, 1, 1}, {512, 2048, 7, 1, 1, 1},
    {16, 32, 60, 1, 1, 1},     {32, 32, 30, 1, 1, 1},    {256, 256, 8, 1, 1, 1},
    {32, 16, 14, 1, 1, 1},     {24, 144, 28, 1, 1, 1},   {192, 64, 28, 1, 1, 1},
    {64, 64, 112, 1, 1, 1},    {32, 32, 112, 3, 1, 32},  {128, 128, 56, 3, 1, 128},
    {256, 256, 14, 3, 1, 256}, {512, 512, 7, 3, 1, 512}, {64, 64, 20, 3, 2, 64},
};

typedef struct matmul_row {
    int64_t rows, depth, columns;
} matmul_row;

static const matmul_row matmuls[] = {
    {1, 1024, 1000}, {1, 4096, 1024},  {1, 256, 128},   {1, 64, 10},  {16, 256, 256},
    {64, 768, 768},  {128, 768, 2304}, {256, 512, 512}, {32, 64, 32}, {196, 64, 64}};

// Maps for the rest.
static const struct { int64_t channels, extent; } maps[] = {{16, 8}, {256, 7}, {64, 28}, {64, 112}};

typedef struct builder {
    berth_module *module;
    berth_func_id main;
    BERTH_VEC(berth_value_id) results;
    uint64_t seed;
} builder;

static berth_value_id param(builder *b, int rank, const int64_t *dims) {
    return berth_graph_add_param(b->module, b->main,
                                 berth_arena_printf(b->module->arena, "x%u", b->results.count),
                                 berth_type_tensor(b->module, BERTH_DTYPE_F32, rank, dims));
}

static berth_value_id weights(builder *b, int rank, const int64_t *dims) {
    berth_tensor tensor = berth_tensor_create(b->module->arena, BERTH_DTYPE_F32, rank, dims);
    berth_tensor_fill_random(&tensor, ++b->seed);
    return berth_graph_constant(b->module, b->main, 0, &tensor, 0);
}

// Adds the operation whose result is an output; the caller sets attributes.
static berth_attrs *add(builder *b, berth_op_kind kind, const berth_value_id *inputs,
                        uint32_t count) {
    const char *name = berth_arena_printf(b->module->arena, "row%u", b->results.count);
    berth_value_id result = berth_graph_op1(
        b->module, b->main, kind, inputs, count,
        berth_loc_node(b->module, "calibration", name, berth_op_facts_get(kind)->name));
    berth_vec_push(b->module->arena, &b->results, result);
    berth_graph *graph = berth_graph_get(b->module, b->main);
    graph->values.data[result].name = berth_module_intern(
        b->module, berth_arena_printf(b->module->arena, "y%u", b->results.count));
    return &graph->ops.data[graph->values.data[result].op].attrs;
}

static void add_window(builder *b, berth_attrs *attrs, int64_t window, int64_t stride) {
    int64_t p = window / 2;
    berth_attrs_set_ints(b->module, attrs, "kernel_shape", (int64_t[]){window, window}, 2);
    berth_attrs_set_ints(b->module, attrs, "strides", (int64_t[]){stride, stride}, 2);
    berth_attrs_set_ints(b->module, attrs, "pads", (int64_t[]){p, p, p, p}, 4);
}

static void add_conv(builder *b, const conv_row *row) {
    berth_value_id inputs[] = {
        param(b, 4, (int64_t[]){1, row->inputs, row->extent, row->extent}),
        weights(b, 4,
                (int64_t[]){row->outputs, row->inputs / row->group, row->window, row->window})};
    berth_attrs *attrs = add(b, BERTH_OP_CONV, inputs, 2);
    add_window(b, attrs, row->window, row->stride);
    berth_attrs_set_int(b->module, attrs, "group", row->group);
}

// Per map: elementwise of one and of two operands, functions, pools, sums, moves.
static void add_map(builder *b, int64_t channels, int64_t extent) {
    int64_t dims[] = {1, channels, extent, extent};
    berth_value_id two[2] = {0};
    two[0] = param(b, 4, dims);
    (void)add(b, BERTH_OP_RELU, two, 1);
    two[0] = param(b, 4, dims);
    two[1] = weights(b, 4, dims);
    (void)add(b, BERTH_OP_ADD, two, 2);
    two[0] = param(b, 4, dims);
    (void)add(b, BERTH_OP_SIGMOID, two, 1);
    two[0] = param(b, 4, dims);
    add_window(b, add(b, BERTH_OP_MAX_POOL, two, 1), 3, 2);
    two[0] = param(b, 4, dims);
    (void)add(b, BERTH_OP_GLOBAL_AVERAGE_POOL, two, 1);
    two[0] = param(b, 4, dims);
    berth_attrs_set_ints(b->module, add(b, BERTH_OP_TRANSPOSE, two, 1), "perm",
                         (int64_t[]){0, 2, 3, 1}, 4);
    two[0] = param(b, 2, (int64_t[]){channels, extent * extent});
    berth_attrs_set_int(b->module, add(b, BERTH_OP_SOFTMAX, two, 1), "axis", -1);
}

static berth_status build(void *user) {
    builder *b = user;
    b->main = berth_graph_create(b->module, "main", 0);
    for (size_t i = 0; i < sizeof(convs) / sizeof(convs[0]); ++i) add_conv(b, &convs[i]);
    for (size_t i = 0; i < sizeof(matmuls) / sizeof(matmuls[0]); ++i) {
        const matmul_row *row = &matmuls[i];
        berth_value_id inputs[] = {param(b, 2, (int64_t[]){row->rows, row->depth}),
                                   weights(b, 2, (int64_t[]){row->depth, row->columns})};
        (void)add(b, BERTH_OP_MATMUL, inputs, 2);
    }
    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); ++i)
        add_map(b, maps[i].channels, maps[i].extent);
    berth_graph_set_results(b->module, b->main, b->results.data, b->results.count);
    return BERTH_OK;
}

typedef struct job {
    berth_arena *arena;
    berth_module **out_module;
} job;

static berth_status run(void *user) {
    job *j = user;
    builder b = {.module = berth_module_create(j->arena, "calibration")};
    BERTH_TRY(build(&b));
    *j->out_module = b.module;
    return BERTH_OK;
}

berth_status berth_toolkit__calibrate_shapes(void *user, berth_arena *arena,
                                             berth_module **out_module) {
    job j = {arena, out_module};
    (void)user;
    return berth_arena_try(arena, run, &j);
}
