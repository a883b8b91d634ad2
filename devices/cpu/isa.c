// What instructions an image of kernels needs, and whether this processor has them: without the
// check, the first kernel would end the process by an illegal instruction.
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "devices/cpu/cpu.h"
#include "target/target.h"

static bool has_feature(const berth_machine_facts *facts, const char *name, size_t length) {
    for (uint32_t i = 0; i < facts->features.count; ++i)
        if (strlen(facts->features.data[i]) == length &&
            memcmp(facts->features.data[i], name, length) == 0)
            return true;
    return false;
}

// `needs`: an architecture, then features, separated by spaces.
static berth_status check(berth_arena *arena, const char *needs) {
    berth_machine_facts facts;
    BERTH_TRY(berth_machine_facts_host(arena, &facts));
    size_t arch_length = strcspn(needs, " ");
    if (strlen(facts.arch) != arch_length || memcmp(facts.arch, needs, arch_length) != 0)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "the kernels were compiled for %.*s processors, this is %s: build "
                                 "the program again for this machine",
                                 (int)arch_length, needs, facts.arch);
    char missing[256] = "";
    size_t used = 0;
    for (const char *at = needs + arch_length; *at;) {
        at += strspn(at, " ");
        size_t length = strcspn(at, " ");
        if (length && !has_feature(&facts, at, length) && used < sizeof(missing))
            used += (size_t)snprintf(missing + used, sizeof(missing) - used, "%s%.*s",
                                     used ? ", " : "", (int)length, at);
        at += length;
    }
    if (!used) return BERTH_OK;
    return berth_status_make(
        BERTH_INCOMPATIBLE,
        "the kernels need a processor with %s, which this one (%s) lacks, or the system does not "
        "give to this process: build the program again here",
        missing, facts.cpu_model);
}

berth_status berth_cpu__isa_check(cpu_device *device, const char *needs) {
    if (!needs || !*needs) return BERTH_OK;
    pthread_mutex_lock(&device->run_lock);
    bool known = strcmp(device->checked_isa, needs) == 0;
    pthread_mutex_unlock(&device->run_lock);
    if (known) return BERTH_OK;
    berth_arena *arena = NULL;
    BERTH_TRY(berth_arena_create(device->base.allocator, &arena));
    berth_status status = check(arena, needs);
    berth_arena_destroy(arena);
    if (status) return status;
    pthread_mutex_lock(&device->run_lock);
    snprintf(device->checked_isa, sizeof(device->checked_isa), "%s", needs);
    pthread_mutex_unlock(&device->run_lock);
    return BERTH_OK;
}
