// Text: a growing buffer in an arena, an interner, and small helpers.
#ifndef BERTH_BASE_STR_H_
#define BERTH_BASE_STR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

// Growing text in an arena; `data` is always NUL-terminated once something was added (and ""
// before).
typedef struct berth_strbuf {
    berth_arena *arena;
    char *data;
    size_t length;
    size_t capacity;
} berth_strbuf;

berth_strbuf berth_strbuf_make(berth_arena *arena);
void berth_strbuf_add(berth_strbuf *buffer, const char *text);
void berth_strbuf_add_n(berth_strbuf *buffer, const char *text, size_t length);
void berth_strbuf_addf(berth_strbuf *buffer, const char *format, ...) BERTH_PRINTF(2, 3);
const char *berth_strbuf_text(const berth_strbuf *buffer);

// Bytes of the UTF-8 sequence at `bytes` (NUL-terminated), or 0 when it is not one (overlong,
// surrogate, beyond U+10FFFF, cut off).
size_t berth_utf8_length(const char *bytes);

// Adds `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void berth_strbuf_add_json(berth_strbuf *buffer, const char *text);

// Adds `text` as character data or the value of an attribute of XML (SVG): <, >, &, " and ' become
// entities, control characters a space, and what no XML document may hold, or would reorder the
// line, U+FFFD. Text of more than `most_bytes` (0 = any) is cut between two characters and ends in
// "...".
void berth_strbuf_add_xml(berth_strbuf *buffer, const char *text, size_t most_bytes);

// The first character of `*inout_text` (not at its end) as a terminal may show it, and moves after
// it. What could steer the terminal or reorder the line (control characters C0 and C1, marks of
// direction, bytes that are not UTF-8) is written as its bytes, "\x1b". `out` is NUL-terminated.
// Returns its length.
size_t berth_shown_character(const char **inout_text, char out[20]);

// Shortest decimal that reads back as the same value ("1", "0.1", "1e-05", "inf", "-inf", "nan").
// `out` >= 32 bytes.
void berth_format_f64(double value, char out[32]);
void berth_format_f32(float value, char out[32]);
// "4.0 MiB", "512 B". `out` >= 32 bytes.
void berth_format_bytes(uint64_t size_bytes, char out[32]);
void berth_format_bytes_f64(double size_bytes, char out[32]);  // sums that may exceed 64 bits

// Interned strings: equal texts have equal ids; id 0 is "". Ids are dense.
typedef struct berth_interner berth_interner;
berth_interner *berth_interner_create(berth_arena *arena);
// The same ids; texts stay those of `source`, which lives longer.
berth_interner *berth_interner_copy(berth_arena *arena, const berth_interner *source);
uint32_t berth_intern(berth_interner *interner, const char *text);
uint32_t berth_intern_n(berth_interner *interner, const char *text, size_t length);
// The id of a text that was interned before; false when it was not.
bool berth_intern_find(const berth_interner *interner, const char *text, uint32_t *out_id);
const char *berth_interned(const berth_interner *interner,
                           uint32_t id);  // valid as long as the arena

// Shell-style match of * and ? (no classes), case-sensitive; linear in practice, never exponential.
bool berth_glob_match(const char *pattern, const char *text);

// The entry of `candidates` (NULL-terminated) closest to `text` by edit distance, or NULL when none
// is close: for "did you mean".
const char *berth_closest(const char *text, const char *const *candidates);

#endif  // BERTH_BASE_STR_H_
