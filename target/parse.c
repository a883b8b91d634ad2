// Entry points: any spelling and the options beside it to one validated, canonical MultiTarget.
#include <string.h>

#include "base/str.h"
#include "target/internal.h"

typedef struct request {
    berth_arena *arena;
    const char *text;
    const berth_target_options *options;
    berth_target_diagnostics diagnostics;
    berth_multi_target *target;
} request;

static void set_text(berth_target__parse *parse, json *root, const char *key, const char *text,
                     const char *path) {
    json *value = berth_target__json_string(parse->scratch, text);
    value->path = path;
    berth_target__json_set(parse->scratch, root, key, value);
}

// What the devices say of their hosts gives way to --host.
static void drop_hosts(berth_target__parse *parse, json *root) {
    const json *devices = berth_target__json_get(root, "devices");
    for (uint32_t i = 0; devices && i < devices->items.count; ++i) {
        json *target = berth_target__json_get(devices->items.data[i], "target");
        if (target) berth_target__json_set(parse->scratch, target, "host", NULL);
    }
}

// --host: the name of a device, or any spelling of a target.
static berth_status apply_host(berth_target__parse *parse, json *root) {
    const char *text = parse->options->host;
    if (!text) return BERTH_OK;
    drop_hosts(parse, root);
    if (!berth_target__spells_target(parse->scratch, text)) {
        set_text(parse, root, "host", text, "host");
        return BERTH_OK;
    }
    json *host = NULL;
    BERTH_TRY(berth_target__source(parse, text, true, "host", 1, &host));
    if (!host) return BERTH_OK;
    berth_target__json_set(parse->scratch, host, "host", NULL);
    berth_target__json_set(parse->scratch, root, "host", host);
    return BERTH_OK;
}

// --pin PATTERN=DEVICE, before the target's own pins.
static void apply_pins(berth_target__parse *parse, json *root) {
    const char *const *pins = parse->options->pins;
    if (!pins || !pins[0]) return;
    json *merged = berth_target__json_array(parse->scratch);
    merged->path = "pins";
    for (uint32_t i = 0; pins[i]; ++i) {
        const char *path = berth_arena_printf(parse->scratch, "pin %s", pins[i]);
        const char *equals = strrchr(pins[i], '=');
        if (!equals || equals == pins[i] || !equals[1]) {
            berth_target__error(parse, path, "a pin is PATTERN=DEVICE, as in 'op:Conv=opencl:0'");
            continue;
        }
        json *pin = berth_target__json_object(parse->scratch);
        pin->path = path;
        size_t length = (size_t)(equals - pins[i]);
        set_text(parse, pin, "match", berth_arena_strndup(parse->scratch, pins[i], length), path);
        set_text(parse, pin, "device", equals + 1, path);
        berth_target__json_push(parse->scratch, merged, pin);
    }
    const json *own = berth_target__json_get(root, "pins");
    if (own && own->type != JSON_TYPE_ARRAY) return;  // the validator complains about it
    for (uint32_t i = 0; own && i < own->items.count; ++i)
        berth_target__json_push(parse->scratch, merged, own->items.data[i]);
    berth_target__json_set(parse->scratch, root, "pins", merged);
}

static bool is_multi(const json *root) {
    const json *kind = berth_target__json_get(root, "kind");
    if (!kind)
        return berth_target__json_get(root, "devices") || berth_target__json_get(root, "machines");
    return kind->type == JSON_TYPE_STRING && strcmp(kind->string, "multi") == 0;
}

// A single target becomes the only device; what is said of the whole moves up. Paths stay as they
// were written.
json *berth_target__wrap_single(berth_target__parse *parse, json *single) {
    static const char *const of_the_whole[] = {"name", "executor", "runtime", "pins", "budgets"};
    berth_arena *arena = parse->scratch;
    json *multi = berth_target__json_object(arena);
    for (size_t i = 0; i < sizeof(of_the_whole) / sizeof(of_the_whole[0]); ++i) {
        json *value = berth_target__json_get(single, of_the_whole[i]);
        berth_target__json_set(arena, multi, of_the_whole[i], value);
        berth_target__json_set(arena, single, of_the_whole[i], NULL);
    }
    json *device = berth_target__json_object(arena);
    berth_target__json_set(arena, device, "target", single);
    json *devices = berth_target__json_array(arena);
    berth_target__json_push(arena, devices, device);
    berth_target__json_set(arena, multi, "devices", devices);
    return multi;
}

json *berth_target__source_json(berth_target__parse *parse, const char *text, size_t length,
                                const char *path) {
    const char *error = NULL;
    json *value = berth_target__json_read(parse->scratch, parse->scratch, text, length, &error);
    if (!value) {
        berth_target__error(parse, path, "this is not JSON: %s", error);
        return NULL;
    }
    berth_target__json_locate(parse->scratch, value, path);
    if (!berth_target__is_object(parse, value, "a target")) return NULL;
    // What a file may say about itself, and is no part of the target.
    berth_target__json_set(parse->scratch, value, "description", NULL);
    berth_target__json_set(parse->scratch, value, "sources", NULL);
    return value;
}

// The merged source as a MultiTarget's JSON; NULL with diagnostics.
static berth_status merged_source(berth_target__parse *parse, const char *text, json **out) {
    const berth_target_options *options = parse->options;
    json *root = NULL;
    *out = NULL;
    BERTH_TRY(berth_target__source(parse, text, true, "", 0, &root));
    if (!root) return BERTH_OK;
    for (uint32_t i = 0; options->overrides && options->overrides[i]; ++i)
        BERTH_TRY(berth_target__override(parse, root, options->overrides[i]));
    berth_target__json_locate(parse->scratch, root, "");
    if (!is_multi(root)) root = berth_target__wrap_single(parse, root);
    BERTH_TRY(apply_host(parse, root));
    if (options->executor) set_text(parse, root, "executor", options->executor, "executor");
    if (options->runtime) set_text(parse, root, "runtime", options->runtime, "runtime");
    apply_pins(parse, root);
    BERTH_TRY(berth_target__flatten_machines(parse, root));
    BERTH_TRY(berth_target__expand(parse, root));
    if (parse->diagnostics.count == 0) *out = root;
    return BERTH_OK;
}

static berth_status parse_body(void *user) {
    request *r = user;
    static const berth_target_options none = {0};
    berth_target__parse parse = {
        .arena = r->arena,
        .scratch = berth_arena_create_child(r->arena),
        .options = r->options ? r->options : &none,
    };
    json *root = NULL;
    berth_status status = merged_source(&parse, r->text, &root);
    if (!status && root) r->target = berth_target__multi(&parse, root);
    r->diagnostics = (berth_target_diagnostics){parse.diagnostics.data, parse.diagnostics.count};
    berth_arena_destroy(parse.scratch);
    return status;
}

static berth_status describe(void *user) {
    request *r = user;
    berth_strbuf out = berth_strbuf_make(r->arena);
    for (uint32_t i = 0; i < r->diagnostics.count; ++i) {
        const berth_target_diagnostic *d = &r->diagnostics.data[i];
        if (i) berth_strbuf_add(&out, "\n");
        if (*d->path) berth_strbuf_addf(&out, "%s: ", d->path);
        berth_strbuf_add(&out, d->message);
    }
    return berth_status_make(BERTH_INVALID_ARGUMENT, "target: %s", berth_strbuf_text(&out));
}

berth_status berth_target_validate(berth_arena *arena, const char *text,
                                   const berth_target_options *options,
                                   berth_target_diagnostics *out_diagnostics,
                                   berth_multi_target **out_target) {
    *out_diagnostics = (berth_target_diagnostics){0};
    if (out_target) *out_target = NULL;
    request r = {.arena = arena, .text = text, .options = options};
    BERTH_TRY(berth_arena_try(arena, parse_body, &r));
    *out_diagnostics = r.diagnostics;
    if (out_target) *out_target = r.target;
    return BERTH_OK;
}

berth_status berth_target_parse(berth_arena *arena, const char *text,
                                const berth_target_options *options,
                                berth_multi_target **out_target) {
    *out_target = NULL;
    request r = {.arena = arena, .text = text, .options = options};
    BERTH_TRY(berth_arena_try(arena, parse_body, &r));
    if (r.diagnostics.count) return berth_arena_try(arena, describe, &r);
    *out_target = r.target;
    return BERTH_OK;
}
