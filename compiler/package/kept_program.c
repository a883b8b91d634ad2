#include "compiler/package/kept_program.h"

#include <stdio.h>
#include <string.h>

#include "artifact/file.h"
#include "base/base64.h"
#include "ir/external.h"
#include "ir/graph/graph.h"
#include "ir/text.h"

typedef struct kept {
    berth_hash128 module;  // what the program was made of
    const berth_program *program;
} kept;

// ---- serial forms: 32 digits of the hash, a space, base64 of a program file -----------------------

enum { digits = 32 };

static berth_status serialise(const void *value, berth_strbuf *out) {
    const kept *held = value;
    char hash[digits + 1];
    const void *data = NULL;
    size_t size_bytes = 0;
    BERTH_TRY(berth_program_to_memory(held->program, out->arena, &data, &size_bytes));
    berth_hash128_hex(held->module, hash);
    berth_strbuf_addf(out, "%s ", hash);
    berth_base64_encode(data, size_bytes, out);
    return BERTH_OK;
}

static bool read_hash(const char *text, berth_hash128 *out) {
    unsigned long long high = 0, low = 0;
    int length = 0;
    if (sscanf(text, "%16llx%16llx%n", &high, &low, &length) != 2 || length != digits) return false;
    *out = (berth_hash128){high, low};
    return true;
}

static berth_status parse(berth_arena *arena, const char *text, size_t length, void **out_value) {
    kept *held = berth_arena_new(arena, kept);
    char hash[digits + 1] = "";
    if (length > digits) memcpy(hash, text, digits);
    berth_strbuf bytes = berth_strbuf_make(arena);
    if (length <= digits || text[digits] != ' ' || !read_hash(hash, &held->module) ||
        !berth_base64_decode(text + digits + 1, length - digits - 1, &bytes))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a kept program is 32 hexadecimal digits and base64");
    BERTH_TRY(
        berth_status_prefix(berth_program_parse(arena, bytes.data, bytes.length, &held->program),
                            "the program kept in the module"));
    *out_value = held;
    return BERTH_OK;
}

const berth_opaque_ops berth_kept_program_ops = {
    .kind = "berth.program", .serialise = serialise, .parse = parse};

// ---- the state of a module ------------------------------------------------------------------------

static void add_bytes(berth_hash128 *hash, const void *data, size_t size_bytes) {
    const berth_hash128 pair[2] = {*hash, berth_hash128_of(data, size_bytes)};
    *hash = berth_hash128_of(pair, sizeof(pair));
}

static void add_literals(berth_hash128 *hash, const berth_attrs *attrs) {
    for (uint32_t i = 0; i < attrs->items.count; ++i) {
        const berth_attr *attr = &attrs->items.data[i];
        if (attr->kind == BERTH_ATTR_TENSOR)
            add_bytes(hash, attr->tensor->data, berth_tensor_size_bytes(attr->tensor));
    }
}

// What the text leaves out: large literals, and the code of external functions.
static void add_elided(berth_hash128 *hash, const berth_module *module) {
    add_literals(hash, &module->attrs);
    for (uint32_t f = 0; f < module->functions.count; ++f) {
        if (module->functions.data[f].removed) continue;
        const berth_graph *graph = berth_graph_get(module, f);
        const berth_external *external = berth_external_get(module, f);
        add_literals(hash, &module->functions.data[f].attrs);
        if (external) add_bytes(hash, external->code, (size_t)external->code_size_bytes);
        for (uint32_t i = 0; graph && i < graph->ops.count; ++i)
            if (graph->ops.data[i].region != BERTH_NONE)
                add_literals(hash, &graph->ops.data[i].attrs);
    }
}

// Of all that the module says but for the program in it.
static berth_status hash_module(berth_module *module, berth_hash128 *out_hash) {
    const berth_attr *held = berth_attrs_find(module, &module->attrs, BERTH_ATTR_PROGRAM);
    const berth_attr program = held ? *held : (berth_attr){0};
    berth_arena *scratch = berth_arena_create_child(module->arena);
    berth_strbuf text = berth_strbuf_make(scratch);
    if (held) berth_attrs_remove(module, &module->attrs, BERTH_ATTR_PROGRAM);
    berth_status status = berth_module_to_text(module, &(berth_text_options){.elide = true}, &text);
    if (held) berth_attrs_set(module, &module->attrs, BERTH_ATTR_PROGRAM, program);
    *out_hash = berth_hash128_of(text.data, text.length);
    add_elided(out_hash, module);
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_module_keep_program(berth_module *module, const berth_program *program) {
    kept *held = berth_arena_new(module->arena, kept);
    BERTH_TRY(hash_module(module, &held->module));
    held->program = program;
    berth_attrs_set(
        module, &module->attrs, BERTH_ATTR_PROGRAM,
        (berth_attr){.kind = BERTH_ATTR_OPAQUE, .opaque = {&berth_kept_program_ops, held}});
    return BERTH_OK;
}

berth_status berth_module_kept_program(berth_module *module, const berth_program **out_program,
                                       bool *out_stale) {
    const berth_attr *attr = berth_attrs_find(module, &module->attrs, BERTH_ATTR_PROGRAM);
    *out_program = NULL;
    if (out_stale) *out_stale = false;
    if (!attr || attr->kind != BERTH_ATTR_OPAQUE || attr->opaque.ops != &berth_kept_program_ops)
        return BERTH_OK;
    const kept *held = attr->opaque.value;
    berth_hash128 now;
    BERTH_TRY(hash_module(module, &now));
    if (berth_hash128_equal(now, held->module))
        *out_program = held->program;
    else if (out_stale)
        *out_stale = true;
    return BERTH_OK;
}
