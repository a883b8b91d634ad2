// External functions: code in another language, carried in the module (C source, OpenCL source,
// object code, a vendor's own form) or named by it (a symbol of a shared library). Called from graph
// functions like any other; docs/external.md says how such code is called.
//
//   external @halve fn(f32[N])->(f32[N]) language "c" symbol "halve" file "halve.c"
//
//   void halve(const float *x, float *y, int64_t n);   // operands, results, extents of symbols
#ifndef BERTH_IR_EXTERNAL_H_
#define BERTH_IR_EXTERNAL_H_

#include "ir/module.h"

typedef struct berth_external {
    berth_str_id language;  // "c", "object", "library", "opencl-c", ...
    berth_str_id symbol;    // entry point
    // 0 = the code is here. Else the library's name; of other languages a file beside the module,
    // which is read in its place (toolkit/external_files.h).
    berth_str_id file;
    const uint8_t *code;
    uint64_t code_size_bytes;
    bool is_text;
    berth_type_id type;  // function type
} berth_external;

berth_func_id berth_external_create(berth_module *module, const char *name, berth_external external,
                                    berth_loc_id loc);
berth_external *berth_external_get(const berth_module *module,
                                   berth_func_id function);  // NULL for other dialects

#endif  // BERTH_IR_EXTERNAL_H_
