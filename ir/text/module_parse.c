// Reading a whole module: sections and function names first, so that functions may refer to each
// other and to large values at the end, then the functions.
#include <stdio.h>
#include <string.h>

#include "ir/text.h"
#include "ir/text/metas.h"
#include "ir/text/parser.h"

typedef struct sections {
    berth_lexer locations;  // after the word
    berth_lexer metas;
    bool has_locations;
    bool has_metas;
} sections;

static berth_status declare_function(berth_text_parser *p, const berth_token *keyword) {
    const char *name = NULL;
    const char *dialect_name = NULL;
    BERTH_TRY(berth_text_token_text(p, keyword, &dialect_name));
    const berth_dialect *dialect = berth_dialect_find(p->registry, dialect_name);
    if (!dialect)
        return berth_text_error(
            p, keyword, "expected a dialect (graph, tensor, external), found '%s'", dialect_name);
    BERTH_TRY(berth_text_token_text(p, &p->token, &name));
    if (berth_module_find_function(p->module, name) != BERTH_NONE)
        return berth_text_error(p, &p->token, "expected a new function, found @%s again", name);
    berth_module_add_function(p->module, name, dialect, NULL, 0);
    return BERTH_OK;
}

static berth_status find_section(berth_text_parser *p, sections *out) {
    bool *seen = berth_text_is(p, "locations") ? &out->has_locations : &out->has_metas;
    if (*seen) return berth_text_expected(p, "one section of that name");
    *seen = true;
    *(seen == &out->has_metas ? &out->metas : &out->locations) = p->lexer;
    berth_text_next(p);
    return BERTH_OK;
}

// Declares every function and finds the sections. Only brackets are looked at.
static berth_status scan(berth_text_parser *p, sections *out) {
    int depth = 0;
    berth_token before = {.kind = BERTH_TOKEN_END};
    while (p->token.kind != BERTH_TOKEN_END) {
        if (p->token.kind == BERTH_TOKEN_BAD) return berth_text_expected(p, "a token");
        if (p->token.kind == BERTH_TOKEN_PUNCT && p->token.length == 1) {
            depth += strchr("([{", *p->token.text) != NULL;
            depth -= strchr(")]}", *p->token.text) != NULL;
        }
        if (depth < 0) return berth_text_expected(p, "an opening bracket before");
        bool word = p->token.kind == BERTH_TOKEN_WORD;
        bool section = berth_text_is(p, "locations") || berth_text_is(p, "meta");
        if (depth == 0 && p->token.kind == BERTH_TOKEN_GLOBAL && before.kind == BERTH_TOKEN_WORD)
            BERTH_TRY(declare_function(p, &before));
        berth_token token = p->token;
        berth_lexer ahead = p->lexer;
        berth_token next = word && section ? berth_lexer_next(&ahead) : token;
        if (depth == 0 && word && section && next.kind == BERTH_TOKEN_PUNCT && *next.text == '{')
            BERTH_TRY(find_section(p, out));
        else
            berth_text_next(p);
        before = token;
    }
    return depth ? berth_text_expected(p, "a closing bracket") : BERTH_OK;
}

// ---- locations ----------------------------------------------------------------------------------

static berth_status parse_parts(berth_text_parser *p, berth_loc *loc) {
    BERTH_VEC(berth_loc_id) parts = {0};
    BERTH_TRY(berth_text_expect(p, "("));
    for (bool first = true; !berth_text_accept(p, ")"); first = false) {
        if (!first) BERTH_TRY(berth_text_expect(p, ","));
        if (p->token.kind != BERTH_TOKEN_LOC || p->token.number > p->locs.count)
            return berth_text_expected(p, "the number of a location before this one");
        berth_vec_push(p->module->arena, &parts,
                       p->token.number ? p->locs.data[p->token.number - 1] : 0);
        berth_text_next(p);
    }
    loc->parts = parts.data;
    loc->part_count = parts.count;
    return BERTH_OK;
}

static berth_status parse_name(berth_text_parser *p, berth_str_id *out_name) {
    const char *text = NULL;
    BERTH_TRY(berth_text_parse_string(p, &text));
    *out_name = berth_module_intern(p->module, text);
    return BERTH_OK;
}

static berth_status parse_uint(berth_text_parser *p, uint32_t *out_value) {
    int64_t value = 0;
    berth_token token = p->token;
    BERTH_TRY(berth_text_expect(p, ":"));
    BERTH_TRY(berth_text_parse_int(p, &value));
    if (value < 0 || value > UINT32_MAX) return berth_text_error(p, &token, "expected a position");
    *out_value = (uint32_t)value;
    return BERTH_OK;
}

static berth_status parse_location(berth_text_parser *p) {
    berth_loc loc = {0};
    if (p->token.kind != BERTH_TOKEN_LOC || p->token.number != p->locs.count + 1) {
        char what[32];
        snprintf(what, sizeof(what), "#%u or '}'", p->locs.count + 1);
        return berth_text_expected(p, what);
    }
    berth_text_next(p);
    BERTH_TRY(berth_text_expect(p, "="));
    if (!berth_text_accept(p, "unknown")) {
        if (p->token.kind == BERTH_TOKEN_STRING) BERTH_TRY(parse_name(p, &loc.file));
        if (berth_text_is(p, ":")) {
            BERTH_TRY(parse_uint(p, &loc.line));
            BERTH_TRY(parse_uint(p, &loc.column));
        }
        if (berth_text_accept(p, "node")) BERTH_TRY(parse_name(p, &loc.node));
        if (berth_text_accept(p, "op")) BERTH_TRY(parse_name(p, &loc.op_type));
        if (berth_text_accept(p, "fused")) BERTH_TRY(parse_parts(p, &loc));
    }
    berth_vec_push(p->module->arena, &p->module->locs, loc);
    berth_vec_push(p->scratch, &p->locs, p->module->locs.count - 1);
    return BERTH_OK;
}

static berth_status parse_locations(berth_text_parser *p) {
    BERTH_TRY(berth_text_expect(p, "{"));
    while (!berth_text_accept(p, "}")) BERTH_TRY(parse_location(p));
    return BERTH_OK;
}

// ---- functions ----------------------------------------------------------------------------------

static berth_status parse_function(berth_text_parser *p) {
    berth_token start = p->token;
    const char *name = NULL;
    berth_text_next(p);
    if (p->token.kind != BERTH_TOKEN_GLOBAL) return berth_text_expected(p, "a function (@name)");
    BERTH_TRY(berth_text_token_text(p, &p->token, &name));
    berth_text_next(p);
    berth_func_id id = berth_module_find_function(p->module, name);  // declared by scan
    if (id == BERTH_NONE) return berth_text_error(p, &start, "expected a function");
    const berth_dialect *dialect = berth_module_function(p->module, id)->dialect;
    if (!dialect->parse_signature)
        return berth_text_error(p, &start, "the dialect %s has no text form", dialect->name);
    p->user = NULL;
    BERTH_TRY(dialect->parse_signature(p, id));
    berth_attrs attrs = {{0}};
    BERTH_TRY(berth_text_parse_attrs(p, &attrs));
    berth_loc_id loc = 0;
    BERTH_TRY(berth_text_parse_loc(p, &start, &loc));
    berth_module_function(p->module, id)->attrs = attrs;
    berth_module_function(p->module, id)->loc = loc;
    if (!dialect->parse_body) return BERTH_OK;
    BERTH_TRY(berth_text_expect(p, "{"));
    BERTH_TRY(dialect->parse_body(p, id));
    return berth_text_expect(p, "}");
}

// It has been read already.
static berth_status skip_section(berth_text_parser *p) {
    int depth = 1;
    berth_text_next(p);
    BERTH_TRY(berth_text_expect(p, "{"));
    for (; depth > 0 && p->token.kind != BERTH_TOKEN_END; berth_text_next(p)) {
        depth += berth_text_is(p, "{");
        depth -= berth_text_is(p, "}");
    }
    return BERTH_OK;
}

static berth_status parse_module(berth_text_parser *p) {
    const char *name = NULL;
    if (!berth_text_accept(p, "module")) return berth_text_expected(p, "'module'");
    BERTH_TRY(berth_text_parse_string(p, &name));
    p->module->name = berth_module_intern(p->module, name);
    BERTH_TRY(berth_text_parse_attrs(p, &p->module->attrs));
    while (p->token.kind != BERTH_TOKEN_END) {
        if (berth_text_is(p, "locations") || berth_text_is(p, "meta"))
            BERTH_TRY(skip_section(p));
        else if (p->token.kind == BERTH_TOKEN_WORD)
            BERTH_TRY(parse_function(p));
        else
            return berth_text_expected(p, "a function");
    }
    for (uint32_t i = 0; i < p->module->functions.count; ++i)
        if (!p->module->functions.data[i].body)
            return berth_text_expected(
                p,
                berth_arena_printf(p->scratch, "the body of @%s",
                                   berth_module_str(p->module, p->module->functions.data[i].name)));
    for (uint32_t i = 0; i < p->after.count; ++i)
        BERTH_TRY(p->after.data[i].run(p, p->after.data[i].user));
    return BERTH_OK;
}

// ---- entry --------------------------------------------------------------------------------------

typedef struct request {
    berth_arena *arena;
    const char *text;
    size_t length;
    const char *file_name;
    const berth_dialect_registry *registry;
    berth_module *module;
} request;

static void go_to(berth_text_parser *p, berth_lexer at) {
    p->lexer = at;
    berth_text_next(p);
}

static berth_status parse_text(berth_text_parser *p) {
    berth_lexer start = p->lexer;
    sections found = {0};
    go_to(p, start);
    BERTH_TRY(scan(p, &found));
    p->has_locations = found.has_locations;
    if (found.has_locations) {
        go_to(p, found.locations);
        BERTH_TRY(parse_locations(p));
    }
    if (found.has_metas) {
        go_to(p, found.metas);
        BERTH_TRY(berth_text__parse_metas(p));
    }
    go_to(p, start);
    return parse_module(p);
}

static berth_status parse_body(void *user) {
    request *r = user;
    berth_arena *scratch = berth_arena_create_child(r->arena);
    const berth_limits *limits = r->registry ? r->registry->limits : NULL;
    berth_text_metas metas = {.names = berth_interner_create(scratch)};
    berth_text_parser parser = {
        .module = berth_module_create(r->arena, ""),
        .scratch = scratch,
        .registry = r->registry,
        .file_name = r->file_name,
        .most_depth = berth_limits_depth(limits, BERTH_MAX_NESTING),
        .watch = berth_limits_watch(limits, r->file_name, "operations and statements", 0),
        .lexer = {.text = r->text, .length = r->length, .line = 1},
        .metas = &metas};
    berth_status status = berth_limits_check_bytes(limits, r->file_name, r->length, 0);
    if (!status) status = parse_text(&parser);
    r->module = parser.module;
    berth_arena_destroy(scratch);
    return status;
}

berth_status berth_module_parse_with(berth_arena *arena, const char *text, size_t length,
                                     const char *file_name, const berth_dialect_registry *registry,
                                     berth_module **out_module) {
    *out_module = NULL;
    request r = {.arena = arena,
                 .text = text,
                 .length = length,
                 .file_name = file_name,
                 .registry = registry};
    BERTH_TRY(berth_arena_try(arena, parse_body, &r));
    *out_module = r.module;
    return BERTH_OK;
}

berth_status berth_module_parse(berth_arena *arena, const char *text, size_t length,
                                const char *file_name, berth_module **out_module) {
    return berth_module_parse_with(arena, text, length, file_name, NULL, out_module);
}
