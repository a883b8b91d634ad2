// Names of the model as C and its comments take them.
#include <ctype.h>
#include <string.h>

#include "compiler/bare/printer.h"

static bool is_keyword(const char *name) {
    static const char *const words[] = {
        "auto",     "break",  "case",     "char",    "const",    "continue", "default",
        "do",       "double", "else",     "enum",    "extern",   "float",    "for",
        "goto",     "if",     "inline",   "int",     "long",     "register", "restrict",
        "return",   "short",  "signed",   "sizeof",  "static",   "struct",   "switch",
        "typedef",  "union",  "unsigned", "void",    "volatile", "while",    "asm",
        "bool",     "class",  "delete",   "new",     "private",  "public",   "template",
        "this",     "throw",  "true",     "false",   "try",      "catch",    "namespace",
        "operator", "friend", "using",    "virtual", "typename", "main",     "weights"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i)
        if (strcmp(words[i], name) == 0) return true;
    return false;
}

const char *berth_bare_name(berth_arena *arena, const char *name) {
    enum { most = 48 };
    char text[most + 3] = "";
    size_t length = 0;
    for (const char *at = name; *at && length < most; ++at) {
        bool fine = isalnum((unsigned char)*at) && (unsigned char)*at < 0x80;
        if (length == 0 && (isdigit((unsigned char)*at) || !fine)) {
            text[length++] = 'm';
            if (!fine) continue;
        }
        if (fine)
            text[length++] = *at;
        else if (text[length - 1] != '_')
            text[length++] = '_';
    }
    while (length > 1 && text[length - 1] == '_') --length;
    text[length] = 0;
    if (length == 0) return "model";
    if (is_keyword(text)) return berth_arena_printf(arena, "%s_", text);
    return berth_arena_strdup(arena, text);
}

const char **berth_bare__members(berth_arena *arena, const berth_program_io *list, uint32_t count) {
    const char **names = berth_arena_new_array(arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        const char *plain = berth_bare_name(arena, list[i].name);
        names[i] = plain;
        for (uint32_t k = 0, next = 2; k < i; ++k) {
            if (strcmp(names[k], names[i]) != 0) continue;
            names[i] = berth_arena_printf(arena, "%s_%u", plain, next++);
            k = (uint32_t)-1;  // from the start: the new name may be another's
        }
    }
    return names;
}

const char *berth_bare__comment(berth_arena *arena, const char *text) {
    enum { most = 100 };
    berth_strbuf out = berth_strbuf_make(arena);
    for (const char *at = text; *at; ++at) {
        if (out.length == most) {
            berth_strbuf_add(&out, "...");
            break;
        }
        bool shown = *at >= 0x20 && *at < 0x7f && *at != '*' && *at != '\\';
        berth_strbuf_add_n(&out, shown ? at : "?", 1);
    }
    return berth_strbuf_text(&out);
}

const char *berth_bare__shape(berth_arena *arena, const berth_program_tensor *tensor) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_strbuf_addf(&out, "%s[", berth_dtype_name(tensor->dtype));
    for (int d = 0; d < tensor->rank; ++d)
        berth_strbuf_addf(&out, d ? ",%lld" : "%lld", (long long)tensor->dims[d]);
    berth_strbuf_add(&out, "]");
    return berth_strbuf_text(&out);
}

uint64_t berth_bare__elements(const berth_program_tensor *tensor) {
    return tensor->size_bytes / berth_dtype_size_bytes(tensor->dtype);
}
