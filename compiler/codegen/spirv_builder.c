#include "compiler/codegen/spirv_builder.h"

#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"

enum { hash_slots = 1024, most_operands = 24 };

typedef struct op_facts {
    const char *name;
    bool known, has_type, has_result, pure;
} op_facts;

enum { op_count = 384, first_khr = 4456, khr_count = 4 };
#define SLOT(number) ((number) < op_count ? (number) : (number)-first_khr + op_count)
static const op_facts facts[op_count + khr_count] = {
#define SPIRV_OP(name, number, has_type, has_result, pure)                                         \
    [SLOT(number)] = {"Op" #name, true, has_type, has_result, pure},
#include "compiler/codegen/spirv_ops.def"
#undef SPIRV_OP
};

static const op_facts *facts_of(uint32_t op) {
    bool known = op < op_count || (op >= first_khr && op < first_khr + khr_count);
    return &facts[known ? SLOT(op) : 0];
}

typedef struct cached {
    uint64_t hash;
    uint32_t first, length;  // in cache_words: op, type and operands
    uint32_t id;
    uint32_t next;  // + 1
} cached;

typedef struct code {  // of the function being written
    berth_spirv_words head, locals, body;
    uint32_t block;
    uint32_t cache_base;
} code;

typedef struct constant {
    uint32_t id, type;
    uint64_t bits;
} constant;

typedef struct helper {
    const char *name;
    uint32_t id;
} helper;

struct berth_spirv {
    berth_arena *arena;
    uint32_t next_id;
    berth_spirv_words capabilities, extensions, debug, decorations, types, functions, interface;
    uint32_t glsl, main, void_function;
    uint32_t type_ids[SPIRV_TYPE_COUNT];
    BERTH_VEC(constant) constants;
    BERTH_VEC(uint32_t) derived;  // storage or count, kind, pointee, id: pointers and arrays
    BERTH_VEC(helper) helpers;
    BERTH_VEC(cached) cache;
    berth_spirv_words cache_words;
    uint32_t slots[hash_slots];  // + 1
    BERTH_VEC(uint32_t) scopes;  // cache.count at their opening
    BERTH_VEC(code) stack;
    BERTH_VEC(uint32_t) modes;     // mode and bits
    BERTH_VEC(uint32_t) from_f16;  // by f32 id: the f16 that it was; 0 = none
};

static void push(berth_spirv *m, berth_spirv_words *words, uint32_t word) {
    berth_vec_push(m->arena, words, word);
}

static void put(berth_spirv *m, berth_spirv_words *words, berth_spirv_opcode op,
                const uint32_t *operands, uint32_t count) {
    push(m, words, (count + 1) << 16 | (uint32_t)op);
    for (uint32_t i = 0; i < count; ++i) push(m, words, operands[i]);
}

static void put_text(berth_spirv *m, berth_spirv_words *words, berth_spirv_opcode op,
                     const uint32_t *before, uint32_t before_count, const char *text,
                     const berth_spirv_words *after) {
    uint32_t length = (uint32_t)strlen(text) + 1, text_words = (length + 3) / 4;
    uint32_t total = 1 + before_count + text_words + (after ? after->count : 0);
    push(m, words, total << 16 | (uint32_t)op);
    for (uint32_t i = 0; i < before_count; ++i) push(m, words, before[i]);
    for (uint32_t i = 0; i < text_words; ++i) {
        uint32_t word = 0;
        for (uint32_t k = 0; k < 4 && 4 * i + k < length; ++k)
            word |= (uint32_t)(unsigned char)text[4 * i + k] << (8 * k);
        push(m, words, word);
    }
    for (uint32_t i = 0; after && i < after->count; ++i) push(m, words, after->data[i]);
}

static code *current(berth_spirv *m) {
    return &m->stack.data[m->stack.count - 1];
}

static uint32_t put_type(berth_spirv *m, berth_spirv_opcode op, const uint32_t *operands,
                         uint32_t count) {
    uint32_t *all = berth_arena_new_array(m->arena, uint32_t, count + 1);
    all[0] = berth_spirv_new_id(m);
    for (uint32_t i = 0; i < count; ++i) all[i + 1] = operands[i];
    put(m, &m->types, op, all, count + 1);
    return all[0];
}

static void open_code(berth_spirv *m) {
    berth_vec_push(m->arena, &m->stack, (code){.cache_base = m->cache.count});
}

berth_spirv *berth_spirv_create(berth_arena *arena) {
    berth_spirv *m = berth_arena_new(arena, berth_spirv);
    m->arena = arena;
    m->next_id = 1;
    berth_spirv_capability(m, SPIRV_CAPABILITY_SHADER);
    m->glsl = berth_spirv_new_id(m);
    uint32_t void_id = berth_spirv_type_id(m, SPIRV_TYPE_VOID);
    m->void_function = put_type(m, SPIRV_TypeFunction, &void_id, 1);
    m->main = berth_spirv_new_id(m);
    open_code(m);
    put(m, &current(m)->head, SPIRV_Function, (uint32_t[]){void_id, m->main, 0, m->void_function},
        4);
    current(m)->block = berth_spirv_new_id(m);
    put(m, &current(m)->head, SPIRV_Label, &current(m)->block, 1);
    return m;
}

berth_arena *berth_spirv_arena(const berth_spirv *m) {
    return m->arena;
}

uint32_t berth_spirv_new_id(berth_spirv *m) {
    return m->next_id++;
}

// ---- declarations -------------------------------------------------------------------------------

void berth_spirv_capability(berth_spirv *m, uint32_t capability) {
    for (uint32_t i = 0; i < m->capabilities.count; ++i)
        if (m->capabilities.data[i] == capability) return;
    push(m, &m->capabilities, capability);
}

void berth_spirv_extension(berth_spirv *m, const char *name) {
    put_text(m, &m->extensions, SPIRV_Extension, NULL, 0, name, NULL);
}

bool berth_spirv_has_type(const berth_spirv *m, berth_spirv_type type) {
    return m->type_ids[type] != 0;
}

void berth_spirv_float_mode(berth_spirv *m, uint32_t mode, uint32_t bits, uint32_t capability) {
    berth_spirv_capability(m, capability);
    berth_vec_push(m->arena, &m->modes, mode);
    berth_vec_push(m->arena, &m->modes, bits);
}

uint32_t berth_spirv_type_id(berth_spirv *m, berth_spirv_type type) {
    if (m->type_ids[type]) return m->type_ids[type];
    uint32_t id = 0;
    switch (type) {
    case SPIRV_TYPE_VOID: id = put_type(m, SPIRV_TypeVoid, NULL, 0); break;
    case SPIRV_TYPE_BOOL: id = put_type(m, SPIRV_TypeBool, NULL, 0); break;
    // Pointers to small integers are made from addresses: valid only where there is arithmetic on
    // them, too (SPIRV-Tools, "limited use" types).
    case SPIRV_TYPE_U8:
        berth_spirv_capability(m, SPIRV_CAPABILITY_INT8);
        berth_spirv_capability(m, SPIRV_CAPABILITY_STORAGE_8);
        id = put_type(m, SPIRV_TypeInt, (uint32_t[]){8, 0}, 2);
        break;
    case SPIRV_TYPE_U16:
        berth_spirv_capability(m, SPIRV_CAPABILITY_INT16);
        berth_spirv_capability(m, SPIRV_CAPABILITY_STORAGE_16);
        id = put_type(m, SPIRV_TypeInt, (uint32_t[]){16, 0}, 2);
        break;
    case SPIRV_TYPE_U32: id = put_type(m, SPIRV_TypeInt, (uint32_t[]){32, 0}, 2); break;
    case SPIRV_TYPE_U64:
        berth_spirv_capability(m, SPIRV_CAPABILITY_INT64);
        id = put_type(m, SPIRV_TypeInt, (uint32_t[]){64, 0}, 2);
        break;
    case SPIRV_TYPE_F16:
        berth_spirv_capability(m, SPIRV_CAPABILITY_FLOAT16);
        berth_spirv_capability(m, SPIRV_CAPABILITY_STORAGE_16);
        id = put_type(m, SPIRV_TypeFloat, (uint32_t[]){16}, 1);
        break;
    case SPIRV_TYPE_F32: id = put_type(m, SPIRV_TypeFloat, (uint32_t[]){32}, 1); break;
    case SPIRV_TYPE_F64:
        berth_spirv_capability(m, SPIRV_CAPABILITY_FLOAT64);
        id = put_type(m, SPIRV_TypeFloat, (uint32_t[]){64}, 1);
        break;
    case SPIRV_TYPE_COUNT: break;
    }
    m->type_ids[type] = id;
    return id;
}

static uint32_t find_derived(const berth_spirv *m, uint32_t kind, uint32_t number,
                             uint32_t pointee) {
    for (uint32_t i = 0; i < m->derived.count; i += 4) {
        const uint32_t *at = m->derived.data + i;
        if (at[0] == kind && at[1] == number && at[2] == pointee) return at[3];
    }
    return 0;
}

static uint32_t add_derived(berth_spirv *m, uint32_t kind, uint32_t number, uint32_t pointee,
                            uint32_t id) {
    berth_vec_push(m->arena, &m->derived, kind);
    berth_vec_push(m->arena, &m->derived, number);
    berth_vec_push(m->arena, &m->derived, pointee);
    berth_vec_push(m->arena, &m->derived, id);
    return id;
}

uint32_t berth_spirv_pointer(berth_spirv *m, uint32_t storage, uint32_t pointee) {
    uint32_t id = find_derived(m, SPIRV_TypePointer, storage, pointee);
    if (id) return id;
    id = put_type(m, SPIRV_TypePointer, (uint32_t[]){storage, pointee}, 2);
    return add_derived(m, SPIRV_TypePointer, storage, pointee, id);
}

uint32_t berth_spirv_array(berth_spirv *m, uint32_t element, uint32_t count) {
    uint32_t id = find_derived(m, SPIRV_TypeArray, count, element);
    if (id) return id;
    uint32_t length = berth_spirv_int(m, SPIRV_TYPE_U32, count);
    id = put_type(m, SPIRV_TypeArray, (uint32_t[]){element, length}, 2);
    return add_derived(m, SPIRV_TypeArray, count, element, id);
}

uint32_t berth_spirv_new_type(berth_spirv *m, berth_spirv_opcode op, const uint32_t *operands,
                              uint32_t count) {
    return put_type(m, op, operands, count);
}

static uint32_t find_constant(berth_spirv *m, berth_spirv_type type, uint64_t bits) {
    for (uint32_t i = 0; i < m->constants.count; ++i) {
        const constant *at = &m->constants.data[i];
        if (at->bits == bits && at->type == (uint32_t)type) return at->id;
    }
    uint32_t words[4] = {berth_spirv_type_id(m, type), berth_spirv_new_id(m), (uint32_t)bits,
                         (uint32_t)(bits >> 32)};
    bool wide = type == SPIRV_TYPE_U64 || type == SPIRV_TYPE_F64;
    if (type == SPIRV_TYPE_BOOL)
        put(m, &m->types, bits ? SPIRV_ConstantTrue : SPIRV_ConstantFalse, words, 2);
    else
        put(m, &m->types, SPIRV_Constant, words, wide ? 4 : 3);
    berth_vec_push(m->arena, &m->constants, (constant){words[1], (uint32_t)type, bits});
    return words[1];
}

uint32_t berth_spirv_int(berth_spirv *m, berth_spirv_type type, uint64_t value) {
    return find_constant(m, type, type == SPIRV_TYPE_U64 ? value : (uint32_t)value);
}

uint32_t berth_spirv_float(berth_spirv *m, berth_spirv_type type, double value) {
    uint64_t bits = 0;
    float narrow = (float)value;
    uint32_t narrow_bits = 0;
    memcpy(&bits, &value, sizeof(bits));
    memcpy(&narrow_bits, &narrow, sizeof(narrow_bits));
    if (type == SPIRV_TYPE_F16) return find_constant(m, type, berth_f32_to_f16(narrow));
    return find_constant(m, type, type == SPIRV_TYPE_F64 ? bits : narrow_bits);
}

uint32_t berth_spirv_bool(berth_spirv *m, bool value) {
    return find_constant(m, SPIRV_TYPE_BOOL, value);
}

bool berth_spirv_int_value(const berth_spirv *m, uint32_t id, uint64_t *out_value) {
    for (uint32_t i = 0; i < m->constants.count; ++i) {
        const constant *at = &m->constants.data[i];
        if (at->id != id || (at->type >= SPIRV_TYPE_F16 && at->type <= SPIRV_TYPE_F64)) continue;
        *out_value = at->bits;
        return true;
    }
    return false;
}

uint32_t berth_spirv_global(berth_spirv *m, uint32_t pointer_type, uint32_t storage) {
    uint32_t id = berth_spirv_new_id(m);
    put(m, &m->types, SPIRV_Variable, (uint32_t[]){pointer_type, id, storage}, 3);
    push(m, &m->interface, id);
    return id;
}

void berth_spirv_name(berth_spirv *m, uint32_t id, const char *name) {
    put_text(m, &m->debug, SPIRV_Name, &id, 1, name, NULL);
}

void berth_spirv_string(berth_spirv *m, const char *text) {
    // OpString comes before every OpName.
    berth_spirv_words names = m->debug;
    m->debug = (berth_spirv_words){0};
    uint32_t id = berth_spirv_new_id(m);
    put_text(m, &m->debug, SPIRV_String, &id, 1, text, NULL);
    for (uint32_t i = 0; i < names.count; ++i) push(m, &m->debug, names.data[i]);
}

void berth_spirv_decorate(berth_spirv *m, uint32_t id, uint32_t decoration) {
    put(m, &m->decorations, SPIRV_Decorate, (uint32_t[]){id, decoration}, 2);
}

void berth_spirv_decorate_with(berth_spirv *m, uint32_t id, uint32_t decoration, uint32_t value) {
    put(m, &m->decorations, SPIRV_Decorate, (uint32_t[]){id, decoration, value}, 3);
}

void berth_spirv_decorate_member(berth_spirv *m, uint32_t id, uint32_t member, uint32_t decoration,
                                 int64_t value) {
    uint32_t words[] = {id, member, decoration, (uint32_t)value};
    put(m, &m->decorations, SPIRV_MemberDecorate, words, value < 0 ? 3 : 4);
}

// ---- instructions -------------------------------------------------------------------------------

static bool is_contractible(berth_spirv_opcode op) {
    return op == SPIRV_FAdd || op == SPIRV_FSub || op == SPIRV_FMul || op == SPIRV_FDiv ||
           op == SPIRV_FNegate;
}

uint32_t berth_spirv_emit(berth_spirv *m, berth_spirv_opcode op, uint32_t type_id,
                          const uint32_t *operands, uint32_t count) {
    uint32_t words[most_operands + 2] = {(uint32_t)op, type_id};
    memcpy(words + 2, operands, count * sizeof(*operands));
    uint64_t hash = berth_hash64(words, (count + 2) * sizeof(*words), 0);
    uint32_t *slot = &m->slots[hash % hash_slots];
    code *c = current(m);
    bool pure = facts_of(op)->pure;
    for (uint32_t at = pure ? *slot : 0; at; at = m->cache.data[at - 1].next) {
        const cached *known = &m->cache.data[at - 1];
        if (at <= c->cache_base) break;
        if (known->hash == hash && known->length == count + 2 &&
            memcmp(m->cache_words.data + known->first, words, known->length * sizeof(*words)) == 0)
            return known->id;
    }
    uint32_t id = berth_spirv_new_id(m);
    push(m, &c->body, (count + 3) << 16 | (uint32_t)op);
    push(m, &c->body, type_id);
    push(m, &c->body, id);
    for (uint32_t i = 0; i < count; ++i) push(m, &c->body, operands[i]);
    if (is_contractible(op)) berth_spirv_decorate(m, id, SPIRV_DECORATION_NO_CONTRACTION);
    if (!pure) return id;
    cached entry = {
        .hash = hash, .first = m->cache_words.count, .length = count + 2, .id = id, .next = *slot};
    for (uint32_t i = 0; i < count + 2; ++i) push(m, &m->cache_words, words[i]);
    berth_vec_push(m->arena, &m->cache, entry);
    *slot = m->cache.count;
    return id;
}

uint32_t berth_spirv_unary(berth_spirv *m, berth_spirv_opcode op, berth_spirv_type type,
                           uint32_t a) {
    return berth_spirv_emit(m, op, berth_spirv_type_id(m, type), &a, 1);
}

uint32_t berth_spirv_binary(berth_spirv *m, berth_spirv_opcode op, berth_spirv_type type,
                            uint32_t a, uint32_t b) {
    return berth_spirv_emit(m, op, berth_spirv_type_id(m, type), (uint32_t[]){a, b}, 2);
}

uint32_t berth_spirv_from_f16(berth_spirv *m, uint32_t a) {
    uint32_t id = berth_spirv_unary(m, SPIRV_FConvert, SPIRV_TYPE_F32, a);
    while (m->from_f16.count <= id) berth_vec_push(m->arena, &m->from_f16, 0);
    m->from_f16.data[id] = a;
    return id;
}

uint32_t berth_spirv_to_f16(berth_spirv *m, uint32_t a) {
    if (a < m->from_f16.count && m->from_f16.data[a]) return m->from_f16.data[a];
    return berth_spirv_unary(m, SPIRV_FConvert, SPIRV_TYPE_F16, a);
}

uint32_t berth_spirv_select(berth_spirv *m, berth_spirv_type type, uint32_t condition, uint32_t a,
                            uint32_t b) {
    if (a == b) return a;
    return berth_spirv_emit(m, SPIRV_Select, berth_spirv_type_id(m, type),
                            (uint32_t[]){condition, a, b}, 3);
}

uint32_t berth_spirv_glsl(berth_spirv *m, uint32_t instruction, berth_spirv_type type,
                          const uint32_t *operands, uint32_t count) {
    uint32_t all[most_operands] = {m->glsl, instruction};
    memcpy(all + 2, operands, count * sizeof(*operands));
    return berth_spirv_emit(m, SPIRV_ExtInst, berth_spirv_type_id(m, type), all, count + 2);
}

void berth_spirv_plain(berth_spirv *m, berth_spirv_opcode op, const uint32_t *operands,
                       uint32_t count) {
    put(m, &current(m)->body, op, operands, count);
}

uint32_t berth_spirv_local(berth_spirv *m, uint32_t pointee) {
    uint32_t pointer = berth_spirv_pointer(m, SPIRV_STORAGE_FUNCTION, pointee);
    uint32_t id = berth_spirv_new_id(m);
    put(m, &current(m)->locals, SPIRV_Variable, (uint32_t[]){pointer, id, SPIRV_STORAGE_FUNCTION},
        3);
    return id;
}

// ---- blocks -------------------------------------------------------------------------------------

void berth_spirv_open_scope(berth_spirv *m) {
    berth_vec_push(m->arena, &m->scopes, m->cache.count);
}

static void forget_to(berth_spirv *m, uint32_t count) {
    while (m->cache.count > count) {
        const cached *last = &m->cache.data[--m->cache.count];
        m->slots[last->hash % hash_slots] = last->next;
        m->cache_words.count = last->first;
    }
}

void berth_spirv_close_scope(berth_spirv *m) {
    forget_to(m, m->scopes.data[--m->scopes.count]);
}

void berth_spirv_label(berth_spirv *m, uint32_t id) {
    berth_spirv_plain(m, SPIRV_Label, &id, 1);
    current(m)->block = id;
}

uint32_t berth_spirv_block(const berth_spirv *m) {
    return m->stack.data[m->stack.count - 1].block;
}

void berth_spirv_branch(berth_spirv *m, uint32_t label) {
    berth_spirv_plain(m, SPIRV_Branch, &label, 1);
}

berth_spirv_if berth_spirv_open_if(berth_spirv *m, uint32_t condition) {
    berth_spirv_if at = {.merge = berth_spirv_new_id(m), .other = berth_spirv_new_id(m)};
    uint32_t then = berth_spirv_new_id(m);
    berth_spirv_plain(m, SPIRV_SelectionMerge, (uint32_t[]){at.merge, 0}, 2);
    berth_spirv_plain(m, SPIRV_BranchConditional, (uint32_t[]){condition, then, at.other}, 3);
    berth_spirv_label(m, then);
    berth_spirv_open_scope(m);
    return at;
}

void berth_spirv_else(berth_spirv *m, berth_spirv_if *at) {
    berth_spirv_close_scope(m);
    berth_spirv_branch(m, at->merge);
    berth_spirv_label(m, at->other);
    berth_spirv_open_scope(m);
    at->has_else = true;
}

void berth_spirv_close_if(berth_spirv *m, berth_spirv_if *at) {
    if (!at->has_else) berth_spirv_else(m, at);
    berth_spirv_close_scope(m);
    berth_spirv_branch(m, at->merge);
    berth_spirv_label(m, at->merge);
}

uint32_t berth_spirv_phi(berth_spirv *m, berth_spirv_type type, uint32_t a, uint32_t a_block,
                         uint32_t b, uint32_t b_block) {
    return berth_spirv_emit(m, SPIRV_Phi, berth_spirv_type_id(m, type),
                            (uint32_t[]){a, a_block, b, b_block}, 4);
}

berth_spirv_loop berth_spirv_open_loop(berth_spirv *m, berth_spirv_type type, uint32_t limit) {
    berth_spirv_loop at = {.next = berth_spirv_new_id(m),
                           .header = berth_spirv_new_id(m),
                           .proceed = berth_spirv_new_id(m),
                           .merge = berth_spirv_new_id(m),
                           .type = type};
    uint32_t test = berth_spirv_new_id(m), body = berth_spirv_new_id(m);
    uint32_t zero = berth_spirv_int(m, type, 0), before = berth_spirv_block(m);
    berth_spirv_branch(m, at.header);
    berth_spirv_label(m, at.header);
    berth_spirv_open_scope(m);
    at.counter = berth_spirv_phi(m, type, zero, before, at.next, at.proceed);
    berth_spirv_plain(m, SPIRV_LoopMerge, (uint32_t[]){at.merge, at.proceed, 0}, 3);
    berth_spirv_branch(m, test);
    berth_spirv_label(m, test);
    uint32_t more = berth_spirv_binary(m, SPIRV_SLessThan, SPIRV_TYPE_BOOL, at.counter, limit);
    berth_spirv_plain(m, SPIRV_BranchConditional, (uint32_t[]){more, body, at.merge}, 3);
    berth_spirv_label(m, body);
    return at;
}

void berth_spirv_close_loop(berth_spirv *m, const berth_spirv_loop *at) {
    berth_spirv_branch(m, at->proceed);
    berth_spirv_label(m, at->proceed);
    berth_spirv_plain(m, SPIRV_IAdd,
                      (uint32_t[]){berth_spirv_type_id(m, at->type), at->next, at->counter,
                                   berth_spirv_int(m, at->type, 1)},
                      4);
    berth_spirv_branch(m, at->header);
    berth_spirv_close_scope(m);
    berth_spirv_label(m, at->merge);
}

// ---- functions ----------------------------------------------------------------------------------

bool berth_spirv_open_function(berth_spirv *m, const char *name, berth_spirv_type result,
                               const berth_spirv_type *parameters, uint32_t parameter_count,
                               uint32_t *out_id, uint32_t *out_parameters) {
    for (uint32_t i = 0; i < m->helpers.count; ++i)
        if (strcmp(m->helpers.data[i].name, name) == 0) {
            *out_id = m->helpers.data[i].id;
            return false;
        }
    uint32_t signature[most_operands] = {berth_spirv_type_id(m, result)};
    for (uint32_t i = 0; i < parameter_count; ++i)
        signature[i + 1] = berth_spirv_type_id(m, parameters[i]);
    uint32_t shape = parameter_count * 16 + (uint32_t)result;  // function types exist once
    for (uint32_t i = 0; i < parameter_count; ++i) shape = shape * 16 + (uint32_t)parameters[i];
    uint32_t type = find_derived(m, SPIRV_TypeFunction, shape, 0);
    if (!type)
        type = add_derived(m, SPIRV_TypeFunction, shape, 0,
                           put_type(m, SPIRV_TypeFunction, signature, parameter_count + 1));
    *out_id = berth_spirv_new_id(m);
    berth_vec_push(m->arena, &m->helpers, (helper){name, *out_id});
    berth_spirv_name(m, *out_id, name);
    open_code(m);
    put(m, &current(m)->head, SPIRV_Function, (uint32_t[]){signature[0], *out_id, 0, type}, 4);
    for (uint32_t i = 0; i < parameter_count; ++i) {
        out_parameters[i] = berth_spirv_new_id(m);
        put(m, &current(m)->head, SPIRV_FunctionParameter,
            (uint32_t[]){signature[i + 1], out_parameters[i]}, 2);
    }
    current(m)->block = berth_spirv_new_id(m);
    put(m, &current(m)->head, SPIRV_Label, &current(m)->block, 1);
    return true;
}

static void append(berth_spirv *m, berth_spirv_words *to, const berth_spirv_words *from) {
    for (uint32_t i = 0; i < from->count; ++i) push(m, to, from->data[i]);
}

static void close_code(berth_spirv *m) {
    code *c = current(m);
    put(m, &c->body, SPIRV_FunctionEnd, NULL, 0);
    append(m, &m->functions, &c->head);
    append(m, &m->functions, &c->locals);
    append(m, &m->functions, &c->body);
    forget_to(m, c->cache_base);
    m->stack.count--;
}

void berth_spirv_close_function(berth_spirv *m, uint32_t result) {
    berth_spirv_plain(m, SPIRV_ReturnValue, &result, 1);
    close_code(m);
}

uint32_t berth_spirv_call(berth_spirv *m, uint32_t function, berth_spirv_type result,
                          const uint32_t *arguments, uint32_t count) {
    uint32_t all[most_operands] = {function};
    memcpy(all + 1, arguments, count * sizeof(*arguments));
    return berth_spirv_emit(m, SPIRV_FunctionCall, berth_spirv_type_id(m, result), all, count + 1);
}

void berth_spirv_finish(berth_spirv *m, const char *entry, const uint32_t local_size[3],
                        berth_spirv_words *out_words) {
    enum { magic = 0x07230203, version_1_5 = 0x00010500 };
    berth_spirv_words all = {0};
    berth_spirv_plain(m, SPIRV_Return, NULL, 0);
    close_code(m);
    enum { logical = 0, physical_64 = 5348, glsl_450 = 1, vulkan = 3 };
    uint32_t addresses = logical, model = glsl_450;
    for (uint32_t i = 0; i < m->capabilities.count; ++i) {
        if (m->capabilities.data[i] == SPIRV_CAPABILITY_PHYSICAL) addresses = physical_64;
        if (m->capabilities.data[i] == SPIRV_CAPABILITY_MEMORY_MODEL) model = vulkan;
    }
    const uint32_t head[] = {magic, version_1_5, 0, m->next_id, 0};
    for (int i = 0; i < 5; ++i) push(m, &all, head[i]);
    for (uint32_t i = 0; i < m->capabilities.count; ++i)
        put(m, &all, SPIRV_Capability, &m->capabilities.data[i], 1);
    append(m, &all, &m->extensions);
    put_text(m, &all, SPIRV_ExtInstImport, &m->glsl, 1, "GLSL.std.450", NULL);
    put(m, &all, SPIRV_MemoryModel, (uint32_t[]){addresses, model}, 2);
    enum { gl_compute = 5 };
    put_text(m, &all, SPIRV_EntryPoint, (uint32_t[]){gl_compute, m->main}, 2, entry, &m->interface);
    put(m, &all, SPIRV_ExecutionMode,
        (uint32_t[]){m->main, SPIRV_MODE_LOCAL_SIZE, local_size[0], local_size[1], local_size[2]},
        5);
    for (uint32_t i = 0; i < m->modes.count; i += 2)
        put(m, &all, SPIRV_ExecutionMode,
            (uint32_t[]){m->main, m->modes.data[i], m->modes.data[i + 1]}, 3);
    append(m, &all, &m->debug);
    append(m, &all, &m->decorations);
    append(m, &all, &m->types);
    append(m, &all, &m->functions);
    *out_words = all;
}

// ---- text ---------------------------------------------------------------------------------------

static void print_text(const uint32_t *words, uint32_t count, berth_strbuf *out,
                       uint32_t *out_used) {
    char *text = berth_arena_strndup(out->arena, (const char *)words, 4 * (size_t)count);
    *out_used = (uint32_t)strlen(text) / 4 + 1;
    berth_strbuf_addf(out, " \"%s\"", text);
}

static bool holds_text(uint32_t op, uint32_t operand) {
    return (op == SPIRV_Name && operand == 1) || (op == SPIRV_String && operand == 0) ||
           ((op == SPIRV_ExtInstImport || op == SPIRV_Extension) && operand == 0) ||
           (op == SPIRV_EntryPoint && operand == 2);
}

// Operands that are plain numbers; the rest are ids.
static bool is_number(uint32_t op, uint32_t operand) {
    switch (op) {
    case SPIRV_Capability:
    case SPIRV_MemoryModel:
    case SPIRV_TypeInt:
    case SPIRV_TypeFloat:
    case SPIRV_Constant: return true;
    case SPIRV_ExecutionMode:
    case SPIRV_Decorate:
    case SPIRV_MemberDecorate: return operand >= 1;
    case SPIRV_EntryPoint:
    case SPIRV_TypePointer:
    case SPIRV_Variable:
    case SPIRV_Function: return operand == 0;
    case SPIRV_Load: return operand >= 1;
    case SPIRV_CooperativeMatrixLoadKHR:
    case SPIRV_CooperativeMatrixMulAddKHR: return operand >= 3;
    case SPIRV_CooperativeMatrixStoreKHR: return operand >= 4;
    case SPIRV_ExtInst:
    case SPIRV_GroupNonUniformIAdd:
    case SPIRV_GroupNonUniformFAdd:
    case SPIRV_GroupNonUniformSMin:
    case SPIRV_GroupNonUniformFMin:
    case SPIRV_GroupNonUniformSMax:
    case SPIRV_GroupNonUniformUMax:
    case SPIRV_GroupNonUniformFMax:
    case SPIRV_SelectionMerge: return operand == 1;
    case SPIRV_Store:
    case SPIRV_LoopMerge: return operand >= 2 || (op == SPIRV_Store && operand == 3);
    default: return false;
    }
}

static void print_one(const uint32_t *at, uint32_t length, berth_strbuf *out) {
    uint32_t op = at[0] & 0xffff, i = 1, operand = 0;
    const op_facts *f = facts_of(op);
    uint32_t type = f->has_type && length > 1 ? at[i++] : 0;
    if (f->has_result && i < length)
        berth_strbuf_addf(out, "%%%u = ", at[i++]);
    else
        berth_strbuf_add(out, "    ");
    berth_strbuf_add(out, f->known ? f->name : "Op?");
    if (f->has_type) berth_strbuf_addf(out, " %%%u", type);
    for (; i < length; ++operand) {
        uint32_t used = 1;
        if (holds_text(op, operand))
            print_text(at + i, length - i, out, &used);
        else
            berth_strbuf_addf(out, is_number(op, operand) ? " %u" : " %%%u", at[i]);
        i += used;
    }
    berth_strbuf_add(out, "\n");
}

void berth_spirv_print(const uint32_t *words, size_t count, berth_strbuf *out) {
    berth_strbuf_addf(out, "; SPIR-V %u.%u, %u ids\n", words[1] >> 16, words[1] >> 8 & 0xff,
                      words[3]);
    for (size_t i = 5; i < count;) {
        uint32_t length = words[i] >> 16;
        if (length == 0 || length > count - i) return;
        print_one(words + i, length, out);
        i += length;
    }
}
