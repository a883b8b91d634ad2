#include "ir/string_literal.h"

#include <string.h>

void berth_string_literal_pack(const berth_tensor *tensor, berth_strbuf *out) {
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i) {
        berth_string string = berth_tensor_strings(tensor)[i];
        char length[8];
        for (int k = 0; k < 8; ++k) length[k] = (char)((uint64_t)string.length >> 8 * k);
        berth_strbuf_add_n(out, length, sizeof(length));
        if (string.length) berth_strbuf_add_n(out, string.data, string.length);
    }
}

bool berth_string_literal_unpack(berth_arena *arena, const void *data, size_t size_bytes, int rank,
                                 const int64_t *dims, berth_tensor *out_tensor) {
    const unsigned char *at = data;
    berth_tensor shape = {.dtype = BERTH_DTYPE_STRING, .rank = rank};
    memcpy(shape.dims, dims, (size_t)rank * sizeof(*dims));
    int64_t count = berth_tensor_element_count(&shape);
    if ((uint64_t)count > size_bytes / 8) return false;  // before so much is allocated
    *out_tensor = berth_tensor_create(arena, BERTH_DTYPE_STRING, rank, dims);
    for (int64_t i = 0; i < count; ++i) {
        uint64_t length = 0;
        if (size_bytes < 8) return false;
        for (int k = 0; k < 8; ++k) length |= (uint64_t)at[k] << 8 * k;
        at += 8;
        size_bytes -= 8;
        if (length > size_bytes) return false;
        ((berth_string *)out_tensor->data)[i] =
            berth_string_copy(arena, (berth_string){(const char *)at, (size_t)length});
        at += length;
        size_bytes -= (size_t)length;
    }
    return size_bytes == 0;
}
