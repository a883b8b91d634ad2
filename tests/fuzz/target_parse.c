// Fuzzes the target parser with no files allowed. What parses must print, read back and stay the
// same.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "target_parse: %s\n", what);
    abort();
}

static void check_target(berth_arena *arena, const berth_multi_target *target,
                         const berth_target_options *options) {
    check(target->host < target->device_count, "no host");
    check(target->default_device < target->device_count, "no default device");
    for (uint32_t i = 0; i < target->device_count; ++i)
        check(target->devices[i].own_memory < target->memory_count, "a device without memory");
    berth_multi_target *again = NULL;
    berth_status status = berth_target_parse(arena, target->canonical, options, &again);
    if (status) fprintf(stderr, "%s\n%s\n", target->canonical, berth_status_message(status));
    check(!status, "the canonical form does not parse");
    check(berth_multi_target_equal(target, again), "the canonical form is not a fixed point");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 65536) return 0;
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    check(!status, "out of memory");
    static const char *const features[] = {"avx2"};
    static const berth_machine_facts machine = {
        .cpu_model = "", .arch = "x86_64", .cpu = "", .features = {features, 1}, .cores = 2};
    berth_target_options options = {.machine = &machine, .no_files = true};
    // The first line may be an override.
    char *line = strchr(text, '\n');
    const char *overrides[] = {text, NULL};
    const char *source = text;
    if (line && strncmp(text, "set ", 4) == 0) {
        *line = 0;
        overrides[0] = text + 4;
        options.overrides = overrides;
        source = line + 1;
    }
    berth_multi_target *target = NULL;
    status = berth_target_parse(arena, source, &options, &target);
    check(!status == (target != NULL), "a status and a target, or neither");
    berth_target_options plain = {.no_files = true};
    if (target) check_target(arena, target, &plain);
    berth_status_free(status);
    berth_virtual_device device;
    berth_status_ignore(berth_virtual_device_from_name(arena, source, &device));
    berth_arena_destroy(arena);
    free(text);
    return 0;
}
