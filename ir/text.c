#include "ir/text.h"

#include "ir/text/printer.h"

static void print_function(berth_text_printer *p, berth_func_id id) {
    const berth_function *function = berth_module_function(p->module, id);
    const berth_dialect *dialect = function->dialect;
    berth_doc_hard_line(p->doc);
    berth_doc_textf(p->doc, "%s @", dialect->name);
    berth_text_print_name(p, berth_module_str(p->module, function->name));
    if (!dialect->print_signature && !dialect->print_body && !p->status)
        p->status =
            berth_status_make(BERTH_UNSUPPORTED, "function @%s: the dialect %s has no text form",
                              berth_module_str(p->module, function->name), dialect->name);
    if (dialect->print_signature) dialect->print_signature(p, id);
    berth_text_print_attrs(p, &function->attrs, 0);
    berth_text_print_loc(p, function->loc);
    if (dialect->print_body) {
        berth_doc_text(p->doc, " {");
        berth_doc_indent(p->doc, 2);
        dialect->print_body(p, id);
        berth_doc_indent(p->doc, -2);
        berth_doc_hard_line(p->doc);
        berth_doc_text(p->doc, "}");
    }
    berth_doc_hard_line(p->doc);
}

berth_status berth_module_to_text(const berth_module *module, const berth_text_options *options,
                                  berth_strbuf *out) {
    berth_arena *scratch = berth_arena_create_child(out->arena);
    berth_text_printer p = berth_text__printer_make(module, scratch, options);
    berth_doc_stream(p.doc, p.options.width, out);
    berth_doc_text(p.doc, "module ");
    berth_text_print_string(&p, berth_module_str(module, module->name));
    berth_text_print_attrs(&p, &module->attrs, 0);
    berth_doc_hard_line(p.doc);
    for (uint32_t i = 0; i < module->functions.count; ++i)
        if (!module->functions.data[i].removed) print_function(&p, i);
    berth_doc_render(p.doc, p.options.width, out);
    berth_text__print_locations(&p, out);
    berth_text__print_metas(&p, out);
    berth_arena_destroy(scratch);
    return p.status;
}

void berth_module_print(const berth_module *module, berth_strbuf *out) {
    berth_status_ignore(berth_module_to_text(module, NULL, out));
}
