// Tokens of the text form (private to ir/; dialects see them through parser.h).
#ifndef BERTH_IR_TEXT_LEXER_H_
#define BERTH_IR_TEXT_LEXER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum berth_token_kind {
    BERTH_TOKEN_END,
    BERTH_TOKEN_BAD,     // `problem` says why
    BERTH_TOKEN_WORD,    // f32, conv, group.x
    BERTH_TOKEN_STRING,  // text: between the quotes, escapes not undone
    BERTH_TOKEN_INT,     // 12: no sign
    BERTH_TOKEN_FLOAT,   // 1.5, 2e-3: no sign
    BERTH_TOKEN_LABEL,   // %name, %"any name", %12, each with ~3 at its end or not
    BERTH_TOKEN_GLOBAL,  // @name, @"any name"
    BERTH_TOKEN_SHARED,  // $4
    BERTH_TOKEN_LOC,     // #4
    BERTH_TOKEN_PUNCT,   // ( ) && ...
} berth_token_kind;

typedef struct berth_token {
    berth_token_kind kind;
    const char *text;  // in the source; without the sign in front and the quotes of a name
    size_t length;
    uint32_t line;  // 1-based
    uint32_t column;
    uint32_t number;  // LABEL: after '~', 0 without; LOC, SHARED
    bool quoted;      // LABEL, GLOBAL
    bool attached;    // no white space between the token before and this one
    const char *problem;
} berth_token;

typedef struct berth_lexer {
    const char *text;
    size_t length;
    size_t offset;
    uint32_t line;
    size_t line_start;  // offset of the line's first byte
} berth_lexer;

// The next token; END again and again at the end. O(length of the token and the white space and
// comments before it).
berth_token berth_lexer_next(berth_lexer *lexer);

#endif  // BERTH_IR_TEXT_LEXER_H_
