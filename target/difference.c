// What two canonical forms differ in, field by field.
#include <string.h>

#include "base/str.h"
#include "target/internal.h"

enum { shown_differences = 6, shown_bytes = 60, shown_entries = 8 };

typedef struct comparison {
    berth_arena *arena;
    berth_strbuf out;
    uint32_t count;
} comparison;

static const char *value_text(berth_arena *arena, const json *value) {
    if (!value) return "nothing";
    const char *text = berth_target__json_print(arena, value, 0);
    if (strlen(text) <= shown_bytes) return text;
    return berth_arena_printf(arena, "%.*s...", shown_bytes, text);
}

// What an entry of a list is called: its name, or what a link connects.
static const char *entry_text(berth_arena *arena, const json *entry) {
    const char *name = berth_target__text_of(entry, "name");
    if (*name) return name;
    const char *from = berth_target__text_of(entry, "from");
    const char *to = berth_target__text_of(entry, "to");
    if (*from && *to) return berth_arena_printf(arena, "%s to %s", from, to);
    return value_text(arena, entry);
}

// The names of a list's first entries: "cpu:0, gpu"; "nothing" where there are none.
static const char *entries_text(berth_arena *arena, const json *list) {
    berth_strbuf out = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < list->items.count && i < shown_entries; ++i)
        berth_strbuf_addf(&out, "%s%s", i ? ", " : "", entry_text(arena, list->items.data[i]));
    if (list->items.count > shown_entries)
        berth_strbuf_addf(&out, " and %u more", list->items.count - shown_entries);
    return list->items.count ? berth_strbuf_text(&out) : "nothing";
}

static void add(comparison *c, const char *path, const char *text) {
    if (c->count++ >= shown_differences) return;
    berth_strbuf_addf(&c->out, "%s%s: %s", c->count > 1 ? "; " : "", *path ? path : "target", text);
}

static bool is_list_of_strings(const json *value) {
    for (uint32_t i = 0; i < value->items.count; ++i)
        if (value->items.data[i]->type != JSON_TYPE_STRING) return false;
    return value->type == JSON_TYPE_ARRAY;
}

static bool has(const json *list, const char *text) {
    for (uint32_t i = 0; i < list->items.count; ++i)
        if (strcmp(list->items.data[i]->string, text) == 0) return true;
    return false;
}

// "with a b" for what is only in `list`, "" for nothing.
static const char *only_in(berth_arena *arena, const char *word, const json *list,
                           const json *other) {
    berth_strbuf out = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < list->items.count; ++i)
        if (!has(other, list->items.data[i]->string))
            berth_strbuf_addf(&out, "%s %s", out.length ? "" : word, list->items.data[i]->string);
    return berth_strbuf_text(&out);
}

static void compare_strings(comparison *c, const char *path, const json *left, const json *right) {
    const char *more = only_in(c->arena, "with", left, right);
    const char *less = only_in(c->arena, "without", right, left);
    add(c, path,
        berth_arena_printf(c->arena, "%s%s%s%s", more, *more && *less ? ", " : "", less,
                           *more || *less ? "" : "in another order"));
}

static void compare(comparison *c, const char *path, const json *left, const json *right);

static void compare_members(comparison *c, const char *path, const json *left, const json *right,
                            bool missing_only) {
    for (uint32_t i = 0; i < left->members.count; ++i) {
        const char *key = left->members.data[i].key;
        const json *other = berth_target__json_get(right, key);
        const char *below = berth_arena_printf(c->arena, "%s%s%s", path, *path ? "." : "", key);
        if (!missing_only)
            compare(c, below, left->members.data[i].value, other);
        else if (!other)
            compare(c, below, NULL, left->members.data[i].value);
    }
}

static bool both(const json *left, const json *right, berth_target__json_type type) {
    return left && right && left->type == type && right->type == type;
}

static void compare(comparison *c, const char *path, const json *left, const json *right) {
    if (left && right &&
        strcmp(berth_target__json_print(c->arena, left, 0),
               berth_target__json_print(c->arena, right, 0)) == 0)
        return;
    bool lists = both(left, right, JSON_TYPE_ARRAY);
    if (both(left, right, JSON_TYPE_OBJECT)) {
        compare_members(c, path, left, right, false);
        compare_members(c, path, right, left, true);
    } else if (lists && is_list_of_strings(left) && is_list_of_strings(right)) {
        compare_strings(c, path, left, right);
    } else if (lists && left->items.count == right->items.count) {
        for (uint32_t i = 0; i < left->items.count; ++i)
            compare(c, berth_arena_printf(c->arena, "%s[%u]", path, i), left->items.data[i],
                    right->items.data[i]);
    } else if (lists) {
        add(c, path,
            berth_arena_printf(c->arena, "%s, not %s", entries_text(c->arena, left),
                               entries_text(c->arena, right)));
    } else {
        add(c, path,
            berth_arena_printf(c->arena, "%s, not %s", value_text(c->arena, left),
                               value_text(c->arena, right)));
    }
}

typedef struct request {
    berth_arena *arena;
    const char *left, *right;
    const char *result;
} request;

static berth_status difference_body(void *user) {
    request *r = user;
    const char *error = NULL;
    berth_arena *scratch = berth_arena_create_child(r->arena);
    const json *left = berth_target__json_read(scratch, scratch, r->left, strlen(r->left), &error);
    const json *right =
        left ? berth_target__json_read(scratch, scratch, r->right, strlen(r->right), &error) : NULL;
    if (!right) {
        berth_status status =
            berth_status_make(BERTH_INVALID_ARGUMENT, "a target is not JSON: %s", error);
        berth_arena_destroy(scratch);
        return status;
    }
    comparison c = {.arena = scratch, .out = berth_strbuf_make(r->arena)};
    compare(&c, "", left, right);
    if (c.count > shown_differences)
        berth_strbuf_addf(&c.out, "; and %u more", c.count - shown_differences);
    r->result = berth_strbuf_text(&c.out);
    berth_arena_destroy(scratch);
    return BERTH_OK;
}

berth_status berth_target_difference(berth_arena *arena, const char *left, const char *right,
                                     const char **out_text) {
    *out_text = "";
    request r = {arena, left, right, ""};
    BERTH_TRY(berth_arena_try(arena, difference_body, &r));
    *out_text = r.result;
    return BERTH_OK;
}
