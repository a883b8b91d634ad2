#include "ir/dialect.h"

#include <string.h>

#include "ir/c/hooks.h"
#include "ir/equal.h"
#include "ir/extend.h"
#include "ir/external.h"
#include "ir/graph/graph.h"
#include "ir/json/hooks.h"
#include "ir/tensor/function.h"
#include "ir/tensor/verify.h"
#include "ir/text/hooks.h"

static void *copy_graph(berth_module *module, const void *body) {
    return berth_graph_copy_body(module, body);
}

static void *copy_tfn(berth_module *module, const void *body) {
    return berth_tfn_copy_body(module, body);
}

static void *copy_external(berth_module *module, const void *body) {
    return berth_arena_copy(module->arena, body, sizeof(berth_external));
}

const berth_dialect berth_dialect_graph = {
    .name = "graph",
    .copy = copy_graph,
    .print_signature = berth_text__print_graph_signature,
    .print_body = berth_text__print_graph_body,
    .parse_signature = berth_text__parse_graph_signature,
    .parse_body = berth_text__parse_graph_body,
    .equal = berth_equal__graphs,
    .to_json = berth_json__write_graph,
    .from_json = berth_json__read_graph,
    .to_c = berth_c__emit_graph,
};

const berth_dialect berth_dialect_tensor = {
    .name = "tensor",
    .copy = copy_tfn,
    .print_signature = berth_text__print_tfn_signature,
    .print_body = berth_text__print_tfn_body,
    .parse_signature = berth_text__parse_tfn_signature,
    .parse_body = berth_text__parse_tfn_body,
    .equal = berth_equal__tfns,
    .to_json = berth_json__write_tfn,
    .from_json = berth_json__read_tfn,
    .to_c = berth_c__emit_tfn,
    .verify = berth_verify__tfn,
};

const berth_dialect berth_dialect_external = {
    .name = "external",
    .copy = copy_external,
    .print_signature = berth_text__print_external_signature,
    .parse_signature = berth_text__parse_external_signature,
    .equal = berth_equal__externals,
    .to_json = berth_json__write_external,
    .from_json = berth_json__read_external,
    .to_c = berth_c__emit_external,
    .verify = berth_verify__external,
};

const berth_dialect *berth_dialect_find(const berth_dialect_registry *registry, const char *name) {
    static const berth_dialect *const built_in[] = {&berth_dialect_graph, &berth_dialect_tensor,
                                                    &berth_dialect_external, NULL};
    const berth_dialect *const *lists[] = {built_in, registry ? registry->dialects : NULL};
    for (int i = 0; i < 2; ++i)
        for (const berth_dialect *const *d = lists[i]; d && *d; ++d)
            if (strcmp((*d)->name, name) == 0) return *d;
    return berth_dialect_registered(name);
}
