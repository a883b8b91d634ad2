// Every operator family against values computed by hand (cases.def).
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "tests/eval/support.h"

static const struct {
    const char *name, *operands, *attrs, *results;
} cases[] = {
#define CASE(name, operands, attrs, results) {name, operands, attrs, results},
#include "tests/eval/cases.def"
#undef CASE
};

Test(eval_values, by_hand) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        eval_case c = eval_begin();
        berth_tensor expected[EVAL_MAX_OPERANDS], got[EVAL_MAX_OPERANDS];
        uint32_t count = eval_tensors(&c, cases[i].results, expected);
        eval_op(&c, cases[i].name, cases[i].operands, cases[i].attrs, got, count);
        for (uint32_t k = 0; k < count; ++k) {
            const char *difference = eval_differs(&c, &got[k], &expected[k], 1e-6);
            cr_expect_null(difference, "%s | %s | %s: result %u: %s", cases[i].name,
                           cases[i].operands, cases[i].attrs, k, difference);
        }
        eval_end(&c);
    }
}

Test(eval_values, every_operation_with_a_value_is_known) {
    for (int kind = 0; kind < BERTH_OP_COUNT; ++kind) {
        bool structural = false;
        static const berth_op_kind without[] = {
            BERTH_OP_CALL, BERTH_OP_CALL_VALUE, BERTH_OP_FUNC_REF, BERTH_OP_TUPLE,
            BERTH_OP_TUPLE_GET, BERTH_OP_IF, BERTH_OP_LOOP, BERTH_OP_ALLOC_STORAGE,
            BERTH_OP_ALLOC_TENSOR, BERTH_OP_NOT_IMPORTED, BERTH_OP_SEND, BERTH_OP_RECEIVE,
            // of the virtual machine:
            BERTH_OP_SEQUENCE_CONSTRUCT, BERTH_OP_SEQUENCE_INSERT, BERTH_OP_SEQUENCE_ERASE,
            BERTH_OP_SEQUENCE_AT, BERTH_OP_SEQUENCE_LENGTH, BERTH_OP_CONCAT_FROM_SEQUENCE,
            BERTH_OP_SPLIT_TO_SEQUENCE, BERTH_OP_OPTIONAL_EMPTY, BERTH_OP_OPTIONAL_HAS_ELEMENT,
            BERTH_OP_OPTIONAL_GET_ELEMENT, BERTH_OP_ZIP_MAP, BERTH_OP_MAP_KEYS,
            BERTH_OP_MAP_VALUES};
        for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); ++i)
            structural = structural || without[i] == (berth_op_kind)kind;
        cr_expect(berth_eval_supports((berth_op_kind)kind) == !structural, "%s",
                  berth_op_facts_get((berth_op_kind)kind)->name);
    }
}
