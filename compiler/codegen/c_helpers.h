// A library of helper functions, of which code gets those that it uses: a compiler spends more time on
// the whole of it than on a small kernel. The library is C whose functions are mostly made by macros;
// read, it is a list of functions, types and macros with the #if around each.
//
//   berth_c_helpers *helpers = berth_c_helpers_read(library, known, arena);
//   berth_c_helpers_use(helpers, code);
//   berth_c_helpers_add(helpers, NULL, &out);
//
// Macros at the top level that make functions or types (their text has BERTH_FN or typedef, or names such a
// macro) are expanded; all others stay as they are, so these must not make names (##). #ifdef and #ifndef of
// BERTH_ names are decided; other conditions stay, around what they were around.
#ifndef BERTH_COMPILER_CODEGEN_C_HELPERS_H_
#define BERTH_COMPILER_CODEGEN_C_HELPERS_H_

#include "base/str.h"

typedef struct berth_c_helpers berth_c_helpers;

// `known`: the BERTH_ names that are defined, ended by NULL. Inside berth_arena_try. O(text).
berth_c_helpers *berth_c_helpers_read(const char *text, const char *const *known,
                                      berth_arena *arena);

// Marks what `code` names, and what that names. O(code).
void berth_c_helpers_use(berth_c_helpers *helpers, const char *code);

// Adds what is marked, in the library's order, each followed by `behind` ("\n"); `add` (NULL: as it is) adds the text of one.
void berth_c_helpers_add(const berth_c_helpers *helpers, const char *behind,
                         void (*add)(const char *name, const char *text, berth_strbuf *out),
                         berth_strbuf *out);

// Letters, digits and underscores from `at` on.
size_t berth_c_word_length(const char *at);
bool berth_c_word_is(const char *at, size_t length, const char *text);

#endif  // BERTH_COMPILER_CODEGEN_C_HELPERS_H_
