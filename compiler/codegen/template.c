#include "compiler/codegen/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const char number_begins[] =
    BERTH_TEMPLATE_NUMBER_BEGIN BERTH_TEMPLATE_HINT_BEGIN BERTH_TEMPLATE_FLOAT_BEGIN;

// ---- reading ------------------------------------------------------------------------------------

static uint32_t count_marks(const char *text) {
    uint32_t count = 0;
    while (*(text += strcspn(text, BERTH_TEMPLATE_NUMBER_END))) {
        count++;
        text++;
    }
    return count;
}

void berth_template_read(const char *text, berth_arena *arena, berth_template *out_template) {
    *out_template = (berth_template){.text = text};
    const uint32_t marks = count_marks(text);
    bool *hints = berth_arena_new_array(arena, bool, marks + 1);
    out_template->numbers = berth_arena_new_array(arena, int64_t, marks + 1);
    out_template->hints = hints;
    berth_strbuf form = berth_strbuf_make(arena);
    while (*text) {
        size_t plain = strcspn(text, number_begins);
        berth_strbuf_add_n(&form, text, plain);
        text += plain;
        if (!*text) break;
        char *end = NULL;
        hints[out_template->number_count] = *text == BERTH_TEMPLATE_HINT_BEGIN[0];
        out_template->numbers[out_template->number_count++] = strtoll(text + 1, &end, 10);
        berth_strbuf_add_n(&form, text, 1);
        text = end + 1;
    }
    out_template->form = berth_hash128_of(form.data, form.length);
}

// ---- arguments ----------------------------------------------------------------------------------

// A number with what it was in both templates: numbers with equal keys share an argument.
typedef struct numbered {
    int64_t old;     // argument in `a`, or its value there
    int64_t number;  // in `b`
    bool was_argument;
    uint32_t index;
} numbered;

static int compare_i64(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare(const void *pa, const void *pb) {
    const numbered *a = pa, *b = pb;
    int order = (int)a->was_argument - (int)b->was_argument;
    if (!order) order = compare_i64(a->old, b->old);
    if (!order) order = compare_i64(a->number, b->number);
    return order ? order : compare_i64(a->index, b->index);
}

static bool shares(const numbered *a, const numbered *b) {
    return a->was_argument == b->was_argument && a->old == b->old && a->number == b->number;
}

// Arguments in the order in which the text first has them, so that equal texts come of equal
// histories.
static void number_by_first_use(uint32_t *of, uint32_t count, uint32_t argument_count,
                                berth_arena *arena) {
    uint32_t *now = berth_arena_new_array(arena, uint32_t, argument_count + 1);
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (of[i] == BERTH_TEMPLATE_FIXED || of[i] == BERTH_TEMPLATE_FREE) continue;
        if (now[of[i]] == 0) now[of[i]] = ++next;
        of[i] = now[of[i]] - 1;
    }
}

berth_template_arguments berth_template_join(const berth_template *a,
                                             const berth_template_arguments *before,
                                             const berth_template *b, berth_arena *arena) {
    uint32_t count = a->number_count, moving = 0;
    berth_template_arguments made = {.count = 0};
    uint32_t *of = berth_arena_new_array(arena, uint32_t, count + 1);
    numbered *list = berth_arena_new_array(arena, numbered, count + 1);
    const bool *hints = a->hints ? a->hints : b->hints;
    for (uint32_t i = 0; i < count; ++i) {
        bool was = before && before->of[i] != BERTH_TEMPLATE_FIXED;
        of[i] = BERTH_TEMPLATE_FIXED;
        if (!was && a->numbers[i] == b->numbers[i]) continue;
        of[i] = BERTH_TEMPLATE_FREE;
        if (hints[i]) continue;
        list[moving++] = (numbered){.old = was ? (int64_t)before->of[i] : a->numbers[i],
                                    .number = b->numbers[i],
                                    .was_argument = was,
                                    .index = i};
    }
    qsort(list, moving, sizeof(*list), compare);
    for (uint32_t i = 0; i < moving; ++i) {
        made.count += i == 0 || !shares(&list[i - 1], &list[i]);
        of[list[i].index] = made.count - 1;
    }
    number_by_first_use(of, count, made.count, arena);
    made.of = of;
    return made;
}

bool berth_template_fits(const berth_template *held, const berth_template_arguments *arguments,
                         const berth_template *wanted, int64_t *out_values) {
    if (!berth_hash128_equal(held->form, wanted->form) ||
        held->number_count != wanted->number_count)
        return false;
    uint32_t seen = 0;  // arguments are numbered by their first use
    for (uint32_t i = 0; i < held->number_count; ++i) {
        uint32_t argument = arguments->of[i];
        int64_t number = wanted->numbers[i];
        if (argument == BERTH_TEMPLATE_FREE) continue;
        if (argument == BERTH_TEMPLATE_FIXED) {
            if (number != held->numbers[i]) return false;
        } else if (argument == seen) {
            out_values[seen++] = number;
        } else if (out_values[argument] != number) {
            return false;
        }
    }
    return true;
}

static void add_number(berth_strbuf *out, char mark, int64_t number, uint32_t argument) {
    bool is_float = mark == BERTH_TEMPLATE_FLOAT_BEGIN[0];
    if (argument == BERTH_TEMPLATE_FIXED)
        berth_strbuf_addf(out, is_float ? "%lld.0f" : "%lld", (long long)number);
    else if (argument == BERTH_TEMPLATE_FREE)
        berth_strbuf_add(out, BERTH_TEMPLATE_HINT);
    else
        berth_strbuf_addf(out, is_float ? "(float)n%u" : "n%u", argument);
}

// ---- text ---------------------------------------------------------------------------------------

const char *berth_template_text(const berth_template *held,
                                const berth_template_arguments *arguments,
                                const berth_codegen *codegen, const char *prefix,
                                berth_arena *arena) {
    static const char marks[] =
        BERTH_TEMPLATE_NUMBER_BEGIN BERTH_TEMPLATE_HINT_BEGIN BERTH_TEMPLATE_FLOAT_BEGIN
            BERTH_TEMPLATE_PREFIX BERTH_TEMPLATE_ARGUMENTS BERTH_TEMPLATE_LINES;
    berth_strbuf out = berth_strbuf_make(arena);
    uint32_t number = 0;
    for (const char *at = held->text; *at;) {
        size_t plain = strcspn(at, marks);
        berth_strbuf_add_n(&out, at, plain);
        at += plain;
        if (!*at) break;
        if (strchr(number_begins, *at)) {
            add_number(&out, *at, held->numbers[number], arguments->of[number]);
            number++;
            at = strchr(at, BERTH_TEMPLATE_NUMBER_END[0]);
        } else if (*at == BERTH_TEMPLATE_PREFIX[0])
            berth_strbuf_add(&out, prefix);
        else if (*at == BERTH_TEMPLATE_ARGUMENTS[0])
            berth_strbuf_add(&out, codegen->number_arguments(arguments->count, arena));
        else
            berth_strbuf_add(&out, codegen->number_lines(arguments->count, arena));
        at++;
    }
    return berth_strbuf_text(&out);
}
