// Shared libraries opened at run time (vendor drivers, compiled kernels).
#ifndef BERTH_BASE_DYNLIB_H_
#define BERTH_BASE_DYNLIB_H_

#include <stddef.h>

#include "base/status.h"

typedef struct berth_dynlib berth_dynlib;

// Opens the first of `names` (NULL-terminated) that loads. Errors: UNAVAILABLE with the loader's
// reason for each; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_dynlib_open(const char *const *names, berth_dynlib **out_library);
// Opens a library from memory (an ELF shared object) without leaving a file behind.
BERTH_MUST_USE berth_status berth_dynlib_open_memory(const void *data, size_t size_bytes,
                                                     const char *label, berth_dynlib **out_library);
// The symbol's address, or NULL.
void *berth_dynlib_symbol(berth_dynlib *library, const char *name);
// A library's functions by their names. `names` are texts one after the other ("clFinish\0clFlush\0"), one text since a
// table of pointers to them would have to be relocated; `table` function pointers in the same order, which are filled in.
// The first name that is missing, or NULL.
const char *berth_dynlib_find_functions(void *(*find)(void *user, const char *name), void *user,
                                        const char *names, void *table);
void *berth_dynlib_find_in(void *library, const char *name);  // for `find`: of a berth_dynlib
void berth_dynlib_close(berth_dynlib *library);               // NULL is fine
// Lets go of the library but leaves it loaded: for vendor libraries with threads or exit handlers
// of their own, whose code must not go away. NULL is fine.
void berth_dynlib_abandon(berth_dynlib *library);

#endif  // BERTH_BASE_DYNLIB_H_
