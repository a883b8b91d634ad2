// JSON values in an arena, private to target/: read through jansson, edited, printed canonically.
// Every value knows the path it had in the text ("devices[1].target"), so that a diagnostic can
// name it wherever the value has moved.
#ifndef BERTH_TARGET_JSON_H_
#define BERTH_TARGET_JSON_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef enum berth_target__json_type {
    JSON_TYPE_NULL,
    JSON_TYPE_BOOL,
    JSON_TYPE_INT,
    JSON_TYPE_REAL,
    JSON_TYPE_STRING,
    JSON_TYPE_ARRAY,
    JSON_TYPE_OBJECT,
} berth_target__json_type;

typedef struct berth_target__json berth_target__json;
typedef struct berth_target__member {
    const char *key;
    berth_target__json *value;
} berth_target__member;

struct berth_target__json {
    berth_target__json_type type;
    const char *path;
    bool boolean;
    int64_t integer;
    double real;
    const char *string;
    BERTH_VEC(berth_target__json *) items;
    BERTH_VEC(berth_target__member) members;
};

// Reads one JSON value. NULL with *out_error ("line 3, column 5: ...") if the text is not JSON.
// Duplicate keys are an error. `scratch` holds jansson's tree until it is destroyed.
berth_target__json *berth_target__json_read(berth_arena *arena, berth_arena *scratch,
                                            const char *text, size_t length,
                                            const char **out_error);
// Sorted keys; indent 0 = one line.
const char *berth_target__json_print(berth_arena *arena, const berth_target__json *value,
                                     int indent);

berth_target__json *berth_target__json_object(berth_arena *arena);
berth_target__json *berth_target__json_array(berth_arena *arena);
berth_target__json *berth_target__json_string(berth_arena *arena, const char *text);
berth_target__json *berth_target__json_int(berth_arena *arena, int64_t value);
berth_target__json *berth_target__json_real(berth_arena *arena, double value);
berth_target__json *berth_target__json_bool(berth_arena *arena, bool value);
berth_target__json *berth_target__json_clone(berth_arena *arena, const berth_target__json *value);

berth_target__json *berth_target__json_get(const berth_target__json *object, const char *key);
// Sets or (value NULL) removes.
void berth_target__json_set(berth_arena *arena, berth_target__json *object, const char *key,
                            berth_target__json *value);
void berth_target__json_push(berth_arena *arena, berth_target__json *array,
                             berth_target__json *value);
// Merge patch (RFC 7396): objects merge, null removes, everything else replaces. Returns the merged
// value.
berth_target__json *berth_target__json_merge(berth_arena *arena, berth_target__json *value,
                                             const berth_target__json *patch);
// Writes path into `value` and everything below it.
void berth_target__json_locate(berth_arena *arena, berth_target__json *value, const char *path);

const char *berth_target__json_type_name(const berth_target__json *value);  // "a string"

#endif  // BERTH_TARGET_JSON_H_
