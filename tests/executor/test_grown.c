// Tensors that grow: rows are added in place where nobody else added any, and values never change.
#include <criterion/criterion.h>
#include <string.h>

#include "executor/vm_grown.h"
#include "tests/check.h"

enum { outer = 2, width = 3, capacity = 4 };
static const berth_program_room room = {
    .axis = 1, .outer = outer, .capacity = capacity, .row_bytes = width * sizeof(float)};

static const berth_vm_memory host;
static berth_vm_traffic traffic;

static berth_vm_value *dense_rows(int64_t rows) {
    berth_vm_value *value = NULL;
    const int64_t dims[] = {outer, rows, width};
    assert_ok(berth_vm_value_tensor(berth_allocator_system(), BERTH_DTYPE_F32, 3, dims, &value));
    for (int64_t i = 0; i < outer * rows * width; ++i) ((float *)value->tensor.data)[i] = (float)i;
    return value;
}

// One row more, of `number` everywhere, as a segment would write it.
static berth_status add(berth_vm_value *before, float number, uint64_t *copied,
                        berth_vm_value **out) {
    const int64_t rows = before->tensor.dims[1];
    const berth_program_tensor made = {
        .dtype = BERTH_DTYPE_F32, .rank = 3, .dims = {outer, rows + 1, width}};
    BERTH_TRY(berth_vm_grown_make(before, &made, &room, host, &traffic, copied, out));
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < width; ++i)
            ((float *)(*out)->tensor.data)[(o * capacity + rows) * width + i] = number;
    berth_vm_grown_keep(*out);
    return BERTH_OK;
}

// Of row `row`, in all of `outer`.
static void check_row(berth_vm_value *value, int64_t row, float number) {
    berth_vm_value *dense = berth_vm_value_retain(value);
    assert_ok(berth_vm_grown_to_dense(&dense, &traffic));
    cr_assert_null(dense->storage);
    const int64_t rows = dense->tensor.dims[1];
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < width; ++i)
            cr_assert_eq(((float *)dense->tensor.data)[(o * rows + row) * width + i], number);
    berth_vm_value_release(dense);
}

Test(grown, rows_are_added_in_place) {
    berth_vm_value *first = dense_rows(1), *second = NULL, *third = NULL;
    uint64_t copied = 0;
    assert_ok(add(first, 7, &copied, &second));
    cr_assert_eq(copied, outer * width * sizeof(float), "what is dense is copied");
    assert_ok(add(second, 8, &copied, &third));
    cr_assert_eq(copied, outer * width * sizeof(float), "what grew is not");
    cr_assert_eq(second->tensor.data, third->tensor.data);
    check_row(second, 1, 7);
    check_row(third, 1, 7);
    check_row(third, 2, 8);
    berth_vm_value_release(first);
    berth_vm_value_release(second);  // before what grew from it
    check_row(third, 1, 7);
    berth_vm_value_release(third);
}

// Two texts that begin the same: the second has to have memory of its own.
Test(grown, values_that_go_on_twice_do_not_change) {
    berth_vm_value *begin = dense_rows(0), *common = NULL, *one = NULL, *other = NULL;
    uint64_t copied = 0;
    assert_ok(add(begin, 5, &copied, &common));
    assert_ok(add(common, 6, &copied, &one));
    cr_assert_eq(copied, 0);
    assert_ok(add(common, 9, &copied, &other));
    cr_assert_eq(copied, outer * width * sizeof(float));
    cr_assert_neq(one->tensor.data, other->tensor.data);
    check_row(one, 0, 5);
    check_row(one, 1, 6);
    check_row(other, 0, 5);
    check_row(other, 1, 9);
    berth_vm_value_release(begin);
    berth_vm_value_release(common);
    berth_vm_value_release(one);
    berth_vm_value_release(other);
}

Test(grown, other_dimensions_are_refused) {
    berth_vm_value *value = dense_rows(1), *made = NULL;
    uint64_t copied = 0;
    const berth_program_tensor wider = {
        .dtype = BERTH_DTYPE_F32, .rank = 3, .dims = {outer, 2, width + 1}};
    const berth_program_tensor shorter = {
        .dtype = BERTH_DTYPE_F32, .rank = 3, .dims = {outer, 0, width}};
    const berth_program_tensor other = {
        .dtype = BERTH_DTYPE_F16, .rank = 3, .dims = {outer, 2, width}};
    assert_fails(berth_vm_grown_make(value, &wider, &room, host, &traffic, &copied, &made),
                 BERTH_INCOMPATIBLE, "");
    assert_fails(berth_vm_grown_make(value, &shorter, &room, host, &traffic, &copied, &made),
                 BERTH_INCOMPATIBLE, "");
    assert_fails(berth_vm_grown_make(value, &other, &room, host, &traffic, &copied, &made),
                 BERTH_INCOMPATIBLE, "");
    cr_assert_null(made);
    berth_vm_value_release(value);
}
