// Devices of a target that this version makes no code for, in words.
#include "compiler/pipeline.h"
#include "compiler/rules.h"

// Whether devices of the kind can be compiled for, or at least planned where no more is asked.
static bool serves(berth_device_kind kind, bool plan_only) {
    return berth_codegen_find(berth_device_kind_name(kind)) ||
           (plan_only && berth_rules_only_described(kind));
}

// Whether this version serves a device of the target that computes; the kind of one that it does not
// (NULL = there is none).
static bool makes_code(const berth_compile_options *options, const char **out_other) {
    const berth_multi_target *target = options->target;
    bool some = false;
    *out_other = NULL;
    for (uint32_t d = 0; d < target->device_count; ++d) {
        berth_device_kind kind = target->devices[d].target->kind;
        if (target->devices[d].host_only) continue;
        if (serves(kind, options->plan_only))
            some = true;
        else
            *out_other = berth_device_kind_name(kind);
    }
    return some;
}

// Names of the devices that compute and `named` takes, with the last one's kind. "" for none.
static const char *names_of(const berth_compile_options *options, berth_arena *arena,
                            bool (*named)(berth_device_kind kind, bool plan_only)) {
    const berth_multi_target *target = options->target;
    berth_strbuf out = berth_strbuf_make(arena);
    const char *kind = "";
    for (uint32_t d = 0; d < target->device_count; ++d) {
        const berth_target_device *device = &target->devices[d];
        if (device->host_only || !named(device->target->kind, options->plan_only)) continue;
        berth_strbuf_addf(&out, "%s%s", out.length ? ", " : "", device->name);
        kind = berth_device_kind_name(device->target->kind);
    }
    if (out.length) berth_strbuf_addf(&out, " (%s)", kind);
    return berth_strbuf_text(&out);
}

static bool left_out(berth_device_kind kind, bool plan_only) {
    return !serves(kind, plan_only);
}

static bool only_planned(berth_device_kind kind, bool plan_only) {
    return plan_only && berth_rules_only_described(kind) &&
           !berth_codegen_find(berth_device_kind_name(kind));
}

void berth_pipeline__note_no_code(const berth_compile_options *options, berth_arena *arena,
                                  const char **out_left_out, const char **out_planned) {
    const char *names = names_of(options, arena, left_out);
    *out_left_out = *out_planned = NULL;
    if (*names)
        *out_left_out = berth_arena_printf(
            arena, "this version makes no code for %s yet: nothing runs there", names);
    names = names_of(options, arena, only_planned);
    if (*names)
        *out_planned = berth_arena_printf(
            arena, "this version makes no code for %s: it is planned for, and not built", names);
}

// A kind of GPU that has a code generator.
static berth_device_kind gpu_with_code(void) {
    for (int kind = 1; kind < BERTH_DEVICE_KIND_COUNT; ++kind)
        if (berth_device_kind_is_gpu((berth_device_kind)kind) &&
            berth_codegen_find(berth_device_kind_name((berth_device_kind)kind)))
            return (berth_device_kind)kind;
    return BERTH_DEVICE_FREE;
}

berth_status berth_pipeline__explain_no_code(const berth_compile_options *options,
                                             berth_arena *arena, berth_status status) {
    const char *other = NULL;
    if (berth_status_code(status) != BERTH_UNSUPPORTED || makes_code(options, &other))
        return status;
    const berth_remedy plan = {BERTH_REMEDY_LOOK, "plan"};
    status = berth_status_prefix(
        status,
        "this version makes code for %s devices, and the target has none of them that computes: "
        "add one (\"%s,cpu\")%s",
        berth_codegen_kinds(arena), other ? other : berth_device_kind_name(gpu_with_code()),
        options->plan_only ? "" : ", or only plan");
    return options->plan_only ? status : berth_status_with_remedies(status, &plan, 1);
}

berth_status berth_pipeline__refuse_described(const berth_multi_target *target) {
    for (uint32_t d = 0; d < target->device_count; ++d) {
        const berth_target_device *device = &target->devices[d];
        if (device->host_only || !berth_rules_only_described(device->target->kind)) continue;
        const char *kind = berth_device_kind_name(device->target->kind);
        const berth_remedy looks[] = {{BERTH_REMEDY_LOOK, "plan"},
                                      {BERTH_REMEDY_LOOK, "simulation"}};
        return berth_status_with_remedies(
            berth_status_make(BERTH_UNSUPPORTED,
                              "there is no code generator for devices of kind %s (%s): they can be "
                              "planned for and simulated; to build and run, leave the device out "
                              "of the target",
                              kind, device->name),
            looks, sizeof(looks) / sizeof(looks[0]));
    }
    return BERTH_OK;
}
