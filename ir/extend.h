// What others add to the IR without touching this tree: operations, dialects, kinds of opaque
// attribute values. A plug-in registers them when it is loaded (compiler/plugin.h).
//
// Entries are never removed and must live as long as the process. Registering is for the time before
// modules are made: not while another thread uses the IR.
#ifndef BERTH_IR_EXTEND_H_
#define BERTH_IR_EXTEND_H_

#include "ir/dialect.h"
#include "ir/eval/internal.h"
#include "ir/graph.h"
#include "ir/infer/internal.h"

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

// Adds a dialect or a kind of opaque value for every reader of modules. Errors: ALREADY_EXISTS,
// OUT_OF_RANGE.
BERTH_MUST_USE berth_status berth_dialect_register(const berth_dialect *dialect);
BERTH_MUST_USE berth_status berth_opaque_register(const berth_opaque_ops *ops);
// NULL when nobody registered it.
const berth_dialect *berth_dialect_registered(const char *name);
const berth_opaque_ops *berth_opaque_registered(const char *kind);

#endif  // BERTH_IR_EXTEND_H_
