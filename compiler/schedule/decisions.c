#include "compiler/schedule/decisions.h"

#include <string.h>

#include "base/str.h"
#include "ir/tensor/intrinsic.h"

// ---- names --------------------------------------------------------------------------------------

static const char *const decision_names[] = {
#define BERTH_DECISION(constant, name, what) name,
#include "compiler/schedule/decisions.def"
#undef BERTH_DECISION
};

static const char *const form_names[] = {
#define BERTH_FORM(constant, name, what) name,
#include "compiler/schedule/forms.def"
#undef BERTH_FORM
};

static const char *const order_names[] = {"columns_rows", "rows_columns", "rows_first"};
static const char *const answer_names[] = {"no", "yes"};

const char *berth_decision_name(berth_decision which) {
    return decision_names[which];
}

const char *berth_form_name(berth_form form) {
    return form_names[form];
}

// The word of a value; NULL: values of this decision are numbers, or there is no such value.
static const char *word_of(berth_decision which, int64_t value) {
    if (value < 0) return NULL;
    switch (which) {
    case BERTH_DECISION_FORM: return value < BERTH_FORM_COUNT ? form_names[value] : NULL;
    case BERTH_DECISION_ORDER: return value < BERTH_TILE_ORDER_COUNT ? order_names[value] : NULL;
    case BERTH_DECISION_UNROLL:
    case BERTH_DECISION_PANEL: return value < 2 ? answer_names[value] : NULL;
    case BERTH_DECISION_INTRINSIC:
        if (value == BERTH_INTRINSIC_COUNT) return "none";
        return value < BERTH_INTRINSIC_COUNT ? berth_intrinsic_get((berth_intrinsic)value)->name
                                             : NULL;
    default: return NULL;
    }
}

static bool has_words(berth_decision which) {
    return word_of(which, 0) != NULL;
}

// ---- text ---------------------------------------------------------------------------------------

berth_schedule_decisions *berth_decisions_create(berth_arena *arena, uint32_t nest_count) {
    berth_schedule_decisions *decisions = berth_arena_new(arena, berth_schedule_decisions);
    decisions->nests = berth_arena_new_array(arena, berth_nest_decisions, nest_count + 1);
    decisions->nest_count = nest_count;
    return decisions;
}

static berth_status wrong_text(const char *text, const char *at, const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "decisions \"%s\", column %d: %s", text,
                             (int)(at - text) + 1, what);
}

static bool same(const char *name, const char *text, size_t length) {
    return strlen(name) == length && strncmp(name, text, length) == 0;
}

static bool read_value(berth_decision which, const char *text, size_t length, int64_t *out) {
    if (has_words(which)) {
        for (*out = 0; word_of(which, *out); ++*out)
            if (same(word_of(which, *out), text, length)) return true;
        return false;
    }
    *out = 0;
    for (size_t i = 0; i < length; ++i) {
        if (text[i] < '0' || text[i] > '9' || *out > INT32_MAX) return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return length > 0 && *out <= INT32_MAX;
}

// One "name=value" at `at`, `length` characters long.
static berth_status read_one(berth_nest_decisions *nest, const char *text, const char *at,
                             size_t length) {
    const char *equals = memchr(at, '=', length);
    if (!equals) return wrong_text(text, at, "a decision is NAME=VALUE");
    size_t name_length = (size_t)(equals - at);
    int which = 0;
    while (which < BERTH_DECISION_COUNT && !same(decision_names[which], at, name_length)) ++which;
    if (which == BERTH_DECISION_COUNT)
        return wrong_text(text, at, "there is no decision of this name");
    if (nest->given >> which & 1) return wrong_text(text, at, "a decision that was given before");
    int64_t value = 0;
    if (!read_value((berth_decision)which, equals + 1, length - name_length - 1, &value))
        return wrong_text(text, equals + 1,
                          has_words((berth_decision)which) ? "there is no such value"
                                                           : "the value is no number");
    nest->given |= 1u << which;
    nest->given_values[which] = value;
    return BERTH_OK;
}

berth_status berth_decisions_parse(berth_nest_decisions *nest, const char *text) {
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " ");
        if (length) BERTH_TRY(read_one(nest, text, at, length));
        at += length + (at[length] == ' ');
    }
    return BERTH_OK;
}

static void add_text(berth_strbuf *out, berth_decision which, int64_t value) {
    const char *word = word_of(which, value);
    berth_strbuf_addf(out, "%s%s=", out->length ? " " : "", decision_names[which]);
    if (word)
        berth_strbuf_add(out, word);
    else
        berth_strbuf_addf(out, "%lld", (long long)value);
}

const char *berth_decisions_print(berth_arena *arena, const berth_nest_decisions *nest,
                                  bool given) {
    berth_strbuf text = berth_strbuf_make(arena);
    uint32_t set = given ? nest->given : nest->made;
    const int64_t *values = given ? nest->given_values : nest->values;
    for (int i = 0; i < BERTH_DECISION_COUNT; ++i)
        if (set >> i & 1) add_text(&text, (berth_decision)i, values[i]);
    return berth_strbuf_text(&text);
}

// ---- policies -----------------------------------------------------------------------------------

static berth_nest_decisions *current(const berth_tfn *fn) {
    return fn->decisions ? fn->decisions->current : NULL;
}

static const char *describe(berth_tfn *fn, berth_decision which, int64_t value) {
    berth_strbuf text = berth_strbuf_make(fn->module->arena);
    add_text(&text, which, value);
    return berth_strbuf_text(&text);
}

int64_t berth_decision_given(const berth_tfn *fn, berth_decision which, int64_t fallback) {
    const berth_nest_decisions *nest = current(fn);
    return nest && nest->given >> which & 1 ? nest->given_values[which] : fallback;
}

void berth_decision_wrong(berth_tfn *fn, berth_decision which, const char *why) {
    berth_nest_decisions *nest = current(fn);
    if (nest && !nest->wrong && nest->given >> which & 1)
        nest->wrong = berth_arena_printf(fn->module->arena, "%s is not possible: %s",
                                         describe(fn, which, nest->given_values[which]), why);
}

static const char *range_text(berth_tfn *fn, berth_decision which, int64_t least, int64_t most,
                              const char *limit) {
    berth_strbuf text = berth_strbuf_make(fn->module->arena);
    if (has_words(which) && least == most)
        berth_strbuf_addf(&text, "only %s is", word_of(which, least));
    else if (least == most)
        berth_strbuf_addf(&text, "only %lld is", (long long)least);
    else
        berth_strbuf_addf(&text, "%lld to %lld are", (long long)least, (long long)most);
    berth_strbuf_addf(&text, " (%s)", limit);
    return berth_strbuf_text(&text);
}

int64_t berth_decide(berth_tfn *fn, berth_decision which, int64_t chosen, int64_t least,
                     int64_t most, const char *limit) {
    berth_nest_decisions *nest = current(fn);
    if (!nest) return chosen;
    int64_t value = berth_decision_given(fn, which, chosen);
    bool given = nest->given >> which & 1;
    if (given && (value < least || value > most)) {
        berth_decision_wrong(fn, which, range_text(fn, which, least, most, limit));
        value = chosen;
    }
    nest->made |= 1u << which;
    nest->values[which] = value;
    nest->least[which] = least;
    nest->most[which] = most;
    return value;
}

void berth_decisions_restart(berth_tfn *fn) {
    berth_nest_decisions *nest = current(fn);
    if (!nest) return;
    nest->made &=
        1u << BERTH_DECISION_FORM | 1u << BERTH_DECISION_PARTS;  // decided before all forms
    nest->wrong = NULL;
}

bool berth_decide_form(berth_tfn *fn, berth_form form) {
    berth_nest_decisions *nest = current(fn);
    if (!nest) return true;
    if (berth_decision_given(fn, BERTH_DECISION_FORM, form) != (int64_t)form) return false;
    berth_decisions_restart(fn);
    berth_decide(fn, BERTH_DECISION_FORM, form, 0, BERTH_FORM_COUNT - 1, "forms");
    return true;
}

void berth_decide_plain(berth_tfn *fn) {
    berth_nest_decisions *nest = current(fn);
    if (!nest) return;
    berth_decisions_restart(fn);
    nest->made = 1u << BERTH_DECISION_FORM;
    nest->values[BERTH_DECISION_FORM] = BERTH_FORM_PLAIN;
}

void berth_decisions_refuse(berth_tfn *fn, berth_status status) {
    if (!status) return;
    berth_nest_decisions *nest = current(fn);
    berth_code code = berth_status_code(status);
    bool expected = code == BERTH_FAILED_PRECONDITION || code == BERTH_UNSUPPORTED;
    if (!expected && fn->decisions && !nest) nest = fn->decisions->nests;  // inside another nest
    if (!expected && nest && !nest->failed) {
        nest->failed = status;
        return;
    }
    if (nest && expected) {
        bool is_form = nest->made >> BERTH_DECISION_FORM & 1;  // some kinds have one form only
        int64_t form = nest->values[BERTH_DECISION_FORM];
        berth_decisions_add_alternative(
            fn, is_form ? describe(fn, BERTH_DECISION_FORM, form) : "units of the device", 0,
            berth_arena_printf(fn->module->arena, "%s", berth_status_message(status)));
    }
    berth_status_free(status);
}

bool berth_decisions_explain(const berth_tfn *fn) {
    return current(fn) && fn->decisions->explain;
}

void berth_decisions_add_alternative(berth_tfn *fn, const char *what, double cost,
                                     const char *why) {
    berth_nest_decisions *nest = current(fn);
    if (!nest) return;
    for (uint32_t i = 0; i < nest->alternatives.count; ++i)
        if (strcmp(nest->alternatives.data[i].what, what) == 0 &&
            strcmp(nest->alternatives.data[i].why, why) == 0)
            return;
    berth_alternative added = {.what = what, .cost = cost, .why = why};
    berth_vec_push(fn->module->arena, &nest->alternatives, added);
}

berth_nest_decisions *berth_decisions_mask(berth_tfn *fn) {
    berth_nest_decisions *held = current(fn);
    if (fn->decisions) fn->decisions->current = NULL;
    return held;
}

void berth_decisions_unmask(berth_tfn *fn, berth_nest_decisions *held) {
    if (fn->decisions) fn->decisions->current = held;
}

// The reason that a transformation gave against a form, or nothing.
static const char *refusal_of(const berth_nest_decisions *nest) {
    for (uint32_t i = nest->alternatives.count; i-- > 0;)
        if (nest->alternatives.data[i].cost == 0) return nest->alternatives.data[i].why;
    return NULL;
}

berth_status berth_decisions_finish(berth_tfn *fn) {
    berth_nest_decisions *nest = current(fn);
    if (!nest) return BERTH_OK;
    berth_status failed = nest->failed;
    nest->failed = NULL;
    if (failed) return failed;
    uint32_t number = (uint32_t)(nest - fn->decisions->nests);
    if (nest->wrong)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "nest %u: %s", number, nest->wrong);
    for (int i = 0; i < BERTH_DECISION_COUNT; ++i) {
        bool given = nest->given >> i & 1;
        if (!given || (nest->made >> i & 1 && nest->values[i] == nest->given_values[i])) continue;
        const char *reason = refusal_of(nest);
        return berth_status_make(
            BERTH_INVALID_ARGUMENT, "nest %u: %s is not possible: the nest %s%s%s%s%s", number,
            describe(fn, (berth_decision)i, nest->given_values[i]),
            i == BERTH_DECISION_FORM ? "does not have that form; it has "
                                     : "is arranged without such a decision, as ",
            berth_decisions_print(fn->module->arena, nest, false), reason ? " (" : "",
            reason ? reason : "", reason ? ")" : "");
    }
    return BERTH_OK;
}
