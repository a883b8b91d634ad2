// Tensors with room for more rows.
#include <string.h>

#include "artifact/program.h"

// A letter per dimension, capital from the axis on; the rank where there is no such axis.
static int find_axis(const berth_program_tensor *tensor) {
    int axis = tensor->rank;
    if (strlen(tensor->layout) < (size_t)tensor->rank) return tensor->rank;
    for (int d = tensor->rank; d-- > 0;) {
        char letter = tensor->layout[d];
        if (letter == 'A' + d && axis == d + 1)
            axis = d;
        else if (letter != 'a' + d)
            return tensor->rank;
    }
    return axis;
}

// a * b; false when that is too much for a size.
static bool times(uint64_t a, uint64_t b, uint64_t *out) {
    return !__builtin_mul_overflow(a, b, out) && *out <= INT64_MAX;
}

// A number and the letter of dimension d; false: something else.
static bool read_block(const char **at, int d, uint64_t *out_block) {
    const char *c = *at;
    uint64_t block = 0;
    if (*c == '0') return false;
    for (; *c >= '0' && *c <= '9'; ++c)
        if (!times(block, 10, &block) || (block += (uint64_t)(*c - '0')) > INT64_MAX) return false;
    *out_block = block;
    *at = c + 1;
    return block > 0 && *c == 'a' + d;
}

bool berth_program_tensor_room(const berth_program_tensor *tensor, berth_program_room *out_room) {
    berth_program_room room = {.axis = find_axis(tensor), .outer = 1};
    room.row_bytes = berth_dtype_size_bytes(tensor->dtype);
    if (room.axis == tensor->rank) return false;
    const char *at = tensor->layout + tensor->rank;
    for (int d = 0; d < tensor->rank; ++d) {
        const uint64_t extent = (uint64_t)tensor->dims[d];
        uint64_t block = 0;
        if (d < room.axis) {
            if (!times(room.outer, extent, &room.outer)) return false;
            continue;
        }
        if (!read_block(&at, d, &block)) return false;
        if (d == room.axis)
            room.capacity = block;
        else if (block != extent || !times(room.row_bytes, extent, &room.row_bytes))
            return false;
    }
    uint64_t bytes = 0;
    bool fits = !*at && (uint64_t)tensor->dims[room.axis] <= room.capacity && room.outer &&
                room.row_bytes && times(room.outer, room.capacity, &bytes) &&
                times(bytes, room.row_bytes, &bytes) && bytes == tensor->size_bytes;
    if (fits) *out_room = room;
    return fits;
}
