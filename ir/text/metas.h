// The `meta` section of a text: named large values (private to ir/).
#ifndef BERTH_IR_TEXT_METAS_H_
#define BERTH_IR_TEXT_METAS_H_

#include "ir/text/parser.h"

typedef struct berth_text_meta_value {
    const berth_tensor *tensor;  // or else
    const char *data;
    size_t size_bytes;
    bool is_text;
} berth_text_meta_value;

typedef struct berth_text_metas {
    berth_interner *names;
    BERTH_VEC(berth_text_meta_value) values;  // per name from id 1
} berth_text_metas;

// Reads the section from its opening brace into parser->metas.
BERTH_MUST_USE berth_status berth_text__parse_metas(berth_text_parser *parser);
// "meta(name)".
BERTH_MUST_USE berth_status berth_text__parse_meta_ref(berth_text_parser *parser,
                                                       const berth_text_meta_value **out_value);

// An opaque attribute from its serialised text; of an unknown kind it is carried as that text.
// `data` must live as long as the module.
BERTH_MUST_USE berth_status berth_text__make_opaque(berth_module *module,
                                                    const berth_dialect_registry *registry,
                                                    const char *kind, const char *data,
                                                    size_t length, berth_attr *out);

#endif  // BERTH_IR_TEXT_METAS_H_
