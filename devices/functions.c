// A vendor's functions, and a device's features, by their names. The names are one text: a table of pointers to them
// would have to be relocated when libberth is loaded.
#include <stdio.h>
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

void berth_devices__put_features(char *text, size_t capacity, const char *names, const bool *has) {
    for (int lacks = 0; lacks < 2; ++lacks) {
        const char *before = lacks ? "; lacks " : "; ";
        const bool *at = has;
        for (const char *name = names; *name; name += strlen(name) + 1) {
            size_t used = strlen(text);
            if (*at++ == lacks) continue;
            snprintf(text + used, capacity - used, "%s%s", before, name);
            before = ", ";
        }
    }
}
