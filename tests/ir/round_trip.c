#include "tests/ir/round_trip.h"

#include <string.h>

#include "ir/equal.h"
#include "ir/graph/graph.h"
#include "ir/json.h"
#include "ir/pass.h"
#include "ir/text.h"

typedef struct printing {
    const berth_module *module;
    berth_strbuf *out;
} printing;

static berth_status print_body(void *user) {
    printing *p = user;
    return berth_module_to_text(p->module, NULL, p->out);
}

berth_status print_module(const berth_module *module, berth_strbuf *out) {
    printing p = {module, out};
    return berth_arena_try(out->arena, print_body, &p);
}

static const char *message(berth_arena *arena, const char *what, berth_status status) {
    const char *text = berth_arena_printf(arena, "%s: %s", what, berth_status_message(status));
    berth_status_free(status);
    return text;
}

// What differs between two texts: the line.
static const char *text_difference(berth_arena *arena, const char *a, const char *b) {
    size_t at = 0;
    size_t line = 0;
    for (; a[at] && a[at] == b[at]; ++at)
        if (a[at] == '\n') line = at + 1;
    return berth_arena_printf(arena, "printed again: '%.*s' became '%.*s'",
                              (int)strcspn(a + line, "\n"), a + line, (int)strcspn(b + line, "\n"),
                              b + line);
}

static const char *compare(berth_arena *arena, const char *form, const berth_module *a,
                           const berth_module *b, bool verify) {
    bool equal = false;
    const char *why = NULL;
    berth_status status = berth_module_equal(a, b, &equal, &why);
    if (status) return message(arena, "equal", status);
    if (!equal) return berth_arena_printf(arena, "%s: %s", form, why);
    if (!verify) return NULL;
    status = berth_module_verify(b);
    return status ? message(arena, "verify", status) : NULL;
}

static const char *text_round_trip(const berth_module *module, berth_arena *arena, bool verify) {
    berth_strbuf first = berth_strbuf_make(arena);
    berth_status status = print_module(module, &first);
    if (status) return message(arena, "print", status);
    berth_module *again = NULL;
    status = berth_module_parse(arena, berth_strbuf_text(&first), first.length, "text", &again);
    if (status) return message(arena, "parse", status);
    const char *problem = compare(arena, "text", module, again, verify);
    if (problem) return problem;
    berth_strbuf second = berth_strbuf_make(arena);
    status = print_module(again, &second);
    if (status) return message(arena, "print again", status);
    if (first.length == second.length && memcmp(first.data, second.data, first.length) == 0)
        return NULL;
    return text_difference(arena, first.data, second.data);
}

static const char *json_round_trip(const berth_module *module, berth_arena *arena, bool verify) {
    const char *first = NULL;
    const char *second = NULL;
    berth_module *again = NULL;
    berth_status status = berth_module_to_json_text(arena, module, 1, &first);
    if (status) return message(arena, "write", status);
    status = berth_module_from_json_text(arena, first, strlen(first), "json", NULL, &again);
    if (status) return message(arena, "read", status);
    const char *problem = compare(arena, "JSON", module, again, verify);
    if (problem) return problem;
    status = berth_module_to_json_text(arena, again, 1, &second);
    if (status) return message(arena, "write again", status);
    return strcmp(first, second) == 0 ? NULL : text_difference(arena, first, second);
}

const char *round_trip(const berth_module *module, berth_arena *arena, bool verify) {
    const char *problem = text_round_trip(module, arena, verify);
    return problem ? problem : json_round_trip(module, arena, verify);
}

uint64_t literal_bytes(const berth_module *module) {
    uint64_t total = 0;
    for (uint32_t f = 0; f < module->functions.count; ++f) {
        const berth_graph *graph = berth_graph_get(module, f);
        if (!graph || module->functions.data[f].removed) continue;
        for (uint32_t i = 0; i < graph->ops.count; ++i) {
            const berth_op *op = &graph->ops.data[i];
            for (uint32_t a = 0; op->region != BERTH_NONE && a < op->attrs.items.count; ++a)
                if (op->attrs.items.data[a].kind == BERTH_ATTR_TENSOR)
                    total += berth_tensor_size_bytes(op->attrs.items.data[a].tensor);
        }
    }
    return total;
}
