// A vendor's functions by their names. The names are one text: a table of pointers to them would have to be
// relocated when libberth is loaded.
#include <string.h>

#include "base/dynlib.h"
#include "devices/internal.h"

const char *berth_devices__find_functions(void *(*find)(void *user, const char *name), void *user,
                                          const char *names, void *table) {
    unsigned char *at = table;
    for (; *names; names += strlen(names) + 1, at += sizeof(void *)) {
        void *function = find(user, names);
        if (!function) return names;
        memcpy(at, &function, sizeof(function));  // POSIX: the same representation
    }
    return NULL;
}

void *berth_devices__find_in_library(void *library, const char *name) {
    return berth_dynlib_symbol(library, name);
}
