#include "executor/device_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "target/target.h"

static bool is_cpu(const berth_program_device *device) {
    return berth_device_kind_is_host(berth_device_kind_from_name(device->kind));
}

// Programs made by hand may say nothing of their devices: "{}".
static bool has_target(const berth_program_device *device) {
    return device->target_json && strstr(device->target_json, "\"kind\"");
}

// A CPU device that runs kernels. One that only holds memory needs no cores of its own.
static bool shares_cores(const berth_program *program, uint32_t device) {
    if (!is_cpu(&program->devices[device]) || !has_target(&program->devices[device])) return false;
    for (uint32_t i = 0; i < program->step_count; ++i)
        if (program->steps[i].kind == BERTH_STEP_DISPATCH && program->steps[i].device == device)
            return true;
    return false;
}

// Cores that the target of a device says; 0 = it does not say.
static uint32_t cores_of(const berth_program_device *device) {
    const char *at = device->target_json ? strstr(device->target_json, "\"cores\"") : NULL;
    if (at) at = strchr(at, ':');
    unsigned long long cores = at ? strtoull(at + 1, NULL, 10) : 0;
    return cores <= UINT32_MAX ? (uint32_t)cores : 0;
}

// How the CPU devices of a program share the cores. In the order of devices.
typedef struct sharing {
    berth_arena *arena;
    const berth_program *program;
    uint32_t device;           // whose share is wanted
    berth_string_list cpuset;  // of that device
    uint32_t share, share_count;
    berth_strbuf cores;
    const char *attributes;
} sharing;

static berth_status parse_target(berth_arena *arena, const berth_program_device *device,
                                 const berth_target **out_target) {
    const berth_target_options options = {.no_files = true};
    berth_multi_target *multi = NULL;
    berth_status status = berth_target_parse(arena, device->target_json, &options, &multi);
    if (status) return berth_status_prefix(status, "target of device \"%s\"", device->name);
    *out_target = multi->devices[multi->default_device].target;
    return BERTH_OK;
}

static berth_status write_attributes(void *user) {
    sharing *s = user;
    berth_strbuf out = berth_strbuf_make(s->arena);
    for (uint32_t i = 0; i < s->cpuset.count; ++i)
        berth_strbuf_addf(&out, "%s%s", i ? "," : "cpuset=", s->cpuset.data[i]);
    if (s->cpuset.count == 0 && s->share_count > 1)
        berth_strbuf_addf(&out, "share=%u cores=%s", s->share, berth_strbuf_text(&s->cores));
    if (out.length) s->attributes = berth_strbuf_text(&out);
    return BERTH_OK;
}

typedef struct one_sharer {
    sharing *sharing;
    uint32_t device;
    const berth_target *target;
} one_sharer;

static berth_status add_sharer(void *user) {
    const one_sharer *one = user;
    sharing *s = one->sharing;
    if (!s->cores.arena) s->cores = berth_strbuf_make(s->arena);
    if (one->device == s->device) {
        s->cpuset = one->target->cpuset;
        s->share = s->share_count;
    }
    if (one->target->cpuset.count) return BERTH_OK;
    berth_strbuf_addf(&s->cores, "%s%lld", s->share_count++ ? "," : "",
                      (long long)one->target->cores);
    return BERTH_OK;
}

static berth_status share_out(sharing *s) {
    for (uint32_t d = 0; d < s->program->device_count; ++d) {
        if (!shares_cores(s->program, d)) continue;
        one_sharer one = {s, d, NULL};
        BERTH_TRY(parse_target(s->arena, &s->program->devices[d], &one.target));
        BERTH_TRY(berth_arena_try(s->arena, add_sharer, &one));
    }
    return berth_arena_try(s->arena, write_attributes, s);
}

typedef struct own_attributes {
    sharing *sharing;
    const berth_target *target;
} own_attributes;

static berth_status write_own(void *user) {
    const own_attributes *own = user;
    berth_strbuf out = berth_strbuf_make(own->sharing->arena);
    for (uint32_t i = 0; i < own->target->extra_count; ++i)
        berth_strbuf_addf(&out, "%s%s=%lld", i ? " " : "", own->target->extras[i].name,
                          (long long)own->target->extras[i].value);
    if (*own->target->transport)
        berth_strbuf_addf(&out, "%stransport=%s", out.length ? " " : "", own->target->transport);
    if (out.length) own->sharing->attributes = berth_strbuf_text(&out);
    return BERTH_OK;
}

// What is the kind's own among the attributes of a device that is no CPU.
static berth_status find_own(sharing *s) {
    own_attributes own = {.sharing = s};
    BERTH_TRY(parse_target(s->arena, &s->program->devices[s->device], &own.target));
    return berth_arena_try(s->arena, write_own, &own);
}

// Whether a CPU device of the program keeps to a part of the cores.
static bool divides_cores(const berth_program *program) {
    uint32_t count = 0;
    for (uint32_t d = 0; d < program->device_count; ++d) {
        if (!shares_cores(program, d)) continue;
        if (++count > 1 || strstr(program->devices[d].target_json, "\"cpuset\"")) return true;
    }
    return false;
}

berth_status berth_device_choose(berth_allocator allocator, const berth_program *program,
                                 uint32_t device, berth_arena *arena,
                                 berth_device_choice *out_choice) {
    const berth_program_device *wanted = &program->devices[device];
    *out_choice = (berth_device_choice){.ordinal = is_cpu(wanted) ? 0 : wanted->virtual_id};
    bool shares = shares_cores(program, device) && divides_cores(program);
    bool says_more = !is_cpu(wanted) && has_target(wanted);
    if (!shares && shares_cores(program, device) && cores_of(wanted))
        out_choice->attributes = berth_arena_printf(arena, "threads=%u", cores_of(wanted));
    if (!shares && !says_more) return BERTH_OK;
    sharing s = {.program = program, .device = device};
    BERTH_TRY(berth_arena_create(allocator, &s.arena));
    berth_status status = shares ? share_out(&s) : find_own(&s);
    char text[1024] = "";
    if (!status && s.attributes && snprintf(text, sizeof(text), "%s", s.attributes) >= 1024)
        status = berth_status_make(BERTH_OUT_OF_RANGE,
                                   "the attributes of device \"%s\" are too long", wanted->name);
    berth_arena_destroy(s.arena);
    if (!status && *text) out_choice->attributes = berth_arena_strdup(arena, text);
    return status;
}

bool berth_device_choice_equal(const berth_device_choice *a, const berth_device_choice *b) {
    if (a->ordinal != b->ordinal || !a->attributes != !b->attributes) return false;
    return !a->attributes || strcmp(a->attributes, b->attributes) == 0;
}
