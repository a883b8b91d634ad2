// The short form: `cpu`, `cuda -arch=sm_90 -libs=cublas,cudnn`, `opencl -host=cpu`, `opencl,cpu`.
//
//   short  := device ("," device)*
//   device := KIND ("-" NAME ["=" VALUE])*
// A VALUE ends at a space, or at a comma that a kind follows; "..." quotes one.
// `-peak_flops.f32=1e12` sets one entry.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "target/internal.h"

typedef struct reader {
    berth_target__parse *parse;
    const char *at;
    const char *path;
    bool resolve;
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

// Whether the text behind a comma starts another device.
static bool kind_follows(reader *r, const char *at) {
    while (isspace((unsigned char)*at)) at++;
    size_t length = word_length(at);
    char end = at[length];
    if (length == 0 || length > 16 || !(end == 0 || end == ',' || isspace((unsigned char)end)))
        return false;
    const char *word = berth_arena_strndup(r->parse->scratch, at, length);
    return berth_device_kind_from_name(word) != BERTH_DEVICE_FREE;
}

// The value behind '='; NULL with a diagnostic for an open quote.
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
           !(*r->at == ',' && kind_follows(r, r->at + 1)))
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

static bool set_host(reader *r, json *object, const char *value) {
    berth_target__parse *parse = r->parse;
    if (strchr(value, '/')) {
        berth_target__error(parse, r->path,
                            "-host takes a kind (cpu) or a quoted short form, not '%s'; give a tag "
                            "with --host or in JSON",
                            value);
        return false;
    }
    if (strstr(value, "-host")) {
        berth_target__error(parse, r->path, "a host has no host of its own");
        return false;
    }
    json *host = berth_target__short_form(parse, value, r->resolve, r->path);
    if (!host) return false;
    if (strcmp(berth_target__json_get(host, "kind")->string, "cpu") != 0) {
        berth_target__error(parse, r->path, "-host=%s: a host is one cpu", value);
        return false;
    }
    berth_target__json_set(parse->scratch, object, "host", host);
    return true;
}

static bool read_option(reader *r, json *object) {
    berth_arena *arena = r->parse->scratch;
    r->at++;  // '-'
    if (*r->at == '-') r->at++;
    size_t length = word_length(r->at);
    char *name = berth_arena_strndup(arena, r->at, length);
    for (char *c = name; *c; ++c)
        if (*c == '-') *c = '_';
    r->at += length;
    if (length == 0) {
        berth_target__error(r->parse, r->path, "an option name is wanted behind '-'");
        return false;
    }
    const char *value = "true";
    if (*r->at == '=') {
        r->at++;
        value = read_value(r);
        if (!value) return false;
    }
    if (strcmp(name, "host") == 0) return set_host(r, object, value);
    char *dot = strchr(name, '.');
    if (dot) {
        *dot = 0;
        json *inner = berth_target__json_get(object, name);
        if (!inner || inner->type != JSON_TYPE_OBJECT) inner = berth_target__json_object(arena);
        berth_target__json_set(arena, inner, dot + 1, typed(arena, name, value));
        berth_target__json_set(arena, object, name, inner);
        return true;
    }
    berth_target__json_set(arena, object, name, typed(arena, name, value));
    return true;
}

// `cpu` means this machine's, unless it names another architecture or core.
static json *resolve_cpu(reader *r, json *given) {
    const berth_machine_facts *machine = r->parse->options->machine;
    if (!r->resolve || !machine) return given;
    const json *arch = berth_target__json_get(given, "arch");
    const json *cpu = berth_target__json_get(given, "cpu");
    if (arch && (arch->type != JSON_TYPE_STRING || strcmp(arch->string, machine->arch) != 0))
        return given;
    if (cpu && (cpu->type != JSON_TYPE_STRING || strcmp(cpu->string, machine->cpu) != 0))
        return given;
    json *resolved = berth_target__machine_cpu(r->parse->scratch, machine);
    // Fewer cores than the machine has: its thread count says nothing about them.
    if (berth_target__json_get(given, "cores"))
        berth_target__json_set(r->parse->scratch, resolved, "threads", NULL);
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
        // What is free at the moment (PoCL says that) is no property of the device.
        berth_target__json_set(r->parse->scratch, resolved, "memory_capacity_bytes", NULL);
        return berth_target__json_merge(r->parse->scratch, resolved, given);
    }
    return given;
}

static json *read_device(reader *r) {
    berth_target__parse *parse = r->parse;
    skip_spaces(r);
    size_t length = word_length(r->at);
    const char *word = berth_arena_strndup(parse->scratch, r->at, length);
    const char *const *kinds = berth_device_kind_names();
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
    for (;;) {
        const char *before = r->at;
        skip_spaces(r);
        if (*r->at != '-') break;
        if (r->at == before) {
            berth_target__error(parse, r->path, "a space is wanted before '%s'", r->at);
            return NULL;
        }
        if (!read_option(r, object)) return NULL;
    }
    berth_device_kind kind = berth_device_kind_from_name(word);
    return kind == BERTH_DEVICE_CPU ? resolve_cpu(r, object) : resolve_device(r, object, kind);
}

// A device other than a CPU, alone or with its like, is driven by this machine's CPU.
static void imply_host(reader *r, json *first, bool has_cpu) {
    const berth_machine_facts *machine = r->parse->options->machine;
    if (has_cpu || !r->resolve || !machine || berth_target__json_get(first, "host")) return;
    berth_target__json_set(r->parse->scratch, first, "host",
                           berth_target__machine_cpu(r->parse->scratch, machine));
}

json *berth_target__short_form(berth_target__parse *parse, const char *text, bool resolve,
                               const char *path) {
    berth_arena *arena = parse->scratch;
    reader r = {.parse = parse, .at = text, .path = path, .resolve = resolve};
    json *devices = berth_target__json_array(arena);
    json *first = NULL;
    bool has_cpu = false;
    for (;;) {
        json *target = read_device(&r);
        if (!target) return NULL;
        if (!first) first = target;
        has_cpu = has_cpu || strcmp(berth_target__json_get(target, "kind")->string, "cpu") == 0 ||
                  berth_target__json_get(target, "host");
        json *device = berth_target__json_object(arena);
        berth_target__json_set(arena, device, "target", target);
        berth_target__json_push(arena, devices, device);
        skip_spaces(&r);
        if (*r.at != ',') break;
        r.at++;
    }
    if (*r.at) {
        berth_target__error(parse, path,
                            "'%s' is not understood; options are -NAME=VALUE, and a comma "
                            "separates devices",
                            r.at);
        return NULL;
    }
    imply_host(&r, first, has_cpu);
    if (devices->items.count == 1) return first;
    json *multi = berth_target__json_object(arena);
    berth_target__json_set(arena, multi, "kind", berth_target__json_string(arena, "multi"));
    berth_target__json_set(arena, multi, "devices", devices);
    return multi;
}
