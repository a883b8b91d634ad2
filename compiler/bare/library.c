// The sources as one shared object, for machines with an operating system.
#include <string.h>

#include "compiler/bare/printer.h"

// The lines of the text that begin so, or the others.
static void add_lines(berth_strbuf *out, const char *text, const char *begin, bool that_do) {
    while (*text) {
        const char *end = strchr(text, '\n');
        size_t length = end ? (size_t)(end - text) + 1 : strlen(text);
        bool does = strncmp(text, begin, strlen(begin)) == 0;
        if (does == that_do) berth_strbuf_add_n(out, text, length);
        text += length;
    }
}

// What these lines name is in front of the text.
static void add_inlined(berth_strbuf *out, const char *text) {
    add_lines(out, text, "#include \"", false);
}

// Of the system: where the weights are, functions of <math.h> would become the library's own.
static void add_system_headers(berth_strbuf *out, const char *text) {
    add_lines(out, text, "#include <", true);
}

berth_status berth_bare__library(const berth_bare_printer *p, const berth_bare_file *sources,
                                 const berth_toolchain_options *toolchain,
                                 berth_bare_file *out_file) {
    berth_strbuf text = berth_strbuf_make(p->arena);
    add_inlined(&text, sources[BERTH_BARE_HEADER].text);
    add_system_headers(&text, sources[BERTH_BARE_WEIGHTS_HEADER].text);
    add_system_headers(&text, sources[BERTH_BARE_WEIGHTS].text);
    berth_strbuf_add(&text, "#pragma GCC visibility push(hidden)\n");  // the constants
    add_inlined(&text, sources[BERTH_BARE_WEIGHTS_HEADER].text);
    add_inlined(&text, sources[BERTH_BARE_WEIGHTS].text);
    berth_strbuf_add(&text, "#pragma GCC visibility pop\n");
    add_inlined(&text, sources[BERTH_BARE_CODE].text);
    berth_toolchain_unit unit = {.label = p->name, .source = berth_strbuf_text(&text)};
    berth_toolchain_image image;
    BERTH_TRY(berth_toolchain_compile(toolchain, p->arena, &unit, 1, &image));
    *out_file = (berth_bare_file){.name = berth_arena_printf(p->arena, "lib%s.so", p->name),
                                  .text = image.data,
                                  .size_bytes = image.size_bytes};
    return BERTH_OK;
}
