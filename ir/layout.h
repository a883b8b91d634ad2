// Memory layout of a tensor: an index map from logical to physical positions. Logical indices never
// change; only where an element lies does.
//
// A layout is named by a tag in the notation of oneDNN's format tags: letters are logical
// dimensions (a = 0, b = 1, ...) in order of decreasing stride; a capital letter is a dimension
// split into blocks, whose inner parts follow as <size><letter>, outermost first. "" is row-major.
//   activations in blocks of 8 channels   "aBcd8b"      (n, c/8, h, w, c%8)
//   convolution weights                   "ABcd8b16a"   (o/16, i/8, kh, kw, i%8, o%16)
//   matmul weights (k, n) in panels       "Ba16b"       (n/16, k, n%16)
// A blocked dimension is padded with zeros to a multiple of its blocks. Plain data; thread-safe.
#ifndef BERTH_IR_LAYOUT_H_
#define BERTH_IR_LAYOUT_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/tensor.h"

#define BERTH_LAYOUT_MAX_BLOCKS 8

// Parsed form. Physical dimensions, outermost first: `rank` outer ones (dimension outer[i], divided
// by its total block) and then `block_count` inner ones.
typedef struct berth_layout {
    int rank;
    int outer[BERTH_MAX_RANK];  // permutation of logical dimensions
    int64_t
        total_block[BERTH_MAX_RANK];  // per logical dimension: product of its blocks, 1 = unblocked
    int block_count;
    int block_dim[BERTH_LAYOUT_MAX_BLOCKS];  // logical dimension of each inner block, outermost
                                             // first
    int64_t block_size[BERTH_LAYOUT_MAX_BLOCKS];
} berth_layout;

// Parses a tag for a tensor of `rank` dimensions; "" gives row-major. Errors: INVALID_ARGUMENT.
BERTH_MUST_USE berth_status berth_layout_parse(const char *tag, int rank, berth_layout *out_layout);
bool berth_layout_is_row_major(const berth_layout *layout);

// Physical dimensions (rank + block_count of them) for logical dims; returns their count.
int berth_layout_physical_dims(const berth_layout *layout, const int64_t *dims,
                               int64_t out_dims[BERTH_MAX_RANK + BERTH_LAYOUT_MAX_BLOCKS]);
int64_t berth_layout_element_count(const berth_layout *layout,
                                   const int64_t *dims);  // with padding
int64_t berth_layout_offset(const berth_layout *layout, const int64_t *dims,
                            const int64_t *index);  // in elements

// ---- layout_pack.c ----

// Copies a row-major tensor into `physical` (berth_layout_element_count elements, aligned to the
// element, padding zeroed), or back. The tensor's data may lie at any address when it is packed.
void berth_layout_pack(const berth_layout *layout, const berth_tensor *tensor, void *physical);
void berth_layout_unpack(const berth_layout *layout, const void *physical, berth_tensor *tensor);

// The same in parts that different threads may pack: each reads bytes in a row (the parts together
// all of the tensor, in order) and writes what no other writes. O(elements) for all of them.
int64_t berth_layout_part_count(const berth_layout *layout, const berth_tensor *tensor);
void berth_layout_pack_parts(const berth_layout *layout, const berth_tensor *tensor, void *physical,
                             int64_t first_part, int64_t part_count);

#endif  // BERTH_IR_LAYOUT_H_
