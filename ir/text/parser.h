// What the dialects' parsers share: a lexer with one token of look-ahead, messages with positions,
// and the parts that all dialects have (types, attributes, devices, locations). Included by parsers
// of dialects.
//
//   BERTH_TRY(berth_text_expect(parser, "("));
//   if (berth_text_accept(parser, ")")) return BERTH_OK;
//   BERTH_TRY(berth_text_parse_type(parser, &type));
//
// Everything is allocated in the module's arena or in `scratch`, inside berth_arena_try.
#ifndef BERTH_IR_TEXT_PARSER_H_
#define BERTH_IR_TEXT_PARSER_H_

#include "ir/dialect.h"
#include "ir/text/lexer.h"

// A table from labels (name and number after '~') to ids.
typedef struct berth_text_symbols {
    berth_interner *keys;
    BERTH_VEC(uint32_t) ids;  // per key: BERTH_NONE = not defined
    berth_strbuf key;
} berth_text_symbols;

typedef struct berth_text_parser {
    berth_module *module;
    berth_arena *scratch;
    const berth_dialect_registry *registry;
    const char *file_name;
    berth_lexer lexer;
    berth_token token;  // the next one
    uint64_t depth, most_depth;
    berth_limit_watch watch;  // of operations and statements
    bool has_locations;       // the text has a section of them
    BERTH_VEC(berth_loc_id) locs;
    struct berth_text_metas *metas;
    void *user;  // of the dialect, from its signature to its body
    // Called with the user that was set here when the whole text is read (graph functions infer
    // their types then).
    BERTH_VEC(struct berth_text_after) after;
} berth_text_parser;

struct berth_text_after {
    berth_status (*run)(berth_text_parser *parser, void *user);
    void *user;
};

// ---- tokens

void berth_text_next(berth_text_parser *parser);
bool berth_text_is(const berth_text_parser *parser, const char *word_or_punct);
bool berth_text_accept(berth_text_parser *parser, const char *word_or_punct);  // and goes on
BERTH_MUST_USE berth_status berth_text_expect(berth_text_parser *parser, const char *punct);
// "file:3:7: expected `what`, found 'x'" at the next token.
BERTH_MUST_USE berth_status berth_text_expected(berth_text_parser *parser, const char *what);
// "file:3:7: ..." at a token.
BERTH_MUST_USE berth_status berth_text_error(const berth_text_parser *parser,
                                             const berth_token *token, const char *format, ...)
    BERTH_PRINTF(3, 4);
// Counts a level of nesting. Errors: too deep. Every enter needs a leave unless parsing fails.
BERTH_MUST_USE berth_status berth_text_enter(berth_text_parser *parser);
void berth_text_leave(berth_text_parser *parser);

// The text of a STRING or a quoted name with escapes undone; of other tokens as it stands.
BERTH_MUST_USE berth_status berth_text_token_text(berth_text_parser *parser,
                                                  const berth_token *token, const char **out_text);

// ---- labels

BERTH_MUST_USE berth_status berth_text_define(berth_text_parser *parser,
                                              berth_text_symbols *symbols, const berth_token *label,
                                              uint32_t id);
BERTH_MUST_USE berth_status berth_text_lookup(berth_text_parser *parser,
                                              berth_text_symbols *symbols, const berth_token *label,
                                              uint32_t *out_id);
void berth_text_undefine(berth_text_parser *parser, berth_text_symbols *symbols,
                         const berth_token *label);
// The value's name in the module: "" for %7.
BERTH_MUST_USE berth_status berth_text_label_name(berth_text_parser *parser,
                                                  const berth_token *label, const char **out_name);

// ---- common parts; each starts at the next token

BERTH_MUST_USE berth_status berth_text_parse_int(berth_text_parser *parser, int64_t *out_value);
BERTH_MUST_USE berth_status berth_text_parse_float(berth_text_parser *parser, double *out_value);
BERTH_MUST_USE berth_status berth_text_parse_string(berth_text_parser *parser,
                                                    const char **out_text);
BERTH_MUST_USE berth_status berth_text_parse_type(berth_text_parser *parser,
                                                  berth_type_id *out_type);
// "[1,N,?]" and a layout attached to it, after an element type.
BERTH_MUST_USE berth_status berth_text_parse_shape(berth_text_parser *parser, int *out_rank,
                                                   int64_t out_dims[BERTH_MAX_RANK],
                                                   berth_str_id *out_layout);
// "on DEVICE", or nothing (0).
BERTH_MUST_USE berth_status berth_text_parse_on_device(berth_text_parser *parser,
                                                       berth_device_id *out_device);
// "#3", or nothing: the place of `token` when the text has no locations, else 0.
BERTH_MUST_USE berth_status berth_text_parse_loc(berth_text_parser *parser,
                                                 const berth_token *token, berth_loc_id *out_loc);
// "{a = 1}", or nothing. A brace that opens a block is left alone.
BERTH_MUST_USE berth_status berth_text_parse_attrs(berth_text_parser *parser, berth_attrs *attrs);
// "@name" → a function of the module.
BERTH_MUST_USE berth_status berth_text_parse_function_ref(berth_text_parser *parser,
                                                          berth_func_id *out_function);
// "meta(name)" of code: "text" or "bytes".
BERTH_MUST_USE berth_status berth_text_parse_data(berth_text_parser *parser, const char **out_data,
                                                  size_t *out_size_bytes, bool *out_is_text);

// ---- private to ir/text

// attrs.c: after a tensor's shape: "(1, 2)" or "meta(m1)".
BERTH_MUST_USE berth_status berth_text__parse_literal(berth_text_parser *parser, berth_type_id type,
                                                      const berth_tensor **out_tensor);
// True when a device's name begins at the next token.
bool berth_text__is_device(const berth_text_parser *parser);
BERTH_MUST_USE berth_status berth_text__parse_device(berth_text_parser *parser,
                                                     berth_device_id *out_device);

#endif  // BERTH_IR_TEXT_PARSER_H_
