// How loops are arranged for devices that run work-groups (cuda, opencl, vulkan), from the target's attributes: matrix
// products and convolutions become tiles in local memory, on matrix units where the target has an instruction for the
// type, few results of long sums are computed in parts, sums along rows have a group each, and everything else is one
// work-item per element.
//
// On processor cores that run one work-item at a time (PoCL's) local memory is ordinary memory, so the cpu's register
// tiles, flat loops and vectors along rows serve, one work-group each; products that those do not cover go through local
// memory there too. lavapipe runs a subgroup of work-items as one vector: it wants what GPUs want.
#include "compiler/schedule/policy_cpu.h"
#include "compiler/schedule/tensorize.h"
#include "compiler/schedule/work_groups.h"

typedef struct gpu_facts {
    bool on_cores;
    berth_cpu_facts cores;  // on_cores
    berth_local_tile_limits limits;
} gpu_facts;

static berth_local_tile_limits limits_of(const berth_target *target) {
    // Of a CUDA multiprocessor with more than 48 KiB for a block: 1 KiB more than a block may have, of which each takes that
    // beside its own, and 65,536 registers (CUDA C++ Programming Guide, "Technical Specifications per Compute
    // Capability"). It has up to 2048 threads at once (1536 on some), and what is in flight of its loads is theirs.
    static const int64_t beside_a_group = 1 << 10, registers = 65536, threads = 2048;
    berth_local_tile_limits limits = berth_local_tile_limits_of(target);
    limits.target = target;
    if (berth_target_has_warps(target)) {
        limits.unit_items = threads;
        // 64 results of a thread, whose operands come 16 bytes at a time: 4 loads beside 64 products.
        limits.vectors = 2;
        limits.row_terms = 4;
    }
    int64_t declared = berth_target_declared_local_bytes(target);
    if (limits.local_memory_bytes > declared) {
        limits.most_memory_bytes = limits.local_memory_bytes;
        limits.unit_memory_bytes = limits.local_memory_bytes + beside_a_group;
        limits.unit_registers = registers;
        limits.local_memory_bytes = declared;
    }
    // Copies that go on by themselves (cp.async) have come with these units. Three tiles: two in flight while one is
    // computed with.
    if (berth_intrinsic_serves(BERTH_INTRINSIC_MMA_F16, target)) limits.copy_stages = 3;
    return limits;
}

static gpu_facts facts_of(const berth_target *target) {
    gpu_facts facts = {.on_cores = !berth_target_has_groups(target), .limits = limits_of(target)};
    if (!facts.on_cores) return facts;
    facts.cores = berth_cpu__facts_of(target);
    facts.cores.target = NULL;  // the languages lack the cores' intrinsics
    facts.limits.one_by_one = true;
    facts.limits.lanes = facts.cores.lanes;
    return facts;
}

typedef struct group_form {
    berth_form form;
    berth_stmt (*make)(berth_tfn *fn, const berth_nest *nest,
                       const berth_local_tile_limits *limits);
} group_form;

// The first form that the nest has.
static const group_form group_forms[] = {{BERTH_FORM_GROUP_MATRIX_TILE, berth_group_matrix_tile},
                                         {BERTH_FORM_MATRIX_TILE, berth_matrix_tile},
                                         {BERTH_FORM_LOCAL_TILE, berth_local_tile},
                                         {BERTH_FORM_GROUP_ROWS, berth_group_rows}};

typedef struct core_form {
    berth_form form;
    berth_stmt (*make)(berth_tfn *fn, const berth_nest *nest, const berth_cpu_facts *facts);
} core_form;

// The same on cores, where tiles in local memory come behind the first.
static const core_form core_forms[] = {{BERTH_FORM_REGISTER_TILE, berth_cpu__tile_reduction},
                                       {BERTH_FORM_FLAT, berth_cpu__flat_loops},
                                       {BERTH_FORM_LINES, berth_cpu__lines},
                                       {BERTH_FORM_ROW_LANES, berth_cpu__row_lanes}};

// One work-item per iteration of all loops.
static berth_stmt items(berth_tfn *fn, berth_nest nest) {
    for (int i = 0; i < nest.count; ++i)
        if (nest.loops[i].kind == BERTH_LOOP_SERIAL) nest.loops[i].kind = BERTH_LOOP_PARALLEL;
    return berth_nest_emit(fn, &nest);
}

static berth_stmt form_on_cores(berth_tfn *fn, const berth_nest *nest, const gpu_facts *facts) {
    for (size_t i = 0; i < sizeof(core_forms) / sizeof(core_forms[0]); ++i) {
        berth_stmt scheduled = 0;
        if (i == 1 && berth_decide_form(fn, BERTH_FORM_LOCAL_TILE))
            scheduled = berth_local_tile(fn, nest, &facts->limits);
        if (scheduled) return scheduled;
        if (berth_decide_form(fn, core_forms[i].form))
            scheduled = core_forms[i].make(fn, nest, &facts->cores);
        if (scheduled) return berth_work_groups(fn, scheduled);
    }
    return 0;
}

static berth_stmt choose_form(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const gpu_facts *facts = user;
    if (facts->on_cores) return form_on_cores(fn, nest, facts);
    for (size_t i = 0; i < sizeof(group_forms) / sizeof(group_forms[0]); ++i) {
        berth_stmt scheduled = 0;
        if (berth_decide_form(fn, group_forms[i].form))
            scheduled = group_forms[i].make(fn, nest, &facts->limits);
        if (scheduled) return scheduled;
    }
    return berth_decide_form(fn, BERTH_FORM_ITEMS) ? items(fn, *nest) : 0;
}

static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const gpu_facts *facts = user;
    berth_stmt split = 0;
    if (!facts->on_cores) split = berth_split_sum(fn, nest, &facts->limits, choose_form, user);
    return split ? split : choose_form(fn, nest, user);
}

static berth_stmt schedule_dependent(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const gpu_facts *facts = user;
    if (!facts->on_cores || !berth_decide_form(fn, BERTH_FORM_FLAT)) return 0;
    berth_stmt scheduled = berth_cpu__dependent_rows(fn, nest);
    return scheduled ? berth_work_groups(fn, scheduled) : 0;
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    gpu_facts facts = facts_of(target);
    return berth_schedule_nests_with(fn, schedule_nest, schedule_dependent, &facts);
}

const berth_schedule_policy berth_schedule_policy_cuda = {.kind = "cuda", .apply = apply};
const berth_schedule_policy berth_schedule_policy_opencl = {.kind = "opencl", .apply = apply};
const berth_schedule_policy berth_schedule_policy_vulkan = {.kind = "vulkan", .apply = apply};
