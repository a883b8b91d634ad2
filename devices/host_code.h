// Code that this processor runs, and what it needs (artifact/kernel_abi.h): kernels of cpu devices, and what puts
// work into the queue of a GPU by a vendor's library. Private to devices/.
#ifndef BERTH_DEVICES_HOST_CODE_H_
#define BERTH_DEVICES_HOST_CODE_H_

#include "base/alloc.h"
#include "base/dynlib.h"
#include "base/status.h"
#include "devices/internal.h"

typedef struct berth_host_code {
    berth_dynlib *library;    // the code
    berth_dynlib **imported;  // libraries that it calls
    uint32_t imported_count;
} berth_host_code;

// Loads the libraries that the code names, gives it their symbols, and calls what it opens with. Nothing is left of it where that
// fails. Errors: UNAVAILABLE, NOT_FOUND.
BERTH_MUST_USE berth_status berth_devices__import(berth_host_code *code, berth_allocator allocator);
void berth_devices__import_end(berth_host_code *code, berth_allocator allocator);

// The function of a kernel, whose declaration (devices/internal.h) is as the program has it. Errors: NOT_FOUND, INCOMPATIBLE.
BERTH_MUST_USE berth_status berth_devices__find_function(const berth_host_code *code,
                                                         const char *device_kind,
                                                         berth_allocator allocator,
                                                         const berth_program_kernel *kernel,
                                                         berth_cpu_kernel *out_function);

// What instructions an image needs ("x86_64 avx2 fma", berth_executable_image.options), and whether this processor has
// them: without the check, the first kernel would end the process by an illegal instruction. Errors: INCOMPATIBLE.
BERTH_MUST_USE berth_status berth_devices__check_needs(berth_allocator allocator,
                                                       const char *needs);

#endif  // BERTH_DEVICES_HOST_CODE_H_
