// Packed constants: bytes by the definition of their layout, the same on any number of threads and
// in any division into parts, and clean ends when memory runs out.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "compiler/passes/pack.h"
#include "compiler/passes/winograd.h"
#include "ir/graph/graph.h"
#include "target/target.h"
#include "tests/check.h"

static const struct {
    const char *tag;
    berth_dtype dtype;
    int rank;
    int64_t dims[4];
} cases[] = {
    {"", BERTH_DTYPE_F32, 0, {0}},
    {"", BERTH_DTYPE_F32, 2, {3, 5}},
    {"ba", BERTH_DTYPE_F32, 2, {37, 21}},
    {"ba", BERTH_DTYPE_F64, 2, {5, 40}},
    {"cab", BERTH_DTYPE_U8, 3, {3, 20, 4}},
    {"bac", BERTH_DTYPE_F16, 3, {4, 3, 5}},
    {"ABcd8b16a", BERTH_DTYPE_F32, 4, {32, 24, 3, 3}},
    {"ABcd8b16a", BERTH_DTYPE_F32, 4, {32, 1032, 1, 2}},  // more columns than one table holds
    {"ABcd8b16a", BERTH_DTYPE_F32, 4, {40, 8, 2, 1}},     // rows end in half a block
    {"ABcd8b16a", BERTH_DTYPE_F32, 4, {32, 12, 2, 2}},    // other dimensions do
    {"ABcd8b8a", BERTH_DTYPE_F32, 4, {24, 16, 1, 1}},
    {"ABcd8b8a", BERTH_DTYPE_F64, 4, {16, 16, 2, 1}},
    {"ABcd8b16a", BERTH_DTYPE_F16, 4, {32, 8, 3, 1}},
    {"ABcd8b16a", BERTH_DTYPE_I8, 4, {17, 9, 3, 1}},
    {"Abcd16a", BERTH_DTYPE_F32, 4, {64, 3, 7, 7}},
    {"Abcd8a", BERTH_DTYPE_F32, 4, {20, 1, 3, 3}},
    {"A8a", BERTH_DTYPE_F32, 1, {21}},
    {"Ba16b", BERTH_DTYPE_F32, 2, {9, 50}},
    {"Ab16a", BERTH_DTYPE_F32, 2, {50, 9}},
    {"aBcd8b", BERTH_DTYPE_F32, 4, {2, 24, 5, 3}},
    {"aBcd8b", BERTH_DTYPE_F32, 4, {2, 20, 5, 3}},
    {"AB4b16a2b", BERTH_DTYPE_F32, 2, {48, 24}},
    {"AB4b16a2b", BERTH_DTYPE_F32, 2, {40, 21}},
    {"ABcd8b16a", BERTH_DTYPE_F32, 4, {16, 0, 1, 1}},
};
enum { case_count = sizeof(cases) / sizeof(cases[0]) };

static berth_layout layout_of(int row) {
    berth_layout layout;
    assert_ok(berth_layout_parse(cases[row].tag, cases[row].rank, &layout));
    return layout;
}

// A tensor of bytes that are all different, one byte after an aligned address.
static berth_tensor unaligned(berth_arena *arena, int row) {
    berth_tensor tensor = {.dtype = cases[row].dtype, .rank = cases[row].rank};
    memcpy(tensor.dims, cases[row].dims, sizeof(cases[row].dims));
    size_t size = berth_tensor_size_bytes(&tensor);
    uint8_t *data = (uint8_t *)berth_arena_alloc_aligned(arena, size + 1, 64) + 1;
    for (size_t i = 0; i < size; ++i) data[i] = (uint8_t)(1 + (i * 2654435761u >> 7) % 255);
    tensor.data = data;
    return tensor;
}

// By the definition: element by element, zeros elsewhere.
static uint8_t *packed_by_definition(berth_arena *arena, const berth_layout *layout,
                                     const berth_tensor *tensor, size_t *out_size) {
    size_t size = berth_dtype_size_bytes(tensor->dtype);
    *out_size = (size_t)berth_layout_element_count(layout, tensor->dims) * size;
    uint8_t *packed = berth_arena_alloc(arena, *out_size + 1);
    int64_t count = berth_tensor_element_count(tensor);
    int64_t index[BERTH_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; ++i) {
        int64_t at = berth_layout_offset(layout, tensor->dims, index);
        memcpy(packed + (size_t)at * size, (uint8_t *)tensor->data + (size_t)i * size, size);
        for (int d = tensor->rank - 1; d >= 0 && ++index[d] == tensor->dims[d]; --d) index[d] = 0;
    }
    return packed;
}

ParameterizedTestParameters(packing, by_definition) {
    static int index[case_count];
    for (int i = 0; i < case_count; ++i) index[i] = i;
    return cr_make_param_array(int, index, case_count);
}

ParameterizedTest(int *row, packing, by_definition) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_layout layout = layout_of(*row);
    berth_tensor tensor = unaligned(arena, *row);
    size_t size = 0;
    const uint8_t *expected = packed_by_definition(arena, &layout, &tensor, &size);
    uint8_t *packed = malloc(size + 64);
    memset(packed, 0xee, size + 64);
    berth_layout_pack(&layout, &tensor, packed);
    cr_assert_arr_eq(packed, expected, size);
    for (int i = 0; i < 64; ++i) cr_assert_eq(packed[size + (size_t)i], 0xee, "beyond the end");
    // Part by part, from the last one to the first.
    int64_t parts = berth_layout_part_count(&layout, &tensor);
    memset(packed, 0xee, size);
    for (int64_t p = parts - 1; p >= 0; --p)
        berth_layout_pack_parts(&layout, &tensor, packed, p, 1);
    cr_assert_arr_eq(packed, expected, size);
    // Three and a rest.
    memset(packed, 0xee, size);
    for (int64_t p = 0; p < parts; p += 3)
        berth_layout_pack_parts(&layout, &tensor, packed, p, parts - p < 3 ? parts - p : 3);
    cr_assert_arr_eq(packed, expected, size);
    free(packed);
    berth_arena_destroy(arena);
}

// G g G^T in double for one kernel (Lavin and Gray 2016, section 4.1 and 4.3).
static void transform(int64_t m, const float *g, double out[36]) {
    static const double g2[6][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
    static const double g4[6][3] = {
        {0.25, 0, 0},
        {-1. / 6, -1. / 6, -1. / 6},
        {-1. / 6, 1. / 6, -1. / 6},
        {1. / 24, 1. / 12, 1. / 6},
        {1. / 24, -1. / 12, 1. / 6},
        {0, 0, 1},
    };
    int points = (int)m + 2;
    for (int y = 0; y < points; ++y)
        for (int x = 0; x < points; ++x) {
            double sum = 0;
            for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j)
                    sum +=
                        (m == 2 ? g2 : g4)[y][i] * (double)g[i * 3 + j] * (m == 2 ? g2 : g4)[x][j];
            out[y * points + x] = sum;
        }
}

Test(packing, winograd_by_definition) {
    enum { outputs = 24, inputs = 5, blocks = 2 };
    float weights[outputs * inputs * 9];
    for (int i = 0; i < outputs * inputs * 9; ++i) weights[i] = (float)(i * 37 % 101 - 50) / 16;
    berth_tensor tensor = {.dtype = BERTH_DTYPE_F32, .rank = 4, .dims = {outputs, inputs, 3, 3}};
    uint8_t shifted[sizeof(weights) + 1];
    memcpy(shifted + 1, weights, sizeof(weights));
    tensor.data = shifted + 1;
    cr_assert_eq(berth_winograd_block_count(&tensor), blocks);
    for (int64_t m = 2; m <= 4; m += 2) {
        size_t size = berth_winograd_size_bytes(&tensor, m);
        int64_t points = (m + 2) * (m + 2);
        cr_assert_eq(size, (size_t)points * blocks * 16 * inputs * sizeof(float));
        float *packed = malloc(size);
        memset(packed, 0xee, size);
        berth_winograd_pack(&tensor, m, packed, 1, 1);
        berth_winograd_pack(&tensor, m, packed, 0, 1);
        for (int o = 0; o < blocks * 16; ++o)
            for (int i = 0; i < inputs; ++i) {
                double expected[36] = {0};
                if (o < outputs) transform(m, weights + (o * inputs + i) * 9, expected);
                for (int64_t p = 0; p < points; ++p) {
                    int64_t at = ((p * blocks + o / 16) * inputs + i) * 16 + o % 16;
                    cr_assert_float_eq((double)packed[at], expected[p], 2e-6, "%d %d", o, i);
                }
            }
        free(packed);
    }
}

typedef struct many_jobs {
    berth_module *module;
    uint32_t thread_count;
    bool start;
    void *packed[2 * case_count + 4];
    size_t size_bytes[2 * case_count + 4];
    uint32_t count;
} many_jobs;

// All cases, and tensors of several slices.
static berth_status pack_many(void *user) {
    many_jobs *j = user;
    berth_arena *arena = j->module->arena;
    berth_packing *packing = berth_packing_create(j->module, j->thread_count, NULL);
    for (int row = 0; row < case_count; ++row) {
        berth_layout layout = layout_of(row);
        berth_tensor tensor = unaligned(arena, row);
        j->packed[j->count] = berth_packing_add_layout(packing, &layout, &tensor);
        j->size_bytes[j->count++] = (size_t)berth_layout_element_count(&layout, tensor.dims) *
                                    berth_dtype_size_bytes(tensor.dtype);
    }
    berth_layout layout;
    BERTH_TRY(berth_layout_parse("ABcd8b16a", 4, &layout));
    int64_t dims[4] = {256, 256, 3, 3};
    for (int i = 0; i < 4; ++i) {
        berth_tensor tensor = berth_tensor_create(arena, BERTH_DTYPE_F32, 4, dims);
        berth_tensor_fill_random(&tensor, (uint64_t)i);
        j->packed[j->count] = i % 2 ? berth_packing_add_winograd(packing, &tensor, 4)
                                    : berth_packing_add_layout(packing, &layout, &tensor);
        j->size_bytes[j->count++] =
            i % 2 ? berth_winograd_size_bytes(&tensor, 4) : berth_tensor_size_bytes(&tensor);
    }
    if (j->start) berth_packing_start(packing);
    berth_packing_finish(packing);
    berth_packing_finish(packing);
    return BERTH_OK;
}

Test(packing, same_bytes_on_any_number_of_threads) {
    static const uint32_t thread_counts[] = {1, 2, 5, 0};
    many_jobs first = {0};
    berth_arena *arenas[4];
    for (int i = 0; i < 4; ++i) {
        assert_ok(berth_arena_create(berth_allocator_system(), &arenas[i]));
        many_jobs jobs = {.thread_count = thread_counts[i], .start = true};
        jobs.module = berth_module_create(arenas[i], "test");
        assert_ok(berth_arena_try(arenas[i], pack_many, &jobs));
        if (i == 0) first = jobs;
        for (uint32_t k = 0; k < jobs.count; ++k) {
            cr_assert_eq(jobs.size_bytes[k], first.size_bytes[k]);
            cr_assert_arr_eq(jobs.packed[k], first.packed[k], first.size_bytes[k]);
        }
    }
    for (int i = 0; i < 4; ++i) berth_arena_destroy(arenas[i]);
}

Test(packing, may_end_before_it_starts) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    many_jobs jobs = {.thread_count = 2, .module = berth_module_create(arena, "test")};
    assert_ok(berth_arena_try(arena, pack_many, &jobs));
    berth_packing_finish(NULL);
    berth_arena_destroy(arena);
}

// ---- bytes that stay from one compilation to the next -------------------------------------------

typedef struct store_job {
    berth_packed_store *store;
    berth_tensor tensor;
    const char *tag;
    bool finish;
    bool winograd;
    void *packed;
    float first;
} store_job;

static berth_status pack_stored(void *user) {
    store_job *j = user;
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_packing *packing = NULL;
    berth_layout layout;
    BERTH_TRY(berth_layout_parse(j->tag, j->tensor.rank, &layout));
    packing = berth_packing_create(berth_module_create(arena, "test"), 1, j->store);
    j->packed = j->winograd ? berth_packing_add_winograd(packing, &j->tensor, 4)
                            : berth_packing_add_layout(packing, &layout, &j->tensor);
    if (j->finish) berth_packing_start(packing);
    berth_packing_finish(packing);
    if (j->finish) j->first = *(float *)j->packed;
    berth_arena_destroy(arena);
    return BERTH_OK;
}

static void *stored(berth_packed_store *store, const berth_tensor *tensor, const char *tag,
                    bool finish) {
    store_job job = {.store = store, .tensor = *tensor, .tag = tag, .finish = finish};
    assert_ok(pack_stored(&job));
    if (finish) cr_assert_eq(job.first, *(const float *)tensor->data);
    return job.packed;
}

static berth_status use_store(void *user) {
    berth_arena *arena = user;
    berth_packed_store *store = NULL;
    assert_ok(berth_packed_store_create(berth_allocator_system(), &store));
    berth_module *module = berth_module_create(arena, "test");
    berth_func_id main = berth_graph_create(module, "main", 0);
    berth_tensor a = berth_tensor_create(arena, BERTH_DTYPE_F32, 4, (int64_t[]){32, 16, 3, 3});
    berth_tensor_fill_random(&a, 1);
    (void)berth_graph_constant(module, main, 0, &a, 0);
    assert_ok(berth_packed_store_trust(store, module));
    berth_tensor b = berth_tensor_create(arena, BERTH_DTYPE_F32, 4, a.dims);
    memcpy(b.data, a.data, berth_tensor_size_bytes(&a));
    void *lost = stored(store, &b, "ABcd8b16a", false);  // a compilation that failed
    (void)lost;
    void *by_content = stored(store, &b, "ABcd8b16a", true);
    cr_assert_eq(stored(store, &b, "ABcd8b16a", true), by_content, "packed once");
    void *trusted = stored(store, &a, "ABcd8b16a", true);
    cr_assert_eq(stored(store, &a, "ABcd8b16a", true), trusted);
    cr_assert_neq(stored(store, &a, "ABcd16b16a", true), trusted, "another layout");
    ((float *)b.data)[0] += 1;
    cr_assert_neq(stored(store, &b, "ABcd8b16a", true), by_content, "other content");
    store_job winograd = {.store = store, .tensor = a, .tag = "", .finish = true, .winograd = true};
    assert_ok(pack_stored(&winograd));
    cr_assert_neq(winograd.packed, trusted);
    berth_packed_store_destroy(store);
    berth_packed_store_destroy(NULL);
    return BERTH_OK;
}

Test(packing, stored_constants_are_packed_once) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_arena_try(arena, use_store, arena));
    berth_arena_destroy(arena);
}

// ---- constants at any address -------------------------------------------------------------------

static berth_status look_at_constant(void *user) {
    berth_module *module = user;
    berth_func_id main = berth_graph_create(module, "main", 0);
    uint8_t *bytes = berth_arena_alloc_aligned(module->arena, 16, 16);
    memcpy(bytes + 1, (float[]){1, 2, 3}, 12);
    berth_tensor tensor = {.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {3}, .data = bytes + 1};
    berth_value_id value = berth_graph_constant(module, main, 0, &tensor, 0);
    const berth_graph *graph = berth_graph_get(module, main);
    cr_assert_eq(berth_graph_raw_constant_of(module, graph, value)->data, bytes + 1);
    const berth_tensor *aligned = berth_graph_constant_of(module, graph, value);
    cr_assert_eq((uintptr_t)aligned->data % sizeof(float), 0);
    cr_assert_arr_eq(aligned->data, bytes + 1, 12);
    cr_assert_eq(berth_graph_constant_of(module, graph, value), aligned, "copied once");
    cr_assert_eq(berth_graph_raw_constant_of(module, graph, value), aligned);
    tensor.data = bytes;
    value = berth_graph_constant(module, main, 0, &tensor, 0);
    graph = berth_graph_get(module, main);
    cr_assert_eq(berth_graph_constant_of(module, graph, value)->data, bytes, "no copy");
    return BERTH_OK;
}

Test(packing, constants_are_aligned_on_demand) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    assert_ok(berth_arena_try(arena, look_at_constant, berth_module_create(arena, "test")));
    berth_arena_destroy(arena);
}

// ---- memory runs out ----------------------------------------------------------------------------

static berth_value_id weights(berth_module *module, berth_func_id main, const int64_t *dims) {
    berth_tensor tensor = berth_tensor_create(module->arena, BERTH_DTYPE_F32, 4, dims);
    berth_tensor_fill_random(&tensor, 3);
    return berth_graph_constant(module, main, 0, &tensor, 0);
}

// Two convolutions, one of them by Winograd's algorithm, planned for a cpu. Nothing is compiled.
static berth_status plan_convolutions(void *user) {
    berth_arena *arena = user;
    berth_module *module = berth_module_create(arena, "test");
    berth_func_id main = berth_graph_create(module, "main", 0);
    int64_t dims[4] = {1, 64, 16, 16};
    berth_value_id x = berth_graph_add_param(module, main, "x",
                                             berth_type_tensor(module, BERTH_DTYPE_F32, 4, dims));
    berth_value_id first[2] = {x, weights(module, main, (int64_t[]){64, 64, 3, 3})};
    berth_value_id y = berth_graph_op1(module, main, BERTH_OP_CONV, first, 2, 0);
    berth_value_id second[2] = {y, weights(module, main, (int64_t[]){32, 64, 1, 1})};
    y = berth_graph_op1(module, main, BERTH_OP_CONV, second, 2, 0);
    berth_graph *graph = berth_graph_get(module, main);
    berth_attrs_set_ints(module, &graph->ops.data[graph->values.data[second[0]].op].attrs, "pads",
                         (int64_t[]){1, 1, 1, 1}, 4);
    berth_graph_set_results(module, main, &y, 1);
    berth_multi_target *target = NULL;
    berth_target_options options = {0};
    BERTH_TRY(berth_target_parse(arena, "cpu -arch=x86_64 -features=avx2,fma -cores=2", &options,
                                 &target));
    berth_compile_options compile = {.target = target, .plan_only = true, .jobs = 3};
    berth_compile_result result;
    return berth_compile(module, &compile, &result);
}

// Every point of failure, also while other threads are packing.
Test(packing, out_of_memory_is_clean, .timeout = 300) {
    berth_counting_allocator counting;
    berth_counting_allocator_init(&counting, berth_allocator_system());
    bool done = false;
    for (int64_t at = 1; !done; ++at) {
        berth_arena *arena = NULL;
        atomic_store(&counting.allocation_count, 0);
        atomic_store(&counting.fail_at, at);
        berth_status status = berth_arena_create(berth_counting_allocator_get(&counting), &arena);
        if (!status) status = berth_arena_try(arena, plan_convolutions, arena);
        done = status == BERTH_OK;
        if (!done)
            cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY, "allocation %lld: %s",
                         (long long)at, berth_status_message(status));
        berth_status_free(status);
        berth_arena_destroy(arena);
        cr_assert_eq(atomic_load(&counting.live_count), 0);
        cr_assert_lt(at, 100000);
    }
}
