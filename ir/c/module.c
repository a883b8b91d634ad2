// The C unit of a whole module: constant data, tables, a C function per function, and the one that
// calls them.
#include <ctype.h>

#include "ir/c/emitter.h"
#include "ir/emit_c.h"
#include "target/virtual_device.h"

static const char unit_head[] = "#include <math.h>\n"
                                "#include <stdlib.h>\n"
                                "#include <string.h>\n"
                                "\n"
                                "#include \"ir/dialect.h\"\n"
                                "#include \"ir/external.h\"\n"
                                "#include \"ir/graph/graph.h\"\n"
                                "#include \"ir/tensor/copies.h\"\n"
                                "#include \"ir/tensor/intrinsic.h\"\n"
                                "#include \"ir/string_literal.h\"\n"
                                "#include \"ir/tensor/function.h\"\n"
                                "#include \"target/virtual_device.h\"\n"
                                "\n";

// Functions that the statements call. Not every module has use for each.
static const char unit_helpers[] =
    "#define HELPER __attribute__((unused)) static inline  // no module needs every one\n"
    "HELPER const berth_tensor *tensor(berth_module *m, berth_tensor value) {\n"
    "    return berth_arena_copy(m->arena, &value, sizeof(value));\n"
    "}\n"
    "\n"
    "HELPER const berth_tensor *strings(berth_module *m, int rank, const int64_t *dims,\n"
    "                                          const void *data, size_t size_bytes) {\n"
    "    berth_tensor *value = berth_arena_new(m->arena, berth_tensor);\n"
    "    berth_string_literal_unpack(m->arena, data, size_bytes, rank, dims, value);\n"
    "    return value;\n"
    "}\n"
    "\n"
    "HELPER berth_attrs *attrs_of(berth_module *m, berth_func_id f, berth_op_id op) {\n"
    "    return &berth_graph_get(m, f)->ops.data[op].attrs;\n"
    "}\n"
    "\n"
    "// A value that exists gets what its builder leaves open.\n"
    "HELPER berth_value_id define(berth_module *m, berth_func_id f, berth_value_id value,\n"
    "                                    berth_str_id name, berth_type_id type,\n"
    "                                    berth_device_id device) {\n"
    "    berth_value *v = &berth_graph_get(m, f)->values.data[value];\n"
    "    v->name = name;\n"
    "    v->type = type;\n"
    "    v->device = device;\n"
    "    return value;\n"
    "}\n"
    "\n"
    "// The operation of a plug-in, which must be loaded.\n"
    "HELPER berth_op_kind registered(const char *name) {\n"
    "    berth_op_kind kind = BERTH_OP_COUNT;\n"
    "    if (!berth_op_kind_from_name(name, &kind)) abort();\n"
    "    return kind;\n"
    "}\n"
    "\n"
    "HELPER uint8_t intrinsic(const char *name) {\n"
    "    berth_intrinsic id = BERTH_INTRINSIC_COUNT;\n"
    "    if (!berth_intrinsic_from_name(name, strlen(name), &id)) abort();\n"
    "    return (uint8_t)id;\n"
    "}\n"
    "\n"
    "HELPER berth_value_id output(berth_module *m, berth_func_id f, berth_op_id op,\n"
    "                                    uint32_t index) {\n"
    "    return berth_graph_get(m, f)->ops.data[op].outputs[index];\n"
    "}\n";

const char *berth_emit_function(berth_c_emitter *e, berth_func_id function) {
    const berth_function *held = berth_module_function(e->module, function);
    if (!held || held->removed) return "BERTH_NONE";
    return berth_arena_printf(e->scratch, "t->functions[%u]", e->functions[function]);
}

// Those of vendors, in a constant of the same form of name as the built-in ones.
static void declare_dialects(berth_c_emitter *e, berth_strbuf *out) {
    static const berth_dialect *const built_in[] = {&berth_dialect_graph, &berth_dialect_tensor,
                                                    &berth_dialect_external};
    berth_interner *named = berth_interner_create(e->scratch);
    for (int i = 0; i < 3; ++i) (void)berth_intern(named, built_in[i]->name);
    uint32_t known = 3;
    for (uint32_t i = 0; i < e->module->functions.count; ++i) {
        const berth_function *function = &e->module->functions.data[i];
        if (function->removed || berth_intern(named, function->dialect->name) <= known) continue;
        known++;
        berth_strbuf_addf(out, "extern const berth_dialect berth_dialect_%s;\n",
                          function->dialect->name);
    }
}

static void emit_function(berth_c_emitter *e, berth_func_id id) {
    const berth_function *function = berth_module_function(e->module, id);
    const char *name = berth_emit_string(e, berth_module_str(e->module, function->name));
    berth_strbuf_addf(&e->body,
                      "\n// %s\nstatic void function_%u(const tables *t, berth_func_id f) {\n",
                      name, e->functions[id]);
    berth_emit_line(e, "berth_module *m = t->module;");
    if (function->attrs.items.count) {
        berth_emit_line(e, "berth_attrs *attrs = &berth_module_function(m, f)->attrs;");
        berth_emit_attrs(e, &function->attrs, "attrs");
    }
    if (function->dialect->to_c)
        function->dialect->to_c(e, id);
    else if (!e->status)
        e->status =
            berth_status_make(BERTH_UNSUPPORTED, "function @%s: the dialect %s has no form in C",
                              berth_module_str(e->module, function->name), function->dialect->name);
    berth_strbuf_add(&e->body, "}\n");
}

static const char *default_name(const berth_c_emitter *e) {
    berth_strbuf out = berth_strbuf_make(e->scratch);
    berth_strbuf_add(&out, "build_");
    for (const char *at = berth_module_str(e->module, e->module->name); *at; ++at)
        berth_strbuf_addf(&out, "%c", isalnum((unsigned char)*at) ? *at : '_');
    return berth_strbuf_text(&out);
}

static void add_tables(berth_c_emitter *e, uint32_t function_count, berth_strbuf *out) {
    berth_strbuf_addf(out,
                      "\ntypedef struct tables {\n"
                      "    berth_module *module;\n"
                      "    berth_type_id types[%u];\n"
                      "    berth_loc_id locs[%u];\n"
                      "    berth_device_id devices[%u];\n"
                      "    berth_func_id functions[%u];\n"
                      "} tables;\n\n",
                      e->type_count + 1, e->loc_count + 1, e->device_count + 1, function_count + 1);
}

// Functions are declared before any is built, so that they may refer to each other.
static void add_entry(berth_c_emitter *e, const char *entry, const char *module_attrs,
                      berth_strbuf *out) {
    const berth_module *module = e->module;
    berth_strbuf declarations = berth_strbuf_make(e->scratch);
    berth_strbuf calls = berth_strbuf_make(e->scratch);
    for (uint32_t i = 0; i < module->functions.count; ++i) {
        const berth_function *function = &module->functions.data[i];
        if (function->removed) continue;
        uint32_t n = e->functions[i];
        berth_strbuf_addf(&declarations,
                          "    t->functions[%u] = berth_module_add_function(\n"
                          "        m, %s, &berth_dialect_%s, NULL, %s);\n",
                          n, berth_emit_string(e, berth_module_str(module, function->name)),
                          function->dialect->name, berth_emit_loc(e, function->loc));
        berth_strbuf_addf(&calls, "    function_%u(t, t->functions[%u]);\n", n, n);
    }
    berth_strbuf_addf(out,
                      "\nberth_module *%s(berth_arena *arena);\n"
                      "berth_module *%s(berth_arena *arena) {\n"
                      "    berth_module *m = berth_module_create(arena, %s);\n"
                      "    tables *t = berth_arena_new(arena, tables);\n"
                      "    t->module = m;\n",
                      entry, entry, berth_emit_string(e, berth_module_str(module, module->name)));
    berth_strbuf_add(out, berth_strbuf_text(&e->setup));
    berth_strbuf_add(out, berth_strbuf_text(&declarations));
    berth_strbuf_add(out, module_attrs);
    berth_strbuf_add(out, berth_strbuf_text(&calls));
    berth_strbuf_add(out, "    return m;\n}\n");
}

berth_status berth_module_to_c(const berth_module *module, const char *entry, berth_strbuf *out) {
    berth_arena *scratch = berth_arena_create_child(out->arena);
    berth_c_emitter e = {
        .module = module,
        .scratch = scratch,
        .data = berth_strbuf_make(scratch),
        .setup = berth_strbuf_make(scratch),
        .body = berth_strbuf_make(scratch),
        .types = berth_arena_new_array(scratch, uint32_t, module->types.count),
        .locs = berth_arena_new_array(scratch, uint32_t, module->locs.count),
        .devices =
            berth_arena_new_array(scratch, uint32_t, berth_virtual_device_count(module->devices)),
        .functions = berth_arena_new_array(scratch, uint32_t, module->functions.count)};
    uint32_t count = 0;
    for (uint32_t i = 0; i < module->functions.count; ++i)
        if (!module->functions.data[i].removed) e.functions[i] = count++;
    for (uint32_t i = 0; i < module->functions.count; ++i)
        if (!module->functions.data[i].removed) emit_function(&e, i);
    const berth_strbuf functions = e.body;
    e.body = berth_strbuf_make(scratch);
    berth_emit_attrs(&e, &module->attrs, "&m->attrs");
    const char *module_attrs = berth_strbuf_text(&e.body);
    berth_strbuf last = berth_strbuf_make(scratch);
    add_entry(&e, entry ? entry : default_name(&e), module_attrs, &last);
    berth_strbuf_addf(out, "// The module %s, rebuilt with Berth's builder calls.\n%s",
                      berth_emit_string(&e, berth_module_str(module, module->name)), unit_head);
    declare_dialects(&e, out);
    berth_strbuf_add(out, berth_strbuf_text(&e.data));
    add_tables(&e, count, out);
    berth_strbuf_add(out, unit_helpers);
    berth_strbuf_add_n(out, functions.data, functions.length);
    berth_strbuf_add(out, berth_strbuf_text(&last));
    berth_arena_destroy(scratch);
    return e.status;
}
