// A device's features by their names, and other tables of texts. Such a table is one text: pointers to many would have to be
// relocated when libberth is loaded.
#include <stdio.h>
#include <string.h>

#include "devices/internal.h"

const char *berth_devices__text_at(const char *texts, size_t index) {
    while (index-- > 0) texts += strlen(texts) + 1;
    return texts;
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
