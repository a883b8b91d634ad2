// How loops are arranged for OpenCL devices, from the target's attributes. On GPUs matrix products
// and convolutions become tiles in local memory, and everything else one work-item per element. On
// processor cores (one work-item at a time: subgroup_size 1) local memory is ordinary memory, so
// the cpu's register tiles, flat loops and vectors along rows serve, one work-group each; products
// that those do not cover go through local memory there too.
#include "compiler/schedule/policy_cpu.h"
#include "compiler/schedule/work_groups.h"

typedef struct opencl_facts {
    bool on_cores;
    berth_cpu_facts cores;  // on_cores
    berth_local_tile_limits limits;
} opencl_facts;

static opencl_facts facts_of(const berth_target *target) {
    opencl_facts facts = {.on_cores = target->subgroup_size == 1};
    facts.cores = berth_cpu__facts_of(target);
    facts.cores.target = NULL;  // the language has no intrinsics
    facts.limits = berth_local_tile_limits_of(target);
    if (facts.on_cores) {
        facts.limits.one_by_one = true;
        facts.limits.lanes = facts.cores.lanes;
    }
    return facts;
}

// On cores, after register tiles and tiles in local memory: the first form that the nest has.
static const struct {
    berth_form form;
    berth_stmt (*make)(berth_tfn *fn, const berth_nest *nest, const berth_cpu_facts *facts);
} core_forms[] = {{BERTH_FORM_FLAT, berth_cpu__flat_loops},
                  {BERTH_FORM_LINES, berth_cpu__lines},
                  {BERTH_FORM_ROW_LANES, berth_cpu__row_lanes}};

static berth_stmt choose_form(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const opencl_facts *facts = user;
    berth_stmt scheduled = 0;
    if (facts->on_cores && berth_decide_form(fn, BERTH_FORM_REGISTER_TILE))
        scheduled = berth_cpu__tile_reduction(fn, nest, &facts->cores);
    if (scheduled) return berth_work_groups(fn, scheduled);
    if (berth_decide_form(fn, BERTH_FORM_LOCAL_TILE))
        scheduled = berth_local_tile(fn, nest, &facts->limits);
    if (!scheduled && !facts->on_cores && berth_decide_form(fn, BERTH_FORM_GROUP_ROWS))
        scheduled = berth_group_rows(fn, nest, &facts->limits);
    if (scheduled || !facts->on_cores) return scheduled;
    for (size_t i = 0; i < sizeof(core_forms) / sizeof(core_forms[0]) && !scheduled; ++i)
        if (berth_decide_form(fn, core_forms[i].form))
            scheduled = core_forms[i].make(fn, nest, &facts->cores);
    return scheduled ? berth_work_groups(fn, scheduled) : 0;
}

static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const opencl_facts *facts = user;
    berth_stmt split = 0;
    if (!facts->on_cores) split = berth_split_sum(fn, nest, &facts->limits, choose_form, user);
    return split ? split : choose_form(fn, nest, user);
}

static berth_stmt schedule_dependent(berth_tfn *fn, const berth_nest *nest, const void *user) {
    const opencl_facts *facts = user;
    if (!facts->on_cores || !berth_decide_form(fn, BERTH_FORM_FLAT)) return 0;
    berth_stmt scheduled = berth_cpu__dependent_rows(fn, nest);
    return scheduled ? berth_work_groups(fn, scheduled) : 0;
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    opencl_facts facts = facts_of(target);
    return berth_schedule_nests_with(fn, schedule_nest, schedule_dependent, &facts);
}

const berth_schedule_policy berth_schedule_policy_opencl = {.kind = "opencl", .apply = apply};
