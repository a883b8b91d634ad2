#include "compiler/codegen/spirv_matrix.h"

#include <string.h>

#include "ir/tensor/intrinsic.h"

// Rows of a fragment, and columns; columns of a work-item, and work-items that have columns of a row.
enum { lines = 16, beside = 4, across = 4, warp = 32, most_lanes = 128 };
enum { USE_A, USE_B, USE_SUM, USE_COUNT };    // of a matrix, as SPIR-V numbers them
enum { ROW_MAJOR, COLUMN_MAJOR };             // likewise
enum { AXIS_X, AXIS_Y, AXIS_Z, AXIS_COUNT };  // of the work-items of a group

// Bits of OpCooperativeMatrixMulAddKHR: which matrices have signed components.
enum { A_SIGNED = 1, B_SIGNED = 2, SUM_SIGNED = 4, RESULT_SIGNED = 8 };

typedef struct product {
    berth_intrinsic id;
    berth_spirv_type operand, sum;
    int64_t terms;
    uint32_t is_signed;
    const char *feature;  // of targets, behind "cooperative_", without what all of them need
} product;

#define ALL_SIGNED (A_SIGNED | B_SIGNED | SUM_SIGNED | RESULT_SIGNED)
#define PRODUCTS_8(ID, name, is_signed)                                                            \
    {BERTH_INTRINSIC_COOPERATIVE_##ID##_K32,                                                       \
     SPIRV_TYPE_U8,                                                                                \
     SPIRV_TYPE_U32,                                                                               \
     32,                                                                                           \
     is_signed,                                                                                    \
     name "_k32"},                                                                                 \
    {                                                                                              \
        BERTH_INTRINSIC_COOPERATIVE_##ID##_K16, SPIRV_TYPE_U8, SPIRV_TYPE_U32, 16, is_signed,      \
            name "_k16"                                                                            \
    }
static const product products[] = {
    {BERTH_INTRINSIC_COOPERATIVE_F16, SPIRV_TYPE_F16, SPIRV_TYPE_F32, 16, 0, "matrix_f16"},
    PRODUCTS_8(I8, "i8", ALL_SIGNED),
    PRODUCTS_8(U8, "u8", 0),
    PRODUCTS_8(U8_I8, "u8_i8", B_SIGNED | SUM_SIGNED | RESULT_SIGNED),
};

typedef struct berth_spirv_matrices {
    const product *product;
    uint32_t **sums;  // by buffer: a variable for each fragment
    uint8_t *uses;    // by variable: 1 + the use of the matrix that it is; 0 = it is none
    bool *is_sum;     // by buffer
    berth_var vars[AXIS_COUNT];
    int64_t extents[AXIS_COUNT];
    uint32_t first[AXIS_COUNT];  // these variables, of the subgroup's warp; x = 0
    uint32_t subgroup;           // its number
    uint32_t types[USE_COUNT];
    uint32_t handed;  // [warps][lines][lines] in the memory of the group
} matrices;

static void refuse(berth_spirv_printer *p, const char *why) {
    berth_spirv_fail(p, berth_status_make(BERTH_UNSUPPORTED, "cooperative matrices: %s", why));
}

// ---- the nest -----------------------------------------------------------------------------------

static const product *product_of(const berth_expr_node *node) {
    if (node->kind != BERTH_EXPR_INTRINSIC) return NULL;
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); ++i)
        if (products[i].id == (berth_intrinsic)node->op) return &products[i];
    return NULL;
}

static void note_operand(const berth_spirv_printer *p, matrices *found, berth_expr id, int use) {
    const berth_expr_node *node = &p->fn->exprs.data[id];
    if (node->kind == BERTH_EXPR_VAR) found->uses[node->var] = (uint8_t)(1 + use);
}

// Fills product, uses, is_sum, vars and extents.
static void look_at(berth_spirv_printer *p, matrices *found, berth_stmt id) {
    const berth_stmt_node *node = &p->fn->stmts.data[id];
    if (!id) return;
    if (node->kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node->count; ++i)
            look_at(p, found, p->fn->lists.data[node->first + i]);
    if (node->kind == BERTH_STMT_FOR && node->loop_kind >= BERTH_LOOP_LOCAL_X) {
        int axis = (int)node->loop_kind - (int)BERTH_LOOP_LOCAL_X;
        found->vars[axis] = node->var;
        found->extents[axis] = berth_kernel_extent(p->fn, id);
    }
    if (node->kind == BERTH_STMT_FOR || node->kind == BERTH_STMT_IF) {
        look_at(p, found, node->body);
        look_at(p, found, node->other);
    }
    if (node->kind != BERTH_STMT_STORE) return;
    const berth_expr_node *value = &p->fn->exprs.data[node->value];
    const product *multiplies = product_of(value);
    if (!multiplies) return;
    if (found->product && found->product != multiplies) refuse(p, "of several types in a kernel");
    found->product = multiplies;
    found->is_sum[node->buf] = true;
    note_operand(p, found, value->b, USE_A);
    note_operand(p, found, value->c, USE_B);
}

static uint32_t to_index(berth_spirv_printer *p, uint32_t value) {
    return p->index == SPIRV_TYPE_U32 ? value
                                      : berth_spirv_unary(p->m, SPIRV_UConvert, p->index, value);
}

static uint32_t calculate(berth_spirv_printer *p, berth_spirv_opcode op, uint32_t a, int64_t b) {
    return berth_spirv_binary(p->m, op, p->index, a, berth_spirv_index_int(p, b));
}

static uint32_t number(berth_spirv_printer *p, uint64_t value) {
    return berth_spirv_int(p->m, SPIRV_TYPE_U32, value);
}

static uint32_t matrix_type(berth_spirv_printer *p, berth_spirv_type element, int64_t rows,
                            int64_t columns, int use) {
    uint32_t operands[] = {berth_spirv_type_id(p->m, element), number(p, SPIRV_SCOPE_SUBGROUP),
                           number(p, (uint64_t)rows), number(p, (uint64_t)columns),
                           number(p, (uint64_t)use)};
    return berth_spirv_new_type(p->m, SPIRV_TypeCooperativeMatrixKHR, operands, 5);
}

// The subgroup's number, and the warp that it stands for.
static void find_subgroup(berth_spirv_printer *p, matrices *m) {
    uint32_t u32 = berth_spirv_type_id(p->m, SPIRV_TYPE_U32);
    uint32_t variable = berth_spirv_global(
        p->m, berth_spirv_pointer(p->m, SPIRV_STORAGE_INPUT, u32), SPIRV_STORAGE_INPUT);
    berth_spirv_decorate_with(p->m, variable, SPIRV_DECORATION_BUILT_IN,
                              SPIRV_BUILT_IN_SUBGROUP_ID);
    m->subgroup = to_index(p, berth_spirv_emit(p->m, SPIRV_Load, u32, &variable, 1));
    m->first[AXIS_X] = berth_spirv_index_int(p, 0);
    m->first[AXIS_Y] = calculate(p, SPIRV_UMod, m->subgroup, m->extents[AXIS_Y]);
    m->first[AXIS_Z] = calculate(p, SPIRV_UDiv, m->subgroup, m->extents[AXIS_Y]);
}

static void declare_handed(berth_spirv_printer *p, matrices *m) {
    int64_t count = m->extents[AXIS_Y] * m->extents[AXIS_Z] * lines * lines;
    uint32_t array =
        berth_spirv_array(p->m, berth_spirv_type_id(p->m, m->product->sum), (uint32_t)count);
    m->handed = berth_spirv_global(p->m, berth_spirv_pointer(p->m, SPIRV_STORAGE_WORKGROUP, array),
                                   SPIRV_STORAGE_WORKGROUP);
    berth_spirv_name(p->m, m->handed, "handed");
}

void berth_spirv_matrix_open(berth_spirv_printer *p, berth_stmt nest) {
    matrices *m = berth_arena_new(p->arena, matrices);
    m->uses = berth_arena_new_array(p->arena, uint8_t, p->fn->vars.count + 1);
    m->is_sum = berth_arena_new_array(p->arena, bool, p->fn->bufs.count + 1);
    m->sums = berth_arena_new_array(p->arena, uint32_t *, p->fn->bufs.count + 1);
    p->matrices = NULL;
    look_at(p, m, nest);
    if (!m->product || p->status) return;
    p->matrices = m;
    for (int i = 0; i < AXIS_COUNT; ++i)
        if (!m->extents[i]) refuse(p, "a group has no loops along all axes");
    if (m->extents[AXIS_X] != warp) refuse(p, "warps of a group are not of 32 work-items");
    if (p->status) return;
    berth_spirv_capability(p->m, SPIRV_CAPABILITY_SUBGROUPS);
    berth_spirv_capability(p->m, SPIRV_CAPABILITY_MEMORY_MODEL);
    berth_spirv_capability(p->m, SPIRV_CAPABILITY_COOPERATIVE_MATRIX);
    berth_spirv_extension(p->m, "SPV_KHR_cooperative_matrix");
    const product *what = m->product;
    berth_spirv_string(p->m,
                       berth_arena_printf(p->arena, BERTH_SPIRV_MATRIX_PREFIX "%s", what->feature));
    m->types[USE_A] = matrix_type(p, what->operand, lines, what->terms, USE_A);
    m->types[USE_B] = matrix_type(p, what->operand, what->terms, lines, USE_B);
    m->types[USE_SUM] = matrix_type(p, what->sum, lines, lines, USE_SUM);
    declare_handed(p, m);
    find_subgroup(p, m);
}

// ---- operands -----------------------------------------------------------------------------------

typedef struct placed {
    berth_linear first;
    int64_t along;  // from a term of the sum to the next
    int64_t apart;  // from a row, or a column, to the next
} placed;

// How a matrix lies in memory, by what the load says of a work-item's lines of it. False: other lines, or no matrix
// that begins, and whose lines begin, at a multiple of 16 bytes.
static bool find_place(berth_spirv_printer *p, berth_expr id, int use, placed *out) {
    const berth_expr_node load = p->fn->exprs.data[id];
    const matrices *m = p->matrices;
    int64_t depth = m->product->terms, own = use == USE_A ? 2 : beside, places[most_lanes];
    if (load.kind != BERTH_EXPR_LOAD || load.lanes != own * depth || load.lanes > most_lanes)
        return false;
    const berth_buf_info *info = &p->fn->bufs.data[load.load.buf];
    int64_t whole = 16 / (int64_t)berth_dtype_size_bytes(info->dtype);
    if (info->scope != BERTH_SCOPE_LOCAL || info->layout || info->lanes > 1 ||
        p->buffers[load.load.buf].type != m->product->operand ||
        !berth_spirv_lane_places(p, id, &out->first, places))
        return false;
    int64_t distance = places[depth];
    out->along = places[1];
    out->apart = use == USE_A ? distance / 8 : distance;
    for (int64_t l = 0; l < load.lanes; ++l)
        if (places[l] != l / depth * distance + l % depth * out->along) return false;
    if (use == USE_A && distance % 8) return false;
    if (!berth_kernel_moves_by(p->fn, &out->first, m->vars[AXIS_X],
                               use == USE_A ? BERTH_BINARY_DIV : BERTH_BINARY_MOD, across,
                               use == USE_A ? out->apart : beside * out->apart))
        return false;
    for (int i = 0; i < out->first.count; ++i)
        if (!berth_tfn_uses_var(p->fn, out->first.terms[i].atom, m->vars[AXIS_X]) &&
            out->first.terms[i].coefficient % whole)
            return false;
    return out->first.constant % whole == 0 && ((out->along == 1 && out->apart % whole == 0) ||
                                                (out->apart == 1 && out->along % whole == 0));
}

// An index of the subgroup's first work-item.
static uint32_t first_place(berth_spirv_printer *p, const berth_linear *at) {
    const uint32_t *own[AXIS_COUNT];
    berth_spirv_forget(p, 0);
    for (int i = 0; i < AXIS_COUNT; ++i) {
        own[i] = p->vars[p->matrices->vars[i]];
        p->vars[p->matrices->vars[i]] = &p->matrices->first[i];
    }
    uint32_t place = berth_spirv_linear(p, *at);
    berth_spirv_forget(p, 0);
    for (int i = 0; i < AXIS_COUNT; ++i) p->vars[p->matrices->vars[i]] = own[i];
    return place;
}

static uint32_t load_matrix(berth_spirv_printer *p, berth_expr id, int use) {
    placed at;
    if (!find_place(p, id, use, &at)) {
        refuse(p, "an operand does not lie as a matrix in the memory of the group");
        return 0;
    }
    // Rows of A and columns of B lie beside each other along the sum.
    bool by_lines = at.along == 1;
    int layout = by_lines == (use == USE_A) ? ROW_MAJOR : COLUMN_MAJOR;
    uint32_t operands[] = {
        berth_spirv_element(p, p->fn->exprs.data[id].load.buf, first_place(p, &at.first)),
        number(p, (uint64_t)layout), number(p, (uint64_t)(by_lines ? at.apart : at.along)),
        SPIRV_MEMORY_NON_PRIVATE};
    return berth_spirv_emit(p->m, SPIRV_CooperativeMatrixLoadKHR, p->matrices->types[use], operands,
                            4);
}

// ---- sums ---------------------------------------------------------------------------------------

bool berth_spirv_matrix_is_operand(const berth_spirv_printer *p, berth_dtype dtype) {
    return p->matrices && berth_spirv_memory_type(p, dtype) == p->matrices->product->operand;
}

bool berth_spirv_matrix_has_sums(const berth_spirv_printer *p, berth_buf buf) {
    return p->matrices && p->matrices->is_sum[buf];
}

static void declare_sums(berth_spirv_printer *p, berth_buf buf) {
    int64_t count = berth_kernel_elements(p->fn, buf);
    matrices *m = p->matrices;
    if (p->fn->bufs.data[buf].lanes != 2 * beside || p->fn->bufs.data[buf].rank != 1)
        refuse(p, "sums are not in fragments");
    if (m->sums[buf]) return;  // in a loop that is unrolled
    m->sums[buf] = berth_arena_new_array(p->arena, uint32_t, count + 1);
    for (int64_t i = 0; i < count; ++i)
        m->sums[buf][i] = berth_spirv_local(p->m, m->types[USE_SUM]);
}

// The variable of a fragment; 0: refused.
static uint32_t sum_at(berth_spirv_printer *p, berth_buf buf, berth_expr index) {
    uint64_t which = 0;
    bool known = p->matrices->sums[buf] &&
                 berth_spirv_int_value(p->m, berth_spirv_index(p, index, 0), &which) &&
                 (int64_t)which < berth_kernel_elements(p->fn, buf);
    if (p->apart) refuse(p, "not all work-items come by");
    if (!known) refuse(p, "the number of a fragment is not known");
    return known ? p->matrices->sums[buf][which] : 0;
}

static uint32_t handed_at(berth_spirv_printer *p, uint32_t at) {
    uint32_t pointer = berth_spirv_pointer(p->m, SPIRV_STORAGE_WORKGROUP,
                                           berth_spirv_type_id(p->m, p->matrices->product->sum));
    return berth_spirv_emit(p->m, SPIRV_AccessChain, pointer, (uint32_t[]){p->matrices->handed, at},
                            2);
}

// Where the first element of a work-item lies in what its warp hands over.
static uint32_t own_place(berth_spirv_printer *p) {
    const matrices *m = p->matrices;
    uint32_t lane = p->vars[m->vars[AXIS_X]][0];
    uint32_t at = calculate(p, SPIRV_IMul, p->vars[m->vars[AXIS_Z]][0], m->extents[AXIS_Y]);
    at = berth_spirv_binary(p->m, SPIRV_IAdd, p->index, at, p->vars[m->vars[AXIS_Y]][0]);
    at = calculate(p, SPIRV_IMul, at, lines);
    at = berth_spirv_binary(p->m, SPIRV_IAdd, p->index, at, calculate(p, SPIRV_UDiv, lane, across));
    at = calculate(p, SPIRV_IMul, at, lines / beside);
    at = berth_spirv_binary(p->m, SPIRV_IAdd, p->index, at, calculate(p, SPIRV_UMod, lane, across));
    return calculate(p, SPIRV_IMul, at, beside);
}

const uint32_t *berth_spirv_matrix_sums(berth_spirv_printer *p, const berth_expr_node *load,
                                        const berth_expr *indices) {
    uint32_t *own = berth_arena_new_array(p->arena, uint32_t, load->lanes);
    uint32_t variable = sum_at(p, load->load.buf, indices[0]);
    if (!variable || load->lanes != 2 * beside) return own;
    matrices *m = p->matrices;
    uint32_t sum = berth_spirv_emit(p->m, SPIRV_Load, m->types[USE_SUM], &variable, 1);
    uint32_t operands[] = {handed_at(p, calculate(p, SPIRV_IMul, m->subgroup, lines * lines)), sum,
                           number(p, ROW_MAJOR), number(p, lines), SPIRV_MEMORY_NON_PRIVATE};
    berth_spirv_plain(p->m, SPIRV_CooperativeMatrixStoreKHR, operands, 5);
    berth_spirv_barrier(p);
    uint32_t first = own_place(p), type = berth_spirv_type_id(p->m, m->product->sum);
    for (int l = 0; l < load->lanes; ++l) {
        uint32_t at = calculate(p, SPIRV_IAdd, first, l / beside * 8 * lines + l % beside);
        own[l] = berth_spirv_emit(p->m, SPIRV_Load, type,
                                  (uint32_t[]){handed_at(p, at), SPIRV_MEMORY_NON_PRIVATE}, 2);
    }
    berth_spirv_barrier(p);
    return own;
}

static void store_sum(berth_spirv_printer *p, berth_stmt id) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    const berth_expr_node value = p->fn->exprs.data[node.value];
    uint32_t variable = sum_at(p, node.buf, berth_tfn_store_indices(p->fn, id)[0]);
    uint32_t type = p->matrices->types[USE_SUM], sum = 0;
    if (!variable) return;
    if (value.kind == BERTH_EXPR_BROADCAST) {
        uint32_t element = berth_spirv_value(p, value.a)[0];
        sum = berth_spirv_emit(p->m, SPIRV_CompositeConstruct, type, &element, 1);
    } else if (product_of(&value)) {
        uint32_t before = berth_spirv_emit(p->m, SPIRV_Load, type, &variable, 1);
        uint32_t operands[] = {berth_spirv_value(p, value.b)[0], berth_spirv_value(p, value.c)[0],
                               before, p->matrices->product->is_signed};
        sum = berth_spirv_emit(p->m, SPIRV_CooperativeMatrixMulAddKHR, type, operands,
                               operands[3] ? 4 : 3);
    } else {
        refuse(p, "sums become something else than a sum");
        return;
    }
    berth_spirv_plain(p->m, SPIRV_Store, (uint32_t[]){variable, sum}, 2);
    berth_spirv_forget(p, 0);
}

bool berth_spirv_matrix_stmt(berth_spirv_printer *p, berth_stmt id) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    const matrices *m = p->matrices;
    if (node.kind == BERTH_STMT_STORE && m->is_sum[node.buf]) {
        store_sum(p, id);
        return true;
    }
    if (node.kind == BERTH_STMT_ALLOC && m->is_sum[node.buf]) {
        declare_sums(p, node.buf);
        return true;
    }
    if (node.kind != BERTH_STMT_LET || !m->uses[node.var]) return false;
    uint32_t *matrix = berth_arena_new_array(p->arena, uint32_t, 1);
    matrix[0] = load_matrix(p, node.value, m->uses[node.var] - 1);
    p->vars[node.var] = matrix;
    return true;
}
