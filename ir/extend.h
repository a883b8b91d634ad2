// What others add to the IR without touching this tree: operations, intrinsics, dialects, kinds of
// opaque attribute values. A plug-in registers them when it is loaded (compiler/plugin.h).
//
// Entries are never removed and must live as long as the process. Registering is for the time before
// modules are made: not while another thread uses the IR.
#ifndef BERTH_IR_EXTEND_H_
#define BERTH_IR_EXTEND_H_

#include "ir/dialect.h"
#include "ir/eval/internal.h"
#include "ir/graph/graph.h"
#include "ir/infer/internal.h"
#include "ir/tensor/intrinsic.h"

#define BERTH_EXTEND_MAX 64  // of each kind

typedef struct berth_op_definition {
    // name: that of the text form, of a-z, 0-9, '_' and '.', which no other operation has; "vendor.op"
    // keeps out of the way. onnx: the operator's type. shape_fn is not looked at.
    berth_op_facts facts;
    const char *onnx_domain;  // of the ONNX operator: "com.example"
    const char *onnx_attrs;  // its attributes that are read, as "alpha:f axis:i" (i, f, s integers,
                             // numbers, strings; I, F, S lists of them; t tensor; d element type)
    // Sets the types of the results from those of the operands.
    berth_status (*infer)(berth_infer *x);
    // (optional) Computes the results: for folding constants, and the oracle of `berth verify`.
    berth_status (*eval)(berth_eval_context *ctx);
} berth_op_definition;

// BERTH_OP_COUNT itself stands for no operation.
#define BERTH_OP_FIRST_REGISTERED (BERTH_OP_COUNT + 1)

// Adds an operation; *out_kind is its number in this process, from BERTH_OP_FIRST_REGISTERED on.
// Modules refer to it by name. Errors: INVALID_ARGUMENT (a name that is no name, no infer), ALREADY_EXISTS (the
// name or the ONNX operator), OUT_OF_RANGE (BERTH_EXTEND_MAX).
BERTH_MUST_USE berth_status berth_op_register(const berth_op_definition *definition,
                                              berth_op_kind *out_kind);
// NULL for the operations of graph_ops.def.
const berth_op_definition *berth_op_definition_get(berth_op_kind kind);
// The registered operation for an ONNX operator; BERTH_OP_COUNT when there is none.
berth_op_kind berth_op_for_onnx(const char *domain, const char *op_type);

// Adds an intrinsic; *out_id is its number in this process, from BERTH_INTRINSIC_FIRST_REGISTERED on.
// Modules refer to it by name: of a-z, 0-9 and '_', none that expressions know already;
// "vendor_instruction" keeps out of the way. The rest is as in a row of intrinsics.def, and the
// reference is checked against the operands here. Nothing puts it into functions by itself: a schedule
// does (compiler/schedule/tensorize.h).
// Errors: INVALID_ARGUMENT (what is wrong with the name, the operands or the reference),
// ALREADY_EXISTS (the name), OUT_OF_RANGE (BERTH_EXTEND_MAX).
BERTH_MUST_USE berth_status berth_intrinsic_register(const berth_intrinsic_facts *facts,
                                                     berth_intrinsic *out_id);
// NULL for the intrinsics of intrinsics.def.
const berth_intrinsic_facts *berth_intrinsic_registered(berth_intrinsic id);

// Adds a dialect or a kind of opaque value for every reader of modules. Errors: ALREADY_EXISTS,
// OUT_OF_RANGE.
BERTH_MUST_USE berth_status berth_dialect_register(const berth_dialect *dialect);
BERTH_MUST_USE berth_status berth_opaque_register(const berth_opaque_ops *ops);
// NULL when nobody registered it.
const berth_dialect *berth_dialect_registered(const char *name);
const berth_opaque_ops *berth_opaque_registered(const char *kind);

#endif  // BERTH_IR_EXTEND_H_
