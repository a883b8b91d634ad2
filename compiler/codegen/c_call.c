// Calls of external code inside kernels: one pointer per region, then the extents of the type's symbols
// (docs/external.md).
#include <string.h>

#include "compiler/codegen/c_family.h"
#include "compiler/external.h"
#include "ir/tensor/call.h"

static const char *name_of(const berth_c_printer *p, berth_func_id function) {
    return berth_module_str(p->fn->module, berth_module_function(p->fn->module, function)->name);
}

// Its number among what is called.
static uint32_t note_callee(berth_c_printer *p, berth_func_id callee) {
    const berth_module *module = p->fn->module;
    berth_str_id symbol = berth_external_get(module, callee)->symbol;
    for (uint32_t i = 0; i < p->callees.count; ++i) {
        if (p->callees.data[i] == callee) return i;
        if (berth_external_get(module, p->callees.data[i])->symbol == symbol &&
            berth_external_has_symbol(module, callee) &&
            berth_external_has_symbol(module, p->callees.data[i]))
            berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED,
                                              "external functions @%s and @%s have one symbol, "
                                              "\"%s\", and are called by one function",
                                              name_of(p, p->callees.data[i]), name_of(p, callee),
                                              berth_module_str(module, symbol)));
    }
    berth_vec_push(p->arena, &p->callees, callee);
    return p->callees.count - 1;
}

static const char *pointer(berth_c_printer *p, const berth_tfn_region *region, bool operand) {
    const berth_buf_info *buf = &p->fn->bufs.data[region->buf];
    const char *type = berth_c_storage_type(p, buf->dtype);
    const char *name = berth_c_buffer_name(p, region->buf);
    bool memory = buf->scope == BERTH_SCOPE_PARAM || buf->scope == BERTH_SCOPE_WORKSPACE;
    if (!memory && *p->language->global_pointer)
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED,
                                          "buffer \"%s\" is handed to external code, which on this "
                                          "device takes parameters and workspaces alone",
                                          berth_module_str(p->fn->module, buf->name)));
    if (buf->scope == BERTH_SCOPE_REGISTER && buf->rank == 0)
        return berth_arena_printf(p->arena, "&%s", name);
    return berth_arena_printf(p->arena, "(%s%s%s *)(%s + %s)", p->language->global_pointer,
                              operand ? "const " : "", type, name,
                              berth_c_offset(p, region->buf, region->starts, buf->rank));
}

// Extents of the symbols in the function's type, in the order in which they first stand there.
static void add_extents(berth_c_printer *p, const berth_stmt_node *call, berth_strbuf *out) {
    const berth_buf_info *params = NULL;
    BERTH_VEC(int64_t) seen = {0};
    uint32_t count = 0;
    if (!berth_tfn_callee_params(p->fn->module, call->callee, p->arena, &params, &count)) return;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_tfn_region *region = &p->fn->regions.data[call->first + i];
        int rank = p->fn->bufs.data[region->buf].rank;
        for (int d = 0, k = 0; d < rank; ++d) {
            if (region->extents[d] == BERTH_REGION_POINT) continue;
            int64_t symbol = params[i].dims[k++];
            bool known = !berth_dim_is_symbol(symbol);
            for (uint32_t s = 0; s < seen.count && !known; ++s) known = seen.data[s] == symbol;
            if (known) continue;
            berth_vec_push(p->arena, &seen, symbol);
            berth_strbuf_addf(out, ", %lld", (long long)region->extents[d]);
        }
    }
}

void berth_c_call(berth_c_printer *p, berth_stmt id) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    const berth_module *module = p->fn->module;
    const char *why = p->language->refuses_calls;
    if (!berth_external_get(module, node.callee)) why = "the pass lower has not put it in place";
    if (!why) why = berth_external_call_refusal(module, node.callee, p->language->kind, p->arena);
    if (why) {
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED, "a call of @%s: %s",
                                          name_of(p, node.callee), why));
        return;
    }
    uint32_t callee = note_callee(p, node.callee);
    const berth_external *external = berth_external_get(module, node.callee);
    uint32_t operands = berth_type_get(module, external->type)->param_count;
    berth_strbuf text = berth_strbuf_make(p->arena);
    berth_strbuf_addf(&text, "%s(",
                      berth_external_callee(module, p->callees.data, callee, p->arena));
    for (uint32_t i = 0; i < node.count; ++i) {
        const berth_tfn_region region = p->fn->regions.data[node.first + i];
        berth_c_begin_statement(p, region.starts, p->fn->bufs.data[region.buf].rank);
        berth_strbuf_addf(&text, "%s%s", i ? ", " : "", pointer(p, &region, i < operands));
        berth_c_end_statement(p);
    }
    add_extents(p, &node, &text);
    berth_c_line(p, "%s);", berth_strbuf_text(&text));
}

void berth_c_add_callees(const berth_c_printer *p, berth_strbuf *out) {
    berth_external_add_callees(p->fn->module, p->callees.data, p->callees.count, p->arena, out);
    if (p->callees.count) berth_strbuf_add(out, "\n#line 1 \"kernels\"\n");
}

void berth_c_callee_objects(const berth_c_printer *p, berth_codegen_result *out) {
    berth_object_code *objects =
        berth_arena_new_array(p->arena, berth_object_code, p->callees.count + 1);
    out->objects = objects;
    out->object_count = 0;
    for (uint32_t i = 0; i < p->callees.count; ++i) {
        berth_object_code object = berth_external_object(p->fn->module, p->callees.data[i]);
        bool known = !object.data;
        for (uint32_t k = 0; k < out->object_count && !known; ++k)
            known = objects[k].size_bytes == object.size_bytes &&
                    memcmp(objects[k].data, object.data, (size_t)object.size_bytes) == 0;
        if (!known) objects[out->object_count++] = object;
    }
}
