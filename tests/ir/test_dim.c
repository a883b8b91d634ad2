// Arithmetic of dimensions: canonical forms, and random expressions against plain arithmetic.
#include <criterion/criterion.h>
#include <string.h>

#include "ir/dim.h"
#include "ir/dim_binding.h"
#include "ir/graph/graph.h"
#include "ir/json.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "tests/check.h"

static berth_arena *arena;
static berth_module *module;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    module = berth_module_create(arena, "m");
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(dim, .init = setup, .fini = teardown);

static int64_t read(const char *text) {
    int64_t dim = 0;
    assert_ok(berth_dim_parse(module, text, strlen(text), &dim));
    return dim;
}

static const char *print(int64_t dim) {
    berth_strbuf out = berth_strbuf_make(arena);
    berth_dim_print(module, dim, &out);
    return berth_strbuf_text(&out);
}

Test(dim, canonical_forms) {
    static const struct {
        const char *text;
        const char *canonical;
    } rows[] = {
        {"7", "7"},
        {"N", "N"},
        {"'batch size'", "batch size"},
        {"1 + N*2", "2*N+1"},
        {"N + N - 2*N + 3", "3"},
        {"(N+1)*(N-1)", "N*N-1"},
        {"W*H + H*W", "2*H*W"},
        {"-N + 5", "-N+5"},
        {"floordiv(2*N+4,2)", "N+2"},
        {"floordiv(N,1)", "N"},
        {"floordiv(7,2)", "3"},
        {"floordiv(5*N+7,2)", "2*N+floordiv(N+1,2)+3"},
        {"floordiv(floordiv(H+1,2)+1,2)", "floordiv(H+3,4)"},
        {"ceildiv(H,2)", "floordiv(H+1,2)"},
        {"floordiv(N*H*6,2*N)", "3*H"},
        {"floordiv(N*H,W)", "floordiv(H*N,W)"},
        {"mod(N,2)", "N-2*floordiv(N,2)"},
        {"mod(4*N+3,4)", "3"},
        {"min(N+1,N)", "N"},
        {"max(N,N+1)", "N+1"},
        {"max(N,H)", "max(H,N)"},
        {"floordiv('a b'+1,2)*2", "2*floordiv('a b'+1,2)"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        cr_expect_str_eq(print(read(rows[i].text)), rows[i].canonical, "%s is %s, not %s",
                         rows[i].text, print(read(rows[i].text)), rows[i].canonical);
        if (strchr(rows[i].canonical, ' ')) continue;
        cr_expect_eq(read(rows[i].canonical), read(rows[i].text));
    }
    // A symbol that is only a name is that name's symbol.
    cr_expect_eq(read("N"), berth_dim_symbol(berth_module_intern(module, "N")));
    cr_expect_eq(read("'batch size'"), berth_dim_symbol(berth_module_intern(module, "batch size")));
    cr_expect_not(berth_dim_is_expression(module, read("N")));
    cr_expect(berth_dim_is_expression(module, read("N+1")));
}

Test(dim, what_is_none) {
    static const char *const texts[] = {"",   "+",  "N+", "2N", "min(N)",  "f(N,2)",
                                        "'",  "''", "N)", "(N", "min(N,2", "99999999999999999999",
                                        "N 2"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        int64_t dim = 0;
        berth_status status = berth_dim_parse(module, texts[i], strlen(texts[i]), &dim);
        cr_expect_eq(berth_status_code(status), BERTH_INVALID_ARGUMENT, "\"%s\"", texts[i]);
        berth_status_free(status);
    }
    char deep[256] = "";
    for (int i = 0; i < 60; ++i) strcat(deep, "(");
    int64_t dim = 0;
    assert_fails(berth_dim_parse(module, deep, strlen(deep), &dim), BERTH_INVALID_ARGUMENT,
                 "no dim");
    char name[400];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    int64_t symbol = berth_dim_symbol(berth_module_intern(module, name));
    cr_expect_eq(berth_dim_scale(module, symbol, 2, 1), BERTH_DIM_UNKNOWN, "a name that long");
    // Unknown is unknown, and so is what is too large or negative.
    cr_expect_eq(berth_dim_combine(module, BERTH_DIM_ADD, BERTH_DIM_UNKNOWN, 1), BERTH_DIM_UNKNOWN);
    cr_expect_eq(read("3-5"), BERTH_DIM_UNKNOWN);
    cr_expect_eq(berth_dim_combine(module, BERTH_DIM_MUL, INT64_MAX, 2), BERTH_DIM_UNKNOWN);
    cr_expect_eq(berth_dim_combine(module, BERTH_DIM_FLOORDIV, 7, 0), BERTH_DIM_UNKNOWN);
}

// Every step takes the one before several times: texts would grow without bound.
Test(dim, sizes_are_bounded) {
    int64_t dim = read("N"), other = read("H");
    for (int i = 0; i < 60; ++i) {
        int64_t least = berth_dim_combine(module, BERTH_DIM_MIN, dim, other);
        int64_t square =
            berth_dim_combine(module, BERTH_DIM_MUL, least, berth_dim_scale(module, dim, 3, 1));
        int64_t part = berth_dim_combine(module, BERTH_DIM_FLOORDIV, square, 7 + i);
        if (part == BERTH_DIM_UNKNOWN) return;
        cr_assert_leq(strlen(print(part)), 1000u);
        other = dim;
        dim = part;
    }
    cr_assert(false, "60 steps have a form");
}

// ---- random expressions -------------------------------------------------------------------------

static const char *const names[] = {"N", "H", "W", "sequence length"};
static int64_t values[4];

static int64_t look_up(void *user, const char *symbol) {
    (void)user;
    for (int i = 0; i < 4; ++i)
        if (strcmp(names[i], symbol) == 0) return values[i];
    return BERTH_DIM_UNKNOWN;
}

static uint64_t state;
static uint32_t random_below(uint32_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % limit;
}

// A random expression, and what it is for `values`; INT64_MIN: not known (negative, or a division by 0).
static int64_t make(int depth, int64_t *out_value) {
    if (depth == 0 || random_below(5) == 0) {
        if (random_below(2)) {
            *out_value = random_below(9);
            return *out_value;
        }
        uint32_t which = random_below(4);
        *out_value = values[which];
        return berth_dim_symbol(berth_module_intern(module, names[which]));
    }
    int64_t x = 0, y = 0, result = INT64_MIN;
    int64_t a = make(depth - 1, &x), b = make(depth - 1, &y);
    berth_dim_op op = (berth_dim_op)random_below(8);
    bool known = x != INT64_MIN && y != INT64_MIN;
    bool divides = op == BERTH_DIM_FLOORDIV || op == BERTH_DIM_CEILDIV || op == BERTH_DIM_MOD;
    if (known && !(divides && y <= 0)) {
        switch (op) {
        case BERTH_DIM_ADD: result = x + y; break;
        case BERTH_DIM_SUB: result = x - y; break;
        case BERTH_DIM_MUL: result = x * y; break;
        case BERTH_DIM_FLOORDIV: result = x / y; break;
        case BERTH_DIM_CEILDIV: result = (x + y - 1) / y; break;
        case BERTH_DIM_MOD: result = x % y; break;
        case BERTH_DIM_MIN: result = x < y ? x : y; break;
        default: result = x > y ? x : y; break;
        }
    }
    *out_value = result < 0 ? INT64_MIN : result;
    return berth_dim_combine(module, op, a, b);
}

// The canonical form has the value of the expression that it came from, and is read as itself.
Test(dim, random_expressions) {
    int known = 0;
    for (int round = 0; round < 20000; ++round) {
        state = (uint64_t)round * 77 + 5;
        for (int i = 0; i < 4; ++i) values[i] = 1 + random_below(40);
        int64_t value = 0;
        int64_t dim = make(3, &value);
        if (dim == BERTH_DIM_UNKNOWN) continue;
        if (berth_dim_is_expression(module, dim))
            cr_assert_eq(read(print(dim)), dim, "%s", print(dim));
        if (value == INT64_MIN) continue;
        known++;
        cr_assert_eq(berth_dim_substitute(module, dim, look_up, NULL), value,
                     "round %d: %s is %lld, not %lld", round, print(dim),
                     (long long)berth_dim_substitute(module, dim, look_up, NULL), (long long)value);
        if (round % 1000 == 999) {
            teardown();
            setup();
        }
    }
    cr_expect_gt(known, 9000);
}

// ---- linear ones --------------------------------------------------------------------------------

Test(dim, linear_ones_are_solved) {
    static const struct {
        const char *text, *symbol;  // NULL: not linear
        int64_t extent, solution;
    } rows[] = {
        {"N", "N", 7, 7},     {"32*a", "a", 160, 5},      {"32*a", "a", 161, -1},
        {"2*a+1", "a", 9, 4}, {"2*a+1", "a", 8, -1},      {"2*a+1", "a", 0, -1},
        {"a-3", "a", 0, 3},   {"3*'my a'", "my a", 9, 3}, {"a*a", NULL, 0, 0},
        {"a+b", NULL, 0, 0},  {"-a+9", NULL, 0, 0},       {"floordiv(a,2)", NULL, 0, 0},
        {"a*b", NULL, 0, 0},  {"12", NULL, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        berth_dim_linear linear;
        bool is_linear = berth_dim_read_linear(module, read(rows[i].text), arena, &linear);
        cr_expect_eq(is_linear, rows[i].symbol != NULL, "%s", rows[i].text);
        if (!is_linear || !rows[i].symbol) continue;
        cr_expect_str_eq(linear.symbol, rows[i].symbol);
        cr_expect_eq(berth_dim_linear_solve(&linear, rows[i].extent), rows[i].solution, "%s",
                     rows[i].text);
    }
}

// ---- serial forms -------------------------------------------------------------------------------

Test(dim, shapes_in_text_and_json) {
    static const char text[] =
        "module \"m\"\n"
        "graph @main(%x: f32[N, 2*N + 1, (H+1)*2, floordiv(H,2), -N+9, \"batch size\"], "
        "%y: f32[\"=1+'batch size'\",3]) {\n"
        "  return %x, %y\n"
        "}\n";
    berth_module *first = NULL, *second = NULL, *third = NULL;
    const char *json = NULL;
    assert_ok(berth_module_parse(arena, text, strlen(text), "t", &first));
    berth_strbuf out = berth_strbuf_make(arena);
    assert_ok(berth_module_to_text(first, NULL, &out));
    cr_expect(
        strstr(berth_strbuf_text(&out), "f32[N,2*N+1,2*H+2,floordiv(H,2),-N+9,\"batch size\"]"),
        "%s", berth_strbuf_text(&out));
    assert_ok(berth_module_parse(arena, out.data, out.length, "t", &second));
    assert_ok(berth_module_to_json_text(arena, second, 0, &json));
    assert_ok(berth_module_from_json_text(arena, json, strlen(json), "j", NULL, &third));
    berth_strbuf again = berth_strbuf_make(arena);
    assert_ok(berth_module_to_text(third, NULL, &again));
    cr_expect_str_eq(berth_strbuf_text(&again), berth_strbuf_text(&out));

    static const char wrong[] = "module \"m\"\ngraph @main(%x: f32[2*]) { return %x }\n";
    assert_fails(berth_module_parse(arena, wrong, strlen(wrong), "t", &first),
                 BERTH_INVALID_ARGUMENT, "t:2:21: ");
}

// ---- calls --------------------------------------------------------------------------------------

static berth_status call(const char *parameter, const char *result) {
    berth_module *read_module = NULL;
    const char *text =
        berth_arena_printf(arena,
                           "module \"m\"\n"
                           "tensor @f(%%x: f32[N,H] in, %%y: f32[2*N+1,floordiv(H,2)] out) {\n"
                           "  for %%i in 1 { %%y[0, 0] = %%x[0, 0] }\n"
                           "}\n"
                           "graph @main(%%v: f32[%s]) {\n"
                           "  %%w = call @f(%%v): f32[%s]\n"
                           "  return %%w\n"
                           "}\n",
                           parameter, result);
    BERTH_TRY(berth_module_parse(arena, text, strlen(text), "t", &read_module));
    return berth_module_verify(read_module);
}

Test(dim, results_of_calls_fit_the_expressions) {
    assert_ok(call("3,8", "7,4"));
    assert_ok(call("3,9", "7,4"));
    assert_ok(call("3,M", "7,4"));  // not known here
    assert_fails(call("3,8", "6,4"), BERTH_INVALID_ARGUMENT,
                 "result 0 of @f is f32[2*N+1,floordiv(H,2)]");
    assert_fails(call("3,8", "7,5"), BERTH_INVALID_ARGUMENT, "not f32[7,5]");
}

// A symbol stands for what it first met; expressions, numbers and unknown extents say nothing of it.
Test(dim, bindings_of_a_call) {
    berth_dim_bindings at_call = {.module = module, .arena = arena};
    int64_t extent = 0;
    cr_expect(berth_dim_bind(&at_call, read("2*n"), 8));
    cr_expect(berth_dim_bind(&at_call, 3, 4));
    cr_expect(berth_dim_bind(&at_call, read("n"), BERTH_DIM_UNKNOWN));
    cr_expect_eq(at_call.list.count, 0u);
    cr_expect(berth_dim_bind(&at_call, read("n"), 4));
    cr_expect(berth_dim_bind(&at_call, read("m"), 5));
    cr_expect(berth_dim_bind(&at_call, read("n"), 4));
    cr_expect_not(berth_dim_bind(&at_call, read("n"), 5));
    cr_assert_eq(at_call.list.count, 2u);
    cr_assert(berth_dim_evaluate(module, read("2*n+m"), berth_dim_bound, &at_call, arena, &extent));
    cr_expect_eq(extent, 13);
    cr_expect_not(at_call.missed);
    cr_expect_not(
        berth_dim_evaluate(module, read("n+k"), berth_dim_bound, &at_call, arena, &extent));
    cr_expect(at_call.missed);
}
