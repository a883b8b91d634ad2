#include "artifact/family.h"

#include <string.h>

#define BAD(...) berth_status_make(BERTH_INVALID_ARGUMENT, __VA_ARGS__)

// ---- reading ------------------------------------------------------------------------------------

// How many values the bounds have; 0: none, or too many.
static uint64_t count_values(const berth_vm_family *family) {
    uint64_t total = 1;
    for (uint32_t i = 0; i < family->header->variable_count; ++i) {
        const berth_vm_variable *v = &family->variables[i];
        int64_t range = 0;
        if (__builtin_sub_overflow(v->high, v->low, &range) || range < 0 ||
            range >= BERTH_FAMILY_MOST_VALUES)
            return 0;
        total *= (uint64_t)range + 1;
        if (total > BERTH_FAMILY_MOST_VALUES) return 0;
    }
    return total;
}

berth_status berth_vm_family_read(berth_vm_family *family) {
    const uint64_t header_words = sizeof(berth_vm_family_header) / 8;
    const uint64_t variable_words = sizeof(berth_vm_variable) / 8;
    const uint64_t quantity_words = sizeof(berth_vm_quantity) / 8;
    const berth_vm_family_header *header = (const void *)family->words;
    if (family->word_count < header_words || header->variable_count == 0 ||
        header->variable_count > BERTH_FAMILY_VARIABLES)
        return BAD("it has no variables, or too many");
    uint64_t used = header_words + header->variable_count * variable_words;
    if (family->word_count < used) return BAD("its variables are not all there");
    family->header = header;
    family->variables = (const void *)(family->words + header_words);
    family->quantities = (const void *)(family->words + used);
    used += header->quantity_count * quantity_words;
    family->patches = (const void *)(family->words + used);
    used += header->patch_count * (uint64_t)(sizeof(berth_vm_patch) / 8);
    family->members = header->has_members ? (const void *)(family->words + used) : NULL;
    uint64_t values = count_values(family);
    if (values == 0) return BAD("the bounds of its variables hold no value, or too many");
    if (header->has_members) used += (values + 63) / 64;
    return used == family->word_count ? BERTH_OK : BAD("its lists have another length");
}

// ---- verifying ----------------------------------------------------------------------------------

static bool is_integer(berth_dtype dtype) {
    return dtype == BERTH_DTYPE_I64 || dtype == BERTH_DTYPE_I32;
}

// Whether `index` is a dimension of the tensor, or an element of known integers.
static bool has_number(const berth_tensor *tensor, uint32_t index) {
    if (index < BERTH_FAMILY_ELEMENTS)
        return tensor->dtype && index < BERTH_MAX_RANK && (int)index < tensor->rank;
    return tensor->data && is_integer(tensor->dtype) &&
           index - BERTH_FAMILY_ELEMENTS < (uint64_t)berth_tensor_element_count(tensor);
}

static bool is_there(const berth_vm_variant *variant, const berth_vm_piece *piece,
                     const berth_vm_patch *patch) {
    const berth_program *p = variant->program;
    uint32_t record = patch->record, index = patch->index;
    if (patch->kind == BERTH_PATCH_INPUT)
        return record < piece->input_count && has_number(&variant->inputs[record], index);
    if (patch->kind == BERTH_PATCH_RESULT)
        return !p && record < piece->output_count && has_number(&variant->results[record], index);
    if (!p) return false;
    switch (patch->kind) {
    case BERTH_PATCH_TENSOR_DIM:
        return record < p->tensor_count && (int)index < p->tensors[record].rank &&
               index < BERTH_MAX_RANK;
    case BERTH_PATCH_TENSOR_SIZE:
    case BERTH_PATCH_TENSOR_OFFSET: return record < p->tensor_count;
    case BERTH_PATCH_KERNEL_GROUPS: return record < p->kernel_count && index < 3;
    case BERTH_PATCH_KERNEL_SCRATCH: return record < p->kernel_count;
    case BERTH_PATCH_KERNEL_BINDING:
        return record < p->kernel_count && index < p->kernels[record].binding_count;
    case BERTH_PATCH_STEP_CONSTANT:
        return record < p->step_count && p->steps[record].kind == BERTH_STEP_DISPATCH &&
               index < p->kernels[p->steps[record].kernel].constant_count;
    case BERTH_PATCH_CHECK_EXTENT:
        return record < p->check_count && index < p->checks[record].width;
    default: return false;
    }
}

static berth_status check_quantities(const berth_vm_family *family) {
    const berth_vm_family_header *header = family->header;
    for (uint32_t i = 0; i < header->quantity_count; ++i) {
        const berth_vm_quantity *q = &family->quantities[i];
        bool known = q->kind < BERTH_QUANTITY_KINDS, fits = true;
        if (q->kind == BERTH_QUANTITY_VARIABLE) fits = q->a < header->variable_count;
        if (q->kind >= BERTH_QUANTITY_SUM) fits = q->a < i && q->b < i;
        if (q->kind == BERTH_QUANTITY_QUOTIENT) fits = q->a < i && q->number > 0;
        if (!known || !fits) return BAD("quantities[%u] is of no use", i);
    }
    return BERTH_OK;
}

berth_status berth_vm_family_verify(const berth_vm_body *body, const berth_vm_family *family) {
    if (family->variant >= body->variant_count) return BAD("variant %u", family->variant);
    const berth_vm_variant *variant = &body->variants[family->variant];
    const berth_vm_piece *piece = berth_vm_piece_at(body->code, variant->piece);
    for (uint32_t i = 0; i < family->header->variable_count; ++i) {
        const berth_vm_variable *v = &family->variables[i];
        if (v->input >= piece->input_count || !has_number(&variant->inputs[v->input], v->axis))
            return BAD("variables[%u] is no number of an input", i);
    }
    BERTH_TRY(check_quantities(family));
    for (uint32_t i = 0; i < family->header->patch_count; ++i) {
        const berth_vm_patch *patch = &family->patches[i];
        if (!is_there(variant, piece, patch) || patch->quantity >= family->header->quantity_count)
            return BAD("patches[%u] is of nothing", i);
    }
    return BERTH_OK;
}

// ---- members ------------------------------------------------------------------------------------

bool berth_vm_family_holds(const berth_vm_family *family, const berth_tensor *inputs,
                           int64_t *out_values) {
    uint64_t at = 0;
    for (uint32_t i = 0; i < family->header->variable_count; ++i) {
        const berth_vm_variable *v = &family->variables[i];
        const berth_tensor *input = &inputs[v->input];
        if (!has_number(input, v->axis)) return false;
        out_values[i] = v->axis < BERTH_FAMILY_ELEMENTS
                            ? input->dims[v->axis]
                            : berth_tensor_get_i64(input, v->axis - BERTH_FAMILY_ELEMENTS);
        if (out_values[i] < v->low || out_values[i] > v->high) return false;
        at = at * (uint64_t)(v->high - v->low + 1) + (uint64_t)(out_values[i] - v->low);
    }
    return !family->members || (family->members[at / 64] >> at % 64 & 1);
}

bool berth_vm_family_evaluate(const berth_vm_family *family, const int64_t *values, int64_t *out) {
    for (uint32_t i = 0; i < family->header->quantity_count; ++i) {
        const berth_vm_quantity *q = &family->quantities[i];
        bool bad = false;
        switch (q->kind) {
        case BERTH_QUANTITY_VARIABLE: out[i] = values[q->a]; break;
        case BERTH_QUANTITY_NUMBER: out[i] = q->number; break;
        case BERTH_QUANTITY_SUM: bad = __builtin_add_overflow(out[q->a], out[q->b], &out[i]); break;
        case BERTH_QUANTITY_PRODUCT:
            bad = __builtin_mul_overflow(out[q->a], out[q->b], &out[i]);
            break;
        default:
            bad = out[q->a] < 0;
            if (!bad) out[i] = out[q->a] / q->number;
        }
        if (bad) return false;
    }
    return true;
}

// What a member has of its own.
typedef struct member {
    berth_tensor *inputs, *results;
    berth_program_pool *pools;
    berth_program_tensor *tensors;
    berth_program_kernel *kernels;
    berth_kernel_binding **bindings;  // per kernel; NULL = those of the variant
    berth_program_step *steps;
    int64_t **constants;  // per step; the same
    berth_program_check *checks;
} member;

#define COPY(arena, data, count) berth_arena_copy(arena, data, (count) * sizeof(*(data)))

static berth_kernel_binding *bindings_of(member *m, uint32_t kernel, berth_arena *arena) {
    berth_program_kernel *k = &m->kernels[kernel];
    if (!m->bindings[kernel])
        k->bindings = m->bindings[kernel] = COPY(arena, k->bindings, k->binding_count);
    return m->bindings[kernel];
}

static int64_t *constants_of(member *m, uint32_t step, berth_arena *arena) {
    berth_program_step *s = &m->steps[step];
    if (!m->constants[step])
        s->constants = m->constants[step] =
            COPY(arena, s->constants, m->kernels[s->kernel].constant_count);
    return m->constants[step];
}

// False: the number does not fit.
static bool apply(member *m, const berth_vm_patch *patch, int64_t value, berth_arena *arena) {
    uint32_t record = patch->record;
    if (patch->kind <= BERTH_PATCH_RESULT) {
        berth_tensor *t =
            patch->kind == BERTH_PATCH_INPUT ? &m->inputs[record] : &m->results[record];
        if (patch->index < BERTH_FAMILY_ELEMENTS)
            t->dims[patch->index] = value;
        else
            berth_tensor_set_i64(t, patch->index - BERTH_FAMILY_ELEMENTS, value);
        return patch->index >= BERTH_FAMILY_ELEMENTS || value >= 0;
    }
    if (patch->kind == BERTH_PATCH_STEP_CONSTANT) {
        constants_of(m, record, arena)[patch->index] = value;
        return true;
    }
    if (value < 0) return false;
    switch (patch->kind) {
    case BERTH_PATCH_TENSOR_DIM: m->tensors[record].dims[patch->index] = value; return true;
    case BERTH_PATCH_TENSOR_SIZE: m->tensors[record].size_bytes = (uint64_t)value; return true;
    case BERTH_PATCH_CHECK_EXTENT: m->checks[record].extents[patch->index] = value; return true;
    case BERTH_PATCH_TENSOR_OFFSET: m->tensors[record].offset_bytes = (uint64_t)value; return true;
    case BERTH_PATCH_KERNEL_BINDING:
        bindings_of(m, record, arena)[patch->index].size_bytes = (uint64_t)value;
        return true;
    case BERTH_PATCH_KERNEL_GROUPS:
        m->kernels[record].groups[patch->index] = (uint32_t)value;
        break;
    default: m->kernels[record].scratch_bytes = (uint32_t)value; break;
    }
    return value <= UINT32_MAX;
}

// The bytes of a constant are those of the variant: a member has no more of them.
static bool fit_constants(const berth_program *program, const berth_program *variant) {
    for (uint32_t i = 0; i < program->constant_count; ++i) {
        uint32_t t = program->constants[i].tensor;
        if (program->tensors[t].size_bytes > variant->tensors[t].size_bytes) return false;
    }
    return true;
}

// Values at their ends: pools are no larger than that.
static void fit_pools(const berth_program *program, berth_program_pool *pools) {
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (pools[i].usage == BERTH_POOL_WORKSPACE || pools[i].usage == BERTH_POOL_IO)
            pools[i].size_bytes = pools[i].lower_bound_bytes = 0;
    for (uint32_t i = 0; i < program->tensor_count; ++i) {
        const berth_program_tensor *tensor = &program->tensors[i];
        berth_program_pool *pool = &pools[tensor->pool];
        uint64_t end = 0;
        if (pool->usage != BERTH_POOL_WORKSPACE && pool->usage != BERTH_POOL_IO) continue;
        // One that wraps is past every pool: the verifier says so.
        if (!__builtin_add_overflow(tensor->offset_bytes, tensor->size_bytes, &end) &&
            end > pool->size_bytes)
            pool->size_bytes = end;
    }
}

// Tensors; integers have bytes of their own, which may change.
static berth_tensor *copy_tensors(const berth_tensor *held, uint32_t count, berth_arena *arena) {
    berth_tensor *copy = COPY(arena, held, count);
    for (uint32_t i = 0; i < count; ++i)
        if (copy[i].data && is_integer(copy[i].dtype))
            copy[i].data = berth_arena_copy(arena, copy[i].data, berth_tensor_size_bytes(&held[i]));
    return copy;
}

// Whether no tensor with known bytes has more or fewer than before.
static bool keep_bytes(const berth_tensor *made, const berth_tensor *held, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        size_t size_bytes = 0;
        if (!made[i].data) continue;
        berth_status status =
            berth_shape_size_bytes(made[i].dtype, made[i].rank, made[i].dims, NULL, &size_bytes);
        if (status || size_bytes != berth_tensor_size_bytes(&held[i])) {
            berth_status_free(status);
            return false;
        }
    }
    return true;
}

static void copy_program(member *m, const berth_program *held, berth_arena *arena) {
    m->pools = COPY(arena, held->pools, held->pool_count);
    m->tensors = COPY(arena, held->tensors, held->tensor_count);
    m->kernels = COPY(arena, held->kernels, held->kernel_count);
    m->steps = COPY(arena, held->steps, held->step_count);
    m->checks = COPY(arena, held->checks, held->check_count);
    m->bindings = berth_arena_new_array(arena, berth_kernel_binding *, held->kernel_count + 1);
    m->constants = berth_arena_new_array(arena, int64_t *, held->step_count + 1);
}

// The program with what is the member's. Errors: as berth_program_verify.
static berth_status finish_program(const member *m, const berth_program *held, berth_arena *arena,
                                   const berth_program **out_program) {
    berth_program *program = COPY(arena, held, 1);
    program->pools = m->pools;
    program->tensors = m->tensors;
    program->kernels = m->kernels;
    program->steps = m->steps;
    program->checks = m->checks;
    *out_program = program;
    if (!fit_constants(program, held)) return BAD("a constant is larger than its bytes");
    fit_pools(program, m->pools);
    return berth_program_verify(program);
}

berth_status berth_vm_family_member(const berth_vm_body *body, const berth_vm_family *family,
                                    const int64_t *values, berth_arena *arena,
                                    berth_vm_variant *out_variant) {
    const berth_vm_variant *variant = &body->variants[family->variant];
    const berth_vm_piece *piece = berth_vm_piece_at(body->code, variant->piece);
    const uint32_t result_count = variant->results ? piece->output_count : 0;
    int64_t *numbers = berth_arena_new_array(arena, int64_t, family->header->quantity_count + 1);
    member m = {.inputs = copy_tensors(variant->inputs, piece->input_count, arena),
                .results = copy_tensors(variant->results, result_count, arena)};
    if (variant->program) copy_program(&m, variant->program, arena);
    bool fits = berth_vm_family_evaluate(family, values, numbers);
    for (uint32_t i = 0; fits && i < family->header->patch_count; ++i)
        fits = apply(&m, &family->patches[i], numbers[family->patches[i].quantity], arena);
    if (!fits || !keep_bytes(m.inputs, variant->inputs, piece->input_count) ||
        !keep_bytes(m.results, variant->results, result_count))
        return BAD("a number of a program for many shapes is out of range");
    *out_variant = (berth_vm_variant){
        .piece = variant->piece, .inputs = m.inputs, .results = result_count ? m.results : NULL};
    if (variant->program)
        BERTH_TRY(finish_program(&m, variant->program, arena, &out_variant->program));
    return berth_vm_variant_verify(body, out_variant);
}

bool berth_vm_family_shares_code(const berth_program *a, const berth_program *b) {
    if (a->devices != b->devices || a->queues != b->queues || a->executables != b->executables ||
        a->constants != b->constants || a->kernel_count != b->kernel_count)
        return false;
    for (uint32_t i = 0; i < a->kernel_count; ++i)
        if (a->kernels[i].scratch_bytes != b->kernels[i].scratch_bytes) return false;
    for (uint32_t i = 0; i < a->constant_count; ++i) {
        const berth_program_tensor *x = &a->tensors[a->constants[i].tensor];
        const berth_program_tensor *y = &b->tensors[b->constants[i].tensor];
        if (x->offset_bytes != y->offset_bytes || x->size_bytes != y->size_bytes) return false;
    }
    return true;
}
