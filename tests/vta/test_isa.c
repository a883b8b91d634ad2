// Fields: where the specification says they are, and the same forth and back.
#include "tests/vta/fields.h"
#include "tests/vta/programs.h"

typedef struct place {
    const char *name;
    size_t offset;
    int bit, bits;
} place;
#define AT(member, bit, bits)                                                                      \
    { #member, offsetof(berth_vta_instruction, member), bit, bits }

// The instruction set's tables for upstream's configuration, written down from its description.
static const place memory_fields[] = {
    AT(opcode, 0, 3),        AT(pop_prev, 3, 1),       AT(pop_next, 4, 1),
    AT(push_prev, 5, 1),     AT(push_next, 6, 1),      AT(memory_type, 7, 3),
    AT(sram_base, 10, 16),   AT(dram_base, 26, 32),    AT(y_size, 64, 16),
    AT(x_size, 80, 16),      AT(x_stride, 96, 16),     AT(y_pad_before, 112, 4),
    AT(y_pad_after, 116, 4), AT(x_pad_before, 120, 4), AT(x_pad_after, 124, 4)};
static const place gemm_fields[] = {
    AT(opcode, 0, 3),           AT(pop_prev, 3, 1),         AT(pop_next, 4, 1),
    AT(push_prev, 5, 1),        AT(push_next, 6, 1),        AT(reset, 7, 1),
    AT(uop_begin, 8, 13),       AT(uop_end, 21, 14),        AT(iter_out, 35, 14),
    AT(iter_in, 49, 14),        AT(dst_factor_out, 64, 11), AT(dst_factor_in, 75, 11),
    AT(src_factor_out, 86, 11), AT(src_factor_in, 97, 11),  AT(wgt_factor_out, 108, 10),
    AT(wgt_factor_in, 118, 10)};
static const place alu_fields[] = {AT(opcode, 0, 3),
                                   AT(reset, 7, 1),
                                   AT(uop_begin, 8, 13),
                                   AT(uop_end, 21, 14),
                                   AT(iter_out, 35, 14),
                                   AT(iter_in, 49, 14),
                                   AT(dst_factor_out, 64, 11),
                                   AT(dst_factor_in, 75, 11),
                                   AT(src_factor_out, 86, 11),
                                   AT(src_factor_in, 97, 11),
                                   AT(alu_opcode, 108, 3),
                                   AT(use_imm, 111, 1),
                                   AT(imm, 112, 16)};

// Each field alone, all ones: exactly its bits are set, beside the opcode's.
static void check_format(const berth_vta_isa *isa, uint32_t opcode, const place *places,
                         size_t count) {
    for (size_t f = 1; f < count; ++f) {
        berth_vta_instruction i = {.opcode = opcode};
        uint32_t ones = (uint32_t)(((uint64_t)1 << places[f].bits) - 1);
        memcpy((char *)&i + places[f].offset, &ones, sizeof(ones));
        uint8_t bytes[16];
        assert_ok(berth_vta_encode(isa, &i, bytes));
        for (int bit = 0; bit < 128; ++bit) {
            bool inside = bit >= places[f].bit && bit < places[f].bit + places[f].bits;
            bool expected = inside || (bit < 3 && opcode >> bit & 1);
            cr_assert_eq(bytes[bit / 8] >> bit % 8 & 1, expected, "opcode %u, %s, bit %d", opcode,
                         places[f].name, bit);
        }
        berth_vta_instruction again = berth_vta_decode(isa, bytes);
        cr_assert_eq(memcmp(&again, &i, sizeof(i)), 0, "%s", places[f].name);
        if (places[f].bits == 32) continue;
        ones++;
        memcpy((char *)&i + places[f].offset, &ones, sizeof(ones));
        assert_fails(berth_vta_encode(isa, &i, bytes), BERTH_OUT_OF_RANGE, places[f].name);
    }
}

Test(vta_isa, fields_lie_where_they_should) {
    berth_vta_config config = berth_vta_config_default();
    berth_vta_shape shape;
    berth_vta_isa isa;
    assert_ok(berth_vta_shape_make(&config, &shape));
    assert_ok(berth_vta_isa_make(&shape, &isa));
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
    check_format(&isa, BERTH_VTA_LOAD, memory_fields, COUNT(memory_fields));
    check_format(&isa, BERTH_VTA_STORE, memory_fields, COUNT(memory_fields));
    check_format(&isa, BERTH_VTA_GEMM, gemm_fields, COUNT(gemm_fields));
    check_format(&isa, BERTH_VTA_ALU, alu_fields, COUNT(alu_fields));
    cr_assert_eq(shape.memory[BERTH_VTA_UOP].depth, 8192);
    cr_assert_eq(shape.memory[BERTH_VTA_WGT].depth, 1024);
    cr_assert_eq(shape.memory[BERTH_VTA_INP].depth, 2048);
    cr_assert_eq(shape.memory[BERTH_VTA_ACC].depth, 2048);
    cr_assert_eq(shape.memory[BERTH_VTA_WGT].element_bytes, 256);
    cr_assert_eq(shape.memory[BERTH_VTA_INP].element_bytes, 16);
    cr_assert_eq(shape.memory[BERTH_VTA_ACC].element_bytes, 64);
    cr_assert_eq(shape.memory[BERTH_VTA_ACC8].element_bytes, 16);
    char text[96];
    berth_vta_config_text(&config, text);
    cr_assert_str_eq(text, "1x16_i8w8a32_15_15_18_17");
}

// In every configuration the tests' own reader finds what was encoded.
Test(vta_isa, other_configurations) {
    for (int c = 0; c < CONFIGURATIONS; ++c)
        for (uint64_t seed = 1; seed <= 20; ++seed) {
            program p;
            random_program(&p, configuration(c), 40, seed);
            for (uint32_t n = 0; n < p.count; ++n) {
                const uint8_t *bytes = p.dram.data + (p.address - PROGRAM_BASE) + 16 * (size_t)n;
                berth_vta_instruction i = berth_vta_decode(&p.isa, bytes);
                fields f = read_fields(&p.config, bytes);
                cr_assert_eq(i.opcode, (uint32_t)f.opcode);
                cr_assert_eq(
                    i.pop_prev * 8 + i.pop_next * 4 + i.push_prev * 2 + i.push_next,
                    (uint32_t)(f.pop_prev * 8 + f.pop_next * 4 + f.push_prev * 2 + f.push_next));
                cr_assert_eq(i.sram_base, (uint32_t)f.sram);
                cr_assert_eq(i.dram_base, (uint32_t)f.dram);
                cr_assert_eq(i.x_pad_after, (uint32_t)f.x1);
                cr_assert_eq(i.uop_end, (uint32_t)f.uop_end);
                cr_assert_eq(i.iter_in, (uint32_t)f.iter_in);
                cr_assert_eq(i.dst_factor_out, (uint32_t)f.dst_out);
                cr_assert_eq(i.src_factor_in, (uint32_t)f.src_in);
                cr_assert_eq(i.wgt_factor_in, (uint32_t)f.wgt_in);
                cr_assert_eq(berth_vta_imm(&i), f.imm);
                cr_assert_eq((int)berth_vta_unit_of(&i), unit_of(&f));
            }
            end_program(&p);
        }
}

static void refuse(const char *name, uint32_t value, berth_code code, const char *part) {
    berth_vta_config config = berth_vta_config_default();
    assert_ok(berth_vta_config_set(&config, name, value));
    berth_vta_shape shape;
    berth_vta_isa isa;
    berth_status status = berth_vta_shape_make(&config, &shape);
    if (!status) status = berth_vta_isa_make(&shape, &isa);
    assert_fails(status, code, part);
}

Test(vta_isa, configurations_that_cannot_be) {
    refuse("log_inp_width", 2, BERTH_UNSUPPORTED, "log_inp_width=2");
    refuse("log_wgt_width", 5, BERTH_UNSUPPORTED, "log_wgt_width=5");
    refuse("log_acc_width", 6, BERTH_UNSUPPORTED, "log_acc_width=6");
    refuse("log_block", 9, BERTH_OUT_OF_RANGE, "log_block=9");
    refuse("log_block", 7, BERTH_OUT_OF_RANGE, "a page");
    refuse("log_wgt_buff_size", 7, BERTH_OUT_OF_RANGE, "log_wgt_buff_size=7");
    refuse("log_wgt_buff_size", 30, BERTH_OUT_OF_RANGE, "sram_base");
    refuse("log_inp_buff_size", 17, BERTH_OUT_OF_RANGE, "micro-op");
    refuse("log_uop_buff_size", 18, BERTH_OUT_OF_RANGE, "beyond bit 127");
    berth_vta_config config = berth_vta_config_default();
    assert_fails(berth_vta_config_set(&config, "log_bloc", 1), BERTH_NOT_FOUND, "log_bloc");
}

Test(vta_isa, text) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    berth_strbuf out = berth_strbuf_make(arena);
    berth_vta_instruction i = {.opcode = BERTH_VTA_ALU,
                               .pop_prev = 1,
                               .push_prev = 1,
                               .push_next = 1,
                               .uop_end = 3,
                               .iter_out = 1,
                               .iter_in = 4,
                               .alu_opcode = BERTH_VTA_MAX,
                               .use_imm = 1,
                               .imm = 0xff80};
    berth_vta_print(&i, &out);
    cr_assert_str_eq(berth_strbuf_text(&out), "ALU.MAX pop(prev) push(prev,next) uop_end=3 "
                                              "iter_out=1 iter_in=4 use_imm=1 imm=-128");
    out = berth_strbuf_make(arena);
    i = (berth_vta_instruction){.memory_type = BERTH_VTA_WGT, .dram_base = 0x140, .x_size = 3};
    berth_vta_print(&i, &out);
    cr_assert_str_eq(berth_strbuf_text(&out), "LOAD wgt dram_base=0x140 x_size=3");
    berth_arena_destroy(arena);
}
