// The JSON hooks of the built-in dialects (private to ir/; dialect.c lists them).
#ifndef BERTH_IR_JSON_HOOKS_H_
#define BERTH_IR_JSON_HOOKS_H_

#include "ir/dialect.h"

void berth_json__write_graph(struct berth_json_writer *writer, berth_func_id function,
                             struct json_t *object);
berth_status berth_json__read_graph(struct berth_json_reader *reader, const struct json_t *object,
                                    berth_func_id function);
void berth_json__write_tfn(struct berth_json_writer *writer, berth_func_id function,
                           struct json_t *object);
berth_status berth_json__read_tfn(struct berth_json_reader *reader, const struct json_t *object,
                                  berth_func_id function);
void berth_json__write_external(struct berth_json_writer *writer, berth_func_id function,
                                struct json_t *object);
berth_status berth_json__read_external(struct berth_json_reader *reader,
                                       const struct json_t *object, berth_func_id function);

#endif  // BERTH_IR_JSON_HOOKS_H_
