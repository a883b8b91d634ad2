// TensorProto details that tensor files do not show: borrowing and external data.
#include <criterion/criterion.h>
#include <stdalign.h>
#include <string.h>

#include "base/tensor_proto.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(tensor_proto, .init = setup, .fini = teardown);

static berth_tensor_proto parse(const void *data, size_t size_bytes, bool borrow) {
    berth_tensor_proto proto;
    berth_status status =
        berth_tensor_proto_parse(arena, berth_wire_make(data, size_bytes), borrow, &proto);
    cr_assert_null(status, "%s", berth_status_message(status));
    return proto;
}

Test(tensor_proto, raw_data_is_borrowed_when_asked) {
    // dims 2, type float, raw data of 8 bytes at offset 6: aligned for float when the message
    // begins at 2 modulo 4.
    static const char message[] = "\x08\x02\x10\x01\x4a\x08\x00\x00\x80\x3f\x00\x00\x00\x40";
    alignas(64) uint8_t memory[64];
    for (size_t shift = 0; shift < 4; ++shift) {
        memcpy(memory + shift, message, sizeof(message) - 1);
        for (int borrow = 0; borrow < 2; ++borrow) {
            berth_tensor_proto proto = parse(memory + shift, sizeof(message) - 1, borrow);
            bool in_place = proto.tensor.data == memory + shift + 6;
            cr_assert_eq(in_place, borrow);
            berth_tensor tensor = berth_tensor_align(arena, &proto.tensor);
            cr_assert_eq(tensor.data == proto.tensor.data, !borrow || shift == 2);
            cr_assert_eq((uintptr_t)tensor.data % 4, 0);
            cr_assert_eq(berth_tensor_get_f64(&tensor, 0), 1);
            cr_assert_eq(berth_tensor_get_f64(&tensor, 1), 2);
        }
    }
}

Test(tensor_proto, external_data_is_described_not_read) {
    // type float, dims 3, name "w", external location "a/b.bin", offset 4096, length 12;
    // data_location 1.
    static const char message[] = "\x10\x01\x08\x03\x42\x01w"
                                  "\x6a\x13\x0a\x08location\x12\x07"
                                  "a/b.bin"
                                  "\x6a\x0e\x0a\x06offset\x12\x04"
                                  "4096"
                                  "\x6a\x0c\x0a\x06length\x12\x02"
                                  "12"
                                  "\x70\x01";
    berth_tensor_proto proto = parse(message, sizeof(message) - 1, true);
    cr_assert(proto.external);
    cr_assert_null(proto.tensor.data);
    cr_assert_str_eq(proto.name, "w");
    cr_assert_str_eq(proto.location, "a/b.bin");
    cr_assert_eq(proto.offset_bytes, 4096);
    cr_assert_eq(proto.length_bytes, 12);
    cr_assert(proto.tensor.rank == 1 && proto.tensor.dims[0] == 3 &&
              proto.tensor.dtype == BERTH_DTYPE_F32);
}

Test(tensor_proto, external_numbers_must_be_numbers) {
    static const char *const values[] = {"-1", "4x", "99999999999999999999"};
    for (int i = 0; i < 3; ++i) {
        char message[64] = "\x10\x01\x6a";
        size_t length = strlen(values[i]);
        message[3] = (char)(10 + length);
        memcpy(message + 4, "\x0a\x06offset\x12", 9);
        message[13] = (char)length;
        memcpy(message + 14, values[i], length);
        berth_tensor_proto proto;
        berth_status status =
            berth_tensor_proto_parse(arena, berth_wire_make(message, 14 + length), false, &proto);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
        cr_assert_not_null(strstr(berth_status_message(status), "not a number"), "%s",
                           berth_status_message(status));
        berth_status_free(status);
    }
}

Test(tensor_proto, onnx_numbers_go_both_ways) {
    for (int dtype = 1; dtype < BERTH_DTYPE_COUNT; ++dtype)
        cr_assert_eq(berth_dtype_from_onnx(berth_dtype_to_onnx((berth_dtype)dtype)),
                     (berth_dtype)dtype);
    cr_assert_eq(berth_dtype_to_onnx(BERTH_DTYPE_F32), 1);
    cr_assert_eq(berth_dtype_to_onnx(BERTH_DTYPE_BF16), 16);
    cr_assert_eq(berth_dtype_from_onnx(8), BERTH_DTYPE_STRING);
    cr_assert_eq(berth_dtype_to_onnx(BERTH_DTYPE_STRING), 8);
    cr_assert_eq(berth_dtype_to_onnx(BERTH_DTYPE_NONE), 0);
}

Test(tensor_proto, strings_are_bytes) {
    // dims 3, type string, then "ab", nothing, and a byte that is no text, a NUL and a letter.
    static const char message[] = "\x08\x03\x10\x08\x32\x02"
                                  "ab\x32\x00\x32\x03\xff\x00z";
    for (int borrow = 0; borrow < 2; ++borrow) {
        berth_tensor_proto proto = parse(message, sizeof(message) - 1, borrow);
        const berth_string *strings = berth_tensor_strings(&proto.tensor);
        cr_assert_eq(proto.tensor.dtype, BERTH_DTYPE_STRING);
        cr_assert_eq(strings[0].data == message + 6, borrow);
        cr_assert(berth_string_equal(strings[0], berth_string_of("ab")));
        cr_assert_eq(strings[1].length, 0);
        cr_assert(berth_string_equal(strings[2], (berth_string){"\xff\0z", 3}));
    }
}

Test(tensor_proto, strings_that_are_not_as_many_as_said) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *what;
    } rows[] = {{"\x08\x02\x10\x08\x32\x01"
                 "a",
                 7, "holds 1 strings; its shape needs 2"},
                {"\x08\xff\xff\xff\xff\x0f\x10\x08", 8, "its shape needs 4294967295"},
                {"\x08\x01\x10\x08\x4a\x02"
                 "ab",
                 8, "raw data"},
                {"\x10\x08\x32\x7f"
                 "a",
                 5, "longer than the message"},
                {"\x10\x08\x30\x01", 4, "another type"},
                {"\x10\x08\x70\x01", 4, "another file"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_tensor_proto proto;
        berth_status status = berth_tensor_proto_parse(
            arena, berth_wire_make(rows[i].bytes, rows[i].size), false, &proto);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%zu", i);
        cr_expect_not_null(strstr(berth_status_message(status), rows[i].what), "%s",
                           berth_status_message(status));
        berth_status_free(status);
    }
}

Test(tensor_proto, copies_own_their_strings) {
    char text[] = "first";
    int64_t dims[1] = {3};
    berth_tensor tensor = berth_tensor_create(arena, BERTH_DTYPE_STRING, 1, dims);
    berth_string *strings = tensor.data;
    strings[0] = strings[1] = (berth_string){text, 5};  // equal neighbours: one copy
    size_t bytes = 0;
    cr_assert_null(berth_tensor_string_bytes(&tensor, &bytes));
    cr_assert_eq(bytes, 5);
    berth_tensor copy = berth_tensor_copy(arena, &tensor);
    memset(text, 'x', 5);
    for (int i = 0; i < 2; ++i)
        cr_assert(berth_string_equal(berth_tensor_strings(&copy)[i], berth_string_of("first")));
    cr_assert_eq(berth_tensor_strings(&copy)[0].data, berth_tensor_strings(&copy)[1].data);
    strings[2] = (berth_string){text, SIZE_MAX};
    berth_status status = berth_tensor_string_bytes(&tensor, &bytes);
    cr_assert_eq(berth_status_code(status), BERTH_OUT_OF_RANGE);
    berth_status_free(status);
}
