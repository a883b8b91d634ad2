// The wire reader on messages written byte by byte, after the encoding's specification.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"

#define MESSAGE(text) berth_wire_make(text, sizeof(text) - 1)

static void assert_error(const berth_wire *wire, const char *message) {
    berth_status status = berth_wire_status(wire);
    cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT);
    cr_assert_str_eq(berth_status_message(status), message);
    berth_status_free(status);
}

Test(wire, reads_every_kind_of_field) {
    // 1: varint 150; 2: "testing"; 3: fixed32 1; 4: fixed64 -2; 5: varint -1 (ten bytes); 2047:
    // varint 0
    berth_wire wire = MESSAGE(
        "\x08\x96\x01\x12\x07testing\x1d\x01\x00\x00\x00\x21\xfe\xff\xff\xff\xff\xff\xff\xff"
        "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xf8\x7f\x00");
    berth_wire_field field;
    cr_assert(berth_wire_next(&wire, &field));
    cr_assert(field.number == 1 && field.type == BERTH_WIRE_VARINT && field.value == 150);
    cr_assert(berth_wire_next(&wire, &field));
    cr_assert(field.number == 2 && field.type == BERTH_WIRE_BYTES && field.size_bytes == 7);
    cr_assert_eq(memcmp(field.data, "testing", 7), 0);
    cr_assert(berth_wire_next(&wire, &field));
    cr_assert(field.number == 3 && field.type == BERTH_WIRE_FIXED32 && field.value == 1);
    cr_assert(berth_wire_next(&wire, &field));
    cr_assert(field.number == 4 && field.type == BERTH_WIRE_FIXED64 && (int64_t)field.value == -2);
    cr_assert(berth_wire_next(&wire, &field));
    cr_assert(field.number == 5 && (int64_t)field.value == -1);
    cr_assert(berth_wire_next(&wire, &field));
    cr_assert(field.number == 2047 && field.value == 0);
    cr_assert_not(berth_wire_next(&wire, &field));
    cr_assert_null(berth_wire_status(&wire));
}

Test(wire, empty_messages_are_fine) {
    berth_wire wire = berth_wire_make(NULL, 0);
    berth_wire_field field;
    cr_assert_not(berth_wire_next(&wire, &field));
    cr_assert_null(berth_wire_status(&wire));
}

Test(wire, broken_messages_are_explained) {
    static const struct {
        const char *text;
        size_t size_bytes;
        const char *message;
    } cases[] = {
#define CASE(text, message) {text, sizeof(text) - 1, message}
        CASE("\x08", "byte 1: the message ends in the middle of a number"),
        CASE("\x08\x96", "byte 1: the message ends in the middle of a number"),
        CASE("\x08\x01\x1d\x01\x02\x03", "byte 3: the message ends in the middle of a number"),
        CASE("\x21\x01", "byte 1: the message ends in the middle of a number"),
        CASE("\x12\x03go", "byte 1: a field is longer than the message that holds it"),
        CASE("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
             "byte 1: a field is longer than the message that holds it"),
        CASE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
             "byte 1: a number is longer than 64 bits"),
        CASE("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
             "byte 1: a number is longer than 64 bits"),
        CASE("\x00\x01", "byte 0: a field number is outside 1..536870911"),
        CASE("\x80\x80\x80\x80\x10\x01", "byte 0: a field number is outside 1..536870911"),
        CASE("\x08\x01\x0b", "byte 2: a field has an unknown wire type"),
#undef CASE
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        uint8_t *copy =
            malloc(cases[i].size_bytes);  // so that the sanitizer sees a read after the end
        memcpy(copy, cases[i].text, cases[i].size_bytes);
        berth_wire wire = berth_wire_make(copy, cases[i].size_bytes);
        berth_wire_field field;
        while (berth_wire_next(&wire, &field)) {
        }
        assert_error(&wire, cases[i].message);
        cr_assert_not(berth_wire_next(&wire, &field), "an error must stick");
        free(copy);
    }
}

Test(wire, nested_messages_report_offsets_in_the_whole) {
    berth_wire wire =
        MESSAGE("\x0a\x05\x08\x01\x12\x09x");  // a message of 5 bytes whose field 2 wants 9
    berth_wire_field field, inner;
    cr_assert(berth_wire_next(&wire, &field));
    berth_wire child = berth_wire_enter(&wire, &field);
    cr_assert(berth_wire_next(&child, &inner));
    cr_assert_eq(inner.value, 1);
    cr_assert_not(berth_wire_next(&child, &inner));
    assert_error(&child, "byte 5: a field is longer than the message that holds it");
    cr_assert_null(berth_wire_status(&wire));
}

Test(wire, types_are_checked_and_depth_is_bounded) {
    berth_wire wire = MESSAGE("\x08\x01");
    berth_wire_field field;
    cr_assert(berth_wire_next(&wire, &field));
    berth_wire child = berth_wire_enter(&wire, &field);
    assert_error(&child, "byte 2: a field has another type than expected");
    cr_assert_not(berth_wire_is(&wire, &field, BERTH_WIRE_BYTES));
    assert_error(&wire, "byte 2: a field has another type than expected");

    uint8_t nested[3 * (BERTH_WIRE_MAX_DEPTH + 2)];  // each level: field 1 with all that follows
    for (size_t i = 0; i < sizeof(nested); i += 3) {
        size_t rest = sizeof(nested) - i - 3;
        nested[i] = 0x0a;
        nested[i + 1] = (uint8_t)(0x80 | (rest & 0x7f));
        nested[i + 2] = (uint8_t)(rest >> 7);
    }
    berth_wire level = berth_wire_make(nested, sizeof(nested));
    int depth = 0;
    while (berth_wire_next(&level, &field)) {
        level = berth_wire_enter(&level, &field);
        depth++;
    }
    cr_assert_eq(depth, BERTH_WIRE_MAX_DEPTH + 1);
    cr_assert_str_eq(level.error, "messages are nested too deeply");
}

Test(wire, packed_numbers) {
    berth_wire wire = MESSAGE("\x0a\x03\x01\xac\x02\x12\x08\x01\x00\x00\x00\x02\x00\x00\x00"
                              "\x1a\x09\x03\x00\x00\x00\x00\x00\x00\x00\x07");
    berth_wire_field field;
    uint64_t value = 0;
    uint32_t small = 0;
    cr_assert(berth_wire_next(&wire, &field));
    berth_wire packed = berth_wire_enter(&wire, &field);
    cr_assert(berth_wire_varint(&packed, &value) && value == 1);
    cr_assert(berth_wire_varint(&packed, &value) && value == 300);
    cr_assert_not(berth_wire_varint(&packed, &value));
    cr_assert_null(berth_wire_status(&packed));
    cr_assert(berth_wire_next(&wire, &field));
    packed = berth_wire_enter(&wire, &field);
    cr_assert(berth_wire_fixed32(&packed, &small) && small == 1);
    cr_assert(berth_wire_fixed32(&packed, &small) && small == 2);
    cr_assert_not(berth_wire_fixed32(&packed, &small));
    cr_assert_null(berth_wire_status(&packed));
    cr_assert(berth_wire_next(&wire, &field));
    packed = berth_wire_enter(&wire, &field);
    cr_assert(berth_wire_fixed64(&packed, &value) && value == 3);
    cr_assert_not(berth_wire_fixed64(&packed, &value));
    assert_error(&packed, "byte 25: the message ends in the middle of a number");
    berth_wire_fail(&wire, "a rule of the schema is broken");
    assert_error(&wire, "byte 26: a rule of the schema is broken");
}
