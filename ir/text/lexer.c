#include "ir/text/lexer.h"

#include <string.h>

static char peek(const berth_lexer *x, size_t ahead) {
    size_t at = x->offset + ahead;
    return at < x->length ? x->text[at] : 0;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(char c) {
    return is_word_start(c) || is_digit(c) || c == '.';
}

// Skips white space and comments; true when there was any.
static bool skip_space(berth_lexer *x) {
    size_t start = x->offset;
    for (; x->offset < x->length; x->offset++) {
        char c = x->text[x->offset];
        if (c == '/' && peek(x, 1) == '/') {
            const char *end = memchr(x->text + x->offset, '\n', x->length - x->offset);
            x->offset = end ? (size_t)(end - x->text) : x->length;
            if (!end) break;
            c = '\n';
        }
        if (c == '\n') {
            x->line++;
            x->line_start = x->offset + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            break;
        }
    }
    return x->offset > start;
}

static void bad(berth_token *token, const char *problem) {
    token->kind = BERTH_TOKEN_BAD;
    token->problem = problem;
}

static void take_while(berth_lexer *x, bool (*test)(char)) {
    while (x->offset < x->length && test(x->text[x->offset])) x->offset++;
}

// At the opening quote.
static void lex_string(berth_lexer *x, berth_token *token) {
    x->offset++;
    token->text = x->text + x->offset;
    while (x->offset < x->length && x->text[x->offset] != '"' && x->text[x->offset] != '\n')
        x->offset += x->text[x->offset] == '\\' && peek(x, 1) && peek(x, 1) != '\n' ? 2 : 1;
    if (x->offset >= x->length || x->text[x->offset] != '"') {
        bad(token, "a string that does not end on its line");
        return;
    }
    token->length = (size_t)(x->text + x->offset - token->text);
    x->offset++;
}

static bool lex_uint(berth_lexer *x, berth_token *token, uint32_t *out) {
    uint64_t value = 0;
    size_t start = x->offset;
    for (; x->offset < x->length && is_digit(x->text[x->offset]); x->offset++)
        if (value < UINT32_MAX) value = value * 10 + (uint64_t)(x->text[x->offset] - '0');
    if (start == x->offset || value >= UINT32_MAX) {
        bad(token, "a number that is missing or too large");
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static void lex_number(berth_lexer *x, berth_token *token) {
    token->kind = BERTH_TOKEN_INT;
    take_while(x, is_digit);
    if (peek(x, 0) == '.' && is_digit(peek(x, 1))) {
        token->kind = BERTH_TOKEN_FLOAT;
        x->offset++;
        take_while(x, is_digit);
    }
    size_t sign = peek(x, 1) == '+' || peek(x, 1) == '-';
    if ((peek(x, 0) == 'e' || peek(x, 0) == 'E') && is_digit(peek(x, 1 + sign))) {
        token->kind = BERTH_TOKEN_FLOAT;
        x->offset += 1 + sign;
        take_while(x, is_digit);
    }
    if (is_word(peek(x, 0))) bad(token, "a malformed number");
    token->length = (size_t)(x->text + x->offset - token->text);
}

// Behind '%' or '@', with the name in front.
static void lex_name(berth_lexer *x, berth_token *token) {
    token->text = x->text + x->offset;
    if (peek(x, 0) == '"') {
        token->quoted = true;
        lex_string(x, token);
        if (token->kind == BERTH_TOKEN_BAD) return;
    } else {
        bool number = token->kind == BERTH_TOKEN_LABEL && is_digit(peek(x, 0));
        take_while(x, number ? is_digit : is_word);
        token->length = (size_t)(x->text + x->offset - token->text);
        if (number && is_word(peek(x, 0))) {
            bad(token, "a name that begins with a digit (it needs quotes)");
            return;
        }
    }
    if (token->kind == BERTH_TOKEN_LABEL && peek(x, 0) == '~') {
        x->offset++;
        (void)lex_uint(x, token, &token->number);
    }
}

static void lex_punct(berth_lexer *x, berth_token *token) {
    static const char *const pairs[] = {"&&", "||", "^^", "==", "!=", "<=", ">=", "<<", ">>", "->"};
    token->kind = BERTH_TOKEN_PUNCT;
    token->length = 1;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); ++i)
        if (peek(x, 0) == pairs[i][0] && peek(x, 1) == pairs[i][1]) token->length = 2;
    if (!strchr("(){}[],:=+-*/%&|^<>?", peek(x, 0)) || peek(x, 0) == 0)
        if (token->length == 1) bad(token, "a character that means nothing here");
    x->offset += token->length;
}

// '#' and 32 hexadecimal digits: the target in a device's name (parser.c reads those as a whole).
static bool at_hash(const berth_lexer *x) {
    for (size_t i = 1; i <= 32; ++i) {
        char c = peek(x, i);
        if (!is_digit(c) && !(c >= 'a' && c <= 'f')) return false;
    }
    return !is_word(peek(x, 33));
}

berth_token berth_lexer_next(berth_lexer *x) {
    bool spaced = skip_space(x);
    berth_token token = {.text = x->text + x->offset,
                         .line = x->line,
                         .column = (uint32_t)(x->offset - x->line_start + 1),
                         .attached = !spaced && x->offset > 0};
    char c = peek(x, 0);
    char next = peek(x, 1);
    if (x->offset >= x->length) {
        token.kind = BERTH_TOKEN_END;
    } else if (is_word_start(c)) {
        token.kind = BERTH_TOKEN_WORD;
        take_while(x, is_word);
        token.length = (size_t)(x->text + x->offset - token.text);
    } else if (is_digit(c)) {
        lex_number(x, &token);
    } else if (c == '"') {
        token.kind = BERTH_TOKEN_STRING;
        lex_string(x, &token);
    } else if (c == '%' && (is_word_start(next) || is_digit(next) || next == '"')) {
        x->offset++;
        token.kind = BERTH_TOKEN_LABEL;
        lex_name(x, &token);
    } else if (c == '@' && (is_word(next) || next == '"')) {
        x->offset++;
        token.kind = BERTH_TOKEN_GLOBAL;
        lex_name(x, &token);
    } else if (c == '#' && at_hash(x)) {
        token.kind = BERTH_TOKEN_LOC;
        token.number = UINT32_MAX;
        token.text++;
        token.length = 32;
        x->offset += 33;
    } else if ((c == '#' || c == '$') && is_digit(next)) {
        x->offset++;
        token.text++;
        token.kind = c == '#' ? BERTH_TOKEN_LOC : BERTH_TOKEN_SHARED;
        if (lex_uint(x, &token, &token.number))
            token.length = (size_t)(x->text + x->offset - token.text);
    } else {
        lex_punct(x, &token);
    }
    return token;
}
