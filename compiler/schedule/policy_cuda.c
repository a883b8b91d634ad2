// How loops are arranged for CUDA devices, from the target's attributes: matrix products and
// convolutions become tiles in shared memory, on the matrix units where the device has them for the
// type, and everything else one thread per element.
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/tensorize.h"
#include "compiler/schedule/work_groups.h"

static berth_stmt choose_form(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const berth_local_tile_limits *limits = user;
    berth_stmt tiled = 0;
    if (berth_decide_form(fn, BERTH_FORM_GROUP_MATRIX_TILE))
        tiled = berth_group_matrix_tile(fn, nest, limits);
    if (!tiled && berth_decide_form(fn, BERTH_FORM_MATRIX_TILE))
        tiled = berth_matrix_tile(fn, nest, limits);
    return tiled ? tiled : berth_gpu__choose_form(fn, nest, limits);
}

static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *nest, const void *limits) {
    berth_stmt split = berth_split_sum(fn, nest, limits, choose_form, limits);
    return split ? split : choose_form(fn, nest, limits);
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    // Of a multiprocessor with more than 48 KiB for a block: 1 KiB more than a block may have, of
    // which each takes that beside its own, and 65,536 registers (CUDA C++ Programming Guide,
    // "Technical Specifications per Compute Capability").
    // It has up to 2048 threads at once (1536 on some), and what is in flight of its loads is theirs.
    static const int64_t beside_a_block = 1 << 10, registers = 65536, threads = 2048;
    berth_local_tile_limits limits = berth_local_tile_limits_of(target);
    limits.target = target;
    limits.unit_items = threads;
    // 64 results of a thread, whose operands come 16 bytes at a time: 4 loads beside 64 products.
    limits.vectors = 2;
    limits.row_terms = 4;
    int64_t declared = berth_target_declared_local_bytes(target);
    if (limits.local_memory_bytes > declared) {
        limits.most_memory_bytes = limits.local_memory_bytes;
        limits.unit_memory_bytes = limits.local_memory_bytes + beside_a_block;
        limits.unit_registers = registers;
        limits.local_memory_bytes = declared;
    }
    // cp.async has come with these units. Three tiles: two in flight while one is computed with.
    if (berth_intrinsic_serves(BERTH_INTRINSIC_MMA_F16, target)) limits.copy_stages = 3;
    return berth_schedule_nests(fn, schedule_nest, &limits);
}

const berth_schedule_policy berth_schedule_policy_cuda = {.kind = "cuda", .apply = apply};
