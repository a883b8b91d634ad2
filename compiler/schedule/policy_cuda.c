// How loops are arranged for CUDA devices, from the target's attributes: matrix products and
// convolutions become tiles in shared memory, on the matrix units where the device has them for the
// type, and everything else one thread per element.
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/work_groups.h"

typedef struct cuda_facts {
    const berth_target *target;
    berth_local_tile_limits limits;
} cuda_facts;

static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const cuda_facts *facts = user;
    berth_stmt tiled = 0;
    if (berth_decide_form(fn, BERTH_FORM_MATRIX_TILE))
        tiled = berth_matrix_tile(fn, nest, &facts->limits, facts->target);
    return tiled ? tiled : berth_gpu__schedule_nest(fn, nest, &facts->limits);
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    // What a block may declare without asking the driver for more (CUDA C++ Programming Guide,
    // "Shared Memory").
    static const int64_t static_bytes = 48 << 10;
    cuda_facts facts = {.target = target, .limits = berth_local_tile_limits_of(target)};
    if (facts.limits.local_memory_bytes > static_bytes)
        facts.limits.local_memory_bytes = static_bytes;
    return berth_schedule_nests(fn, schedule_nest, &facts);
}

const berth_schedule_policy berth_schedule_policy_cuda = {.kind = "cuda", .apply = apply};
