// How loops are arranged for CUDA devices, from the target's attributes: matrix products and
// convolutions become tiles in shared memory, and everything else one thread per element.
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/work_groups.h"

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    // What a block may declare without asking the driver for more (CUDA C++ Programming Guide,
    // "Shared Memory").
    static const int64_t static_bytes = 48 << 10;
    berth_local_tile_limits limits = {.lanes = 4,
                                      .rows = 8,
                                      .group_columns = 16,
                                      .group_rows = 8,
                                      .group_size = target->max_group_size,
                                      .local_memory_bytes = target->local_memory_bytes,
                                      .compute_units = target->compute_units};
    if (limits.local_memory_bytes > static_bytes) limits.local_memory_bytes = static_bytes;
    return berth_schedule_nests(fn, berth_gpu__schedule_nest, &limits);
}

const berth_schedule_policy berth_schedule_policy_cuda = {.kind = "cuda", .apply = apply};
