// What the files of the layout pass share (private to compiler/passes).
#ifndef BERTH_COMPILER_PASSES_LAYOUT_PRIVATE_H_
#define BERTH_COMPILER_PASSES_LAYOUT_PRIVATE_H_

#include "compiler/passes/pack.h"
#include "ir/graph/graph.h"
#include "ir/graph/op_params.h"
#include "ir/tensor/intrinsic.h"
#include "target/target.h"

#define BERTH_LAYOUT_BLOCK 8        // channels of a block of activations,
#define BERTH_LAYOUT_WIDE_BLOCK 16  // where registers hold 16 floats and the channels fill them

#define BERTH_LAYOUT_MANY_USERS (BERTH_NONE - 1)

typedef struct berth_layout_packed berth_layout_packed;

typedef struct berth_layout_pass {
    berth_module *module;
    berth_func_id main;
    const berth_multi_target *target;
    berth_arena *scratch;
    // Per value of the graph as it was: its version in the other layout, once there is one
    // (BERTH_NONE).
    berth_value_id *other;
    const berth_op_id
        *only_user;  // per value of that graph, BERTH_LAYOUT_MANY_USERS, or BERTH_NONE
    uint32_t value_count;
    berth_str_id blocked[BERTH_MAX_RANK + 1];       // per rank: channels in blocks of 8
    berth_str_id blocked_wide[BERTH_MAX_RANK + 1];  // of 16
    const berth_op_id *library_users;  // as berth_library_users has them; NULL = no libraries
    bool winograd;
    bool signed_bytes;  // of plain C: strips hold them (compiler/schedule/plain_columns.h)
    berth_packing *packing;
    BERTH_VEC(berth_layout_packed) packed;  // what layout_packed.c has made, by source in
    uint32_t *buckets;                      // these, a power of 2
    uint32_t bucket_count;
} berth_layout_pass;

static inline berth_graph *graph_of(const berth_layout_pass *p) {
    return berth_graph_get(p->module, p->main);
}

static inline const berth_type *type_of(const berth_layout_pass *p, berth_value_id value) {
    return berth_type_get(p->module, graph_of(p)->values.data[value].type);
}

// layout.c
// Channels of a block of `value`; 0 = it is not blocked.
int64_t berth_layout__block(const berth_layout_pass *p, berth_value_id value);
// Floats of a register, as far as blocks go.
int64_t berth_layout__lanes(const berth_layout_pass *p, berth_op_id id);
// Channels per block of a value that operation `id` reads or makes.
int64_t berth_layout__block_for(const berth_layout_pass *p, berth_op_id id, int64_t channels);
berth_str_id berth_layout__blocked(const berth_layout_pass *p, int rank, int64_t block);
void berth_layout__set(berth_layout_pass *p, berth_value_id value, berth_str_id layout);
// Whether a value is f32 of static shape; rank -1 = any.
bool berth_layout__is_f32(const berth_layout_pass *p, berth_value_id value, int rank);
// Whether a value has static shape and elements that lie in blocks of channels.
bool berth_layout__has_blocks(const berth_layout_pass *p, berth_value_id value);
// `value` in a layout, for the operation at `position`: itself, or a conversion shared by all who
// want it.
berth_value_id berth_layout__convert(berth_layout_pass *p, berth_value_id value,
                                     berth_str_id layout, berth_op_id position, berth_op_id like);
// layout_packed.c
// The literal of a constant with a layout: its elements as they lie in memory, padding included.
berth_tensor *berth_layout__packed_literal(berth_layout_pass *p, berth_dtype dtype, int64_t count,
                                           void *data);
// A constant packed in a layout; the type keeps its logical dimensions. BERTH_NONE: a bad tag. The
// same value for all that want the same of a constant on a device.
berth_value_id berth_layout__packed_constant(berth_layout_pass *p, const berth_tensor *tensor,
                                             const char *tag, berth_op_id position);
// Weights of a Winograd convolution of tiles of `tile` x `tile`, as `dims`: points, inputs, outputs.
berth_value_id berth_layout__winograd_constant(berth_layout_pass *p, const berth_tensor *weights,
                                               int64_t tile, const int64_t dims[3],
                                               berth_op_id position);
// layout.c
static inline void berth_layout__set_input(berth_layout_pass *p, berth_op_id id, uint32_t index,
                                           berth_value_id value) {
    graph_of(p)->ops.data[id].inputs[index] = value;
}
// A value of the given type made by a new operation before `position` (BERTH_NONE: at the end), on
// the device of operation `like`.
berth_value_id berth_layout__insert(berth_layout_pass *p, berth_op_id position, berth_op_kind kind,
                                    const berth_value_id *inputs, uint32_t input_count,
                                    berth_type_id type, berth_op_id like);
// Packs the constant weights of a matmul or gemm.
void berth_layout__matrix(berth_layout_pass *p, berth_op_id id);

// Target of the device that operation `id` is placed on; NULL = unknown.
const berth_target *berth_layout__target(const berth_layout_pass *p, berth_op_id id);

// Elementwise on at least one blocked operand: those of the result's shape become blocked, smaller ones stay plain. And
// concatenation of channels in whole blocks. False: it has no such form.
bool berth_layout__elementwise(berth_layout_pass *p, berth_op_id id);
// Operand `i`, if it is a constant with one element for each channel of `out`, whose blocks channels do not fill: as long as
// these, so that vectors of the last block can be read. Others stay.
void berth_layout__fill_up_constant(berth_layout_pass *p, berth_op_id id, uint32_t i,
                                    const berth_type *out, int64_t block);
bool berth_layout__concat(berth_layout_pass *p, berth_op_id id);

// layout_units.c
// Whether the operation's device has matrix units whose convolutions take blocks of channels (cuda from sm_80 on; Vulkan
// devices with cooperative matrices).
bool berth_layout__has_units(const berth_layout_pass *p, berth_op_id id);
// Gives an operation there its form in blocks, where it has one (*out_done).
BERTH_MUST_USE berth_status berth_layout__on_units(berth_layout_pass *p, berth_op_id id,
                                                   bool *out_done);

// layout_library.c
bool berth_layout__has_libraries(const berth_layout_pass *p);
// Gives an operation to the library that the plan chose for it. False: it chose none. True also for
// the call that the end of such a use has become.
bool berth_layout__library(berth_layout_pass *p, berth_op_id id);

// layout_rules.c
// Gives an operation the layouts that the rules of its device ask for (compiler/rules.h). False: the
// device has no rules.
bool berth_layout__by_rules(berth_layout_pass *p, berth_op_id id);

// layout_conv.c
// Padding after the input that the window reaches: strides may leave the end unused.
int64_t berth_layout__end_padding(const berth_window *w, int i);
// The input with `begin` and `end` elements of `fill` around each spatial dimension.
berth_value_id berth_layout__padded(berth_layout_pass *p, berth_op_id id, berth_value_id x,
                                    const int64_t *begin, const int64_t *end, float fill);
// Other pads for a convolution (begins, then ends).
void berth_layout__set_padding(berth_layout_pass *p, berth_op_id id, const int64_t *pads,
                               int spatial);
// Gives a convolution its blocked form where it has one (*out_done).
BERTH_MUST_USE berth_status berth_layout__conv(berth_layout_pass *p, berth_op_id id,
                                               bool *out_done);
BERTH_MUST_USE berth_status berth_layout__conv_transpose(berth_layout_pass *p, berth_op_id id,
                                                         bool *out_done);

// layout_transposed.c
typedef struct berth_layout_transposed {
    const berth_window *window;
    const berth_tensor *weights;
    const berth_tensor *bias;  // NULL = none
    bool in_blocks;            // of channels, else all plain
} berth_layout_transposed;

// A transposed convolution of two spatial dimensions as one of stride 1 whose results a copy puts in order, where that pays
// (*out_done).
BERTH_MUST_USE berth_status berth_layout__transposed_in_steps(berth_layout_pass *p, berth_op_id id,
                                                              const berth_layout_transposed *t,
                                                              bool *out_done);

// layout_pool.c
// Gives a pool its form in blocks of channels or along rows, where it has one (*out_done).
BERTH_MUST_USE berth_status berth_layout__pool(berth_layout_pass *p, berth_op_id id,
                                               bool *out_done);
// Gives regions of an image their form in blocks of channels, where it pays (*out_done).
BERTH_MUST_USE berth_status berth_layout__roi_align(berth_layout_pass *p, berth_op_id id,
                                                    bool *out_done);

// layout_integer.c
// Sums of integers as sums of f32, where they are exact: the operation itself becomes the
// conversion back to i32. Others stay as they are.
BERTH_MUST_USE berth_status berth_layout__conv_integer(berth_layout_pass *p, berth_op_id id);
// layout_dot.c
// Sums of 8-bit integers in the form of the target's dot products (ir/tensor/intrinsic.h): operands in
// blocks of as many channels as one adds, zero points as a bias. *out_done: it has that form.
BERTH_MUST_USE berth_status berth_layout__conv_dot(berth_layout_pass *p, berth_op_id id,
                                                   bool *out_done);
// A zero point that is one number: a constant, or, where activations are quantised as they come, what
// the run finds.
typedef struct berth_layout_zero {
    berth_value_id value;  // BERTH_NONE = it is 0
    bool known;            // it is `number`
    int64_t number;
} berth_layout_zero;

// The zero point of what `id`, a sum of integers, multiplies by weights. False: not one number.
bool berth_layout__zero_of(const berth_layout_pass *p, berth_op_id id, berth_layout_zero *out);
// Operation `id`, a sum of integers, becomes `sum` less `zero` times, per index of dimension `dim`,
// the sum of the weights.
void berth_layout__subtract_zero(berth_layout_pass *p, berth_op_id id,
                                 const berth_layout_zero *zero, berth_value_id sum,
                                 const int64_t *sums, int dim);
// w - zero as i8, [outputs][channels][window], and per output its sum; false where it is none. w_zero: NULL = 0; one, or
// one per output. What `channels` and `width` (of the last dimension) have more than w is 0.
bool berth_layout__shift_weights(berth_layout_pass *p, const berth_tensor *w,
                                 const berth_tensor *w_zero, int64_t channels, int64_t width,
                                 berth_tensor *out, int64_t *sums);
// `x`, in a layout, with its zero point around it as far as the window reaches, and in more channels.
berth_value_id berth_layout__padded_with_zero(berth_layout_pass *p, berth_op_id id,
                                              berth_value_id x, const berth_layout_zero *zero,
                                              const berth_window *w, int64_t more_channels,
                                              berth_str_id layout);
// The window of a convolution is that of its weights, and nothing is left to pad.
void berth_layout__set_window(berth_layout_pass *p, berth_op_id id, const berth_window *w);
// A product of integers with constant weights becomes one without zero points, of weights of i8 in a layout (NULL =
// plain), and what these add to it is taken off. False: it has other operands.
bool berth_layout__matmul_without_zeros(berth_layout_pass *p, berth_op_id id, const char *tag);
// `value` as another type, for the operation at `position`.
berth_value_id berth_layout__cast(berth_layout_pass *p, berth_op_id position, berth_value_id value,
                                  berth_dtype dtype);
// A constant for the operation at `id`; the tensor's bytes stay the caller's.
berth_value_id berth_layout__constant(berth_layout_pass *p, berth_op_id id,
                                      const berth_tensor *tensor);
// `x` with `more` zeros behind the last element of `axis`.
berth_value_id berth_layout__lengthened(berth_layout_pass *p, berth_op_id id, berth_value_id x,
                                        int axis, int64_t more);
// Sums of the rows of integers `x` as i32: (..., rows, 1).
berth_value_id berth_layout__sums_of_rows(berth_layout_pass *p, berth_op_id id, berth_value_id x);

// An instruction that adds `depth` products in each of `lanes` outputs.
typedef struct berth_layout_dot {
    berth_intrinsic intrinsic;
    int64_t lanes;
    int64_t depth;
} berth_layout_dot;

// The widest such instruction of the operation's target for activations of a type and so many
// outputs. False: it has none.
bool berth_layout__choose_dot(const berth_layout_pass *p, berth_op_id id, berth_dtype activations,
                              int64_t outputs, berth_layout_dot *out);
// Of a product of `x`: terms of 0 behind those that there are, to whole instructions, or to whole tiles of the target's
// matrix unit where rows are enough for it.
int64_t berth_layout__missing_terms(const berth_layout_pass *p, berth_op_id id,
                                    const berth_layout_dot *form, const berth_type *x);
// Gives a product of constant weights this form.
bool berth_layout__matmul_dot(berth_layout_pass *p, berth_op_id id);
// layout_dot_fed.c
// Gives a product whose weights, or their zero points, are not constant this form; also constant ones
// that matmul_dot has no i8 for. False: it has none, or too few rows to pay for packing the weights.
bool berth_layout__matmul_dot_fed(berth_layout_pass *p, berth_op_id id);
// layout_integer.c
void berth_layout__matmul_integer(berth_layout_pass *p, berth_op_id id);
// The operation becomes the conversion of a value.
void berth_layout__become_cast(berth_layout_pass *p, berth_op_id id, berth_value_id value,
                               berth_dtype dtype);
// layout_half.c
// Whether `id` is an operation on f16 that processor cores compute faster as f32.
bool berth_layout__is_half(const berth_layout_pass *p, berth_op_id id);
// Such an operation becomes the conversion back to f16 of the one on f32, which is returned.
berth_op_id berth_layout__widen(berth_layout_pass *p, berth_op_id id);

#endif  // BERTH_COMPILER_PASSES_LAYOUT_PRIVATE_H_
