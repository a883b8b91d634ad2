// Members of families that are kept: found by family and values, and the latest ones only.
#include <criterion/criterion.h>

#include "executor/vm_shapes.h"
#include "tests/check.h"

enum { families = 3 };

static berth_vm_shape *firsts[families];
static berth_vm_shapes shapes;

static void setup(void) {
    shapes = (berth_vm_shapes){.firsts = firsts};
}

static void teardown(void) {
    berth_vm_shapes_close(&shapes);
    for (int i = 0; i < families; ++i) firsts[i] = NULL;
}

TestSuite(shapes, .init = setup, .fini = teardown);

static const berth_program program;

static berth_vm_shape *add(uint32_t family, int64_t a, int64_t b, bool with_program) {
    berth_vm_shape *made = berth_calloc(berth_allocator_system(), 1, sizeof(*made));
    made->family = family;
    made->values[0] = a;
    made->values[1] = b;
    made->variant.program = with_program ? &program : NULL;
    berth_vm_shapes_add(&shapes, made);
    return made;
}

static berth_vm_shape *find(uint32_t family, int64_t a, int64_t b) {
    const int64_t values[BERTH_FAMILY_VARIABLES] = {a, b};
    return berth_vm_shapes_find(&shapes, family, values);
}

Test(shapes, are_found_by_family_and_values) {
    berth_vm_shape *x = add(0, 1, 2, true), *y = add(1, 1, 2, true), *z = add(0, 2, 1, false);
    cr_assert_eq(find(0, 1, 2), x);
    cr_assert_eq(find(1, 1, 2), y);
    cr_assert_eq(find(0, 2, 1), z);
    cr_assert_null(find(1, 2, 1));
    cr_assert_null(find(2, 1, 2));
    cr_assert_eq(firsts[0], x);
    cr_assert_eq(firsts[1], y);
    cr_assert_null(firsts[2]);
}

// The first one with a program stays, since others share its code.
Test(shapes, the_one_not_used_for_longest_goes) {
    berth_vm_shape *first = add(0, 0, 0, true);
    for (int i = 1; i <= BERTH_VM_SHAPES_KEPT; ++i) add(0, i, 0, true);
    cr_assert_not_null(find(0, 1, 0));  // used now: 2 is the oldest
    add(1, 0, 0, false);                // of another kind: nothing goes
    cr_assert_not_null(find(0, 2, 0));
    cr_assert_not_null(find(0, 1, 0));
    add(0, 1000, 0, true);
    cr_assert_null(find(0, 3, 0));
    cr_assert_not_null(find(0, 1, 0));
    cr_assert_not_null(find(0, 2, 0));
    cr_assert_eq(find(0, 0, 0), first);
}

Test(shapes, more_results_are_kept) {
    for (int i = 0; i <= BERTH_VM_SHAPE_RESULTS_KEPT; ++i) add(2, i, i, false);
    cr_assert_null(find(2, 0, 0));
    for (int i = 1; i <= BERTH_VM_SHAPE_RESULTS_KEPT; ++i) cr_assert_not_null(find(2, i, i));
    cr_assert_null(firsts[2]);
}
