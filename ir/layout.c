#include "ir/layout.h"

#include <ctype.h>
#include <string.h>

static berth_status bad_tag(const char *tag, int rank, const char *why) {
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "layout \"%s\" of a tensor of %d dimensions: %s", tag, rank, why);
}

static berth_status parse_blocks(const char *tag, const char *at, int rank, berth_layout *layout) {
    while (*at) {
        int64_t size = 0;
        while (isdigit((unsigned char)*at) && size < 100000) size = size * 10 + (*at++ - '0');
        int dim = *at - 'a';
        if (size < 2 || size > 4096 || dim < 0 || dim >= rank)
            return bad_tag(tag, rank, "a block is <size><letter>");
        if (layout->block_count == BERTH_LAYOUT_MAX_BLOCKS)
            return bad_tag(tag, rank, "too many blocks");
        layout->block_dim[layout->block_count] = dim;
        layout->block_size[layout->block_count++] = size;
        layout->total_block[dim] *= size;
        at++;
    }
    return BERTH_OK;
}

berth_status berth_layout_parse(const char *tag, int rank, berth_layout *out_layout) {
    memset(out_layout, 0, sizeof(*out_layout));
    if (rank < 0 || rank > BERTH_MAX_RANK) return bad_tag(tag, rank, "unsupported rank");
    out_layout->rank = rank;
    for (int i = 0; i < BERTH_MAX_RANK; ++i) {
        out_layout->outer[i] = i;
        out_layout->total_block[i] = 1;
    }
    if (!tag || !*tag) return BERTH_OK;
    bool seen[BERTH_MAX_RANK] = {false};
    bool capital[BERTH_MAX_RANK] = {false};
    const char *at = tag;
    for (int i = 0; i < rank; ++i, ++at) {
        int dim = tolower((unsigned char)*at) - 'a';
        if (dim < 0 || dim >= rank || seen[dim])
            return bad_tag(tag, rank, "every dimension must appear once");
        seen[dim] = true;
        capital[dim] = isupper((unsigned char)*at) != 0;
        out_layout->outer[i] = dim;
    }
    BERTH_TRY(parse_blocks(tag, at, rank, out_layout));
    for (int i = 0; i < rank; ++i)
        if (capital[i] != (out_layout->total_block[i] > 1))
            return bad_tag(tag, rank, "capitals are the blocked dimensions");
    return BERTH_OK;
}

bool berth_layout_is_row_major(const berth_layout *layout) {
    if (layout->block_count) return false;
    for (int i = 0; i < layout->rank; ++i)
        if (layout->outer[i] != i) return false;
    return true;
}

int berth_layout_physical_dims(const berth_layout *layout, const int64_t *dims,
                               int64_t out_dims[BERTH_MAX_RANK + BERTH_LAYOUT_MAX_BLOCKS]) {
    for (int i = 0; i < layout->rank; ++i) {
        int dim = layout->outer[i];
        int64_t block = layout->total_block[dim];
        out_dims[i] = (dims[dim] + block - 1) / block;
    }
    for (int i = 0; i < layout->block_count; ++i)
        out_dims[layout->rank + i] = layout->block_size[i];
    return layout->rank + layout->block_count;
}

int64_t berth_layout_element_count(const berth_layout *layout, const int64_t *dims) {
    int64_t physical[BERTH_MAX_RANK + BERTH_LAYOUT_MAX_BLOCKS];
    int count = berth_layout_physical_dims(layout, dims, physical);
    int64_t total = 1;
    for (int i = 0; i < count; ++i) total *= physical[i];
    return total;
}

int64_t berth_layout_offset(const berth_layout *layout, const int64_t *dims, const int64_t *index) {
    int64_t offset = 0;
    for (int i = 0; i < layout->rank; ++i) {
        int dim = layout->outer[i];
        int64_t block = layout->total_block[dim];
        offset = offset * ((dims[dim] + block - 1) / block) + index[dim] / block;
    }
    int64_t divisor[BERTH_MAX_RANK];
    memcpy(divisor, layout->total_block, sizeof(divisor));
    for (int i = 0; i < layout->block_count; ++i) {
        int dim = layout->block_dim[i];
        int64_t within = index[dim] % divisor[dim];
        divisor[dim] /= layout->block_size[i];
        offset = offset * layout->block_size[i] + within / divisor[dim];
    }
    return offset;
}
