// Diagnostics and typed access to JSON values: every complaint names the field and says what is
// allowed there.
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "target/internal.h"

void berth_target__error(berth_target__parse *parse, const char *path, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    size_t size_bytes = (size_t)(length < 0 ? 0 : length) + 1;
    char *message = berth_arena_alloc(parse->arena, size_bytes);
    va_start(arguments, format);
    vsnprintf(message, size_bytes, format, arguments);
    va_end(arguments);
    berth_target_diagnostic diagnostic = {berth_arena_strdup(parse->arena, path), message};
    berth_vec_push(parse->arena, &parse->diagnostics, diagnostic);
}

const char *berth_target__below(berth_target__parse *parse, const json *value, const char *key) {
    return *value->path ? berth_arena_printf(parse->scratch, "%s.%s", value->path, key) : key;
}

const char *berth_target__hint(berth_target__parse *parse, const char *text,
                               const char *const *candidates) {
    const char *closest = berth_closest(text, candidates);
    return closest ? berth_arena_printf(parse->scratch, "; did you mean '%s'?", closest) : "";
}

const char *berth_target__join(berth_arena *arena, const char *const *names) {
    berth_strbuf out = berth_strbuf_make(arena);
    for (uint32_t i = 0; names[i]; ++i) {
        if (i) berth_strbuf_add(&out, ", ");
        berth_strbuf_add(&out, names[i]);
    }
    return berth_strbuf_text(&out);
}

bool berth_target__is_object(berth_target__parse *parse, const json *value, const char *what) {
    if (value->type == JSON_TYPE_OBJECT) return true;
    berth_target__error(parse, value->path, "%s is an object {...}, not %s", what,
                        berth_target__json_type_name(value));
    return false;
}

void berth_target__check_fields(berth_target__parse *parse, const json *object,
                                const char *const *allowed, const char *what) {
    for (uint32_t i = 0; i < object->members.count; ++i) {
        const char *key = object->members.data[i].key;
        bool known = false;
        for (uint32_t k = 0; allowed[k] && !known; ++k) known = strcmp(allowed[k], key) == 0;
        if (known) continue;
        if (berth_target__attribute(key)) {
            berth_target__error(parse, object->members.data[i].value->path,
                                "'%s' is a field of a device's target (devices[0].target.%s), not "
                                "of %s",
                                key, key, what);
            continue;
        }
        berth_target__error(parse, object->members.data[i].value->path,
                            "unknown field '%s' of %s; its fields are %s%s", key, what,
                            berth_target__join(parse->scratch, allowed),
                            berth_target__hint(parse, key, allowed));
    }
}

bool berth_target__is_utf8(const char *text) {
    while (*text) {
        size_t length = berth_utf8_length(text);
        if (length == 0) return false;
        text += length;
    }
    return true;
}

bool berth_target__read_string(berth_target__parse *parse, const json *value, const char **out) {
    if (value->type == JSON_TYPE_STRING && !berth_target__is_utf8(value->string)) {
        berth_target__error(parse, value->path, "this text is not UTF-8");
        return false;
    }
    if (value->type == JSON_TYPE_STRING) {
        *out = value->string;
        return true;
    }
    berth_target__error(parse, value->path, "a string is wanted here, not %s",
                        berth_target__json_type_name(value));
    return false;
}

bool berth_target__read_bool(berth_target__parse *parse, const json *value, bool *out) {
    if (value->type == JSON_TYPE_BOOL) {
        *out = value->boolean;
        return true;
    }
    berth_target__error(parse, value->path, "true or false is wanted here, not %s",
                        berth_target__json_type_name(value));
    return false;
}

static bool in_range(berth_target__parse *parse, const json *value, double number, double least,
                     double most) {
    if (number >= least && number <= most) return true;
    char got[32], low[32], high[32];
    berth_format_f64(number, got);
    berth_format_f64(least, low);
    berth_format_f64(most, high);
    berth_target__error(parse, value->path, "%s is out of range; allowed is %s to %s", got, low,
                        high);
    return false;
}

// "64MiB", "4 GiB", "512B"; false when it is no such text.
static bool size_from_text(const char *text, double *out) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (!isdigit((unsigned char)*text)) return false;
    char *end = NULL;
    double number = strtod(text, &end);
    while (*end == ' ') end++;
    double scale = 1;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i, scale *= 1024) {
        if (strcmp(end, units[i]) != 0) continue;
        *out = number * scale;
        return true;
    }
    return false;
}

bool berth_target__read_int(berth_target__parse *parse, const json *value, bool sizes, double least,
                            double most, int64_t *out) {
    double number = value->real;
    bool fine = value->type == JSON_TYPE_INT || value->type == JSON_TYPE_REAL;
    if (sizes && value->type == JSON_TYPE_STRING) fine = size_from_text(value->string, &number);
    if (!fine) {
        berth_target__error(parse, value->path, "%s is wanted here, not %s",
                            sizes ? "a number of bytes (4096 or \"4KiB\")" : "a whole number",
                            value->type == JSON_TYPE_STRING
                                ? berth_arena_printf(parse->scratch, "\"%s\"", value->string)
                                : berth_target__json_type_name(value));
        return false;
    }
    if (!in_range(parse, value, number, least, most)) return false;
    if (value->type == JSON_TYPE_INT) {
        *out = value->integer;
        return true;
    }
    *out = (int64_t)number;  // in range, so no overflow: `most` is at most 1e18
    if ((double)*out == number) return true;
    berth_target__error(parse, value->path, "a whole number is wanted here");
    return false;
}

bool berth_target__read_real(berth_target__parse *parse, const json *value, double least,
                             double most, double *out) {
    if (value->type != JSON_TYPE_INT && value->type != JSON_TYPE_REAL) {
        berth_target__error(parse, value->path, "a number is wanted here, not %s",
                            berth_target__json_type_name(value));
        return false;
    }
    if (!in_range(parse, value, value->real, least, most)) return false;
    *out = value->real;
    return true;
}

bool berth_target__read_choice(berth_target__parse *parse, const json *value,
                               const char *const *allowed, const char *what, uint32_t *out) {
    const char *text = NULL;
    if (!berth_target__read_string(parse, value, &text)) return false;
    for (uint32_t i = 0; allowed[i]; ++i) {
        if (strcmp(allowed[i], text) != 0) continue;
        *out = i;
        return true;
    }
    berth_target__error(parse, value->path, "'%s' is not %s; allowed are %s%s", text, what,
                        berth_target__join(parse->scratch, allowed),
                        berth_target__hint(parse, text, allowed));
    return false;
}

// The alphabets of a target's texts. WORD is for whatever may reach a command line or the source of
// a kernel: nothing in it separates, quotes, expands or leads to another folder.
static const struct {
    const char *what;
    const char *marks;  // allowed after the first character, beside letters and digits
} alphabets[] = {
    [BERTH_TARGET__NAME] = {"a name", "_.-+:/@"},
    [BERTH_TARGET__WORD] = {"a word", "_.-+"},
};
enum { longest_name = 64 };

// In ASCII, whatever the locale.
static bool is_letter_or_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_spelt(const char *text, const char *marks) {
    size_t length = strlen(text);
    bool fine = length > 0 && length <= longest_name && is_letter_or_digit(text[0]);
    for (size_t i = 0; i < length && fine; ++i)
        fine = is_letter_or_digit(text[i]) || strchr(marks, text[i]);
    return fine;
}

bool berth_target__read_text(berth_target__parse *parse, const json *value,
                             berth_target__alphabet alphabet, const char **out) {
    const char *text = NULL;
    if (!berth_target__read_string(parse, value, &text)) return false;
    if (!is_spelt(text, alphabets[alphabet].marks)) {
        berth_target__error(parse, value->path,
                            "'%s' is not %s: a letter or digit, then letters, digits and %s, at "
                            "most %d in all",
                            text, alphabets[alphabet].what, alphabets[alphabet].marks,
                            longest_name);
        return false;
    }
    *out = berth_arena_strdup(parse->arena, text);
    return true;
}

bool berth_target__read_name(berth_target__parse *parse, const json *value, const char **out) {
    return berth_target__read_text(parse, value, BERTH_TARGET__NAME, out);
}
