#include "compiler/codegen/codegen.h"

#include <string.h>

#include "base/str.h"
#include "compiler/extend.h"
#include "target/virtual_device.h"

static const berth_codegen *const generators[] = {
#define BERTH_CODEGEN(constant) &constant,
#include "compiler/codegen/codegen.def"
#undef BERTH_CODEGEN
};

enum { generator_count = sizeof(generators) / sizeof(generators[0]) };

static const berth_codegen *registered[BERTH_EXTEND_MAX];
static uint32_t registered_count;

berth_status berth_codegen_register(const berth_codegen *codegen) {
    if (berth_codegen_find(codegen->kind))
        return berth_status_make(BERTH_ALREADY_EXISTS, "there is a code generator for %s already",
                                 codegen->kind);
    if (registered_count == BERTH_EXTEND_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE, "more than %d code generators are registered",
                                 BERTH_EXTEND_MAX);
    registered[registered_count++] = codegen;
    return BERTH_OK;
}

const berth_codegen *berth_codegen_find(const char *kind) {
    for (int i = 0; i < generator_count; ++i)
        if (strcmp(generators[i]->kind, kind) == 0) return generators[i];
    for (uint32_t i = 0; i < registered_count; ++i)
        if (strcmp(registered[i]->kind, kind) == 0) return registered[i];
    return NULL;
}

const berth_codegen *berth_codegen_for(const berth_multi_target *target, const char *kind) {
    bool plain = target->executor == BERTH_EXECUTOR_AOT &&
                 berth_device_kind_is_host(berth_device_kind_from_name(kind));
    return plain ? &berth_codegen_c_plain : berth_codegen_find(kind);
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
