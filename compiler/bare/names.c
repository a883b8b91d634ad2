// Names of the model as C and its comments take them.
#include <ctype.h>
#include <string.h>

#include "compiler/bare/printer.h"

// Is it one of the words, each with a space on both sides?
static bool is_one_of(const char *words, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(words, name); at; at = strstr(at + 1, name))
        if (at[-1] == ' ' && at[length] == ' ') return true;
    return false;
}

// Words of C up to C23 and of C++ up to C++20, and macros of the headers that the sources include, or
// that compilers define before any.
static bool is_keyword(const char *name) {
    static const char words[] =
        " auto break case char const continue default do double else enum extern float for goto "
        "if inline int long register restrict return short signed sizeof static struct switch "
        "typedef union unsigned void volatile while asm typeof typeof_unqual alignas alignof and "
        "and_eq bitand bitor bool catch char8_t char16_t char32_t class co_await co_return "
        "co_yield compl concept const_cast consteval constexpr constinit decltype delete "
        "dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq "
        "nullptr operator or or_eq private protected public reinterpret_cast requires "
        "static_assert static_cast template this thread_local throw true try typeid typename "
        "using virtual wchar_t xor xor_eq main weights NULL EOF BUFSIZ FILENAME_MAX FOPEN_MAX "
        "L_tmpnam SEEK_CUR SEEK_END SEEK_SET TMP_MAX stdin stdout stderr errno unix linux I "
        "HUGE_VAL HUGE_VALF INFINITY NAN INT8_MAX INT8_MIN UINT8_MAX INT16_MAX INT16_MIN "
        "UINT16_MAX INT32_MAX INT32_MIN UINT32_MAX INT64_MAX INT64_MIN UINT64_MAX SIZE_MAX "
        "OVERFLOW UNDERFLOW DOMAIN SING PLOSS TLOSS M_E M_PI MAXFLOAT ";
    return is_one_of(words, name);
}

// Names of files and build targets that are others' already: standard headers, which the model's own
// would hide, the Makefile, and targets that CMake keeps for itself.
static bool is_taken(const char *name) {
    static const char words[] =
        " assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal "
        "stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath "
        "threads time uchar wchar wctype arm_mve all help clean install test package "
        "package_source edit_cache rebuild_cache depend preinstall ALL_BUILD INSTALL PACKAGE "
        "RUN_TESTS ZERO_CHECK Makefile ";
    return is_one_of(words, name);
}

static const char *plain_name(berth_arena *arena, const char *name) {
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

const char *berth_bare_name(berth_arena *arena, const char *name) {
    const char *plain = plain_name(arena, name);
    return is_taken(plain) ? berth_arena_printf(arena, "%s_", plain) : plain;
}

const char **berth_bare__members(berth_arena *arena, const berth_program_io *list, uint32_t count) {
    const char **names = berth_arena_new_array(arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; ++i) {
        const char *plain = plain_name(arena, list[i].name);
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
