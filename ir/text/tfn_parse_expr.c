// Reading the expressions of tensor functions, by precedence climbing.
#include <stdlib.h>
#include <string.h>

#include "ir/tensor/intrinsic.h"
#include "ir/text/tfn_parser.h"

static berth_status parse_binary(berth_tfn_parser *t, int precedence, berth_expr *out);

berth_status berth_text__parse_expr(berth_tfn_parser *t, berth_expr *out) {
    return parse_binary(t, 1, out);
}

static berth_expr add(berth_tfn_parser *t, berth_expr_node node, const berth_expr *indices) {
    berth_tfn_type type = berth_tfn_derive_type(t->fn, &node, indices);
    node.dtype = (uint8_t)type.dtype;
    node.is_index = type.is_index;
    node.lanes = type.lanes;
    return berth_tfn_add_expr(t->fn, node);
}

// ---- names --------------------------------------------------------------------------------------

berth_status berth_text__parse_tfn_type(berth_tfn_parser *t, berth_tfn_type *out) {
    if (t->p->token.kind != BERTH_TOKEN_WORD ||
        !berth_tfn_type_from_name(t->p->token.text, t->p->token.length, out))
        return berth_text_expected(t->p, "an element type");
    berth_text_next(t->p);
    return BERTH_OK;
}

berth_status berth_text__parse_buf_ref(berth_tfn_parser *t, berth_buf *out_buf) {
    uint32_t id = 0;
    if (t->p->token.kind != BERTH_TOKEN_LABEL) return berth_text_expected(t->p, "a buffer");
    BERTH_TRY(berth_text_lookup(t->p, &t->symbols, &t->p->token, &id));
    if (id & 1) return berth_text_expected(t->p, "a buffer");
    *out_buf = id >> 1;
    berth_text_next(t->p);
    return BERTH_OK;
}

berth_status berth_text__parse_indices(berth_tfn_parser *t, const berth_expr **out_indices,
                                       uint32_t *out_count) {
    BERTH_VEC(berth_expr) indices = {0};
    BERTH_TRY(berth_text_expect(t->p, "["));
    while (!berth_text_accept(t->p, "]")) {
        berth_expr index = 0;
        if (indices.count) BERTH_TRY(berth_text_expect(t->p, ","));
        if (indices.count == BERTH_MAX_RANK)
            return berth_text_error(t->p, &t->p->token, "expected at most %d indices",
                                    BERTH_MAX_RANK);
        BERTH_TRY(berth_text__parse_expr(t, &index));
        berth_vec_push(t->p->scratch, &indices, index);
    }
    *out_indices = indices.data;
    *out_count = indices.count;
    return BERTH_OK;
}

// A variable, or a load from a buffer.
static berth_status parse_label(berth_tfn_parser *t, berth_expr *out) {
    uint32_t id = 0;
    BERTH_TRY(berth_text_lookup(t->p, &t->symbols, &t->p->token, &id));
    berth_text_next(t->p);
    if (id & 1) {
        *out = add(t, (berth_expr_node){.kind = BERTH_EXPR_VAR, .var = id >> 1}, NULL);
        return BERTH_OK;
    }
    const berth_expr *indices = NULL;
    uint32_t count = 0;
    BERTH_TRY(berth_text__parse_indices(t, &indices, &count));
    berth_expr_node node = {.kind = BERTH_EXPR_LOAD, .index_count = (uint16_t)count};
    node.load.buf = id >> 1;
    node.load.first_index = t->fn->lists.count;
    for (uint32_t i = 0; i < count; ++i)
        berth_vec_push(t->p->module->arena, &t->fn->lists, indices[i]);
    *out = add(t, node, indices);
    return BERTH_OK;
}

// ---- literals and calls -------------------------------------------------------------------------

static bool at_number(const berth_text_parser *p) {
    return p->token.kind == BERTH_TOKEN_INT || p->token.kind == BERTH_TOKEN_FLOAT ||
           berth_text_is(p, "nan") || berth_text_is(p, "inf");
}

// At the number, or at a minus in front of it.
static berth_status parse_number(berth_tfn_parser *t, berth_expr *out) {
    berth_lexer ahead = t->p->lexer;
    berth_token token = t->p->token;
    if (berth_text_is(t->p, "-")) token = berth_lexer_next(&ahead);
    berth_expr_node node = {.kind = BERTH_EXPR_INT};
    if (token.kind == BERTH_TOKEN_INT) {
        BERTH_TRY(berth_text_parse_int(t->p, &node.i));
    } else {
        node.kind = BERTH_EXPR_FLOAT;
        BERTH_TRY(berth_text_parse_float(t->p, &node.f));
    }
    *out = add(t, node, NULL);
    return BERTH_OK;
}

// "-x": a literal, or neg(x).
static berth_status parse_primary(berth_tfn_parser *t, berth_expr *out);
static berth_status parse_minus(berth_tfn_parser *t, berth_expr *out) {
    berth_lexer ahead = t->p->lexer;
    berth_text_parser behind = *t->p;
    behind.token = berth_lexer_next(&ahead);
    if (at_number(&behind)) return parse_number(t, out);
    berth_expr a = 0;
    berth_text_next(t->p);
    BERTH_TRY(berth_text_enter(t->p));
    BERTH_TRY(parse_primary(t, &a));
    berth_text_leave(t->p);
    *out = add(t, (berth_expr_node){.kind = BERTH_EXPR_UNARY, .op = BERTH_UNARY_NEG, .a = a}, NULL);
    return BERTH_OK;
}

static berth_status parse_arguments(berth_tfn_parser *t, berth_expr *out, int count) {
    for (int i = 0; i < count; ++i) {
        if (i) BERTH_TRY(berth_text_expect(t->p, ","));
        BERTH_TRY(berth_text__parse_expr(t, &out[i]));
    }
    return BERTH_OK;
}

static berth_status parse_lanes(berth_tfn_parser *t, uint16_t *out_lanes) {
    int64_t lanes = 0;
    BERTH_TRY(berth_text_expect(t->p, ","));
    berth_token token = t->p->token;
    BERTH_TRY(berth_text_parse_int(t->p, &lanes));
    if (lanes < 1 || lanes > UINT16_MAX)
        return berth_text_error(t->p, &token, "expected a number of lanes");
    *out_lanes = (uint16_t)lanes;
    return BERTH_OK;
}

// What a word in front of '(' means: the node without its operands, and how many it takes.
static bool find_call(const berth_token *word, berth_expr_node *out, int *out_count) {
    static const struct {
        const char *name;
        berth_expr_kind kind;
        int count;
    } calls[] = {{"fma", BERTH_EXPR_FMA, 3},
                 {"select", BERTH_EXPR_SELECT, 3},
                 {"broadcast", BERTH_EXPR_BROADCAST, 1},
                 {"ramp", BERTH_EXPR_RAMP, 1},
                 {"reduce_add", BERTH_EXPR_REDUCE_ADD, 1}};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); ++i) {
        if (strlen(calls[i].name) != word->length ||
            memcmp(calls[i].name, word->text, word->length) != 0)
            continue;
        *out = (berth_expr_node){.kind = (uint8_t)calls[i].kind};
        *out_count = calls[i].count;
        return true;
    }
    berth_unary unary = BERTH_UNARY_NEG;
    berth_binary binary = BERTH_BINARY_ADD;
    berth_intrinsic intrinsic = BERTH_INTRINSIC_COUNT;
    berth_tfn_type type;
    if (berth_intrinsic_from_name(word->text, word->length, &intrinsic)) {
        *out = (berth_expr_node){.kind = BERTH_EXPR_INTRINSIC, .op = (uint8_t)intrinsic};
        *out_count = berth_intrinsic_operand_count(berth_intrinsic_get(intrinsic));
    } else if (berth_unary_from_name(word->text, word->length, &unary)) {
        *out = (berth_expr_node){.kind = BERTH_EXPR_UNARY, .op = (uint8_t)unary};
        *out_count = 1;
    } else if (berth_binary_from_name(word->text, word->length, &binary)) {
        *out = (berth_expr_node){.kind = BERTH_EXPR_BINARY, .op = (uint8_t)binary};
        *out_count = 2;
    } else if (berth_tfn_type_from_name(word->text, word->length, &type) && type.lanes == 1) {
        *out = (berth_expr_node){
            .kind = BERTH_EXPR_CAST, .dtype = (uint8_t)type.dtype, .is_index = type.is_index};
        *out_count = 1;
    } else {
        return false;
    }
    return true;
}

static berth_status parse_call(berth_tfn_parser *t, berth_expr *out) {
    berth_expr_node node;
    int count = 0;
    berth_expr operands[3] = {0};
    if (!find_call(&t->p->token, &node, &count)) return berth_text_expected(t->p, "an expression");
    berth_text_next(t->p);
    BERTH_TRY(berth_text_expect(t->p, "("));
    BERTH_TRY(parse_arguments(t, operands, count));
    if (node.kind == BERTH_EXPR_BROADCAST || node.kind == BERTH_EXPR_RAMP)
        BERTH_TRY(parse_lanes(t, &node.lanes));
    BERTH_TRY(berth_text_expect(t->p, ")"));
    node.a = operands[0];
    node.b = operands[1];
    node.c = operands[2];
    *out = add(t, node, NULL);
    return BERTH_OK;
}

static berth_status parse_shared(berth_tfn_parser *t, berth_expr *out) {
    if (t->p->token.number >= t->shared.count)
        return berth_text_expected(t->p, "a shared expression defined before");
    *out = t->shared.data[t->p->token.number];
    berth_text_next(t->p);
    return BERTH_OK;
}

// ":type" after a part: its type when that does not follow from what it consists of. "1:f32" is 1.0.
static berth_status parse_type_suffix(berth_tfn_parser *t, berth_expr expr) {
    berth_tfn_type type;
    if (!berth_text_accept(t->p, ":")) return BERTH_OK;
    BERTH_TRY(berth_text__parse_tfn_type(t, &type));
    berth_expr_node *node = &t->fn->exprs.data[expr];
    if (node->kind == BERTH_EXPR_INT && berth_dtype_is_float(type.dtype)) {
        node->kind = BERTH_EXPR_FLOAT;
        node->f = (double)node->i;
    }
    node->dtype = (uint8_t)type.dtype;
    node->is_index = type.is_index;
    node->lanes = type.lanes;
    return BERTH_OK;
}

// A word that no call is, or a text: a symbol of a parameter's shape.
static bool at_symbol(const berth_text_parser *p) {
    berth_lexer ahead = p->lexer;
    if (p->token.kind == BERTH_TOKEN_STRING) return true;
    if (p->token.kind != BERTH_TOKEN_WORD) return false;
    berth_token next = berth_lexer_next(&ahead);
    return next.kind != BERTH_TOKEN_PUNCT || next.length != 1 || *next.text != '(';
}

static berth_status parse_symbol(berth_tfn_parser *t, berth_expr *out) {
    const char *name = NULL;
    BERTH_TRY(berth_text_token_text(t->p, &t->p->token, &name));
    int64_t symbol = berth_dim_symbol(berth_module_intern(t->p->module, name));
    if (!berth_tfn_has_symbol(t->fn, symbol, t->p->scratch))
        return berth_text_expected(t->p, "an expression");
    berth_text_next(t->p);
    *out = berth_tfn_symbol(t->fn, symbol);
    return BERTH_OK;
}

static berth_status parse_primary(berth_tfn_parser *t, berth_expr *out) {
    berth_text_parser *p = t->p;
    *out = 0;
    if (p->token.kind == BERTH_TOKEN_SHARED) return parse_shared(t, out);
    if (p->token.kind == BERTH_TOKEN_LABEL) {
        BERTH_TRY(parse_label(t, out));
    } else if (at_number(p)) {
        BERTH_TRY(parse_number(t, out));
    } else if (berth_text_is(p, "-")) {
        BERTH_TRY(parse_minus(t, out));
    } else if (berth_text_accept(p, "(")) {
        BERTH_TRY(berth_text__parse_expr(t, out));
        BERTH_TRY(berth_text_expect(p, ")"));
    } else if (at_symbol(p)) {
        BERTH_TRY(parse_symbol(t, out));
    } else {
        BERTH_TRY(parse_call(t, out));
    }
    return parse_type_suffix(t, *out);
}

static bool at_infix(const berth_text_parser *p, berth_binary *out) {
    return p->token.kind == BERTH_TOKEN_PUNCT &&
           berth_binary_from_name(p->token.text, p->token.length, out);
}

static berth_status parse_binary(berth_tfn_parser *t, int precedence, berth_expr *out) {
    berth_binary op = BERTH_BINARY_ADD;
    BERTH_TRY(berth_text_enter(t->p));
    BERTH_TRY(parse_primary(t, out));
    while (at_infix(t->p, &op) && berth_binary_precedence(op) >= precedence) {
        berth_expr right = 0;
        berth_text_next(t->p);
        BERTH_TRY(parse_binary(t, berth_binary_precedence(op) + 1, &right));
        *out = add(
            t,
            (berth_expr_node){.kind = BERTH_EXPR_BINARY, .op = (uint8_t)op, .a = *out, .b = right},
            NULL);
    }
    berth_text_leave(t->p);
    if (t->fn->exprs.data[*out].depth > BERTH_TFN_MAX_DEPTH)
        return berth_text_error(t->p, &t->p->token, "expressions nest more than %d deep",
                                BERTH_TFN_MAX_DEPTH);
    return BERTH_OK;
}
