// What the dialects' JSON readers share: values of objects by key, with messages that say where.
// Included by JSON hooks of dialects. Inside berth_arena_try; takes no references to JSON values.
#ifndef BERTH_IR_JSON_READER_H_
#define BERTH_IR_JSON_READER_H_

#include <jansson.h>

#include "ir/dialect.h"

typedef struct berth_json_reader {
    berth_module *module;
    berth_arena *scratch;
    const berth_dialect_registry *registry;
    const char *file_name;
    BERTH_VEC(berth_loc_id) locs;  // of the section `locations`
    char path[256];                // "functions[0].body"
    size_t path_length;
    uint64_t depth, most_depth;
    berth_limit_watch watch;  // of operations and statements
} berth_json_reader;

// Counts a level of nesting of `what` ("regions"). Errors: too deep. Every descent needs an ascent
// unless reading fails.
BERTH_MUST_USE berth_status berth_json_descend(berth_json_reader *reader, const char *what);
void berth_json_ascend(berth_json_reader *reader);

// Goes into member `key` (or, with key NULL, item `index`) for messages; leave with what it
// returned.
size_t berth_json_enter(berth_json_reader *reader, const char *key, size_t index);
void berth_json_leave(berth_json_reader *reader, size_t mark);
BERTH_MUST_USE berth_status berth_json_expected(const berth_json_reader *reader, const char *key,
                                                const char *what);

// Members. Absent ones: the default that *out held is kept when `optional`.
BERTH_MUST_USE berth_status berth_json_get_int(berth_json_reader *reader, const json_t *object,
                                               const char *key, bool optional, int64_t low,
                                               int64_t high, int64_t *out);
// An id below `count`.
BERTH_MUST_USE berth_status berth_json_get_id(berth_json_reader *reader, const json_t *object,
                                              const char *key, uint32_t count, uint32_t *out);
BERTH_MUST_USE berth_status berth_json_get_text(berth_json_reader *reader, const json_t *object,
                                                const char *key, bool optional, const char **out);
BERTH_MUST_USE berth_status berth_json_get_str(berth_json_reader *reader, const json_t *object,
                                               const char *key, bool optional, berth_str_id *out);
BERTH_MUST_USE berth_status berth_json_get_array(berth_json_reader *reader, const json_t *object,
                                                 const char *key, bool optional,
                                                 const json_t **out);
BERTH_MUST_USE berth_status berth_json_get_float(berth_json_reader *reader, const json_t *object,
                                                 const char *key, double *out);
BERTH_MUST_USE berth_status berth_json_get_type(berth_json_reader *reader, const json_t *object,
                                                const char *key, berth_type_id *out);
BERTH_MUST_USE berth_status berth_json_get_dims(berth_json_reader *reader, const json_t *object,
                                                const char *key, int *out_rank,
                                                int64_t out_dims[BERTH_MAX_RANK]);
BERTH_MUST_USE berth_status berth_json_get_loc(berth_json_reader *reader, const json_t *object,
                                               const char *key, berth_loc_id *out);
BERTH_MUST_USE berth_status berth_json_get_device(berth_json_reader *reader, const json_t *object,
                                                  const char *key, berth_device_id *out);
// The name of a function of the module; null = none.
BERTH_MUST_USE berth_status berth_json_get_function(berth_json_reader *reader, const json_t *object,
                                                    const char *key, berth_func_id *out);
BERTH_MUST_USE berth_status berth_json_get_attrs(berth_json_reader *reader, const json_t *object,
                                                 berth_attrs *out);
// Base64, decoded into the module's arena.
BERTH_MUST_USE berth_status berth_json_get_data(berth_json_reader *reader, const json_t *object,
                                                const char *key, const char **out_data,
                                                size_t *out_size_bytes);
// Values as such; `what` for messages.
BERTH_MUST_USE berth_status berth_json_read_float(berth_json_reader *reader, const json_t *value,
                                                  double *out);
BERTH_MUST_USE berth_status berth_json_read_text(berth_json_reader *reader, const json_t *value,
                                                 const char **out);

#endif  // BERTH_IR_JSON_READER_H_
