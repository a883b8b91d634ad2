// Why operations that a VTA has nothing for run elsewhere.
#include "drivers/vta/compiler/compiler.h"

const char *berth_vta_no_work(const berth_rules_question *q) {
    const berth_op *op = berth_rules_op(q);
    berth_dtype result =
        op->output_count ? berth_rules_type(q, op->outputs[0])->dtype : BERTH_DTYPE_NONE;
    const char *name = berth_op_facts_get(op->kind)->name;
    if (op->kind == BERTH_OP_CONV_INTEGER || op->kind == BERTH_OP_MATMUL_INTEGER)
        return berth_arena_printf(
            q->arena,
            "%s is not exact there: the model scales its 32-bit sums by floats, and a VTA stores 8 "
            "bits and scales by shifts (as in models that are quantised for it)",
            name);
    if (berth_dtype_is_float(result))
        return berth_arena_printf(q->arena, "%s of %s: a VTA has integers only", name,
                                  berth_dtype_name(result));
    if (op->kind == BERTH_OP_QUANTIZE_LINEAR)
        return "quantize_linear reads floats: a VTA has integers only";
    return berth_arena_printf(
        q->arena,
        "%s of %s is no work for a VTA: it runs 8-bit convolutions, dense layers, additions, "
        "pooling, concatenations and slices between quantize_linear and dequantize_linear",
        name, op->output_count ? berth_dtype_name(result) : "nothing");
}
