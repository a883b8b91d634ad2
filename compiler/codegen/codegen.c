#include "compiler/codegen/codegen.h"

#include <string.h>

#include "base/str.h"

static const berth_codegen *const generators[] = {
#define BERTH_CODEGEN(constant) &constant,
#include "compiler/codegen/codegen.def"
#undef BERTH_CODEGEN
};

enum { generator_count = sizeof(generators) / sizeof(generators[0]) };

const berth_codegen *berth_codegen_find(const char *kind) {
    for (int i = 0; i < generator_count; ++i)
        if (strcmp(generators[i]->kind, kind) == 0) return generators[i];
    return NULL;
}

const char *berth_codegen_kinds(berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    for (int i = 0; i < generator_count; ++i)
        berth_strbuf_addf(&text, "%s%s",
                          i == 0                    ? ""
                          : i + 1 < generator_count ? ", "
                                                    : " and ",
                          generators[i]->kind);
    return berth_strbuf_text(&text);
}
