// State of reading a tensor function (private to ir/text).
#ifndef BERTH_IR_TEXT_TFN_PARSER_H_
#define BERTH_IR_TEXT_TFN_PARSER_H_

#include "ir/tensor/type.h"
#include "ir/text/parser.h"

typedef struct berth_tfn_parser {
    berth_text_parser *p;
    berth_tfn *fn;
    berth_loc_id loc;  // written with "from"
    bool has_loc;
    berth_text_symbols symbols;    // buffer << 1, or variable << 1 | 1
    BERTH_VEC(berth_token) scope;  // labels that can be seen, in order
    BERTH_VEC(berth_expr) shared;  // $0, $1, ...
} berth_tfn_parser;

// tfn_parse_expr.c. Expressions become exactly the nodes that are written: nothing is folded.
BERTH_MUST_USE berth_status berth_text__parse_expr(berth_tfn_parser *t, berth_expr *out_expr);
// "[i, j]"; the indices are in scratch memory.
BERTH_MUST_USE berth_status berth_text__parse_indices(berth_tfn_parser *t,
                                                      const berth_expr **out_indices,
                                                      uint32_t *out_count);
// A buffer that can be seen, at the next token.
BERTH_MUST_USE berth_status berth_text__parse_buf_ref(berth_tfn_parser *t, berth_buf *out_buf);
// "f32x8", at the next token.
BERTH_MUST_USE berth_status berth_text__parse_tfn_type(berth_tfn_parser *t,
                                                       berth_tfn_type *out_type);

#endif  // BERTH_IR_TEXT_TFN_PARSER_H_
