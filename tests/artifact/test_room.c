// Tensors with room for more rows: which layouts are such, since a run trusts the sizes that they say.
#include <criterion/criterion.h>

#include "artifact/program.h"

static berth_program_tensor make(const char *layout, uint64_t size_bytes) {
    return (berth_program_tensor){.name = "",
                                  .size_bytes = size_bytes,
                                  .dtype = BERTH_DTYPE_F32,
                                  .rank = 4,
                                  .dims = {1, 2, 11, 16},
                                  .layout = layout};
}

Test(room, is_what_the_layout_says) {
    const berth_program_tensor middle = make("abCD64c16d", 2 * 64 * 16 * 4);
    const berth_program_tensor last = make("abcD100d", 2 * 11 * 100 * 4);
    const berth_program_tensor first = make("ABCD3a2b11c16d", 3 * 2 * 11 * 16 * 4);
    berth_program_room room;
    cr_assert(berth_program_tensor_room(&middle, &room));
    cr_assert(room.axis == 2 && room.outer == 2 && room.capacity == 64 && room.row_bytes == 64);
    cr_assert(berth_program_tensor_room(&last, &room));
    cr_assert(room.axis == 3 && room.outer == 22 && room.capacity == 100 && room.row_bytes == 4);
    cr_assert(berth_program_tensor_room(&first, &room));
    cr_assert(room.axis == 0 && room.outer == 1 && room.capacity == 3 && room.row_bytes == 1408);
}

Test(room, of_other_layouts_and_sizes_is_none) {
    static const struct {
        const char *layout;
        uint64_t size_bytes;
    } cases[] = {
        {"", 2 * 11 * 16 * 4},
        {"abcd", 2 * 11 * 16 * 4},
        {"abCD64c16d", 2 * 63 * 16 * 4},  // another size
        {"abCD10c16d", 2 * 10 * 16 * 4},  // fewer rows than it has
        {"abCD64c8d", 2 * 64 * 16 * 4},   // rows in parts
        {"abCD16d64c", 2 * 64 * 16 * 4},
        {"aBcD2b16d", 2 * 11 * 16 * 4},  // not all from the axis on
        {"baCD64c16d", 2 * 64 * 16 * 4},
        {"abCD64c16d1d", 2 * 64 * 16 * 4},
        {"abCD64c", 2 * 64 * 16 * 4},
        {"abCD0c16d", 0},
        {"abCD-64c16d", 2 * 64 * 16 * 4},
        {"abCD18446744073709551617c16d", 2 * 16 * 4},
        {"abCD4611686018427387904c16d", 0},  // times 128 is 0 in 64 bits
        {"ab", 2 * 11 * 16 * 4},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        const berth_program_tensor tensor = make(cases[i].layout, cases[i].size_bytes);
        berth_program_room room;
        cr_assert_not(berth_program_tensor_room(&tensor, &room), "\"%s\"", cases[i].layout);
    }
}
