// The size of a subgroup is the device's choice, and may differ from one dispatch to the next. So each
// active invocation takes as many of the 32 elements as it must: those from its rank among the active
// ones on, apart by their number. Every element is then taken by exactly one of them, whatever the size
// is, and whether or not the subgroup is full.
//   See Vulkan 1.2, "Subgroups", and the SPIR-V specification 1.5, section 3.37.24 ("Non-Uniform
//   Instructions").
#include "compiler/codegen/spirv_subgroup.h"

#include <math.h>

#include "compiler/codegen/spirv_math.h"
#include "ir/tensor/intrinsic.h"

enum { elements = 32 };

typedef struct subgroup_sum {
    berth_intrinsic id;
    berth_binary op;
    berth_spirv_opcode together;
    uint64_t neutral;  // of integers; floats: 0, or the infinity that loses
} subgroup_sum;

static const subgroup_sum sums[] = {
    {BERTH_INTRINSIC_WARP_ADD_F32, BERTH_BINARY_ADD, SPIRV_GroupNonUniformFAdd, 0},
    {BERTH_INTRINSIC_WARP_MAX_F32, BERTH_BINARY_MAX, SPIRV_GroupNonUniformFMax, 0},
    {BERTH_INTRINSIC_WARP_MIN_F32, BERTH_BINARY_MIN, SPIRV_GroupNonUniformFMin, 0},
    {BERTH_INTRINSIC_WARP_ADD_F64, BERTH_BINARY_ADD, SPIRV_GroupNonUniformFAdd, 0},
    {BERTH_INTRINSIC_WARP_MAX_F64, BERTH_BINARY_MAX, SPIRV_GroupNonUniformFMax, 0},
    {BERTH_INTRINSIC_WARP_MIN_F64, BERTH_BINARY_MIN, SPIRV_GroupNonUniformFMin, 0},
    {BERTH_INTRINSIC_WARP_ADD_I32, BERTH_BINARY_ADD, SPIRV_GroupNonUniformIAdd, 0},
    {BERTH_INTRINSIC_WARP_MAX_I32, BERTH_BINARY_MAX, SPIRV_GroupNonUniformSMax, 0x80000000u},
    {BERTH_INTRINSIC_WARP_MIN_I32, BERTH_BINARY_MIN, SPIRV_GroupNonUniformSMin, 0x7fffffffu},
};

static uint32_t together(berth_spirv_printer *p, berth_spirv_opcode op, berth_spirv_type type,
                         uint32_t operation, uint32_t value) {
    uint32_t scope = berth_spirv_int(p->m, SPIRV_TYPE_U32, SPIRV_SCOPE_SUBGROUP);
    return berth_spirv_emit(p->m, op, berth_spirv_type_id(p->m, type),
                            (uint32_t[]){scope, operation, value}, 3);
}

// An active invocation's rank (SPIRV_GROUP_EXCLUSIVE_SCAN), or their number (SPIRV_GROUP_REDUCE).
static uint32_t count_active(berth_spirv_printer *p, uint32_t operation) {
    uint32_t one = berth_spirv_int(p->m, SPIRV_TYPE_U32, 1);
    uint32_t count = together(p, SPIRV_GroupNonUniformIAdd, SPIRV_TYPE_U32, operation, one);
    return p->index == SPIRV_TYPE_U32 ? count
                                      : berth_spirv_unary(p->m, SPIRV_UConvert, p->index, count);
}

static uint32_t neutral_of(berth_spirv_printer *p, const subgroup_sum *sum, berth_dtype dtype) {
    berth_spirv_type type = berth_spirv_value_type(dtype);
    if (!berth_dtype_is_float(dtype)) return berth_spirv_int(p->m, type, sum->neutral);
    double value = sum->op == BERTH_BINARY_ADD   ? -0.0
                   : sum->op == BERTH_BINARY_MAX ? -INFINITY
                                                 : INFINITY;
    return berth_spirv_float(p->m, type, value);
}

static uint32_t combine(berth_spirv_printer *p, const subgroup_sum *sum, berth_dtype dtype,
                        uint32_t a, uint32_t b) {
    if (!berth_dtype_is_float(dtype)) return berth_spirv_int_binary(p->m, dtype, sum->op, a, b);
    return berth_spirv_float_binary(p->m, berth_spirv_value_type(dtype), sum->op, a, b);
}

// What one invocation takes. All go round equally often: the subgroup stays together.
static uint32_t own_elements(berth_spirv_printer *p, const subgroup_sum *sum, berth_dtype dtype,
                             berth_expr load) {
    berth_spirv *m = p->m;
    berth_spirv_type type = berth_spirv_value_type(dtype);
    uint32_t rank = count_active(p, SPIRV_GROUP_EXCLUSIVE_SCAN);
    uint32_t active = count_active(p, SPIRV_GROUP_REDUCE);
    uint32_t neutral = neutral_of(p, sum, dtype), zero = berth_spirv_index_int(p, 0);
    uint32_t own = berth_spirv_local(m, berth_spirv_type_id(m, type));
    uint32_t first = berth_spirv_first_place(p, load);
    berth_spirv_plain(m, SPIRV_Store, (uint32_t[]){own, neutral}, 2);
    uint32_t rounds =
        berth_spirv_binary(m, SPIRV_IAdd, p->index, active, berth_spirv_index_int(p, elements - 1));
    rounds = berth_spirv_binary(m, SPIRV_UDiv, p->index, rounds, active);
    p->rounds += p->around * elements;
    berth_spirv_loop loop = berth_spirv_open_loop(m, p->index, rounds);
    uint32_t at = berth_spirv_binary(m, SPIRV_IMul, p->index, loop.counter, active);
    at = berth_spirv_binary(m, SPIRV_IAdd, p->index, at, rank);
    uint32_t is_in = berth_spirv_binary(m, SPIRV_ULessThan, SPIRV_TYPE_BOOL, at,
                                        berth_spirv_index_int(p, elements));
    at = berth_spirv_select(m, p->index, is_in, at, zero);
    at = berth_spirv_binary(m, SPIRV_IAdd, p->index, first, at);
    uint32_t element = berth_spirv_load_place(p, load, at);
    element = berth_spirv_select(m, type, is_in, element, neutral);
    uint32_t before = berth_spirv_unary(m, SPIRV_Load, type, own);
    berth_spirv_plain(m, SPIRV_Store, (uint32_t[]){own, combine(p, sum, dtype, before, element)},
                      2);
    berth_spirv_close_loop(m, &loop);
    return berth_spirv_unary(m, SPIRV_Load, type, own);
}

// FMin and FMax of a subgroup may drop NaNs; ours give NaN where there is one.
static uint32_t extreme(berth_spirv_printer *p, const subgroup_sum *sum, berth_dtype dtype,
                        uint32_t own) {
    berth_spirv *m = p->m;
    berth_spirv_type type = berth_spirv_value_type(dtype);
    uint32_t is_nan = berth_spirv_is_nan(m, type, own);
    uint32_t zero = berth_spirv_int(m, SPIRV_TYPE_U32, 0);
    uint32_t nans =
        berth_spirv_select(m, SPIRV_TYPE_U32, is_nan, berth_spirv_int(m, SPIRV_TYPE_U32, 1), zero);
    nans = together(p, SPIRV_GroupNonUniformUMax, SPIRV_TYPE_U32, SPIRV_GROUP_REDUCE, nans);
    own = berth_spirv_select(m, type, is_nan, neutral_of(p, sum, dtype), own);
    uint32_t all = together(p, sum->together, type, SPIRV_GROUP_REDUCE, own);
    uint32_t any = berth_spirv_binary(m, SPIRV_INotEqual, SPIRV_TYPE_BOOL, nans, zero);
    return berth_spirv_select(m, type, any, berth_spirv_float(m, type, NAN), all);
}

// Whether an expression loads 32 elements beside each other.
static bool is_row(const berth_spirv_printer *p, berth_expr id) {
    const berth_expr_node *load = &p->fn->exprs.data[id];
    if (load->kind != BERTH_EXPR_LOAD || load->lanes != elements || load->index_count == 0)
        return false;
    const berth_expr *indices = berth_tfn_load_indices(p->fn, id);
    for (int i = 0; i + 1 < load->index_count; ++i)
        if (p->fn->exprs.data[indices[i]].lanes > 1) return false;
    return p->fn->exprs.data[indices[load->index_count - 1]].kind == BERTH_EXPR_RAMP &&
           p->fn->bufs.data[load->load.buf].scope == BERTH_SCOPE_LOCAL;
}

uint32_t berth_spirv_subgroup(berth_spirv_printer *p, const berth_expr_node *node) {
    const subgroup_sum *sum = NULL;
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); ++i)
        if (sums[i].id == (berth_intrinsic)node->op) sum = &sums[i];
    if (!sum || !is_row(p, node->b)) return 0;
    berth_dtype dtype = (berth_dtype)node->dtype;
    uint32_t before = berth_spirv_value(p, node->a)[0];
    berth_spirv_capability(p->m, SPIRV_CAPABILITY_SUBGROUPS);
    berth_spirv_capability(p->m, SPIRV_CAPABILITY_SUBGROUP_ARITHMETIC);
    uint32_t own = own_elements(p, sum, dtype, node->b);
    bool may_be_nan = berth_dtype_is_float(dtype) && sum->op != BERTH_BINARY_ADD;
    uint32_t all = may_be_nan ? extreme(p, sum, dtype, own)
                              : together(p, sum->together, berth_spirv_value_type(dtype),
                                         SPIRV_GROUP_REDUCE, own);
    return combine(p, sum, dtype, before, all);
}
