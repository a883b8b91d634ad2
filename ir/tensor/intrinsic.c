#include "ir/tensor/intrinsic.h"

#include <string.h>

#include "ir/extend.h"
#include "ir/text.h"

#define BERTH_INTRINSIC_OPERANDS(c, c_lanes, a, a_lanes, b, b_lanes)                               \
    {                                                                                              \
        {BERTH_DTYPE_##c, c_lanes}, {BERTH_DTYPE_##a, a_lanes}, {                                  \
            BERTH_DTYPE_##b, b_lanes                                                               \
        }                                                                                          \
    }
static const berth_intrinsic_facts table[BERTH_INTRINSIC_COUNT] = {
#define BERTH_INTRINSIC(id, name_, needs_, operands_, reference_, c_, opencl_, cuda_)              \
    [BERTH_INTRINSIC_##id] = {.name = name_,                                                       \
                              .needs = needs_,                                                     \
                              .operands = operands_,                                               \
                              .reference = reference_,                                             \
                              .c = c_,                                                             \
                              .opencl = opencl_,                                                   \
                              .cuda = cuda_},
#include "ir/tensor/intrinsics.def"
};

const berth_intrinsic_facts *berth_intrinsic_get(berth_intrinsic id) {
    return id < BERTH_INTRINSIC_COUNT ? &table[id] : berth_intrinsic_registered(id);
}

bool berth_intrinsic_from_name(const char *name, size_t length, berth_intrinsic *out) {
    for (int i = 0; i < BERTH_INTRINSIC_COUNT; ++i) {
        if (strlen(table[i].name) != length || memcmp(table[i].name, name, length) != 0) continue;
        *out = (berth_intrinsic)i;
        return true;
    }
    const berth_intrinsic_facts *facts = NULL;
    berth_intrinsic id = BERTH_INTRINSIC_FIRST_REGISTERED;
    for (; (facts = berth_intrinsic_registered(id)); ++id) {
        if (strlen(facts->name) != length || memcmp(facts->name, name, length) != 0) continue;
        *out = id;
        return true;
    }
    return false;
}

berth_status berth_intrinsic_reference(berth_arena *arena, berth_intrinsic id,
                                       const berth_tfn **out) {
    berth_module *module = NULL;
    const berth_intrinsic_facts *facts = berth_intrinsic_get(id);
    const char *text = facts->reference;
    *out = NULL;
    BERTH_TRY(berth_module_parse(arena, text, strlen(text), facts->name, &module));
    *out = berth_tfn_get(module, 0);
    return BERTH_OK;
}
