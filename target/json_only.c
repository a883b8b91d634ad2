// What the library that only runs programs has of the spellings of targets: JSON, complete as programs
// have it. The whole of Berth has source.c, override.c and machines.c instead.
#include <string.h>

#include "target/internal.h"

static berth_status refuse(berth_target__parse *parse, const char *path) {
    berth_target__error(parse, path,
                        "this library only runs programs: a target is JSON, as they have it");
    return BERTH_OK;
}

berth_status berth_target__source(berth_target__parse *parse, const char *text, bool resolve,
                                  const char *path, int depth, json **out) {
    (void)resolve, (void)depth;
    *out = NULL;
    if (*text != '{') return refuse(parse, path);
    *out = berth_target__source_json(parse, text, strlen(text), path);
    return BERTH_OK;
}

berth_status berth_target__expand(berth_target__parse *parse, json *root) {
    (void)parse, (void)root;  // it is complete
    return BERTH_OK;
}

berth_status berth_target__override(berth_target__parse *parse, json *root, const char *text) {
    (void)root, (void)text;
    return refuse(parse, "");
}

berth_status berth_target__flatten_machines(berth_target__parse *parse, json *root) {
    return berth_target__json_get(root, "machines") ? refuse(parse, "machines") : BERTH_OK;
}

bool berth_target__spells_target(berth_arena *arena, const char *text) {
    (void)arena;
    return *text == '{';
}
