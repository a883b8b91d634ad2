#include "base/str.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

berth_strbuf berth_strbuf_make(berth_arena *arena) {
    return (berth_strbuf){.arena = arena};
}

static void reserve(berth_strbuf *buffer, size_t extra) {
    size_t wanted = buffer->length + extra + 1;
    if (wanted <= buffer->capacity) return;
    size_t capacity = buffer->capacity ? buffer->capacity * 2 : 64;
    while (capacity < wanted) capacity *= 2;
    buffer->data = berth_arena_grow(buffer->arena, buffer->data, buffer->length, capacity);
    buffer->capacity = capacity;
}

void berth_strbuf_add_n(berth_strbuf *buffer, const char *text, size_t length) {
    reserve(buffer, length);
    if (length) memcpy(buffer->data + buffer->length, text, length);
    buffer->length += length;
    buffer->data[buffer->length] = 0;
}

void berth_strbuf_add(berth_strbuf *buffer, const char *text) {
    berth_strbuf_add_n(buffer, text, strlen(text));
}

void berth_strbuf_addf(berth_strbuf *buffer, const char *format, ...) {
    // Most texts are short: formatted once, into the room that there is.
    enum { first_room = 32 };
    va_list arguments;
    reserve(buffer, first_room);
    size_t room = buffer->capacity - buffer->length;
    va_start(arguments, format);
    int length = vsnprintf(buffer->data + buffer->length, room, format, arguments);
    va_end(arguments);
    if (length < 0) length = 0;
    if ((size_t)length >= room) {
        reserve(buffer, (size_t)length);
        va_start(arguments, format);
        vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    buffer->length += (size_t)length;
    buffer->data[buffer->length] = 0;
}

const char *berth_strbuf_text(const berth_strbuf *buffer) {
    return buffer->data ? buffer->data : "";
}

size_t berth_utf8_length(const char *bytes) {
    const unsigned char *text = (const unsigned char *)bytes;
    if (text[0] < 0x80) return 1;
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4) return 0;
    for (size_t i = 1; i < length; ++i)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

void berth_strbuf_add_json(berth_strbuf *buffer, const char *text) {
    berth_strbuf_add(buffer, "\"");
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t length = berth_utf8_length((const char *)at);
        if (length == 0)
            berth_strbuf_add(buffer, "\\ufffd");
        else if (*at == '"' || *at == '\\')
            berth_strbuf_addf(buffer, "\\%c", *at);
        else if (*at == '\n')
            berth_strbuf_add(buffer, "\\n");
        else if (*at < 0x20)
            berth_strbuf_addf(buffer, "\\u%04x", *at);
        else
            berth_strbuf_add_n(buffer, (const char *)at, length);
        at += length ? length : 1;
    }
    berth_strbuf_add(buffer, "\"");
}

// Code point of a well-formed sequence.
static uint32_t code_point(const char *at, size_t length) {
    const unsigned char *bytes = (const unsigned char *)at;
    if (length == 1) return bytes[0];
    uint32_t code = bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; ++i) code = code << 6 | (bytes[i] & 0x3fu);
    return code;
}

// C0, DEL and C1; line and paragraph separators; marks of direction (Unicode, Bidi_Control).
static bool steers(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c ||
           (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

// U+FFFE and U+FFFF are not characters of XML 1.0 (section 2.2).
static bool xml_refuses(const char *at, size_t length) {
    if (length < 2) return length == 0;
    uint32_t code = code_point(at, length);
    return code == 0xfffe || code == 0xffff || steers(code);
}

static void add_xml_character(berth_strbuf *buffer, const char *at, size_t length) {
    switch (*at) {
    case '<': berth_strbuf_add(buffer, "&lt;"); return;
    case '>': berth_strbuf_add(buffer, "&gt;"); return;
    case '&': berth_strbuf_add(buffer, "&amp;"); return;
    case '"': berth_strbuf_add(buffer, "&quot;"); return;
    case '\'': berth_strbuf_add(buffer, "&#39;"); return;
    default: break;
    }
    if (xml_refuses(at, length))
        berth_strbuf_add(buffer, "\xef\xbf\xbd");
    else if ((unsigned char)*at < 0x20 || *at == 0x7f)
        berth_strbuf_add(buffer, " ");
    else
        berth_strbuf_add_n(buffer, at, length);
}

void berth_strbuf_add_xml(berth_strbuf *buffer, const char *text, size_t most_bytes) {
    bool cut = most_bytes > 0 && strnlen(text, most_bytes + 1) > most_bytes;
    for (const char *at = text; *at;) {
        size_t length = berth_utf8_length(at);
        size_t step = length ? length : 1;
        if (cut && (size_t)(at - text) + step + 3 > most_bytes) break;
        add_xml_character(buffer, at, length);
        at += step;
    }
    if (cut) berth_strbuf_add(buffer, "...");
}

size_t berth_shown_character(const char **inout_text, char out[20]) {
    const char *at = *inout_text;
    size_t length = berth_utf8_length(at), taken = length ? length : 1;
    *inout_text += taken;
    if (length && !steers(code_point(at, length))) {
        memcpy(out, at, length);
        out[length] = 0;
        return length;
    }
    size_t written = 0;
    for (size_t i = 0; i < taken; ++i)
        written += (size_t)snprintf(out + written, 20 - written, "\\x%02x", (unsigned char)at[i]);
    return written;
}

static bool format_special(double value, char out[32]) {
    if (isnan(value))
        snprintf(out, 32, "nan");
    else if (isinf(value))
        snprintf(out, 32, value > 0 ? "inf" : "-inf");
    else
        return false;
    return true;
}

void berth_format_f64(double value, char out[32]) {
    if (format_special(value, out)) return;
    for (int digits = 1; digits <= 17; ++digits) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value) return;
    }
}

void berth_format_f32(float value, char out[32]) {
    if (format_special((double)value, out)) return;
    for (int digits = 1; digits <= 9; ++digits) {
        snprintf(out, 32, "%.*g", digits, (double)value);
        if (strtof(out, NULL) == value) return;
    }
}

void berth_format_bytes(uint64_t size_bytes, char out[32]) {
    berth_format_bytes_f64((double)size_bytes, out);
}

void berth_format_bytes_f64(double size_bytes, char out[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = size_bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(out, 32,
             unit == 0     ? "%.0f %s"
             : value < 1e6 ? "%.1f %s"
                           : "%.3g %s",
             value, units[unit]);
}

typedef struct intern_slot {
    uint32_t id;    // + 1; 0 = free
    uint32_t hash;  // tells nearly all other texts apart without a look at them
} intern_slot;

struct berth_interner {
    berth_arena *arena;
    BERTH_VEC(const char *) texts;
    intern_slot *slots;  // open addressing
    uint32_t slot_count;
};

berth_interner *berth_interner_create(berth_arena *arena) {
    berth_interner *interner = berth_arena_new(arena, berth_interner);
    interner->arena = arena;
    interner->slot_count = 64;
    interner->slots = berth_arena_new_array(arena, intern_slot, interner->slot_count);
    (void)berth_intern(interner, "");
    return interner;
}

berth_interner *berth_interner_copy(berth_arena *arena, const berth_interner *source) {
    berth_interner *interner = berth_arena_copy(arena, source, sizeof(*interner));
    interner->arena = arena;
    berth_vec_own(arena, &interner->texts);
    interner->slots =
        berth_arena_copy(arena, source->slots, source->slot_count * sizeof(*source->slots));
    return interner;
}

static intern_slot *find_slot(const berth_interner *interner, const char *text, size_t length,
                              uint32_t hash) {
    uint32_t mask = interner->slot_count - 1;
    for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
        intern_slot *slot = &interner->slots[at];
        if (slot->id == 0) return slot;
        if (slot->hash != hash) continue;
        const char *held = interner->texts.data[slot->id - 1];
        if (strncmp(held, text, length) == 0 && held[length] == 0) return slot;
    }
}

static void grow_slots(berth_interner *interner) {
    const intern_slot *old = interner->slots;
    uint32_t old_count = interner->slot_count, mask = 2 * old_count - 1;
    interner->slot_count *= 2;
    interner->slots = berth_arena_new_array(interner->arena, intern_slot, interner->slot_count);
    for (uint32_t i = 0; i < old_count; ++i) {
        if (old[i].id == 0) continue;
        uint32_t at = old[i].hash & mask;
        while (interner->slots[at].id != 0) at = (at + 1) & mask;
        interner->slots[at] = old[i];
    }
}

uint32_t berth_intern_n(berth_interner *interner, const char *text, size_t length) {
    length = strnlen(text, length);
    uint32_t hash = (uint32_t)berth_hash64(text, length, 0);
    intern_slot *slot = find_slot(interner, text, length, hash);
    if (slot->id) return slot->id - 1;
    if ((interner->texts.count + 1) * 2 > interner->slot_count) {
        grow_slots(interner);
        slot = find_slot(interner, text, length, hash);
    }
    berth_vec_push(interner->arena, &interner->texts,
                   berth_arena_strndup(interner->arena, text, length));
    *slot = (intern_slot){interner->texts.count, hash};
    return interner->texts.count - 1;
}

uint32_t berth_intern(berth_interner *interner, const char *text) {
    return berth_intern_n(interner, text, strlen(text));
}

bool berth_intern_find(const berth_interner *interner, const char *text, uint32_t *out_id) {
    size_t length = strlen(text);
    uint32_t id = find_slot(interner, text, length, (uint32_t)berth_hash64(text, length, 0))->id;
    if (id) *out_id = id - 1;
    return id != 0;
}

const char *berth_interned(const berth_interner *interner, uint32_t id) {
    return id < interner->texts.count ? interner->texts.data[id] : "";
}

bool berth_glob_match(const char *pattern, const char *text) {
    const char *star = NULL;
    const char *resume = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == 0;
}

static size_t edit_distance(const char *a, const char *b, size_t limit) {
    enum { longest = 63 };
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    if (a_length > longest || b_length > longest) return limit + 1;
    size_t row[longest + 1];
    for (size_t j = 0; j <= b_length; ++j) row[j] = j;
    for (size_t i = 1; i <= a_length; ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; ++j) {
            size_t above = row[j];
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (above + 1 < best) best = above + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = above;
            row[j] = best;
        }
    }
    return row[b_length];
}

const char *berth_closest(const char *text, const char *const *candidates) {
    size_t limit = strlen(text) / 3 + 1;
    const char *best = NULL;
    for (; *candidates; ++candidates) {
        size_t distance = edit_distance(text, *candidates, limit);
        if (distance <= limit) {
            best = *candidates;
            if (distance == 0) break;
            limit = distance - 1;
        }
    }
    return best;
}
