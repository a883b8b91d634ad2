// Segments of the virtual machine divided by what changes between two runs.
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <string.h>

#include "compiler/vm/vm.h"
#include "ir/text.h"
#include "tests/check.h"

// Two equal layers over a cache of P rows, and a mask that both read.
static const char layers[] =
    "module \"m\"\n"
    "graph @main(%x: f32[1,B], %k0: f32[P,16], %k1: f32[P,16], %w: f32[16,16], %m: f32[1,T]) {\n"
    "  %h0 = matmul(%x, %w)\n  %a0 = tanh(%h0)\n  %q0 = add(%a0, %x)\n"
    "  %e = exp(%m)\n  %f = abs(%e)\n  %g = neg(%f)\n"
    "  %c0 = concat(%k0, %q0) {axis = 0}\n  %t0 = transpose(%c0) {perm = [1, 0]}\n  %r0 = "
    "matmul(%q0, %t0)\n  %s0 = add(%r0, %g)\n"
    "  %p0 = softmax(%s0) {axis = -1}\n  %o0 = matmul(%p0, %c0)\n"
    "  %h1 = matmul(%o0, %w)\n  %a1 = tanh(%h1)\n  %q1 = add(%a1, %x)\n"
    "  %c1 = concat(%k1, %q1) {axis = 0}\n  %t1 = transpose(%c1) {perm = [1, 0]}\n  %r1 = "
    "matmul(%q1, %t1)\n  %s1 = add(%r1, %g)\n"
    "  %p1 = softmax(%s1) {axis = -1}\n  %o1 = matmul(%p1, %c1)\n"
    "  %h2 = matmul(%o1, %w)\n  %a2 = tanh(%h2)\n  %y = add(%a2, %x)\n"
    "  return %y\n}\n";

// The same with caches of columns, which are transposed before a column comes to them.
static const char columns[] =
    "module \"m\"\n"
    "graph @main(%x: f32[1,B], %k0: f32[P,16], %k1: f32[P,16], %w: f32[16,16], %m: f32[1,T]) {\n"
    "  %h0 = matmul(%x, %w)\n  %a0 = tanh(%h0)\n  %q0 = add(%a0, %x)\n"
    "  %n0 = transpose(%q0) {perm = [1, 0]}\n"
    "  %e = exp(%m)\n  %f = abs(%e)\n  %g = neg(%f)\n"
    "  %u0 = transpose(%k0) {perm = [1, 0]}\n  %t0 = concat(%u0, %n0) {axis = 1}\n"
    "  %r0 = matmul(%q0, %t0)\n  %s0 = add(%r0, %g)\n  %p0 = softmax(%s0) {axis = -1}\n"
    "  %c0 = transpose(%t0) {perm = [1, 0]}\n  %o0 = matmul(%p0, %c0)\n"
    "  %h1 = matmul(%o0, %w)\n  %a1 = tanh(%h1)\n  %q1 = add(%a1, %x)\n"
    "  %n1 = transpose(%q1) {perm = [1, 0]}\n"
    "  %u1 = transpose(%k1) {perm = [1, 0]}\n  %t1 = concat(%u1, %n1) {axis = 1}\n"
    "  %r1 = matmul(%q1, %t1)\n  %s1 = add(%r1, %g)\n  %p1 = softmax(%s1) {axis = -1}\n"
    "  %c1 = transpose(%t1) {perm = [1, 0]}\n  %o1 = matmul(%p1, %c1)\n"
    "  %h2 = matmul(%o1, %w)\n  %a2 = tanh(%h2)\n  %y = add(%a2, %x)\n"
    "  return %y\n}\n";

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_vm_code code;
} fixture;

static fixture begin_with(const char *text) {
    fixture f = {.arena = NULL};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "test.txt", &f.module));
    assert_ok(berth_vm_emit(f.module, (berth_log){0}, false, &f.code));
    cr_assert_eq(f.code.program->segment_count, 1);
    return f;
}

static fixture begin(void) {
    return begin_with(layers);
}

// Inputs of the segment for a cache of `rows`; `known` ones there are none.
static void make_inputs(const fixture *f, int64_t rows, berth_tensor *out_inputs) {
    const berth_vm_segment *segment = &f->code.segments[0];
    const berth_graph *graph = berth_graph_get(f->module, segment->function);
    for (uint32_t i = 0; i < segment->input_count; ++i) {
        const berth_value *value = &graph->values.data[segment->inputs[i]];
        const char *name = berth_module_str(f->module, value->name);
        const berth_type *type = berth_type_get(f->module, value->type);
        cr_assert(!segment->known[i]);
        out_inputs[i] = (berth_tensor){.dtype = type->dtype, .rank = type->rank};
        for (int d = 0; d < type->rank; ++d) out_inputs[i].dims[d] = 16;
        if (name[0] == 'k') out_inputs[i].dims[0] = rows;
        if (name[0] == 'm') out_inputs[i].dims[1] = rows + 1;
        if (name[0] == 'm' || name[0] == 'x') out_inputs[i].dims[0] = 1;
    }
}

enum { most_inputs = 8 };

Test(vm_split, equal_layers_have_equal_parts) {
    fixture f = begin();
    berth_tensor before[most_inputs], now[most_inputs];
    berth_vm_split split;
    make_inputs(&f, 4, before);
    make_inputs(&f, 5, now);
    assert_ok(berth_vm_segment_split(f.module, &f.code.segments[0], before, now, f.arena, &split));
    // before layer 0, mask, attention, between, attention, after
    static const uint32_t sizes[] = {3, 3, 6, 3, 6, 3};
    uint32_t equal = 0, found[6] = {0};
    cr_assert_eq(split.step_count, 6);
    for (uint32_t i = 0; i < 6; ++i) found[i] = split.steps[i].segment.op_count;
    cr_assert_arr_eq(found, sizes, sizeof(sizes));
    for (uint32_t i = 0; i < 6; ++i)
        for (uint32_t k = 0; k < i; ++k)
            equal += berth_hash128_equal(split.steps[i].key, split.steps[k].key);
    cr_assert(berth_hash128_equal(split.steps[2].key, split.steps[4].key));
    cr_assert_eq(equal, 2, "the attentions, and what lies between and after them");
    berth_arena_destroy(f.arena);
}

Test(vm_split, what_is_done_to_a_cache_belongs_to_its_layer) {
    fixture f = begin_with(columns);
    berth_tensor before[most_inputs], now[most_inputs];
    berth_vm_split split;
    make_inputs(&f, 4, before);
    make_inputs(&f, 5, now);
    assert_ok(berth_vm_segment_split(f.module, &f.code.segments[0], before, now, f.arena, &split));
    // before layer 0, mask, attention with both transpositions, between, attention, after
    static const uint32_t sizes[] = {4, 3, 7, 4, 7, 3};
    uint32_t found[6] = {0};
    cr_assert_eq(split.step_count, 6);
    for (uint32_t i = 0; i < 6; ++i) found[i] = split.steps[i].segment.op_count;
    cr_assert_arr_eq(found, sizes, sizeof(sizes));
    cr_assert(berth_hash128_equal(split.steps[2].key, split.steps[4].key));
    berth_arena_destroy(f.arena);
}

Test(vm_split, what_changes_as_a_whole_stays_whole) {
    fixture f = begin();
    berth_tensor before[most_inputs], now[most_inputs];
    berth_vm_split split;
    make_inputs(&f, 4, before);
    make_inputs(&f, 4, now);
    assert_ok(berth_vm_segment_split(f.module, &f.code.segments[0], before, now, f.arena, &split));
    cr_assert_eq(split.step_count, 0);
    berth_arena_destroy(f.arena);
}

Test(vm_split, without_memory_nothing_is_divided) {
    fixture f = begin();
    berth_tensor before[most_inputs], now[most_inputs];
    make_inputs(&f, 4, before);
    make_inputs(&f, 5, now);
    for (int64_t at = 2;; ++at) {  // the first allocation is the arena itself
        berth_counting_allocator counting;
        berth_counting_allocator_init(&counting, berth_allocator_system());
        counting.fail_at = at;
        berth_arena *arena = NULL;
        assert_ok(berth_arena_create(berth_counting_allocator_get(&counting), &arena));
        berth_vm_split split;
        berth_status status =
            berth_vm_segment_split(f.module, &f.code.segments[0], before, now, arena, &split);
        bool done = !status;
        if (!done) {
            cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
            cr_assert_eq(split.step_count, 0);
        }
        berth_status_free(status);
        berth_arena_destroy(arena);
        cr_assert_eq(atomic_load(&counting.live_count), 0);
        if (done) break;
        cr_assert_lt(at, 10000);
    }
    berth_arena_destroy(f.arena);
}
