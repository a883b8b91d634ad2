// Virtual devices: names, interning, and the laws of join and default over all combinations of
// parts.
#include "support.h"

TestSuite(virtual_device, .init = test_arena_open, .fini = test_arena_close);

// Every combination of: type free, cpu, opencl; id free, 0, 1; target free, two hashes; scope free,
// two scopes.
enum { part_count = 3, all_count = part_count * part_count * part_count * part_count };

static berth_virtual_device nth(int index) {
    static const berth_device_kind kinds[] = {BERTH_DEVICE_FREE, BERTH_DEVICE_CPU,
                                              BERTH_DEVICE_OPENCL};
    static const char *const scopes[] = {NULL, "global", "vta.inp"};
    berth_virtual_device d = BERTH_VIRTUAL_DEVICE_FREE;
    d.device_type = kinds[index % 3];
    d.virtual_id = index / 3 % 3 - 1;
    int target = index / 9 % 3;
    d.has_target = target > 0;
    if (target) d.target = (berth_hash128){.high = (uint64_t)target, .low = 7};
    d.memory_scope = scopes[index / 27];
    return d;
}

Test(virtual_device, names_round_trip) {
    for (int i = 0; i < all_count; ++i) {
        const char *name = berth_virtual_device_name(test_arena, nth(i));
        berth_virtual_device back;
        cr_assert_null(berth_virtual_device_from_name(test_arena, name, &back), "%s", name);
        cr_expect(berth_virtual_device_equal(back, nth(i)), "%s", name);
    }
    cr_expect_str_eq(berth_virtual_device_name(test_arena, BERTH_VIRTUAL_DEVICE_FREE), "*");
    berth_virtual_device d = BERTH_VIRTUAL_DEVICE_FREE;
    d.device_type = BERTH_DEVICE_OPENCL;
    cr_expect_str_eq(berth_virtual_device_name(test_arena, d), "opencl");
    d.virtual_id = 0;
    cr_expect_str_eq(berth_virtual_device_name(test_arena, d), "opencl:0");
    d.memory_scope = "vta.inp";
    cr_expect_str_eq(berth_virtual_device_name(test_arena, d), "opencl:0@vta.inp");
}

Test(virtual_device, bad_names) {
    static const char *const bad[] = {"opencl:1@-ocal",
                                      "",
                                      "gpu",
                                      "opencl:",
                                      "opencl:x",
                                      "opencl:-1",
                                      "opencl:0x1",
                                      "opencl:99999999999",
                                      "opencl:0 ",
                                      "cpu@",
                                      "cpu@a b",
                                      "cpu#12",
                                      "cpu#zz345678901234567890123456789012",
                                      "cpu#123456789012345678901234567890123",
                                      ":0",
                                      "cpu:0:1"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        berth_virtual_device d;
        berth_status status = berth_virtual_device_from_name(test_arena, bad[i], &d);
        cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "accepted '%s'", bad[i]);
        cr_expect(berth_virtual_device_is_free(d));
        berth_status_free(status);
    }
}

static bool join(int a, int b, berth_virtual_device *out) {
    return berth_virtual_device_join(nth(a), nth(b), out);
}

Test(virtual_device, join_laws) {
    for (int a = 0; a < all_count; ++a) {
        berth_virtual_device r;
        cr_expect(join(a, a, &r) && berth_virtual_device_equal(r, nth(a)), "idempotent %d", a);
        cr_expect(join(a, 0, &r) && berth_virtual_device_equal(r, nth(a)), "neutral %d", a);
        for (int b = 0; b < all_count; ++b) {
            berth_virtual_device ab, ba;
            bool has = join(a, b, &ab);
            cr_expect_eq(has, join(b, a, &ba), "%d %d", a, b);
            cr_expect_eq(has, berth_virtual_device_clash(nth(a), nth(b)) == NULL);
            if (!has) continue;
            cr_expect(berth_virtual_device_equal(ab, ba), "commutative %d %d", a, b);
            // The join is above both: joining either again changes nothing.
            cr_expect(berth_virtual_device_join(ab, nth(a), &r) &&
                      berth_virtual_device_equal(r, ab));
        }
    }
}

Test(virtual_device, join_is_associative) {
    // All triples of every third device: 27^3.
    for (int a = 0; a < all_count; a += 3)
        for (int b = 1; b < all_count; b += 3)
            for (int c = 2; c < all_count; c += 3) {
                berth_virtual_device ab, bc, left, right;
                bool l = join(a, b, &ab) && berth_virtual_device_join(ab, nth(c), &left);
                bool r = join(b, c, &bc) && berth_virtual_device_join(nth(a), bc, &right);
                cr_assert_eq(l, r, "%d %d %d", a, b, c);
                if (l) cr_assert(berth_virtual_device_equal(left, right), "%d %d %d", a, b, c);
            }
}

Test(virtual_device, default_laws) {
    for (int i = 0; i < all_count; ++i) {
        berth_virtual_device a = nth(i);
        cr_expect(berth_virtual_device_equal(
            berth_virtual_device_default(a, BERTH_VIRTUAL_DEVICE_FREE), a));
        cr_expect(berth_virtual_device_equal(
            berth_virtual_device_default(BERTH_VIRTUAL_DEVICE_FREE, a), a));
        for (int k = 0; k < all_count; ++k) {
            berth_virtual_device b = nth(k);
            berth_virtual_device d = berth_virtual_device_default(a, b);
            // a's parts survive.
            cr_expect_null(berth_virtual_device_clash(a, d));
            berth_virtual_device r;
            cr_expect(berth_virtual_device_join(d, a, &r) && berth_virtual_device_equal(r, d));
            // The type is a's, or b's where a has none.
            cr_expect_eq(d.device_type, a.device_type ? a.device_type : b.device_type);
            // b's other parts come in exactly if b's type is the resulting one.
            bool same = b.device_type == d.device_type;
            int32_t id = a.virtual_id >= 0 ? a.virtual_id : same ? b.virtual_id : -1;
            cr_expect_eq(d.virtual_id, id, "%d %d", i, k);
            cr_expect_eq(d.has_target, a.has_target || (same && b.has_target), "%d %d", i, k);
            cr_expect_eq(d.memory_scope != NULL, a.memory_scope || (same && b.memory_scope));
            // Doing it again changes nothing.
            cr_expect(berth_virtual_device_equal(berth_virtual_device_default(d, b), d));
        }
    }
}

Test(virtual_device, table_interns) {
    berth_virtual_device_table *table = berth_virtual_device_table_create(test_arena);
    cr_expect_eq(berth_virtual_device_count(table), 1u);
    cr_expect(berth_virtual_device_is_free(berth_virtual_device_get(table, 0)));
    berth_device_id ids[all_count];
    for (int i = 0; i < all_count; ++i) ids[i] = berth_virtual_device_intern(table, nth(i));
    cr_expect_eq(ids[0], 0u);
    cr_expect_eq(berth_virtual_device_count(table), (uint32_t)all_count, "dense, one id each");
    for (int i = 0; i < all_count; ++i) {
        cr_expect_eq(berth_virtual_device_intern(table, nth(i)), ids[i]);
        cr_expect(berth_virtual_device_equal(berth_virtual_device_get(table, ids[i]), nth(i)));
        berth_device_id again = 1234;
        cr_assert_null(
            berth_virtual_device_parse(table, berth_virtual_device_print(table, ids[i]), &again));
        cr_expect_eq(again, ids[i]);
    }
    for (int a = 0; a < all_count; ++a)
        for (int b = 0; b < all_count; ++b) {
            berth_virtual_device joined;
            berth_device_id id = 4321;
            bool has = join(a, b, &joined);
            cr_expect_eq(berth_virtual_device_join_ids(table, ids[a], ids[b], &id), has);
            if (has)
                cr_expect(berth_virtual_device_equal(berth_virtual_device_get(table, id), joined));
            else
                cr_expect_eq(id, 4321u, "untouched on a clash");
            cr_expect(berth_virtual_device_equal(
                berth_virtual_device_get(table,
                                         berth_virtual_device_default_ids(table, ids[a], ids[b])),
                berth_virtual_device_default(nth(a), nth(b))));
        }
}

Test(virtual_device, clash_names_the_part) {
    berth_virtual_device a = BERTH_VIRTUAL_DEVICE_FREE, b = BERTH_VIRTUAL_DEVICE_FREE;
    a.memory_scope = "s1";
    b.memory_scope = "s2";
    cr_expect_str_eq(berth_virtual_device_clash(a, b), "memory scope");
    a.virtual_id = 0;
    b.virtual_id = 1;
    cr_expect_str_eq(berth_virtual_device_clash(a, b), "virtual id");
    a.device_type = BERTH_DEVICE_CPU;
    b.device_type = BERTH_DEVICE_CUDA;
    cr_expect_str_eq(berth_virtual_device_clash(a, b), "device type");
}

Test(virtual_device, kinds) {
    for (int k = 1; k < BERTH_DEVICE_KIND_COUNT; ++k) {
        const char *name = berth_device_kind_name((berth_device_kind)k);
        cr_expect_eq((int)berth_device_kind_from_name(name), k);
        cr_expect_str_eq(berth_device_kind_names()[k - 1], name);
        cr_expect_str_not_empty(berth_device_kind_doc((berth_device_kind)k));
    }
    cr_expect_null(berth_device_kind_names()[BERTH_DEVICE_KIND_COUNT - 1]);
    cr_expect_eq(berth_device_kind_from_name("*"), BERTH_DEVICE_FREE);
}
