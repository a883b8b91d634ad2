// The text hooks of the built-in dialects (private to ir/; dialect.c lists them).
#ifndef BERTH_IR_TEXT_HOOKS_H_
#define BERTH_IR_TEXT_HOOKS_H_

#include "ir/dialect.h"

void berth_text__print_graph_signature(struct berth_text_printer *printer, berth_func_id function);
void berth_text__print_graph_body(struct berth_text_printer *printer, berth_func_id function);
berth_status berth_text__parse_graph_signature(struct berth_text_parser *parser,
                                               berth_func_id function);
berth_status berth_text__parse_graph_body(struct berth_text_parser *parser, berth_func_id function);

void berth_text__print_tfn_signature(struct berth_text_printer *printer, berth_func_id function);
void berth_text__print_tfn_body(struct berth_text_printer *printer, berth_func_id function);
berth_status berth_text__parse_tfn_signature(struct berth_text_parser *parser,
                                             berth_func_id function);
berth_status berth_text__parse_tfn_body(struct berth_text_parser *parser, berth_func_id function);

void berth_text__print_external_signature(struct berth_text_printer *printer,
                                          berth_func_id function);
berth_status berth_text__parse_external_signature(struct berth_text_parser *parser,
                                                  berth_func_id function);

#endif  // BERTH_IR_TEXT_HOOKS_H_
