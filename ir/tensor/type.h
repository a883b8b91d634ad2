// Types of expressions of tensor functions, and the names of what they consist of: shared by the
// printer, the parser, JSON and the verifier (private to ir/).
#ifndef BERTH_IR_TENSOR_TYPE_H_
#define BERTH_IR_TENSOR_TYPE_H_

#include "ir/tensor/function.h"

typedef struct berth_tfn_type {
    berth_dtype dtype;
    bool is_index;
    uint16_t lanes;
} berth_tfn_type;

static inline bool berth_tfn_type_equal(berth_tfn_type a, berth_tfn_type b) {
    return a.dtype == b.dtype && a.is_index == b.is_index && a.lanes == b.lanes;
}
berth_tfn_type berth_tfn_type_of(const berth_tfn *fn, berth_expr id);
berth_tfn_type berth_tfn_type_of_var(const berth_tfn *fn, berth_var var);

// The type that a node of this kind has by its operands; casts keep their dtype, broadcasts and
// ramps their lanes, and literals are index (INT) or f32 (FLOAT). For a LOAD, `indices` are its
// indices. Operands must exist.
berth_tfn_type berth_tfn_derive_type(const berth_tfn *fn, const berth_expr_node *node,
                                     const berth_expr *indices);

// "f32", "f32x8", "index", "indexx8".
void berth_tfn_type_format(berth_tfn_type type, char out[24]);
bool berth_tfn_type_from_name(const char *name, size_t length, berth_tfn_type *out);

const char *berth_unary_name(berth_unary op);
const char *berth_binary_name(berth_binary op);
bool berth_binary_is_infix(berth_binary op);        // +, not min
int berth_binary_precedence(berth_binary op);       // of infix ones, 1 = binds loosest; as in C
const char *berth_loop_name(berth_loop_kind kind);  // "for", "group.x"
const char *berth_buf_scope_name(berth_buf_scope scope);
const char *berth_buf_role_name(berth_buf_role role);  // "none" for NONE
// Numbers of names; false when there is no such name.
bool berth_unary_from_name(const char *name, size_t length, berth_unary *out);
bool berth_binary_from_name(const char *name, size_t length, berth_binary *out);
bool berth_loop_from_name(const char *name, size_t length, berth_loop_kind *out);
bool berth_buf_scope_from_name(const char *name, size_t length, berth_buf_scope *out);
bool berth_buf_role_from_name(const char *name, size_t length, berth_buf_role *out);

#endif  // BERTH_IR_TENSOR_TYPE_H_
