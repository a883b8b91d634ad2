// Tables and files of tuned kernels.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compiler/tuning/table.h"
#include "target/target.h"
#include "tests/check.h"

static berth_arena *make_arena(void) {
    berth_arena *arena = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &arena));
    return arena;
}

static berth_arena *target_arena;
static const char *target;

static void make_target(void) {
    berth_multi_target *made = NULL;
    target_arena = make_arena();
    assert_ok(berth_target_parse(target_arena, "cpu -arch=x86_64", NULL, &made));
    target = berth_target_culled(target_arena, made->devices[0].target);
}

static void drop_target(void) {
    berth_arena_destroy(target_arena);
}

TestSuite(tuned_table, .init = make_target, .fini = drop_target);

static void add(berth_tuned_table *table, uint64_t function, const char *decisions, double ns) {
    const char *const list[] = {"", decisions};
    berth_tuned_record record = {.target = target,
                                 .function = {.high = function, .low = ~function},
                                 .name = "k",
                                 .decisions = list,
                                 .nest_count = 2,
                                 .ns = ns,
                                 .policy_ns = 100,
                                 .runs = 7};
    berth_tuned_table_add(table, &record);
}

static const berth_tuned_record *find(const berth_tuned_table *table, uint64_t function) {
    return berth_tuned_table_find(table, target,
                                  (berth_hash128){.high = function, .low = ~function});
}

Test(tuned_table, what_gains_most_stays) {
    berth_arena *arena = make_arena();
    berth_tuned_table *table = berth_tuned_table_create(arena);
    add(table, 1, "rows=4", 90);
    add(table, 1, "rows=5", 80);
    add(table, 1, "rows=6", 95);
    add(table, 2, "rows=7", 99);
    cr_assert_eq(berth_tuned_table_count(table), 2);
    cr_expect_str_eq(find(table, 1)->decisions[1], "rows=5");
    cr_expect_str_eq(find(table, 2)->decisions[1], "rows=7");
    cr_expect_null(find(table, 3));
    cr_expect_null(berth_tuned_table_find(table, "{\"kind\": \"opencl\"}",
                                          (berth_hash128){.high = 1, .low = ~(uint64_t)1}));
    berth_arena_destroy(arena);
}

static const char *temporary_file(void) {
    static char path[] = "/tmp/berth-tuned-XXXXXX";
    strcpy(path, "/tmp/berth-tuned-XXXXXX");
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    return path;
}

// What is written is read again, by whoever merges files, too; the order of adding is no part of it.
Test(tuned_table, files) {
    berth_arena *arena = make_arena();
    berth_tuned_table *table = berth_tuned_table_create(arena);
    const char *path = temporary_file();
    for (uint64_t i = 40; i-- > 0;) add(table, i * 0x9e3779b97f4a7c15u, "rows=4 chunk=2", 50.25);
    assert_ok(berth_tuned_table_write(table, path));
    berth_tuned_table *read = berth_tuned_table_create(arena);
    add(read, 0, "rows=1", 10);
    assert_ok(berth_tuned_table_read(read, path));
    assert_ok(berth_tuned_table_read(read, path));
    cr_assert_eq(berth_tuned_table_count(read), 40);
    cr_expect_str_eq(find(read, 0)->decisions[1], "rows=1");
    const berth_tuned_record *record = find(read, 7 * 0x9e3779b97f4a7c15u);
    cr_expect(record->ns == 50.25 && record->policy_ns == 100 && record->runs == 7);
    cr_expect_str_eq(record->decisions[0], "");
    cr_expect_str_eq(record->decisions[1], "rows=4 chunk=2");
    unlink(path);
    berth_arena_destroy(arena);
}

// A file that a version without the newer attributes wrote is of the same device.
Test(tuned_table, files_of_older_versions_apply) {
    static const char old[] = "{\"arch\": \"x86_64\", \"cores\": 4, \"kind\": \"cpu\", "
                              "\"l1_bytes\": 32768, \"l2_bytes\": 262144, "
                              "\"threads\": 4, \"vector_bits\": 128}";
    berth_arena *arena = make_arena();
    berth_tuned_table *table = berth_tuned_table_create(arena);
    const char *path = temporary_file();
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file,
            "{\"target\": %s, \"function\": \"0000000000000001fffffffffffffffe\", \"name\": \"k\", "
            "\"decisions\": [\"rows=4\"], \"ns\": 5, \"policy_ns\": 6, \"runs\": 7}\n",
            old);
    fclose(file);
    assert_ok(berth_tuned_table_read(table, path));
    unlink(path);
    cr_assert_not_null(find(table, 1));
    cr_expect_str_eq(find(table, 1)->decisions[0], "rows=4");
    berth_arena_destroy(arena);
}

#define HASH "0123456789abcdef0123456789abcdef"
static const struct {
    const char *line, *says;
} wrong[] = {
    {"rows", "no JSON"},
    {"[]", "no JSON object"},
    {"{\"target\": 1}", "\"target\" is no object"},
    {"{\"target\": {\"kind\": \"cpu\"}, \"function\": \"12\"}", "\"function\" is no hash"},
    {"{\"target\": {\"kind\": \"cpu\"}, \"function\": \"" HASH "\", \"decisions\": [1]}",
     "\"decisions\" is no list"},
    {"{\"target\": {\"kind\": \"cpu\"}, \"function\": \"" HASH
     "\", \"decisions\": [], \"ns\": 0, \"policy_ns\": 1, \"runs\": 1}",
     "\"ns\" is no number"},
};

Test(tuned_table, wrong_lines_are_said_with_their_place) {
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        berth_arena *arena = make_arena();
        const char *path = temporary_file();
        FILE *file = fopen(path, "w");
        cr_assert_not_null(file);
        fprintf(file, "\n%s\n", wrong[i].line);
        fclose(file);
        berth_status status = berth_tuned_table_read(berth_tuned_table_create(arena), path);
        cr_assert_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "%s", wrong[i].line);
        cr_expect(strstr(berth_status_message(status), wrong[i].says) &&
                      strstr(berth_status_message(status), ":2: "),
                  "%s", berth_status_message(status));
        berth_status_free(status);
        unlink(path);
        berth_arena_destroy(arena);
    }
}
