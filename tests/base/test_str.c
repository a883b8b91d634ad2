// Text from outside, made harmless for terminals.
#include "base/str.h"

#include <criterion/criterion.h>
#include <string.h>

static berth_arena *arena;

static void open_arena(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void close_arena(void) {
    berth_arena_destroy(arena);
}

TestSuite(str, .init = open_arena, .fini = close_arena);

static const char *shown(const char *text) {
    berth_strbuf out = berth_strbuf_make(arena);
    char character[20];
    while (*text) {
        size_t length = berth_shown_character(&text, character);
        cr_assert_eq(length, strlen(character));
        berth_strbuf_add(&out, character);
    }
    return berth_strbuf_text(&out);
}

Test(str, shown) {
    cr_expect_str_eq(shown("conv1/\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
                     "conv1/\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    cr_expect_str_eq(shown("\x1b]0;x\a\r\n\t\x7f"), "\\x1b]0;x\\x07\\x0d\\x0a\\x09\\x7f");
    cr_expect_str_eq(shown("\xc2\x9b"
                           "2J"),
                     "\\xc2\\x9b"
                     "2J",
                     "CSI as one character (C1)");
    cr_expect_str_eq(shown("\x9b"
                           "2J"),
                     "\\x9b"
                     "2J",
                     "CSI as one byte");
    cr_expect_str_eq(shown("a\xe2\x80\xaetxt"), "a\\xe2\\x80\\xaetxt", "right-to-left override");
    cr_expect_str_eq(shown("\xf0\x9f"), "\\xf0\\x9f", "cut off");
}
