// The planner's stages: those of the table run, in its order, once each, and docs/planner.md lists
// them so.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/planner/support.h"

enum { most_stages = 32, most_bytes = 1 << 16 };

typedef struct seen {
    const char *names[most_stages];
    uint32_t count;
} seen;

static void after_stage(void *user, const berth_plan_stage *stage) {
    seen *s = user;
    cr_assert_lt(s->count, most_stages);
    s->names[s->count++] = stage->name;
}

// Several instances are allowed and the graph has a call and a tuple: every stage has work, and
// those that solve parts of the module again do not tell of it.
Test(planner_stages, the_table_is_what_runs) {
    berth_arena *arena = new_arena();
    berth_module *module = parse_module(
        arena, "graph @f(%a: f32[4]) { %r = relu(%a) return %r } graph @main(%a: f32[4], %b: "
               "f32[4]) { %x = call @f(%a) %d = on_device(%b) {device = opencl:0} %y = call @f(%d) "
               "%z = add(%x, %y) return %z }");
    seen s = {.count = 0};
    berth_plan_options options = {.target = parse_target(arena, target_gch),
                                  .max_instances = 4,
                                  .strategy = "greedy",
                                  .host_bound = true,
                                  .after_stage = after_stage,
                                  .stage_user = &s};
    berth_plan *plan = NULL;
    require(plan_with(module, &options, &plan));
    for (uint32_t i = 0; i < s.count; ++i) {
        cr_assert_not_null(berth_plan_stage_at(i), "stage %s is not in the table", s.names[i]);
        cr_expect_str_eq(s.names[i], berth_plan_stage_at(i)->name, "stage %u", i + 1);
    }
    cr_expect_null(berth_plan_stage_at(s.count), "a stage of the table did not run");
    berth_arena_destroy(arena);
}

Test(planner_stages, the_page_numbers_them_as_the_table_does) {
    FILE *file = fopen("docs/planner.md", "rb");
    cr_assert_not_null(file);
    char *text = calloc(1, most_bytes);
    cr_assert_lt(fread(text, 1, most_bytes - 1, file), most_bytes - 1);
    fclose(file);
    char *at = strstr(text, "\n## The stages\n");
    cr_assert_not_null(at);
    char *end = strstr(at + 1, "\n## ");
    cr_assert_not_null(end);
    *end = 0;
    uint32_t count = 0;
    for (const berth_plan_stage *stage; (stage = berth_plan_stage_at(count)) != NULL; ++count) {
        char line[64];
        snprintf(line, sizeof(line), "\n%u. **%s** (", count + 1, stage->name);
        char *found = strstr(at, line);
        cr_assert_not_null(found, "docs/planner.md does not go on with%s", line);
        at = found;
    }
    char next[16];
    snprintf(next, sizeof(next), "\n%u. **", count + 1);
    cr_expect_null(strstr(at, next), "docs/planner.md has more stages than the table");
    free(text);
}
