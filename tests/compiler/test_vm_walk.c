// What a walk through byte code finds that a program file needs code for.
#include <criterion/criterion.h>
#include <string.h>

#include "compiler/vm/walk.h"
#include "ir/text.h"
#include "tests/check.h"

typedef struct fixture {
    berth_arena *arena;
    berth_module *module;
    berth_vm_code code;
    berth_vm_reached reached;
} fixture;

static fixture begin(const char *text) {
    fixture f = {.arena = NULL};
    assert_ok(berth_arena_create(berth_allocator_system(), &f.arena));
    assert_ok(berth_module_parse(f.arena, text, strlen(text), "test.txt", &f.module));
    assert_ok(berth_vm_emit(f.module, (berth_log){0}, false, &f.code));
    f.reached.arena = f.arena;
    return f;
}

static void end(fixture *f) {
    berth_arena_destroy(f->arena);
}

static berth_tensor vector(int64_t length) {
    return (berth_tensor){.dtype = BERTH_DTYPE_F32, .rank = 1, .dims = {length}};
}

static const berth_tensor any_number = {.dtype = BERTH_DTYPE_I64};

static void walk(fixture *f, const berth_tensor *inputs) {
    assert_ok(berth_vm_walk(f->module, &f->code, inputs, (berth_log){0}, &f->reached));
    berth_vm_reached_simplify(&f->reached, &f->code);
}

// Of the segment: code for inputs whose first one has this many elements.
static uint32_t count_code(const fixture *f, uint32_t segment, int64_t elements) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->reached.list.count; ++i) {
        const berth_vm_reach *reach = &f->reached.list.data[i];
        count += reach->piece == segment && !reach->results &&
                 berth_tensor_element_count(&reach->inputs[0]) == elements;
    }
    return count;
}

static const char branches[] =
    "module \"m\"\n"
    "graph @main(%x: f32[N], %c: bool[]) {\n"
    "  %y = if(%c) {\n    %a = concat(%x, %x) {axis = 0}\n    return %a\n  } {\n"
    "    %b = neg(%x)\n    return %b\n  }\n"
    "  %z = tanh(%y)\n  return %z\n}\n";

// What follows the branches is reached with both shapes, of each set once.
Test(vm_walk, both_branches_of_an_unknown_condition) {
    fixture f = begin(branches);
    const berth_tensor condition = {.dtype = BERTH_DTYPE_BOOL};
    cr_assert_eq(f.code.program->segment_count, 3);
    for (int again = 0; again < 2; ++again) {
        walk(&f, (berth_tensor[]){vector(5), condition});
        cr_assert_eq(count_code(&f, 0, 5), 1);
        cr_assert_eq(count_code(&f, 1, 5), 1);
        cr_assert_eq(count_code(&f, 2, 10), 1);
        cr_assert_eq(count_code(&f, 2, 5), 1);
        cr_assert_eq(f.reached.list.count, 4);
    }
    walk(&f, (berth_tensor[]){vector(7), condition});
    cr_assert_eq(f.reached.list.count, 8);
    end(&f);
}

// A condition that is given leads one way.
Test(vm_walk, a_known_condition_leads_one_way) {
    fixture f = begin(branches);
    uint8_t no = 0;
    const berth_tensor condition = {.dtype = BERTH_DTYPE_BOOL, .data = &no};
    walk(&f, (berth_tensor[]){vector(5), condition});
    cr_assert_eq(count_code(&f, 0, 5), 0);
    cr_assert_eq(count_code(&f, 2, 10), 0);
    cr_assert_eq(count_code(&f, 2, 5), 1);
    end(&f);
}

// A loop whose shapes stay is followed twice, however often it runs; its counter is arithmetic for any value.
Test(vm_walk, loops_whose_shapes_stay_need_one_code) {
    fixture f = begin("module \"m\"\n"
                      "graph @main(%x: f32[N], %n: i64[]) {\n"
                      "  %y = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[N]) {\n"
                      "    %j = mul(%i, %i)\n    %k = cast(%j) {to = f32}\n"
                      "    %d = add(%c, %k)\n    return %go, %d\n  }\n"
                      "  return %y\n}\n");
    walk(&f, (berth_tensor[]){vector(4), any_number});
    uint32_t segments = 0, hosts = 0;
    for (uint32_t i = 0; i < f.reached.list.count; ++i) {
        const berth_vm_reach *reach = &f.reached.list.data[i];
        bool host = reach->piece >= f.code.program->segment_count;
        segments += !host;
        hosts += host;
        cr_assert(!host || !reach->results);
    }
    cr_assert_eq(segments, 1);
    cr_assert_eq(hosts, f.code.program->host_operation_count);
    end(&f);
}

static const char growing[] = "module \"m\"\n"
                              "graph @main(%x: f32[N], %n: i64[]) {\n"
                              "  %y = loop(%n, _, %x) (%i: i64[], %go: bool[], %c: f32[?]) {\n"
                              "    %d = concat(%c, %x) {axis = 0}\n    return %go, %d\n  }\n"
                              "  return %y\n}\n";

// One that grows is followed round by round, where the number of rounds is known.
Test(vm_walk, what_grows_is_followed_round_by_round) {
    fixture f = begin(growing);
    int64_t rounds = 3;
    const berth_tensor number = {.dtype = BERTH_DTYPE_I64, .data = &rounds};
    walk(&f, (berth_tensor[]){vector(2), number});
    for (int64_t length = 2; length <= 6; length += 2)
        cr_assert_eq(count_code(&f, 0, length), 1, "length %lld", (long long)length);
    cr_assert_eq(count_code(&f, 0, 8), 0);
    end(&f);
}

Test(vm_walk, what_is_not_known_is_refused_by_name) {
    fixture f = begin(growing);
    const berth_tensor unknown[] = {vector(2), any_number};
    assert_fails(berth_vm_walk(f.module, &f.code, unknown, (berth_log){0}, &f.reached),
                 BERTH_UNSUPPORTED, "(concat): the shape of its input 0 is not known");
    cr_assert_eq(f.reached.list.count, 0);
    end(&f);
    f = begin("module \"m\"\n"
              "graph @main(%x: f32[N]) {\n  %p = non_zero(%x)\n  %y = neg(%p)\n  return %y\n}\n");
    assert_fails(
        berth_vm_walk(f.module, &f.code, (berth_tensor[]){vector(4)}, (berth_log){0}, &f.reached),
        BERTH_UNSUPPORTED, "(non_zero): the shape of what it gives depends on data");
    end(&f);
}

// A branch that does not fit the shapes ends there; a model in which nothing fits is refused.
Test(vm_walk, branches_that_do_not_fit_need_no_code) {
    fixture f = begin("module \"m\"\n"
                      "graph @main(%x: f32[N], %c: bool[]) {\n"
                      "  %k = constant() {value = f32[3] (1, 2, 3)}\n"
                      "  %y = if(%c) {\n    %a = add(%x, %k)\n    return %a\n  } {\n"
                      "    %b = neg(%x)\n    return %b\n  }\n"
                      "  return %y\n}\n");
    uint8_t yes = 1;
    berth_tensor condition = {.dtype = BERTH_DTYPE_BOOL};
    walk(&f, (berth_tensor[]){vector(5), condition});
    cr_assert_eq(f.reached.list.count, 1);
    cr_assert_eq(count_code(&f, 1, 5), 1);
    condition.data = &yes;
    berth_status status = berth_vm_walk(f.module, &f.code, (berth_tensor[]){vector(5), condition},
                                        (berth_log){0}, &f.reached);
    assert_fails(status, BERTH_INCOMPATIBLE, "extents 5 and 3 cannot be broadcast");
    end(&f);
}

// Sequences of known elements, and of any number of them.
Test(vm_walk, sequences) {
    fixture f = begin("module \"m\"\n"
                      "graph @main(%x: f32[N], %n: i64[]) {\n"
                      "  %s = sequence_construct(%x, %x, %x)\n"
                      "  %l = sequence_length(%s)\n"
                      "  %a = sequence_at(%s, %n)\n"
                      "  %b = tanh(%a)\n"
                      "  %j = concat_from_sequence(%s) {axis = 0}\n  %k = neg(%j)\n"
                      "  return %b, %k, %l\n}\n");
    walk(&f, (berth_tensor[]){vector(4), any_number});
    uint32_t found = 0;
    for (uint32_t i = 0; i < f.reached.list.count; ++i) {
        int64_t elements = berth_tensor_element_count(&f.reached.list.data[i].inputs[0]);
        found |= elements == 4 ? 1u : elements == 12 ? 2u : 4u;
    }
    cr_assert_eq(found, 3);
    end(&f);
}
