// Copies between row-major tensors and other layouts.
//
// Packing sees the tensor as a matrix per index of the leading dimensions: its rows are the indices
// of the dimension whose elements become neighbours (the innermost block's), its columns all
// indices of the dimensions after it, which are neighbours as they come. The position of an
// element is a sum of one term per dimension, so the terms of all columns are computed once, and a
// block of rows is transposed through a tile that stays in registers and the first cache.
#include <string.h>

#include "ir/layout.h"

enum {
    tile_rows = 16,       // at most
    tile_columns = 16,    // a line of the cache of f32
    table_columns = 1024  // whose terms are held at a time: 8 KiB of stack
};

// Position of an index of one dimension: the sum of its digits, each times a stride.
typedef struct digits {
    int count;
    struct {
        int64_t divisor;
        int64_t modulus;
        int64_t stride;  // elements
    } at[1 + BERTH_LAYOUT_MAX_BLOCKS];
} digits;

typedef struct packer {
    const berth_tensor *tensor;
    unsigned char *physical;
    size_t physical_bytes;
    size_t element_bytes;
    digits terms[BERTH_MAX_RANK];
    int row_dim;
    int64_t row_count;
    int64_t block_rows;  // neighbours in the layout
    int64_t block_count;
    int64_t outer_count;   // indices before the rows
    int64_t column_count;  // indices after the rows
    bool padded;           // to whole blocks of rows
    bool parts;            // padding, if any, is of rows alone: every part can zero its own
} packer;

static void add_digit(digits *d, int64_t divisor, int64_t modulus, int64_t stride) {
    d->at[d->count].divisor = divisor;
    d->at[d->count].modulus = modulus;
    d->at[d->count++].stride = stride;
}

static int64_t term(const digits *d, int64_t index) {
    int64_t sum = 0;
    for (int i = 0; i < d->count; ++i)
        sum += index / d->at[i].divisor % d->at[i].modulus * d->at[i].stride;
    return sum;
}

static void make_digits(packer *p, const berth_layout *layout) {
    const int64_t *dims = p->tensor->dims;
    int64_t stride = 1;
    int64_t divisor[BERTH_MAX_RANK];
    for (int d = 0; d < layout->rank; ++d) divisor[d] = 1;
    for (int i = layout->block_count - 1; i >= 0; --i) {
        int dim = layout->block_dim[i];
        add_digit(&p->terms[dim], divisor[dim], layout->block_size[i], stride);
        divisor[dim] *= layout->block_size[i];
        stride *= layout->block_size[i];
    }
    for (int i = layout->rank - 1; i >= 0; --i) {
        int dim = layout->outer[i];
        add_digit(&p->terms[dim], divisor[dim], INT64_MAX, stride);
        stride *= (dims[dim] + divisor[dim] - 1) / divisor[dim];
    }
    p->physical_bytes = (size_t)stride * p->element_bytes;
}

static packer make_packer(const berth_layout *layout, const berth_tensor *tensor, void *physical) {
    packer p = {.tensor = tensor,
                .physical = physical,
                .element_bytes = berth_dtype_size_bytes(tensor->dtype),
                .row_count = 1,
                .block_rows = 1,
                .outer_count = 1,
                .column_count = 1,
                .parts = true};
    make_digits(&p, layout);
    if (layout->rank > 0) {
        int inner = layout->block_count - 1;
        p.row_dim = inner >= 0 ? layout->block_dim[inner] : layout->outer[layout->rank - 1];
        p.row_count = tensor->dims[p.row_dim];
        p.block_rows = inner >= 0 ? layout->block_size[inner] : p.row_count;
        p.padded = inner >= 0;
    }
    for (int d = 0; d < layout->rank; ++d) {
        if (d < p.row_dim) p.outer_count *= tensor->dims[d];
        if (d > p.row_dim) p.column_count *= tensor->dims[d];
        bool own_rows = d == p.row_dim && layout->total_block[d] <= p.block_rows;
        if (!own_rows && tensor->dims[d] % layout->total_block[d]) p.parts = false;
    }
    if (!p.padded && p.column_count > 1 && p.block_rows > tile_rows) p.block_rows = tile_rows;
    if (p.block_rows < 1) p.block_rows = 1;
    p.block_count = (p.row_count + p.block_rows - 1) / p.block_rows;
    return p;
}

// Terms of the columns [first, first + count).
static void fill_table(const packer *p, int64_t first, int64_t count, int64_t *table) {
    const int64_t *dims = p->tensor->dims;
    int last = p->tensor->rank - 1;
    int64_t index[BERTH_MAX_RANK] = {0};
    for (int d = last; d > p->row_dim; --d) {
        index[d] = first % dims[d];
        first /= dims[d];
    }
    for (int64_t k = 0; k < count;) {
        int64_t base = 0;
        if (last <= p->row_dim) {
            table[k++] = 0;
            continue;
        }
        for (int d = p->row_dim + 1; d < last; ++d) base += term(&p->terms[d], index[d]);
        for (; index[last] < dims[last] && k < count; ++index[last])
            table[k++] = base + term(&p->terms[last], index[last]);
        for (int d = last; d > p->row_dim && index[d] == dims[d]; --d) {
            index[d] = 0;
            if (d - 1 > p->row_dim) index[d - 1]++;
        }
    }
}

// ---- a block of rows ----------------------------------------------------------------------------

typedef struct block {
    const unsigned char *from;  // first row, first column of the table
    size_t row_bytes;           // from row to row
    unsigned char *to;          // where terms are added to
    int64_t rows;               // there are
    int64_t padded_rows;        // the others are zero
    const int64_t *table;
    int64_t column_count;
} block;

// Whole blocks of f32, `rows` of them known where it is inlined.
static inline void copy_words(const block *b, int rows) {
    uint32_t tile[tile_rows][tile_columns];
    for (int64_t k = 0; k < b->column_count; k += tile_columns) {
        int64_t left = b->column_count - k;
        int columns = left < tile_columns ? (int)left : tile_columns;
        for (int r = 0; r < rows; ++r) {
            const unsigned char *row = b->from + (size_t)r * b->row_bytes + (size_t)k * 4;
            if (columns == tile_columns)
                memcpy(tile[r], row, sizeof(tile[r]));
            else
                memcpy(tile[r], row, (size_t)columns * 4);
        }
        for (int c = 0; c < columns; ++c) {
            unsigned char *to = b->to + (size_t)b->table[k + c] * 4;
            for (int r = 0; r < rows; ++r) memcpy(to + r * 4, &tile[r][c], 4);
        }
    }
}

static inline void copy_elements(const block *b, size_t size) {
    for (int64_t k = 0; k < b->column_count; ++k) {
        unsigned char *to = b->to + (size_t)b->table[k] * size;
        const unsigned char *from = b->from + (size_t)k * size;
        for (int64_t r = 0; r < b->rows; ++r)
            memcpy(to + (size_t)r * size, from + (size_t)r * b->row_bytes, size);
        memset(to + (size_t)b->rows * size, 0, (size_t)(b->padded_rows - b->rows) * size);
    }
}

static void copy_block(const block *b, size_t element_bytes) {
    if (b->row_bytes == element_bytes) {  // one column: rows are neighbours on both sides
        size_t bytes = (size_t)b->rows * element_bytes;
        memcpy(b->to, b->from, bytes);
        memset(b->to + bytes, 0, (size_t)(b->padded_rows - b->rows) * element_bytes);
        return;
    }
    bool whole = b->rows == b->padded_rows;
    switch (element_bytes) {
    case 1: copy_elements(b, 1); break;
    case 2: copy_elements(b, 2); break;
    case 4:
        if (whole && b->rows == 16)
            copy_words(b, 16);
        else if (whole && b->rows == 8)
            copy_words(b, 8);
        else
            copy_elements(b, 4);
        break;
    case 8: copy_elements(b, 8); break;
    default: copy_elements(b, element_bytes);
    }
}

// ---- parts --------------------------------------------------------------------------------------

static int64_t outer_term(const packer *p, int64_t outer) {
    int64_t sum = 0;
    for (int d = p->row_dim - 1; d >= 0; --d) {
        sum += term(&p->terms[d], outer % p->tensor->dims[d]);
        outer /= p->tensor->dims[d];
    }
    return sum;
}

// Where a block of rows begins; without divisions where its dimension is split only once.
static int64_t block_term(const packer *p, int64_t row_block) {
    const digits *d = &p->terms[p->row_dim];
    if (p->padded && d->count == 2) return row_block * d->at[1].stride;
    return term(d, row_block * p->block_rows);
}

static void pack_columns(const packer *p, int64_t first_column, int64_t count, const int64_t *table,
                         int64_t first_part, int64_t part_count) {
    int64_t outer = first_part / p->block_count;
    int64_t row_block = first_part % p->block_count;
    int64_t base = outer_term(p, outer);
    const unsigned char *data = p->tensor->data;
    for (int64_t i = 0; i < part_count; ++i) {
        int64_t row = row_block * p->block_rows;
        int64_t rows = p->row_count - row < p->block_rows ? p->row_count - row : p->block_rows;
        int64_t at = (outer * p->row_count + row) * p->column_count + first_column;
        int64_t to = base + block_term(p, row_block);
        block b = {.from = data + (size_t)at * p->element_bytes,
                   .row_bytes = (size_t)p->column_count * p->element_bytes,
                   .to = p->physical + (size_t)to * p->element_bytes,
                   .rows = rows,
                   .padded_rows = p->padded ? p->block_rows : rows,
                   .table = table,
                   .column_count = count};
        copy_block(&b, p->element_bytes);
        if (++row_block < p->block_count || i + 1 == part_count) continue;
        row_block = 0;
        base = outer_term(p, ++outer);
    }
}

int64_t berth_layout_part_count(const berth_layout *layout, const berth_tensor *tensor) {
    packer p = make_packer(layout, tensor, NULL);
    return p.parts ? p.outer_count * p.block_count : 1;
}

void berth_layout_pack_parts(const berth_layout *layout, const berth_tensor *tensor, void *physical,
                             int64_t first_part, int64_t part_count) {
    packer p = make_packer(layout, tensor, physical);
    int64_t table[table_columns];
    if (!p.parts) {
        memset(physical, 0, p.physical_bytes);
        part_count *= p.outer_count * p.block_count;
    }
    if (part_count == 0 || p.column_count == 0) return;
    for (int64_t k = 0; k < p.column_count; k += table_columns) {
        int64_t left = p.column_count - k;
        int64_t count = left < table_columns ? left : table_columns;
        fill_table(&p, k, count, table);
        pack_columns(&p, k, count, table, first_part, part_count);
    }
}

void berth_layout_pack(const berth_layout *layout, const berth_tensor *tensor, void *physical) {
    berth_layout_pack_parts(layout, tensor, physical, 0, berth_layout_part_count(layout, tensor));
}

void berth_layout_unpack(const berth_layout *layout, const void *physical, berth_tensor *tensor) {
    size_t size = berth_dtype_size_bytes(tensor->dtype);
    int64_t count = berth_tensor_element_count(tensor);
    int64_t index[BERTH_MAX_RANK] = {0};
    unsigned char *to = tensor->data;
    for (int64_t i = 0; i < count; ++i, to += size) {
        size_t at = (size_t)berth_layout_offset(layout, tensor->dims, index);
        memcpy(to, (const unsigned char *)physical + at * size, size);
        for (int d = tensor->rank - 1; d >= 0 && ++index[d] == tensor->dims[d]; --d) index[d] = 0;
    }
}
