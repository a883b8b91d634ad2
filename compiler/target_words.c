#include "compiler/target_words.h"

#include <string.h>

#include "compiler/codegen/codegen.h"
#include "ir/extend.h"
#include "ir/tensor/intrinsic.h"

// Whether `word` is one of those that `+` and `|` part.
static bool is_among(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; *at; at += strspn(at, "+|")) {
        size_t here = strcspn(at, "+|");
        if (here == length && memcmp(at, word, length) == 0) return true;
        at += here;
    }
    return false;
}

static bool is_needed(const char *word) {
    for (int i = 0; i < BERTH_INTRINSIC_COUNT; ++i)
        if (is_among(berth_intrinsic_get((berth_intrinsic)i)->needs, word)) return true;
    for (int i = BERTH_INTRINSIC_FIRST_REGISTERED; berth_intrinsic_registered((berth_intrinsic)i);
         ++i)
        if (is_among(berth_intrinsic_registered((berth_intrinsic)i)->needs, word)) return true;
    return false;
}

// Of a processor of the target: devices that are its cores behind another interface (lavapipe) have them, too.
static bool is_of_processor(const berth_multi_target *target, const char *word) {
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (berth_device_kind_is_host(target->devices[d].target->kind) &&
            berth_target_has_feature(target->devices[d].target, word))
            return true;
    return false;
}

static void check_device(const berth_multi_target *multi, const berth_target_device *device,
                         berth_log log) {
    const berth_target *target = device->target;
    const berth_codegen *codegen = berth_codegen_find(berth_device_kind_name(target->kind));
    const char *arch = target->arch;
    if (codegen && codegen->plain_archs && *arch && !is_needed(arch) &&
        !is_among(codegen->plain_archs, arch))
        berth_log_message(log, BERTH_LOG_WARNING,
                          "arch \"%s\" of device \"%s\" is none that kernels know (sm_80, sm_90a, "
                          "...): they use no matrix units, copies ahead or sums of warps",
                          arch, device->name);
    for (uint32_t i = 0; codegen && codegen->features && i < target->features.count; ++i) {
        const char *word = target->features.data[i];
        if (is_needed(word) || is_among(codegen->features, word) || is_of_processor(multi, word))
            continue;
        berth_log_message(log, BERTH_LOG_WARNING,
                          "feature \"%s\" of device \"%s\" is none that kernels use", word,
                          device->name);
    }
}

void berth_target_words_check(const berth_multi_target *target, berth_log log) {
    for (uint32_t d = 0; d < target->device_count; ++d)
        check_device(target, &target->devices[d], log);
}
