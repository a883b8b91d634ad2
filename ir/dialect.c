#include "ir/dialect.h"

#include <string.h>

#include "ir/tensor_fn.h"
#include "ir/text/hooks.h"
#include "ir/text/printer.h"

const berth_dialect berth_dialect_graph = {
    .name = "graph",
    .print_signature = berth_text__print_graph_signature,
    .print_body = berth_text__print_graph_body,
    .parse_signature = berth_text__parse_graph_signature,
    .parse_body = berth_text__parse_graph_body,
};

// The text of tensor functions cannot be read yet.
static void print_tfn(struct berth_text_printer *p, berth_func_id function) {
    berth_strbuf out = berth_strbuf_make(p->scratch);
    berth_tfn_print(berth_tfn_get(p->module, function), &out);
    berth_doc_text(p->doc, berth_strbuf_text(&out));
}

const berth_dialect berth_dialect_tensor = {
    .name = "tensor",
    .print_signature = print_tfn,
};

const berth_dialect berth_dialect_external = {
    .name = "external",
    .print_signature = berth_text__print_external_signature,
    .parse_signature = berth_text__parse_external_signature,
};

const berth_dialect *berth_dialect_find(const berth_dialect_registry *registry, const char *name) {
    static const berth_dialect *const built_in[] = {&berth_dialect_graph, &berth_dialect_tensor,
                                                    &berth_dialect_external, NULL};
    const berth_dialect *const *lists[] = {built_in, registry ? registry->dialects : NULL};
    for (int i = 0; i < 2; ++i)
        for (const berth_dialect *const *d = lists[i]; d && *d; ++d)
            if (strcmp((*d)->name, name) == 0) return *d;
    return NULL;
}
