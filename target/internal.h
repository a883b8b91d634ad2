// Private to target/: the state of one parse, and the steps from text to berth_multi_target:
//   source.c (any spelling -> JSON value) -> device.c, multi.c, memory.c (JSON value -> structures,
//   the one validator)
//   -> defaults.c -> print.c (canonical form)
#ifndef BERTH_TARGET_INTERNAL_H_
#define BERTH_TARGET_INTERNAL_H_

#include <stdio.h>

#include "target/json.h"
#include "target/target.h"

#define BERTH_TARGET__NO_MEMBER SIZE_MAX

typedef berth_target__json json;

typedef struct berth_target__parse {
    berth_arena *arena;    // of the result and the diagnostics
    berth_arena *scratch;  // of everything else
    const berth_target_options *options;
    BERTH_VEC(berth_target_diagnostic) diagnostics;
    int nesting;  // strings expanded inside one another: tags may refer to tags
} berth_target__parse;

// kinds.c
extern const char *const berth_target__executor_names[];
extern const char *const berth_target__runtime_names[];
const berth_target_attribute_facts *berth_target__attribute(const char *name);  // NULL: unknown
// Of the berth_target member, or BERTH_TARGET__NO_MEMBER.
size_t berth_target__attribute_offset(const berth_target_attribute_facts *facts);
// The member of an INT attribute, or NULL.
int64_t *berth_target__int_member(berth_target *target, const berth_target_attribute_facts *facts);
// The bytes and scope of the device's memory number `index` on its chip, in the order of kinds.def;
// *out_scope = NULL: there are no more.
uint64_t berth_target__on_chip(const berth_target *target, uint32_t index, const char **out_scope);
bool berth_target__list_has(berth_string_list list, const char *text);

// check.c: diagnostics and typed access. Each reader reports what is wrong and returns false.
void berth_target__error(berth_target__parse *parse, const char *path, const char *format, ...)
    BERTH_PRINTF(3, 4);
// Path of a member of a value.
const char *berth_target__below(berth_target__parse *parse, const json *value, const char *key);
bool berth_target__is_object(berth_target__parse *parse, const json *value, const char *what);
// Reports members that are not in `allowed` (NULL-terminated).
void berth_target__check_fields(berth_target__parse *parse, const json *object,
                                const char *const *allowed, const char *what);
bool berth_target__is_utf8(const char *text);
bool berth_target__read_string(berth_target__parse *parse, const json *value, const char **out);
bool berth_target__read_bool(berth_target__parse *parse, const json *value, bool *out);
// Whole numbers may be written as reals (2.4e9) and, where `sizes` is set, as text with a unit
// ("64MiB").
bool berth_target__read_int(berth_target__parse *parse, const json *value, bool sizes, double least,
                            double most, int64_t *out);
bool berth_target__read_real(berth_target__parse *parse, const json *value, double least,
                             double most, double *out);
// One of `allowed`; gives its index.
bool berth_target__read_choice(berth_target__parse *parse, const json *value,
                               const char *const *allowed, const char *what, uint32_t *out);
// Texts of a checked alphabet (check.c has them in one table).
typedef enum berth_target__alphabet {
    BERTH_TARGET__NAME,  // of a device, memory or machine: letters, digits and _ . - + : / @
    BERTH_TARGET__WORD,  // what may reach a command or a source: letters, digits and _ . - +
} berth_target__alphabet;
bool berth_target__read_text(berth_target__parse *parse, const json *value,
                             berth_target__alphabet alphabet, const char **out);
// The same with NAME.
bool berth_target__read_name(berth_target__parse *parse, const json *value, const char **out);
// "; did you mean 'x'?" or "".
const char *berth_target__hint(berth_target__parse *parse, const char *text,
                               const char *const *candidates);
// "a, b, c"
const char *berth_target__join(berth_arena *arena, const char *const *names);

// parse.c: JSON as text to a located object, without what it remarks about itself. NULL with
// diagnostics.
json *berth_target__source_json(berth_target__parse *parse, const char *text, size_t length,
                                const char *path);
// source.c: any spelling to a located JSON object. NULL in *out with diagnostics when the text is
// wrong. `resolve`: `cpu` in a short form means this machine.
berth_status berth_target__source(berth_target__parse *parse, const char *text, bool resolve,
                                  const char *path, int depth, json **out);
berth_status berth_target__expand_string(berth_target__parse *parse, json *object, const char *key);
// The same for an entry of "devices", which may be a text itself. A device's host is left as it is.
berth_status berth_target__expand_entry(berth_target__parse *parse, json *devices, uint32_t index);
// Whether a host's text is a target (short form, tag, file, JSON) and not the name of a device.
bool berth_target__spells_target(berth_arena *arena, const char *text);
// parse.c: a single target as the only device of a MultiTarget.
json *berth_target__wrap_single(berth_target__parse *parse, json *single);
// source.c: what a tag ("NAME[:DEVICE][{OVERRIDES}]") or, at depth 0, a file says.
berth_status berth_target__named(berth_target__parse *parse, const char *text, const char *path,
                                 int depth, json **out);
// short_form.c: kinds, tags and files with options, one or several of them. *out = NULL with
// diagnostics when the text is wrong.
berth_status berth_target__short_form(berth_target__parse *parse, const char *text, bool resolve,
                                      const char *path, int depth, json **out);
// machine_target.c: this machine's CPU, and `local`.
json *berth_target__machine_cpu(berth_arena *arena, const berth_machine_facts *machine);
json *berth_target__machine_device(berth_arena *arena, const berth_machine_facts *machine,
                                   const berth_machine_device *device);
json *berth_target__machine_local(berth_arena *arena, const berth_machine_facts *machine);
// describe.c: a machine as a MultiTarget's JSON, and (not NULL) the sources of its figures.
struct berth_machine_description;
json *berth_target__machine(berth_arena *arena, const struct berth_machine_description *description,
                            json **out_sources);
// override.c: "PATH=VALUE". Targets that are spelt as text on the way are replaced by what they
// spell.
berth_status berth_target__override(berth_target__parse *parse, json *root, const char *text);
// tags.c: the object of a tag "NAME[:SELECTOR]" (without overrides).
berth_status berth_target__tag_source(berth_target__parse *parse, const char *name,
                                      const char *selector, const char *path, json **out);

// rename.c: references inside a MultiTarget's JSON.
const char *berth_target__text_of(const json *object, const char *key);  // "" if not a string
// The entry of "devices" that a name (given, or KIND:N) means, or BERTH_NO_INDEX; and the other way
// round.
uint32_t berth_target__entry_named(const json *devices, const char *name);
const char *berth_target__entry_name(berth_arena *arena, const json *devices, uint32_t index);
// Changes all references to devices (device_names by entry, NULL = unchanged) and the names of
// memories and buses.
void berth_target__rename(berth_arena *arena, json *multi, const char *const *device_names,
                          const char *memory_prefix);
// machines.c
berth_status berth_target__flatten_machines(berth_target__parse *parse, json *root);
// select.c: leaves one compute device (an index into "devices") and the host.
json *berth_target__keep_device(berth_target__parse *parse, json *multi, uint32_t device);
// Leaves these devices, and what they need.
void berth_target__keep_devices(berth_target__parse *parse, json *multi, const bool *kept);
// Leaves the pins to these devices.
void berth_target__drop_pins(json *multi, const bool *kept);

// device.c: one device's target from its JSON, host left out; NULL with diagnostics. *out_host: its
// "host", or NULL.
berth_target *berth_target__device(berth_target__parse *parse, const json *value,
                                   const json **out_host);
// defaults.c
// One name for each architecture: "arm64" is "aarch64". Words that are no other name stay.
const char *berth_target__arch_of(const char *word);
void berth_target__fill_defaults(berth_arena *arena, berth_target *target);
typedef struct berth_target__memory_defaults {
    uint32_t alignment_bytes;
    uint64_t latency_ns;
    uint64_t link_latency_ns;
} berth_target__memory_defaults;
berth_target__memory_defaults berth_target__memory_defaults_of(const berth_target *target);

// multi.c: expands strings in device targets first (expand), then builds.
berth_status berth_target__expand(berth_target__parse *parse, json *root);
berth_multi_target *berth_target__multi(berth_target__parse *parse, json *root);
// The device called `name` (given name or KIND:N) while building, or BERTH_NO_INDEX.
uint32_t berth_target__device_named(const berth_multi_target *multi, const char *name);
bool berth_target__read_device(berth_target__parse *parse, const berth_multi_target *multi,
                               const json *value, uint32_t *out_device);
// memory.c
void berth_target__memories(berth_target__parse *parse, const json *root,
                            berth_multi_target *multi);

// print.c
json *berth_target__device_json(berth_arena *arena, const berth_target *target);
void berth_target__canonicalise_device(berth_arena *arena, berth_target *target);
void berth_target__canonicalise(berth_arena *arena, berth_multi_target *multi);
// The tree of the canonical form.
json *berth_target__multi_json(berth_arena *arena, const berth_multi_target *multi);

#endif  // BERTH_TARGET_INTERNAL_H_
