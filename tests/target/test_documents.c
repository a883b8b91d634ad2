// The schema and the documentation say what the table of kinds says.
#include <jansson.h>
#include <stdlib.h>

#include "base/file.h"
#include "support.h"

TestSuite(target_documents, .init = test_arena_open, .fini = test_arena_close);

Test(target_documents, schema_follows_the_table) {
    json_error_t error;
    json_t *schema = json_load_file("target/target.schema.json", 0, &error);
    cr_assert_not_null(schema, "%s", error.text);
    json_t *definitions = json_object_get(schema, "$defs");
    uint32_t count = 0;
    const berth_target_attribute_facts *table = berth_target_attribute_table(&count);
    for (int k = 1; k < BERTH_DEVICE_KIND_COUNT; ++k) {
        const char *kind = berth_device_kind_name((berth_device_kind)k);
        json_t *properties = json_object_get(json_object_get(definitions, kind), "properties");
        cr_assert_not_null(properties, "%s", kind);
        size_t expected = 2;  // kind and host
        for (uint32_t i = 0; i < count; ++i) {
            if (!(table[i].kinds >> k & 1)) continue;
            expected++;
            json_t *property = json_object_get(properties, table[i].name);
            cr_assert_not_null(property, "%s.%s: run scripts/target_schema.py", kind,
                               table[i].name);
            cr_expect_str_eq(json_string_value(json_object_get(property, "description")),
                             table[i].doc);
        }
        cr_expect_eq(json_object_size(properties), expected, "%s: run scripts/target_schema.py",
                     kind);
    }
    json_decref(schema);
}

Test(target_documents, documentation_follows_the_table) {
    char *text = NULL;
    size_t size = 0;
    cr_assert_null(berth_file_read(test_arena, "docs/target.md", 1 << 20, &text, &size));
    uint32_t count = 0;
    const berth_target_attribute_facts *table = berth_target_attribute_table(&count);
    for (uint32_t i = 0; i < count; ++i) {
        const char *row = berth_arena_printf(test_arena, "| `%s` |", table[i].name);
        cr_expect_not_null(strstr(text, row), "%s: run scripts/target_schema.py", table[i].name);
        cr_expect_not_null(strstr(text, table[i].doc), "%s", table[i].name);
    }
}

// The example of the documentation is a target as it stands.
Test(target_documents, documented_example_parses) {
    char *text = NULL;
    size_t size = 0;
    cr_assert_null(berth_file_read(test_arena, "docs/target.md", 1 << 20, &text, &size));
    char *begin = strstr(text, "```json\n");
    cr_assert_not_null(begin);
    begin += 8;
    *strstr(begin, "```") = 0;
    berth_multi_target *t = parse(begin);
    check_invariants(t, "docs/target.md");
    check_round_trip(t, "docs/target.md");
    cr_expect_eq(t->device_count, 3u);
}
