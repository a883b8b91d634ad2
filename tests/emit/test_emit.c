// Modules written as C (berth opt --emit=c), compiled into this test: what they build equals the
// module that was written, and prints as the same text.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "base/file.h"
#include "ir/emit_c.h"
#include "ir/equal.h"
#include "ir/graph/graph.h"
#include "ir/pass.h"
#include "ir/text.h"

#define EMITTED(name, path) berth_module *name(berth_arena *arena);
#include "emitted.def"
#undef EMITTED

typedef struct emitted {
    berth_module *(*build)(berth_arena *arena);
    const char *text;  // a file with the module as text
} emitted;

static const emitted modules[] = {
#define EMITTED(name, path) {name, path},
#include "emitted.def"
};

typedef struct job {
    const emitted *from;
    berth_arena *arena;
    berth_module *module;
    berth_strbuf text;
} job;

static berth_status build(void *user) {
    job *j = user;
    j->module = j->from->build(j->arena);
    j->text = berth_strbuf_make(j->arena);
    return berth_module_to_text(j->module, NULL, &j->text);
}

static void expect_ok(const char *what, berth_status status) {
    cr_assert_null(status, "%s: %s", what, berth_status_message(status));
}

static void check(const emitted *from) {
    job j = {.from = from};
    berth_mapping file;
    berth_module *read = NULL;
    bool equal = false;
    const char *why = "";
    expect_ok("arena", berth_arena_create(berth_allocator_system(), &j.arena));
    expect_ok(from->text, berth_file_map(from->text, &file));
    expect_ok("build", berth_arena_try(j.arena, build, &j));
    expect_ok("verify", berth_module_verify(j.module));
    expect_ok("parse", berth_module_parse(j.arena, (const char *)file.data, file.size_bytes,
                                          from->text, &read));
    expect_ok("equal", berth_module_equal(read, j.module, &equal, &why));
    cr_expect(equal, "%s: %s", from->text, why);
    cr_expect(j.text.length == file.size_bytes &&
                  memcmp(j.text.data, file.data, file.size_bytes) == 0,
              "%s: the module that was built prints as another text:\n%s", from->text, j.text.data);
    berth_file_unmap(file);
    berth_arena_destroy(j.arena);
}

Test(emit_c, modules_are_rebuilt) {
    cr_assert_gt(sizeof(modules) / sizeof(modules[0]), 20u);
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); ++i) check(&modules[i]);
}

// ---- what has no form in C ----------------------------------------------------------------------

static berth_status emit_foreign(void *user) {
    job *j = user;
    static const berth_dialect foreign = {.name = "foreign"};
    berth_strbuf out = berth_strbuf_make(j->arena);
    j->module = berth_module_create(j->arena, "m");
    berth_module_add_function(j->module, "f", &foreign, NULL, 0);
    return berth_module_to_c(j->module, NULL, &out);
}

static berth_status emit_opaque(void *user) {
    job *j = user;
    static const berth_opaque_ops ops = {.kind = "loaded"};
    berth_strbuf out = berth_strbuf_make(j->arena);
    j->module = berth_module_create(j->arena, "m");
    berth_attrs_set(j->module, &j->module->attrs, "code",
                    (berth_attr){.kind = BERTH_ATTR_OPAQUE, .opaque = {&ops, NULL}});
    return berth_module_to_c(j->module, NULL, &out);
}

static void expect_refused(berth_status (*emit)(void *user), const char *message) {
    job j = {0};
    expect_ok("arena", berth_arena_create(berth_allocator_system(), &j.arena));
    berth_status status = berth_arena_try(j.arena, emit, &j);
    cr_expect_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    cr_expect_str_eq(berth_status_message(status), message);
    berth_status_free(status);
    berth_arena_destroy(j.arena);
}

Test(emit_c, refused) {
    expect_refused(emit_foreign, "function @f: the dialect foreign has no form in C");
    expect_refused(emit_opaque, "attribute code: a value of kind 'loaded' cannot be serialised");
}
