// Strings: what is refused, and regular expressions where the build has them.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/eval/support.h"

static berth_status one(eval_case *c, const char *name, const char *operands, const char *attrs,
                        berth_tensor *outputs, uint32_t output_count) {
    berth_tensor inputs[EVAL_MAX_OPERANDS];
    uint32_t count = eval_tensors(c, operands, inputs);
    berth_op_kind kind = BERTH_OP_CONSTANT;
    cr_assert(berth_op_kind_from_name(name, &kind), "no operation %s", name);
    return eval_try(c, kind, inputs, count, attrs, outputs, output_count);
}

Test(eval_strings, wrong_ones_are_explained) {
    static const struct {
        const char *name, *operands, *attrs, *what;
        uint32_t outputs;
    } rows[] = {
        {"cast", "string[2] '1' 'x1'", "to=#f32", "element 1, \"x1\", is no number for f32", 1},
        {"cast", "string[1] ''", "to=#i64", "is no number for i64", 1},
        {"cast", "string[1] '99999999999999999999'", "to=#i64", "outside the range of i64", 1},
        {"cast", "string[1] '1e999'", "to=#f64", "outside the range of f64", 1},
        {"add", "string[1] 'a'; string[1] 'b'", "", "operand 0 is strings", 1},
        {"relu", "string[1] 'a'", "", "operand 0 is strings", 1},
        {"reduce_sum", "string[1] 'a'", "", "operand 0 is strings", 1},
        {"equal", "string[1] 'a'; f32[1] 1", "", "", 1},
        {"scatter_nd", "string[1] 'a'; i64[1,1] 0; string[1] 'b'", "reduction=add", "of strings",
         1},
        {"string_concat", "string[2] 'a' 'b'; string[3] 'c'", "", "", 1},
        {"string_split", "f32[1] 1", "", "strings are expected", 2},
        {"string_normalizer", "string[2,1] 'a'", "", "[C] or [1,C]", 1},
        {"string_normalizer", "string[1] 'a'", "case_change_action=SHOUT", "SHOUT", 1},
        {"string_normalizer", "string[1] 'a\\xc3'", "", "byte 1 of", 1},
        {"string_normalizer", "string[1] '\\xed\\xa0\\x80'", "", "is not UTF-8", 1},
        {"lookup", "string[1] 'a'; i64[1] 1; f32[1] 1; f32[] 0", "", "looked up among i64", 1},
        {"lookup", "i64[1] 1; i64[1] 1; f32[2] 1; f32[] 0", "", "the values", 1},
        {"tf_idf_vectorizer", "i64[1] 1", "mode=X", "mode", 1},
        {"tf_idf_vectorizer", "string[1] 'a'",
         "mode=TF min_gram_length=1 max_gram_length=1 max_skip_count=0 ngram_counts=[0] "
         "ngram_indexes=[0] pool_int64s=[1]",
         "the operand is string, the pool i64", 1},
        {"tf_idf_vectorizer", "i64[1] 1",
         "mode=TF min_gram_length=1 max_gram_length=2 max_skip_count=0 ngram_counts=[0,2] "
         "ngram_indexes=[0,1,2] pool_int64s=[1,2,3]",
         "does not divide", 1},
        {"tf_idf_vectorizer", "i64[1] 1",
         "mode=TF min_gram_length=1 max_gram_length=1 max_skip_count=0 ngram_counts=[0] "
         "ngram_indexes=[0,-1] pool_int64s=[1,2]",
         "out of range", 1},
        {"tf_idf_vectorizer", "i64[1] 1",
         "mode=TF min_gram_length=1 max_gram_length=1 max_skip_count=0 ngram_counts=[0] "
         "ngram_indexes=[0,1] pool_int64s=[2,2]",
         "twice", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        eval_case c = eval_begin();
        berth_tensor outputs[2];
        berth_status status =
            one(&c, rows[i].name, rows[i].operands, rows[i].attrs, outputs, rows[i].outputs);
        cr_expect_not_null(status, "%s of %s: no error", rows[i].name, rows[i].operands);
        if (status)
            cr_expect_not_null(strstr(berth_status_message(status), rows[i].what), "%s: %s",
                               rows[i].name, berth_status_message(status));
        berth_status_free(status);
        eval_end(&c);
    }
}

// A vocabulary that skips without end is bounded by the row.
Test(eval_strings, skips_end_with_the_row, .timeout = 10) {
    eval_case c = eval_begin();
    berth_tensor y;
    eval_op(&c, "tf_idf_vectorizer", "i64[4] 1 0 0 2",
            "mode=TF min_gram_length=2 max_gram_length=2 max_skip_count=1000000000000 "
            "ngram_counts=[0,0] ngram_indexes=[0] pool_int64s=[1,2]",
            &y, 1);
    berth_tensor expected = eval_tensor(&c, "f32[1] 1");
    eval_expect(&c, &y, &expected, 0, "n-grams");
    eval_end(&c);
}

static bool without_regex(void) {
    eval_case c = eval_begin();
    berth_tensor y;
    berth_status status = one(&c, "regex_full_match", "string[1] 'a'", "pattern=a", &y, 1);
    bool absent = status && strstr(berth_status_message(status), "libpcre2-dev");
    if (!absent) cr_assert_null(status, "%s", berth_status_message(status));
    berth_status_free(status);
    eval_end(&c);
    return absent;
}

// Values by hand, from the description of RE2's language.
Test(eval_strings, regular_expressions) {
    static const struct {
        const char *pattern, *strings, *expected;
    } rows[] = {
        {"a+", "string[4] 'a' 'aa' 'ab' ''", "bool[4] 1 1 0 0"},
        {"a|ab", "string[2] 'ab' 'abc'", "bool[2] 1 0"},
        {".", "string[3] '\\x0a' '\\xc3\\xa9' 'ab'", "bool[3] 0 1 0"},
        {"(?s).", "string[1] '\\x0a'", "bool[1] 1"},
        {"a$", "string[2] 'a' 'a\\x0a'", "bool[2] 1 0"},
        {"(?i)b", "string[2] 'b' 'B'", "bool[2] 1 1"},
        {"(?P<n>\\d)\\w", "string[2] '1a' 'a1'", "bool[2] 1 0"},
        {"(?:[]a]+)", "string[2] ']a' '[a'", "bool[2] 1 0"},
        {"(?:[[:alpha:]])", "string[2] 'x' ':'", "bool[2] 1 0"},
        {"\\Qa+\\E", "string[2] 'a+' 'aa'", "bool[2] 1 0"},
        {"a*?", "string[2] 'aaa' 'b'", "bool[2] 1 0"},
        {"a.b", "string[1] 'a\\x00b'", "bool[1] 1"},
        {".*", "string[1] '\\xff'", "bool[1] 0"},  // no text
    };
    if (without_regex()) cr_skip_test("this build has no PCRE2");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        eval_case c = eval_begin();
        berth_tensor y, expected = eval_tensor(&c, rows[i].expected);
        char attrs[64];
        snprintf(attrs, sizeof(attrs), "pattern=%s", rows[i].pattern);
        eval_op(&c, "regex_full_match", rows[i].strings, attrs, &y, 1);
        eval_expect(&c, &y, &expected, 0, rows[i].pattern);
        eval_end(&c);
    }
}

Test(eval_strings, patterns_that_re2_does_not_have) {
    static const char *const patterns[] = {"(a)\\1", "(?=a)a",    "(?<=a)b", "(?<!a)b", "(?>a)b",
                                           "a++",    "(*ACCEPT)", "\\Ka",    "(?R)",    "(?|a|b)",
                                           "\\Ra",   "(?1)",      "\\Ca",    "(?:[a",   "(a",
                                           "a{2,1}", "(?P=n)",    "\\g1",    "\\"};
    if (without_regex()) cr_skip_test("this build has no PCRE2");
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); ++i) {
        eval_case c = eval_begin();
        berth_tensor y;
        char attrs[64];
        snprintf(attrs, sizeof(attrs), "pattern=%s", patterns[i]);
        berth_status status = one(&c, "regex_full_match", "string[1] 'ab'", attrs, &y, 1);
        cr_expect_not_null(status, "%s is taken", patterns[i]);
        if (status)
            cr_expect_not_null(strstr(berth_status_message(status), "pattern"), "%s",
                               berth_status_message(status));
        berth_status_free(status);
        eval_end(&c);
    }
}

// Repetitions in repetitions end in an error, not in years.
Test(eval_strings, regular_expressions_end, .timeout = 20) {
    if (without_regex()) cr_skip_test("this build has no PCRE2");
    static const char *const patterns[] = {"(a+)+b", "(a|a)*b", "(a*)*b", "(.*)(.*)(.*)(.*)(.*)b"};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); ++i) {
        eval_case c = eval_begin();
        char text[400] = "string[1] '", attrs[64];
        memset(text + 11, 'a', 300);
        text[311] = '\'';
        snprintf(attrs, sizeof(attrs), "pattern=%s", patterns[i]);
        berth_tensor y;
        berth_status status = one(&c, "regex_full_match", text, attrs, &y, 1);
        if (status)
            cr_expect_not_null(strstr(berth_status_message(status), "steps"), "%s",
                               berth_status_message(status));
        else
            cr_expect_eq(berth_tensor_get_i64(&y, 0), 0);
        berth_status_free(status);
        eval_end(&c);
    }
}
