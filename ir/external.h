// External functions: code in another language, carried in the module (C source, OpenCL source,
// assembly, object code, a vendor's own form). Called from graph functions like any other.
#ifndef BERTH_IR_EXTERNAL_H_
#define BERTH_IR_EXTERNAL_H_

#include "ir/module.h"

typedef struct berth_external {
    berth_str_id language;  // "c", "opencl-c", "elf", ...
    berth_str_id symbol;    // entry point
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
