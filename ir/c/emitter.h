// What the emitters of dialects share. A function becomes a C function with the parameters
//     static void function_N(const tables *t, berth_func_id f)
// in which `m` is the module; types, locations, devices and functions are in the tables of `t`.
// Included by the C hooks of dialects.
#ifndef BERTH_IR_C_EMITTER_H_
#define BERTH_IR_C_EMITTER_H_

#include "ir/dialect.h"
#include "ir/tensor/type.h"

typedef struct berth_c_emitter {
    const berth_module *module;
    berth_arena *scratch;
    berth_strbuf data;   // constant arrays of the unit
    berth_strbuf setup;  // statements that fill the tables
    berth_strbuf body;   // of the C function being written, and of those before it
    uint32_t *types;     // numbers in the tables, + 1; 0 = not there so far
    uint32_t *locs;
    uint32_t *devices;
    uint32_t *functions;  // numbers, without those that are removed
    uint32_t type_count, loc_count, device_count, data_count;
    berth_status status;  // the first failure
} berth_c_emitter;

// One more statement, with the indentation of a body and the end of the line.
void berth_emit_line(berth_c_emitter *emitter, const char *format, ...) BERTH_PRINTF(2, 3);
// Expressions of C, in the scratch arena.
const char *berth_emit_string(berth_c_emitter *emitter, const char *text);
const char *berth_emit_int(berth_c_emitter *emitter, int64_t value);
const char *berth_emit_float(berth_c_emitter *emitter, double value);
const char *berth_emit_dtype(berth_dtype dtype);                             // "BERTH_DTYPE_F32"
const char *berth_emit_str_id(berth_c_emitter *emitter, berth_str_id text);  // an interned string
const char *berth_emit_type(berth_c_emitter *emitter, berth_type_id type);
const char *berth_emit_loc(berth_c_emitter *emitter, berth_loc_id loc);
const char *berth_emit_device(berth_c_emitter *emitter, berth_device_id device);
const char *berth_emit_dim(berth_c_emitter *emitter, int64_t dim);
const char *berth_emit_function(berth_c_emitter *emitter, berth_func_id function);
// "{1, 2, 3}" of the texts that `item` gives.
const char *berth_emit_list(berth_c_emitter *emitter, uint32_t count,
                            const char *(*item)(berth_c_emitter *emitter, const void *items,
                                                uint32_t index),
                            const void *items);
// The name of a constant array with these bytes.
const char *berth_emit_data(berth_c_emitter *emitter, const void *data, size_t size_bytes);
// Statements that set attributes of `owner`, an expression of type berth_attrs *.
void berth_emit_attrs(berth_c_emitter *emitter, const berth_attrs *attrs, const char *owner);

#endif  // BERTH_IR_C_EMITTER_H_
