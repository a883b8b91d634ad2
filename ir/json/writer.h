// What the dialects' JSON writers share. Every value is attached to its parent as soon as it is
// made, so that nothing is lost when memory runs out: jansson's failures only set `failed`, which
// the caller checks at the end. Included by JSON hooks of dialects.
#ifndef BERTH_IR_JSON_WRITER_H_
#define BERTH_IR_JSON_WRITER_H_

#include <jansson.h>

#include "ir/dialect.h"

typedef struct berth_json_writer {
    const berth_module *module;
    berth_arena *scratch;
    json_t *locations;      // array; entry i is location i + 1
    berth_interner *locs;   // their texts; ids are their numbers
    uint32_t *loc_numbers;  // per location of the module, 0 = none yet
    bool failed;            // jansson ran out of memory
    berth_status status;    // first other failure
    void *user;
} berth_json_writer;

// Attach a new value to an object (key) or an array (key NULL).
void berth_json_put(berth_json_writer *writer, json_t *parent, const char *key, json_t *value);
json_t *berth_json_put_object(berth_json_writer *writer, json_t *parent, const char *key);
json_t *berth_json_put_array(berth_json_writer *writer, json_t *parent, const char *key);
void berth_json_put_int(berth_json_writer *writer, json_t *parent, const char *key, int64_t value);
void berth_json_put_float(berth_json_writer *writer, json_t *parent, const char *key,
                          double value);  // "nan", "inf", "-inf" as strings
// A string, or {"base64": ...} when it is not UTF-8.
void berth_json_put_text(berth_json_writer *writer, json_t *parent, const char *key,
                         const char *text);
void berth_json_put_str(berth_json_writer *writer, json_t *parent, const char *key,
                        berth_str_id text);
void berth_json_put_base64(berth_json_writer *writer, json_t *parent, const char *key,
                           const void *data, size_t size_bytes);
void berth_json_put_type(berth_json_writer *writer, json_t *parent, const char *key,
                         berth_type_id type);
void berth_json_put_dims(berth_json_writer *writer, json_t *parent, const char *key, int rank,
                         const int64_t *dims);
void berth_json_put_loc(berth_json_writer *writer, json_t *object, const char *key,
                        berth_loc_id loc);  // left out when 0
void berth_json_put_device(berth_json_writer *writer, json_t *object, const char *key,
                           berth_device_id device);  // left out when 0
// Its name, or null where there is none.
void berth_json_put_function(berth_json_writer *writer, json_t *object, const char *key,
                             berth_func_id function);
void berth_json_put_attrs(berth_json_writer *writer, json_t *object,
                          const berth_attrs *attrs);  // "attributes", left out when none

#endif  // BERTH_IR_JSON_WRITER_H_
