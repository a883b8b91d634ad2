#include "compiler/codegen/codegen.h"

#include <string.h>

static const berth_codegen *const generators[] = {
#define BERTH_CODEGEN(constant) &constant,
#include "compiler/codegen/codegen.def"
#undef BERTH_CODEGEN
};

const berth_codegen *berth_codegen_find(const char *kind) {
    for (size_t i = 0; i < sizeof(generators) / sizeof(generators[0]); ++i)
        if (strcmp(generators[i]->kind, kind) == 0) return generators[i];
    return NULL;
}
