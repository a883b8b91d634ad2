// How loops are arranged for CPUs, from the target's vector width, registers and caches. Reductions
// with a vectorisable output (matrix products, convolutions, pools) become register tiles;
// elementwise nests become long flat loops; loops along the rows of what fits neither become
// vectors; the rest keeps its plain loops, the outermost ones in parallel.
#include "compiler/schedule/policy_cpu.h"

berth_cpu_facts berth_cpu__facts_of(const berth_target *target) {
    berth_cpu_facts facts = {.caps = {.rows = target->tile_rows,
                                      .own_vectors = target->tile_own_rows,
                                      .colliding = target->tile_page_rows,
                                      .unroll_terms = target->unrolled_terms,
                                      .singles = target->tile_singles,
                                      .sums = target->sums_in_flight},
                             .lanes = 4,
                             .registers = target->vector_registers,
                             .l1_bytes = target->l1_bytes,
                             .l2_bytes = target->l2_bytes,
                             .target = target};
    if (target->vector_bits >= 256) facts.lanes = target->vector_bits >= 512 ? 16 : 8;
    if (facts.l1_bytes == 0) facts.l1_bytes = 32 << 10;
    if (facts.l2_bytes == 0) facts.l2_bytes = 512 << 10;
    return facts;
}

static bool has_loops(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    if (!id) return false;
    if (node->kind == BERTH_STMT_FOR) return true;
    if (node->kind == BERTH_STMT_IF) return has_loops(fn, node->body) || has_loops(fn, node->other);
    for (uint32_t i = 0; node->kind == BERTH_STMT_SEQ && i < node->count; ++i)
        if (has_loops(fn, fn->lists.data[node->first + i])) return true;
    return false;
}

berth_stmt berth_cpu__vector_tables(berth_tfn *fn, berth_nest nest, const berth_cpu_facts *facts) {
    int64_t extent = nest.loops[nest.count - 1].extent;
    int64_t lanes = facts->lanes;
    while (extent % lanes && lanes > BERTH_CPU_LEAST_LANES) lanes /= 2;
    if (has_loops(fn, nest.body) || extent % lanes) return 0;
    berth_status status = BERTH_OK;
    if (extent != lanes) status = berth_schedule_split(fn, &nest, nest.count - 1, lanes);
    if (!status) status = berth_schedule_vectorize(fn, &nest);
    if (status) {
        berth_decisions_refuse(fn, status);
        return 0;
    }
    for (int i = 0; i < nest.count; ++i)
        nest.loops[i].kind =
            i + 1 < nest.count || nest.count == 1 ? BERTH_LOOP_PARALLEL : BERTH_LOOP_SERIAL;
    return berth_nest_emit(fn, &nest);
}

static berth_stmt tables(berth_tfn *fn, const berth_nest *nest, const berth_cpu_facts *facts) {
    return berth_cpu__vector_tables(fn, *nest, facts);
}

static berth_stmt lines(berth_tfn *fn, const berth_nest *nest, const berth_cpu_facts *facts) {
    berth_stmt made = berth_cpu__lines(fn, nest, facts);
    if (!made) made = berth_cpu__plain_lines(fn, nest, facts);
    return made ? made : berth_cpu__short_rows(fn, nest, facts);
}

// The first form that the nest has, in this order.
static const struct {
    berth_form form;
    berth_stmt (*make)(berth_tfn *fn, const berth_nest *nest, const berth_cpu_facts *facts);
} forms[] = {{BERTH_FORM_PACKED, berth_cpu__pad_operand},
             {BERTH_FORM_REGISTER_TILE, berth_cpu__tile_reduction},
             {BERTH_FORM_PACKED, berth_cpu__pack_operand},
             {BERTH_FORM_TRANSPOSED, berth_cpu__transpose_blocks},
             {BERTH_FORM_REPEATED, berth_cpu__repeat_rows},
             {BERTH_FORM_BYTE_TABLE, berth_cpu__byte_table},
             {BERTH_FORM_HOISTED, berth_cpu__hoist_tables},
             {BERTH_FORM_FLAT, berth_cpu__flat_loops},
             {BERTH_FORM_TABLES, tables},
             {BERTH_FORM_LINES, lines},
             {BERTH_FORM_TERMS, berth_cpu__window_terms},
             {BERTH_FORM_ROW_LANES, berth_cpu__row_lanes}};

static berth_stmt schedule_nest(berth_tfn *fn, const berth_nest *nest, const void *user) {
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); ++i) {
        if (!berth_decide_form(fn, forms[i].form)) continue;
        berth_stmt scheduled = forms[i].make(fn, nest, user);
        if (scheduled) return scheduled;
    }
    return 0;
}

static berth_stmt schedule_dependent(berth_tfn *fn, const berth_nest *nest, const void *user) {
    (void)user;
    return berth_decide_form(fn, BERTH_FORM_FLAT) ? berth_cpu__dependent_rows(fn, nest) : 0;
}

static berth_status apply(berth_tfn *fn, const berth_target *target) {
    berth_cpu_facts facts = berth_cpu__facts_of(target);
    facts.any_size = fn->any_size && !fn->same_tiles;
    facts.any_groups = fn->any_size;
    return berth_schedule_nests_with(fn, schedule_nest, schedule_dependent, &facts);
}

const berth_schedule_policy berth_schedule_policy_cpu = {
    .kind = "cpu", .apply = apply, .skips_zeros = true};
