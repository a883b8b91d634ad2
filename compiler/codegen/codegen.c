#include "compiler/codegen/codegen.h"

#include <string.h>

static const berth_codegen *const generators[] = {&berth_codegen_c, &berth_codegen_opencl};

const berth_codegen *berth_codegen_find(const char *kind) {
    for (size_t i = 0; i < sizeof(generators) / sizeof(generators[0]); ++i)
        if (strcmp(generators[i]->kind, kind) == 0) return generators[i];
    return NULL;
}
