#include "tests/toolkit/vulkan_matrices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/kernel_abi.h"

// Numbers of SPIR-V 1.5 and SPV_KHR_cooperative_matrix.
enum {
    OP_STRING = 7,
    OP_EXTENSION = 10,
    OP_EXECUTION_MODE = 16,
    OP_CAPABILITY = 17,
    OP_TYPE_VOID = 19,
    OP_TYPE_BOOL = 20,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_ARRAY = 28,
    OP_TYPE_POINTER = 32,
    OP_TYPE_FUNCTION = 33,
    OP_CONSTANT = 43,
    OP_FUNCTION = 54,
    OP_PARAMETER = 55,
    OP_FUNCTION_END = 56,
    OP_CALL = 57,
    OP_VARIABLE = 59,
    OP_LOAD = 61,
    OP_STORE = 62,
    OP_ACCESS_CHAIN = 65,
    OP_DECORATE = 71,
    OP_CONSTRUCT = 80,
    OP_U_CONVERT = 113,
    OP_S_CONVERT = 114,
    OP_F_CONVERT = 115,
    OP_I_ADD = 128,
    OP_F_ADD = 129,
    OP_I_SUB = 130,
    OP_I_MUL = 132,
    OP_F_MUL = 133,
    OP_U_DIV = 134,
    OP_U_MOD = 137,
    OP_U_LESS = 176,
    OP_BARRIER = 224,
    OP_PHI = 245,
    OP_LOOP_MERGE = 246,
    OP_LABEL = 248,
    OP_BRANCH = 249,
    OP_BRANCH_IF = 250,
    OP_RETURN = 253,
    OP_TYPE_MATRIX = 4456,
    OP_MATRIX_LOAD = 4457,
    OP_MATRIX_STORE = 4458,
    OP_MATRIX_MUL_ADD = 4459,
    CAPABILITY_MATRIX = 6022,
    BUILT_IN = 11,
    SUBGROUP_ID = 40,
    LOCAL_INDEX = 29,
    WORKGROUP = 4,
    FUNCTION = 7,
    NON_PRIVATE = 0x20,
    COLUMN_MAJOR = 1,
    header = 5,
    warp = 32,
    most_matrices = 8,
    most_functions = 64,
};

typedef BERTH_VEC(uint32_t) word_list;

typedef struct matrix {
    uint32_t type, element, rows, columns;  // type: an id, of an array then
} matrix;

// Where a matrix lies in the memory of the group: a variable, and constants.
typedef struct place {
    uint32_t base, layout, stride;
} place;

typedef struct made {  // a function for instructions of one kind
    uint32_t op, types[3], signs;
    place places[2];
    uint32_t id;
} made;

// What is known of a value that is a matrix, and is written out where it is used.
typedef struct held {
    enum { NOT_A_MATRIX, LOADED, SUM, PRODUCT, FILLED } kind;
    uint32_t type, age;  // age: barriers before it
    uint32_t at;         // LOADED: its index behind the base; FILLED: of what
    place place;         // LOADED
    uint32_t variable;   // SUM, PRODUCT: that it came from
    uint32_t a, b, signs;
} held;

typedef struct module {
    berth_arena *arena;
    const uint32_t *words;
    uint32_t count;
    const uint32_t **of;  // by id: the instruction that has it as its result
    held *values;         // by id
    uint32_t barriers;
    uint32_t next_id;
    word_list out, functions;
    matrix matrices[most_matrices];
    uint32_t matrix_count;
    made made[most_functions];
    uint32_t made_count;
    uint32_t u32, boolean, void_type, group_items, subgroup_id;
    uint32_t types_at;  // where further types go, in `out`
    word_list types;
} module;

// Not Criterion's: a loader has this file, too.
static void need(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "vulkan_matrices: the module breaks this rule: %s\n", what);
    abort();
}

static uint32_t new_id(module *m) {
    return m->next_id++;
}

static void put(module *m, word_list *to, uint32_t op, const uint32_t *operands, uint32_t count) {
    berth_vec_push(m->arena, to, (count + 1) << 16 | op);
    for (uint32_t i = 0; i < count; ++i) berth_vec_push(m->arena, to, operands[i]);
}
#define PUT(m, to, op, ...)                                                                        \
    put(m, to, op, (const uint32_t[]){__VA_ARGS__},                                                \
        sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

// ---- what the module has ------------------------------------------------------------------------

// Which word of an instruction is its result, of those that matter here; 0: none.
static uint32_t result_at(uint32_t op) {
    switch (op) {
    case OP_TYPE_VOID:
    case OP_TYPE_BOOL:
    case OP_TYPE_INT:
    case OP_TYPE_FLOAT:
    case OP_TYPE_ARRAY:
    case OP_TYPE_POINTER:
    case OP_TYPE_FUNCTION:
    case OP_TYPE_MATRIX: return 1;
    case OP_CONSTANT:
    case OP_VARIABLE:
    case OP_ACCESS_CHAIN: return 2;
    default: return 0;
    }
}

static void look(module *m) {
    for (uint32_t i = header; i < m->count; i += m->words[i] >> 16) {
        const uint32_t *at = m->words + i;
        uint32_t op = at[0] & 0xffff, result = result_at(op);
        need(at[0] >> 16, "instructions have a length");
        if (result) m->of[at[result]] = at;
        if (op == OP_TYPE_INT && at[2] == 32) m->u32 = at[1];
        if (op == OP_TYPE_BOOL) m->boolean = at[1];
        if (op == OP_TYPE_VOID) m->void_type = at[1];
        if (op == OP_EXECUTION_MODE && at[2] == 17) m->group_items = at[3] * at[4] * at[5];
        if (op == OP_DECORATE && at[2] == BUILT_IN && at[3] == SUBGROUP_ID) m->subgroup_id = at[1];
    }
}

static uint32_t constant_of(const module *m, uint32_t id) {
    need(m->of[id] && (m->of[id][0] & 0xffff) == OP_CONSTANT, "a constant");
    return m->of[id][3];
}

static uint32_t new_constant(module *m, uint32_t value) {
    uint32_t id = new_id(m);
    PUT(m, &m->types, OP_CONSTANT, m->u32, id, value);
    return id;
}

static uint32_t pointer_to(module *m, uint32_t storage, uint32_t type) {
    for (uint32_t id = 0; id < m->words[3]; ++id)
        if (m->of[id] && (m->of[id][0] & 0xffff) == OP_TYPE_POINTER && m->of[id][2] == storage &&
            m->of[id][3] == type)
            return id;
    for (uint32_t i = 0; i < m->types.count; i += m->types.data[i] >> 16) {
        const uint32_t *at = m->types.data + i;
        if ((at[0] & 0xffff) == OP_TYPE_POINTER && at[2] == storage && at[3] == type) return at[1];
    }
    uint32_t id = new_id(m);
    PUT(m, &m->types, OP_TYPE_POINTER, id, storage, type);
    return id;
}

static matrix *matrix_of(module *m, uint32_t type) {
    for (uint32_t i = 0; i < m->matrix_count; ++i)
        if (m->matrices[i].type == type) return &m->matrices[i];
    return NULL;
}

static uint32_t type_of_function(module *m, uint32_t result, const uint32_t *parameters,
                                 uint32_t count) {
    uint32_t words[8] = {new_id(m), result};
    memcpy(words + 2, parameters, count * sizeof(*parameters));
    put(m, &m->types, OP_TYPE_FUNCTION, words, count + 2);
    return words[0];
}

// ---- functions ----------------------------------------------------------------------------------

static uint32_t binary(module *m, uint32_t op, uint32_t type, uint32_t a, uint32_t b) {
    uint32_t id = new_id(m);
    PUT(m, &m->functions, op, type, id, a, b);
    return id;
}

static uint32_t element_at(module *m, uint32_t storage, uint32_t element, uint32_t base,
                           uint32_t at) {
    uint32_t id = new_id(m);
    PUT(m, &m->functions, OP_ACCESS_CHAIN, pointer_to(m, storage, element), id, base, at);
    return id;
}

static uint32_t load(module *m, uint32_t storage, uint32_t element, uint32_t base, uint32_t at) {
    uint32_t pointer = element_at(m, storage, element, base, at), id = new_id(m);
    if (storage == WORKGROUP)
        PUT(m, &m->functions, OP_LOAD, element, id, pointer, NON_PRIVATE);
    else
        PUT(m, &m->functions, OP_LOAD, element, id, pointer);
    return id;
}

// A loop over all elements of a matrix: element i in row i / columns.
typedef struct loop {
    uint32_t header, proceed, end, i, next, row, column;
} loop;

static loop open_loop(module *m, const matrix *over, uint32_t before) {
    word_list *f = &m->functions;
    loop at = {.header = new_id(m),
               .proceed = new_id(m),
               .end = new_id(m),
               .i = new_id(m),
               .next = new_id(m)};
    uint32_t test = new_id(m), body = new_id(m), zero = new_constant(m, 0);
    PUT(m, f, OP_BRANCH, at.header);
    PUT(m, f, OP_LABEL, at.header);
    PUT(m, f, OP_PHI, m->u32, at.i, zero, before, at.next, at.proceed);
    PUT(m, f, OP_LOOP_MERGE, at.end, at.proceed, 0);
    PUT(m, f, OP_BRANCH, test);
    PUT(m, f, OP_LABEL, test);
    uint32_t more =
        binary(m, OP_U_LESS, m->boolean, at.i, new_constant(m, over->rows * over->columns));
    PUT(m, f, OP_BRANCH_IF, more, body, at.end);
    PUT(m, f, OP_LABEL, body);
    uint32_t columns = new_constant(m, over->columns);
    at.row = binary(m, OP_U_DIV, m->u32, at.i, columns);
    at.column = binary(m, OP_U_MOD, m->u32, at.i, columns);
    return at;
}

static void close_loop(module *m, const loop *at) {
    word_list *f = &m->functions;
    PUT(m, f, OP_BRANCH, at->proceed);
    PUT(m, f, OP_LABEL, at->proceed);
    PUT(m, f, OP_I_ADD, m->u32, at->next, at->i, new_constant(m, 1));
    PUT(m, f, OP_BRANCH, at->header);
    PUT(m, f, OP_LABEL, at->end);
}

// Its parameters; *out_label: its first block.
static uint32_t open_function(module *m, uint32_t result, const uint32_t *types, uint32_t count,
                              uint32_t *out_parameters, uint32_t *out_label) {
    uint32_t id = new_id(m), type = type_of_function(m, result, types, count);
    PUT(m, &m->functions, OP_FUNCTION, result, id, 0, type);
    for (uint32_t i = 0; i < count; ++i) {
        out_parameters[i] = new_id(m);
        PUT(m, &m->functions, OP_PARAMETER, types[i], out_parameters[i]);
    }
    *out_label = new_id(m);
    PUT(m, &m->functions, OP_LABEL, *out_label);
    return id;
}

// Where element (row, column) lies behind `first`: rows or columns are `stride` apart.
static uint32_t place_of(module *m, const loop *at, uint32_t first, uint32_t layout,
                         uint32_t stride) {
    uint32_t outer = layout == COLUMN_MAJOR ? at->column : at->row;
    uint32_t inner = layout == COLUMN_MAJOR ? at->row : at->column;
    outer = binary(m, OP_I_MUL, m->u32, outer, stride);
    return binary(m, OP_I_ADD, m->u32, first, binary(m, OP_I_ADD, m->u32, outer, inner));
}

// Ends the function of a loop.
static void close_function(module *m, const loop *at) {
    close_loop(m, at);
    put(m, &m->functions, OP_RETURN, NULL, 0);
    put(m, &m->functions, OP_FUNCTION_END, NULL, 0);
}

// Parameters: the variable of the sums, an index in the memory of the group.
static uint32_t make_store(module *m, const made *what) {
    const matrix *of = matrix_of(m, what->types[0]);
    uint32_t types[] = {pointer_to(m, FUNCTION, of->type), m->u32}, given[2], label = 0;
    uint32_t id = open_function(m, m->void_type, types, 2, given, &label);
    loop at = open_loop(m, of, label);
    uint32_t to = place_of(m, &at, given[1], what->places[0].layout, what->places[0].stride);
    uint32_t element = load(m, FUNCTION, of->element, given[0], at.i);
    PUT(m, &m->functions, OP_STORE, element_at(m, WORKGROUP, of->element, what->places[0].base, to),
        element, NON_PRIVATE);
    close_function(m, &at);
    return id;
}

// Parameters: the variable of the sums, an element.
static uint32_t make_fill(module *m, const made *what) {
    const matrix *of = matrix_of(m, what->types[0]);
    uint32_t types[] = {pointer_to(m, FUNCTION, of->type), of->element}, given[2], label = 0;
    uint32_t id = open_function(m, m->void_type, types, 2, given, &label);
    loop at = open_loop(m, of, label);
    PUT(m, &m->functions, OP_STORE, element_at(m, FUNCTION, of->element, given[0], at.i), given[1]);
    close_function(m, &at);
    return id;
}

// An operand's element as what is summed up.
static uint32_t widen(module *m, const matrix *of, const matrix *sum, uint32_t element,
                      bool is_signed) {
    bool is_float = (m->of[of->element][0] & 0xffff) == OP_TYPE_FLOAT;
    uint32_t id = new_id(m);
    PUT(m, &m->functions,
        is_float    ? (uint32_t)OP_F_CONVERT
        : is_signed ? (uint32_t)OP_S_CONVERT
                    : (uint32_t)OP_U_CONVERT,
        sum->element, id, element);
    return id;
}

// One term of a sum. Parameters as of make_mul_add.
static uint32_t add_term(module *m, const made *what, const uint32_t *given, const loop *at,
                         uint32_t k, uint32_t total) {
    enum { a_signed = 1, b_signed = 2 };
    const matrix *sum = matrix_of(m, what->types[0]);
    const matrix *a_of = matrix_of(m, what->types[1]), *b_of = matrix_of(m, what->types[2]);
    loop in_a = *at, in_b = *at;
    in_a.column = in_b.row = new_constant(m, k);
    const place *pa = &what->places[0], *pb = &what->places[1];
    uint32_t a = load(m, WORKGROUP, a_of->element, pa->base,
                      place_of(m, &in_a, given[1], pa->layout, pa->stride));
    uint32_t b = load(m, WORKGROUP, b_of->element, pb->base,
                      place_of(m, &in_b, given[2], pb->layout, pb->stride));
    a = widen(m, a_of, sum, a, what->signs & a_signed);
    b = widen(m, b_of, sum, b, what->signs & b_signed);
    bool is_float = (m->of[sum->element][0] & 0xffff) == OP_TYPE_FLOAT;
    uint32_t product = binary(m, is_float ? OP_F_MUL : OP_I_MUL, sum->element, a, b);
    return binary(m, is_float ? OP_F_ADD : OP_I_ADD, sum->element, total, product);
}

// Parameters: the variable of the sums, the indices of A and B in the memory of the group.
static uint32_t make_mul_add(module *m, const made *what) {
    const matrix *sum = matrix_of(m, what->types[0]);
    const matrix *a = matrix_of(m, what->types[1]), *b = matrix_of(m, what->types[2]);
    need(a && b && sum, "operands are matrices");
    need(a->rows == sum->rows && b->columns == sum->columns && a->columns == b->rows,
         "shapes of a product");
    uint32_t types[] = {pointer_to(m, FUNCTION, sum->type), m->u32, m->u32}, given[3], label = 0;
    uint32_t id = open_function(m, m->void_type, types, 3, given, &label);
    loop at = open_loop(m, sum, label);
    uint32_t total = load(m, FUNCTION, sum->element, given[0], at.i);
    for (uint32_t k = 0; k < a->columns; ++k) total = add_term(m, what, given, &at, k, total);
    PUT(m, &m->functions, OP_STORE, element_at(m, FUNCTION, sum->element, given[0], at.i), total);
    close_function(m, &at);
    return id;
}

static uint32_t function_for(module *m, made what) {
    for (uint32_t i = 0; i < m->made_count; ++i) {
        what.id = m->made[i].id;
        if (memcmp(&m->made[i], &what, sizeof(what)) == 0) return what.id;
    }
    what.id = what.op == OP_CONSTRUCT      ? make_fill(m, &what)
              : what.op == OP_MATRIX_STORE ? make_store(m, &what)
                                           : make_mul_add(m, &what);
    need(m->made_count < most_functions, "too many");
    m->made[m->made_count++] = what;
    return what.id;
}

// ---- instructions -------------------------------------------------------------------------------

// The variable that an element of an array is taken from, and its index.
static const uint32_t *chain_of(const module *m, uint32_t pointer) {
    const uint32_t *chain = m->of[pointer];
    need(chain && (chain[0] & 0xffff) == OP_ACCESS_CHAIN && chain[0] >> 16 == 5,
         "a matrix is loaded from an element of an array");
    return chain;
}

static void write_type(module *m, const uint32_t *at) {
    need(m->matrix_count < most_matrices, "too many");
    matrix *is = &m->matrices[m->matrix_count++];
    *is = (matrix){.type = at[1],
                   .element = at[2],
                   .rows = constant_of(m, at[4]),
                   .columns = constant_of(m, at[5])};
    uint32_t length = new_id(m);
    PUT(m, &m->out, OP_CONSTANT, m->u32, length, is->rows * is->columns);
    PUT(m, &m->out, OP_TYPE_ARRAY, is->type, is->element, length);
}

// Functions take pointers to variables alone, and arrays by value are much for compilers: operands are read where
// they are multiplied, before the next barrier, and sums stay in their variables.
static void note_matrix(module *m, const uint32_t *at) {
    uint32_t op = at[0] & 0xffff;
    held *v = &m->values[at[2]];
    *v = (held){.type = at[1], .age = m->barriers};
    if (op == OP_LOAD) {
        v->kind = SUM;
        v->variable = at[3];
    } else if (op == OP_CONSTRUCT) {
        v->kind = FILLED;
        v->at = at[3];
    } else if (op == OP_MATRIX_LOAD) {
        const uint32_t *chain = chain_of(m, at[3]);
        need(at[6] == NON_PRIVATE, "memory of the group is seen by others");
        v->kind = LOADED;
        v->at = chain[4];
        v->place = (place){chain[3], constant_of(m, at[4]), at[5]};
    } else {
        v->kind = PRODUCT;
        v->a = at[3];
        v->b = at[4];
        v->signs = at[0] >> 16 > 6 ? at[6] : 0;
        need(m->values[at[5]].kind == SUM, "a product is added to a sum");
        v->variable = m->values[at[5]].variable;
    }
}

static void call(module *m, uint32_t function, uint32_t variable, uint32_t a, uint32_t b) {
    if (b)
        PUT(m, &m->out, OP_CALL, m->void_type, new_id(m), function, variable, a, b);
    else
        PUT(m, &m->out, OP_CALL, m->void_type, new_id(m), function, variable, a);
}

// A sum to its variable.
static void write_sum(module *m, uint32_t variable, const held *v) {
    if (v->kind == FILLED) {
        made what = {.op = OP_CONSTRUCT, .types = {v->type}};
        call(m, function_for(m, what), variable, v->at, 0);
        return;
    }
    need(v->kind == PRODUCT, "what is stored to a sum");
    need(v->variable == variable, "a product goes to where its sum came from");
    const held *a = &m->values[v->a], *b = &m->values[v->b];
    need(a->kind == LOADED && b->kind == LOADED, "operands are loaded");
    need(a->age == m->barriers && b->age == m->barriers,
         "operands are loaded behind the last barrier");
    made what = {.op = OP_MATRIX_MUL_ADD,
                 .types = {v->type, a->type, b->type},
                 .signs = v->signs,
                 .places = {a->place, b->place}};
    call(m, function_for(m, what), variable, a->at, b->at);
}

// A sum to the memory of the group.
static void write_store(module *m, const uint32_t *at) {
    const uint32_t *chain = chain_of(m, at[1]);
    const held *v = &m->values[at[2]];
    need(v->kind == SUM, "what is handed over is a sum");
    need(at[5] == NON_PRIVATE, "memory of the group is seen by others");
    made what = {.op = OP_MATRIX_STORE,
                 .types = {v->type},
                 .places = {{chain[3], constant_of(m, at[3]), at[4]}}};
    call(m, function_for(m, what), v->variable, chain[4], 0);
}

// The number of the subgroup: the work-item's in the group by 32, from the last.
static void write_subgroup(module *m, const uint32_t *at) {
    uint32_t item = new_id(m), ahead = new_id(m);
    PUT(m, &m->out, OP_LOAD, m->u32, item, at[3]);
    PUT(m, &m->out, OP_U_DIV, m->u32, ahead, item, new_constant(m, warp));
    PUT(m, &m->out, OP_I_SUB, m->u32, at[2], new_constant(m, m->group_items / warp - 1), ahead);
}

static void write_instruction(module *m, const uint32_t *at) {
    uint32_t op = at[0] & 0xffff, length = at[0] >> 16;
    bool is_need = op == OP_STRING && strncmp((const char *)(at + 2), BERTH_SPIRV_MATRIX_PREFIX,
                                              strlen(BERTH_SPIRV_MATRIX_PREFIX)) == 0;
    if (op == OP_EXTENSION || (op == OP_CAPABILITY && at[1] == CAPABILITY_MATRIX) || is_need)
        return;
    if (op == OP_FUNCTION && !m->types_at) m->types_at = m->out.count;
    m->barriers += op == OP_BARRIER;
    if (op == OP_DECORATE && at[1] == m->subgroup_id && at[2] == BUILT_IN) {
        PUT(m, &m->out, OP_DECORATE, at[1], BUILT_IN, LOCAL_INDEX);
    } else if (op == OP_LOAD && at[3] == m->subgroup_id) {
        write_subgroup(m, at);
    } else if (op == OP_TYPE_MATRIX) {
        write_type(m, at);
    } else if (op == OP_MATRIX_LOAD || op == OP_MATRIX_MUL_ADD ||
               ((op == OP_CONSTRUCT || op == OP_LOAD) && matrix_of(m, at[1]))) {
        note_matrix(m, at);
    } else if (op == OP_MATRIX_STORE) {
        write_store(m, at);
    } else if (op == OP_STORE && m->values[at[2]].kind != NOT_A_MATRIX) {
        write_sum(m, at[1], &m->values[at[2]]);
    } else {
        for (uint32_t i = 0; i < length; ++i) berth_vec_push(m->arena, &m->out, at[i]);
    }
}

const uint32_t *vulkan_matrices_module(berth_arena *arena, const uint32_t *words, uint32_t count,
                                       uint32_t *out_count) {
    module m = {.arena = arena, .words = words, .count = count, .next_id = words[3]};
    m.of = berth_arena_new_array(arena, const uint32_t *, words[3]);
    m.values = berth_arena_new_array(arena, held, words[3]);
    look(&m);
    for (uint32_t i = 0; i < header; ++i) berth_vec_push(arena, &m.out, words[i]);
    for (uint32_t i = header; i < count; i += words[i] >> 16) write_instruction(&m, words + i);
    word_list all = {0};
    for (uint32_t i = 0; i < m.types_at; ++i) berth_vec_push(arena, &all, m.out.data[i]);
    for (uint32_t i = 0; i < m.types.count; ++i) berth_vec_push(arena, &all, m.types.data[i]);
    for (uint32_t i = m.types_at; i < m.out.count; ++i) berth_vec_push(arena, &all, m.out.data[i]);
    for (uint32_t i = 0; i < m.functions.count; ++i)
        berth_vec_push(arena, &all, m.functions.data[i]);
    all.data[3] = m.next_id;
    *out_count = all.count;
    return all.data;
}

static berth_executable_image write_image(berth_arena *arena, const berth_executable_image *from) {
    berth_executable_image to = *from;
    const uint32_t *words = from->data;
    uint32_t count = (uint32_t)(from->size_bytes / sizeof(*words));
    word_list all = {0};
    for (uint32_t i = 0; i < count; i += 1 + words[i]) {
        uint32_t length = 0;
        const uint32_t *plain = vulkan_matrices_module(arena, words + i + 1, words[i], &length);
        berth_vec_push(arena, &all, length);
        for (uint32_t k = 0; k < length; ++k) berth_vec_push(arena, &all, plain[k]);
    }
    to.data = all.data;
    to.size_bytes = all.count * sizeof(*words);
    return to;
}

const berth_program *vulkan_matrices_write_out(berth_arena *arena, const berth_program *program) {
    berth_program *copy = berth_arena_new(arena, berth_program);
    berth_executable_image *images =
        berth_arena_new_array(arena, berth_executable_image, program->executable_count + 1);
    *copy = *program;
    copy->executables = images;
    for (uint32_t i = 0; i < program->executable_count; ++i)
        images[i] = strcmp(program->executables[i].device_kind, "vulkan") == 0
                        ? write_image(arena, &program->executables[i])
                        : program->executables[i];
    return copy;
}
