// The short form: `cpu`, `cuda -arch=sm_90 -libs=cublas,cudnn`, `opencl -host=cpu`, `opencl,cpu`,
// `cpu,nvidia/t4`.
//
//   short  := device ("," device)*
//   device := (KIND | TAG | FILE) ("-" NAME ["=" VALUE])*
//   TAG    := VENDOR "/" NAME [":" DEVICE] ["{" OVERRIDES "}"]
// A VALUE ends at a space, or at a comma that a device follows; "..." quotes one.
// `-peak_flops.f32=1e12` sets one entry.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "target/internal.h"
#include "target/topology.h"

typedef struct reader {
    berth_target__parse *parse;
    const char *at;
    const char *path;
    bool resolve;
    int depth;                     // as of berth_target__source
    bool from_machine;             // some device is this machine's
    uint32_t devices_of_kind[16];  // read so far
} reader;

static void skip_spaces(reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
}

static size_t word_length(const char *at) {
    size_t length = 0;
    while (isalnum((unsigned char)at[length]) || at[length] == '_' || at[length] == '-' ||
           at[length] == '.')
        length++;
    return length;
}

// A tag or a file, as long as it has no overrides.
static size_t spelling_length(const char *at) {
    return strcspn(at, " \t\r\n\v\f,{");
}

// Whether a tag or a file stands here; both have a slash, files may have none.
static bool spelling_follows(const reader *r, const char *at) {
    size_t length = spelling_length(at);
    if (memchr(at, '/', length) && !memchr(at, '=', length) && *at != '-') return true;
    return r->depth == 0 && length > 5 && memcmp(at + length - 5, ".json", 5) == 0;
}

// Whether the text after a comma starts another device.
static bool device_follows(const reader *r, const char *at) {
    while (isspace((unsigned char)*at)) at++;
    if (spelling_follows(r, at)) return true;
    size_t length = word_length(at);
    char end = at[length];
    if (length == 0 || length > 16 || !(end == 0 || end == ',' || isspace((unsigned char)end)))
        return false;
    const char *word = berth_arena_strndup(r->parse->scratch, at, length);
    return berth_device_kind_from_name(word) != BERTH_DEVICE_FREE;
}

// The value after '='; NULL with a diagnostic for an open quote.
static const char *read_value(reader *r) {
    if (*r->at == '"') {
        const char *end = strchr(r->at + 1, '"');
        if (!end) {
            berth_target__error(r->parse, r->path, "a quote is not closed: %s", r->at);
            return NULL;
        }
        const char *value =
            berth_arena_strndup(r->parse->scratch, r->at + 1, (size_t)(end - r->at - 1));
        r->at = end + 1;
        return value;
    }
    const char *start = r->at;
    while (*r->at && !isspace((unsigned char)*r->at) &&
           !(*r->at == ',' && device_follows(r, r->at + 1)))
        r->at++;
    return berth_arena_strndup(r->parse->scratch, start, (size_t)(r->at - start));
}

static json *split_list(berth_arena *arena, const char *value) {
    json *array = berth_target__json_array(arena);
    while (*value) {
        size_t length = strcspn(value, ",");
        size_t plus = *value == '+';  // "+avx2" is how compilers write it
        if (length > plus)
            berth_target__json_push(
                arena, array,
                berth_target__json_string(arena,
                                          berth_arena_strndup(arena, value + plus, length - plus)));
        value += length + (value[length] == ',');
    }
    return array;
}

// Text that is not of the attribute's type stays text, for the validator to complain about.
static json *typed(berth_arena *arena, const char *name, const char *value) {
    const berth_target_attribute_facts *facts = berth_target__attribute(name);
    char *end = NULL;
    if (facts && facts->type == BERTH_TARGET_LIST) return split_list(arena, value);
    if (facts && facts->type == BERTH_TARGET_BOOL &&
        (strcmp(value, "true") == 0 || strcmp(value, "false") == 0))
        return berth_target__json_bool(arena, *value == 't');
    bool number = facts && (facts->type == BERTH_TARGET_INT || facts->type == BERTH_TARGET_FLOAT ||
                            facts->type == BERTH_TARGET_FLOPS);
    if (number && (isdigit((unsigned char)*value) || *value == '-')) {
        double real = strtod(value, &end);
        if (*end == 0 && real - real == 0) {  // finite
            bool whole = real >= -9e15 && real <= 9e15 && real == (double)(int64_t)real;
            return whole ? berth_target__json_int(arena, (int64_t)real)
                         : berth_target__json_real(arena, real);
        }
    }
    return berth_target__json_string(arena, value);
}

static berth_status set_host(reader *r, json *object, const char *value, bool *out_fine) {
    berth_target__parse *parse = r->parse;
    *out_fine = false;
    if (strchr(value, '/')) {
        berth_target__error(parse, r->path,
                            "-host takes a kind (cpu) or a quoted short form, not '%s'; a tag "
                            "is given apart from the device, or in JSON",
                            value);
        return BERTH_OK;
    }
    if (strstr(value, "-host")) {
        berth_target__error(parse, r->path, "a host has no host of its own");
        return BERTH_OK;
    }
    json *host = NULL;
    BERTH_TRY(berth_target__short_form(parse, value, r->resolve, r->path, 1, &host));
    if (!host) return BERTH_OK;
    *out_fine = strcmp(berth_target__text_of(host, "kind"), "cpu") == 0;
    if (!*out_fine) berth_target__error(parse, r->path, "-host=%s: a host is one cpu", value);
    berth_target__json_set(parse->scratch, object, "host", host);
    return BERTH_OK;
}

// One entry of an attribute that is an object.
static void set_entry(berth_arena *arena, json *object, char *name, char *dot, const char *value) {
    *dot = 0;
    json *inner = berth_target__json_get(object, name);
    if (!inner || inner->type != JSON_TYPE_OBJECT) inner = berth_target__json_object(arena);
    berth_target__json_set(arena, inner, dot + 1, typed(arena, name, value));
    berth_target__json_set(arena, object, name, inner);
}

static berth_status read_option(reader *r, json *object, bool *out_fine) {
    berth_arena *arena = r->parse->scratch;
    *out_fine = false;
    r->at++;  // '-'
    if (*r->at == '-') r->at++;
    size_t length = word_length(r->at);
    char *name = berth_arena_strndup(arena, r->at, length);
    for (char *c = name; *c; ++c)
        if (*c == '-') *c = '_';
    r->at += length;
    if (length == 0) {
        berth_target__error(r->parse, r->path, "an option name is wanted after '-'");
        return BERTH_OK;
    }
    const char *value = "true";
    if (*r->at == '=') {
        r->at++;
        value = read_value(r);
        if (!value) return BERTH_OK;
    }
    if (strcmp(name, "host") == 0) return set_host(r, object, value, out_fine);
    char *dot = strchr(name, '.');
    size_t head = dot ? (size_t)(dot - name) : strlen(name);
    if (head == 4 && memcmp(name, "kind", 4) == 0) {
        berth_target__error(r->parse, r->path,
                            "-kind is no option: the kind is the word in front, here '%s'",
                            berth_target__text_of(object, "kind"));
        return BERTH_OK;
    }
    if (dot)
        set_entry(arena, object, name, dot, value);
    else
        berth_target__json_set(arena, object, name, typed(arena, name, value));
    *out_fine = true;
    return BERTH_OK;
}

// Processors that a "cpuset" names are all there are, where nothing says how many cores they make.
static void count_processors(reader *r, const json *given, json *resolved) {
    const berth_machine_facts *machine = r->parse->options->machine;
    const json *words = berth_target__json_get(given, "cpuset");
    berth_processor_set set = {{0}};
    if (!words || berth_target__json_get(given, "cores")) return;
    for (uint32_t i = 0; i < words->items.count; ++i)
        if (words->items.data[i]->type == JSON_TYPE_STRING)
            berth_processor_set_add_word(&set, words->items.data[i]->string);
    int64_t count = berth_processor_set_count(&set);
    if (count == 0 || count >= machine->threads) return;
    int64_t cores = machine->cores < count ? machine->cores : count;
    berth_target__json_set(r->parse->scratch, resolved, "cores",
                           berth_target__json_int(r->parse->scratch, cores));
    berth_target__json_set(r->parse->scratch, resolved, "threads",
                           berth_target__json_int(r->parse->scratch, count));
}

// `cpu` means this machine's, unless it names another architecture or core.
static json *resolve_cpu(reader *r, json *given) {
    const berth_machine_facts *machine = r->parse->options->machine;
    if (!r->resolve || !machine) return given;
    const json *arch = berth_target__json_get(given, "arch");
    const json *cpu = berth_target__json_get(given, "cpu");
    if (arch && (arch->type != JSON_TYPE_STRING ||
                 strcmp(berth_target__arch_of(arch->string), machine->arch) != 0))
        return given;
    if (cpu && (cpu->type != JSON_TYPE_STRING || strcmp(cpu->string, machine->cpu) != 0))
        return given;
    json *resolved = berth_target__machine_cpu(r->parse->scratch, machine);
    // Fewer cores than the machine has: its thread count says nothing about them.
    if (berth_target__json_get(given, "cores"))
        berth_target__json_set(r->parse->scratch, resolved, "threads", NULL);
    count_processors(r, given, resolved);
    return berth_target__json_merge(r->parse->scratch, resolved, given);
}

// `opencl` means this machine's (the second one its second), where its drivers were asked and
// nothing says otherwise.
static json *resolve_device(reader *r, json *given, berth_device_kind kind) {
    const berth_machine_facts *machine = r->parse->options->machine;
    uint32_t skip = kind < 16 ? r->devices_of_kind[kind]++ : 0;
    if (!r->resolve || !machine || berth_target__json_get(given, "arch") ||
        berth_target__json_get(given, "model"))
        return given;
    for (uint32_t i = 0; i < machine->device_count; ++i) {
        if (machine->devices[i].kind != kind || skip-- > 0) continue;
        json *resolved =
            berth_target__machine_device(r->parse->scratch, machine, &machine->devices[i]);
        // Processor cores behind another interface say what of the host's memory is free at the moment (PoCL): that is
        // no property of the device.
        if (machine->devices[i].uses_host_cores)
            berth_target__json_set(r->parse->scratch, resolved, "memory_capacity_bytes", NULL);
        return berth_target__json_merge(r->parse->scratch, resolved, given);
    }
    for (uint32_t i = 0; i < machine->asked_count; ++i) {
        const berth_machine_asked *asked = &machine->asked[i];
        if (asked->kind != kind) continue;
        berth_log_message(r->parse->options->log, BERTH_LOG_WARNING,
                          "%s:%u is not on this machine (%s): its figures are general ones",
                          berth_device_kind_name(kind), r->devices_of_kind[kind] - 1,
                          asked->missing ? asked->missing : "the drivers find no such device");
    }
    return given;
}

// ---- devices ------------------------------------------------------------------------------------

// The text of "{...}" at `at`, braces in strings aside: up to its end, or that of the text.
static size_t braces_length(const char *at) {
    size_t length = 0;
    int depth = 0;
    bool quoted = false;
    for (; at[length]; ++length) {
        char c = at[length];
        if (quoted && c == '\\' && at[length + 1]) {
            ++length;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted) {
            depth += (c == '{') - (c == '}');
            if (depth == 0) return length + 1;
        }
    }
    return length;
}

static json *read_kind(reader *r) {
    berth_target__parse *parse = r->parse;
    size_t length = word_length(r->at);
    const char *word = berth_arena_strndup(parse->scratch, r->at, length);
    const char *const *kinds = berth_device_kind_names();
    if (strcmp(word, "local") == 0) {
        berth_target__error(parse, r->path,
                            "'local' is all of this machine: it stands alone, without options");
        return NULL;
    }
    if (berth_device_kind_from_name(word) == BERTH_DEVICE_FREE) {
        berth_target__error(parse, r->path,
                            "'%s' is no target kind, tag, JSON or file; kinds are %s%s",
                            *word ? word : r->at, berth_target__join(parse->scratch, kinds),
                            berth_target__hint(parse, word, kinds));
        return NULL;
    }
    r->at += length;
    json *object = berth_target__json_object(parse->scratch);
    berth_target__json_set(parse->scratch, object, "kind",
                           berth_target__json_string(parse->scratch, word));
    return object;
}

// A tag, with what stands in braces after it, or a file.
static berth_status read_spelling(reader *r, json **out) {
    size_t length = spelling_length(r->at);
    size_t next = length + strspn(r->at + length, " \t\r\n\v\f");
    if (r->at[next] == '{') length = next + braces_length(r->at + next);
    const char *text = berth_arena_strndup(r->parse->scratch, r->at, length);
    r->at += length;
    return berth_target__named(r->parse, text, r->path, r->depth, out);
}

static bool is_platform(const json *target) {
    return berth_target__json_get(target, "devices") || berth_target__json_get(target, "machines");
}

// The options after a kind, a tag or a file.
static berth_status read_options(reader *r, json *object, bool *out_fine) {
    *out_fine = true;
    while (*out_fine) {
        const char *before = r->at;
        skip_spaces(r);
        if (*r->at != '-') break;
        *out_fine = r->at != before && !is_platform(object);
        if (r->at == before)
            berth_target__error(r->parse, r->path, "a space is wanted before '%s'", r->at);
        else if (is_platform(object))
            berth_target__error(r->parse, r->path,
                                "options after '-' are for one device; of a platform of several, "
                                "the field devices[0].target.FIELD changes one");
        else
            BERTH_TRY(read_option(r, object, out_fine));
    }
    return BERTH_OK;
}

// *out = NULL with a diagnostic where the text is wrong.
static berth_status read_device(reader *r, json **out) {
    *out = NULL;
    skip_spaces(r);
    bool spelt = spelling_follows(r, r->at), fine = false;
    json *object = NULL;
    if (spelt)
        BERTH_TRY(read_spelling(r, &object));
    else
        object = read_kind(r);
    if (!object) return BERTH_OK;
    BERTH_TRY(read_options(r, object, &fine));
    if (!fine) return BERTH_OK;
    *out = object;
    if (spelt) return BERTH_OK;
    r->from_machine = true;
    berth_device_kind kind = berth_device_kind_from_name(berth_target__text_of(object, "kind"));
    *out = kind == BERTH_DEVICE_CPU ? resolve_cpu(r, object) : resolve_device(r, object, kind);
    return BERTH_OK;
}

// A device other than a CPU, alone or with its like, is driven by this machine's CPU. Tags take
// nothing from this machine.
static void imply_host(const reader *r, json *first, bool has_cpu) {
    const berth_machine_facts *machine = r->parse->options->machine;
    if (has_cpu || !r->from_machine || !r->resolve || !machine) return;
    berth_target__json_set(r->parse->scratch, first, "host",
                           berth_target__machine_cpu(r->parse->scratch, machine));
}

static bool brings_cpu(const json *target) {
    return strcmp(berth_target__text_of(target, "kind"), "cpu") == 0 ||
           berth_target__json_get(target, "host");
}

static void push_device(reader *r, json *devices, json *target) {
    if (is_platform(target)) {
        berth_target__error(r->parse, r->path,
                            "a list of devices takes single ones, and one of these is a platform "
                            "with memories and a host of its own; several machines are joined in "
                            "JSON, under \"machines\"");
        return;
    }
    if (berth_target__json_get(target, "runtime")) {
        berth_target__error(r->parse, r->path,
                            "a list of devices takes those of one machine, and one of these is a "
                            "board with a runtime of its own: a target by itself");
        return;
    }
    json *device = berth_target__json_object(r->parse->scratch);
    berth_target__json_set(r->parse->scratch, device, "target", target);
    berth_target__json_push(r->parse->scratch, devices, device);
}

berth_status berth_target__short_form(berth_target__parse *parse, const char *text, bool resolve,
                                      const char *path, int depth, json **out) {
    berth_arena *arena = parse->scratch;
    reader r = {.parse = parse, .at = text, .path = path, .resolve = resolve, .depth = depth};
    json *devices = berth_target__json_array(arena);
    json *first = NULL;
    bool has_cpu = false;
    *out = NULL;
    for (;;) {
        json *target = NULL;
        BERTH_TRY(read_device(&r, &target));
        if (!target) return BERTH_OK;
        skip_spaces(&r);
        if (!first) first = target;
        has_cpu = has_cpu || brings_cpu(target);
        if (first != target || *r.at == ',') push_device(&r, devices, target);
        if (*r.at != ',') break;
        r.at++;
    }
    if (*r.at)
        berth_target__error(parse, path,
                            "'%s' is not understood; options are -NAME=VALUE, and a comma "
                            "separates devices",
                            r.at);
    if (parse->diagnostics.count) return BERTH_OK;
    imply_host(&r, first, has_cpu);
    if (devices->items.count == 0) {
        *out = first;
        return BERTH_OK;
    }
    *out = berth_target__json_object(arena);
    berth_target__json_set(arena, *out, "kind", berth_target__json_string(arena, "multi"));
    berth_target__json_set(arena, *out, "devices", devices);
    return BERTH_OK;
}
