#include "tests/planner/random_planned.h"

#include <string.h>

#include "base/str.h"

static const char *const targets[] = {
    "cpu -arch=x86_64",
    "{\"kind\": \"multi\", \"devices\": [{\"target\": {\"kind\": \"opencl\"}}, {\"target\": "
    "{\"kind\": \"cpu\"}}]}",
    "{\"kind\": \"multi\", \"host\": \"cpu:1\", \"devices\": [{\"target\": {\"kind\": \"cpu\"}}, "
    "{\"target\": {\"kind\": \"cpu\"}}, {\"target\": {\"kind\": \"opencl\"}}]}",
    // Everything goes through the host.
    "{\"kind\": \"multi\", \"devices\": [{\"target\": {\"kind\": \"opencl\"}}, {\"target\": "
    "{\"kind\": \"vta\"}}, {\"target\": {\"kind\": \"cuda\"}}, {\"target\": {\"kind\": \"cpu\"}}]}",
    // A GPU in host memory, one that shares a memory with an accelerator.
    "{\"kind\": \"multi\", \"devices\": [{\"name\": \"a\", \"target\": {\"kind\": \"opencl\", "
    "\"shares_host_memory\": true}}, {\"name\": \"b\", \"target\": {\"kind\": \"opencl\"}}, "
    "{\"name\": \"n\", \"target\": {\"kind\": \"vta\"}}, {\"name\": \"c\", \"target\": {\"kind\": "
    "\"cpu\"}}], \"default_device\": \"b\", \"memories\": [{\"name\": \"ram\", "
    "\"capacity_bytes\": 1e9, \"reached_by\": [\"c\", \"a\"]}, {\"name\": \"vram\", "
    "\"capacity_bytes\": 1e9, \"reached_by\": [\"b\", \"n\"]}], \"links\": [{\"from\": \"ram\", "
    "\"to\": \"vram\", \"bandwidth_bytes_per_s\": 1e9}]}",
};
static const char *const devices[][6] = {
    {"cpu:0", "cpu", NULL},
    {"opencl:0", "cpu:0", "opencl", "*:0", NULL},
    {"cpu:0", "cpu:1", "opencl:0", "opencl", "cpu", NULL},
    {"opencl:0", "vta:0", "cuda:0", "cpu:0", "vta", NULL},
    {"opencl:0", "opencl:1", "vta:0", "cpu:0", "opencl", NULL},
};

enum { most = 24 };

typedef struct names {
    uint32_t ids[most];  // the last ones
    uint32_t count;
} names;

// What a region sees: values of f32[4] and f32[], conditions, functions from f32[4] to f32[4].
typedef struct scope {
    names tensors, scalars, conditions, functions;
    bool calls;  // functions to call there are
} scope;

typedef struct maker {
    berth_arena *arena;
    random_planned *out;
    berth_strbuf text;
    uint64_t state;
    const char *const *devices;
    uint32_t device_count;
    const char *function;
    uint32_t next;       // number of the next value
    uint32_t callees;    // @f0 ... with two parameters
    uint32_t eagerness;  // one of so many operations is annotated
} maker;

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint32_t below(maker *m, uint32_t count) {
    uint64_t z = (m->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % count);
}

static void learn(names *known, uint32_t id) {
    known->ids[known->count++ % most] = id;
}

static uint32_t pick(maker *m, const names *known) {
    return known->ids[below(m, known->count < most ? known->count : most)];
}

static const char *device(maker *m) {
    return m->devices[below(m, m->device_count)];
}

static void demand(maker *m, uint32_t id, const char *where) {
    random_demand d = {m->function, berth_arena_printf(m->arena, "v%u", id), where};
    berth_vec_push(m->arena, &m->out->demands, d);
}

// ---- operations ---------------------------------------------------------------------------------

static void plain(maker *m, scope *s) {
    static const char *const unary[] = {"relu", "neg", "abs"};
    static const char *const binary[] = {"add", "sub", "mul", "min", "max"};
    names *known = below(m, 5) ? &s->tensors : &s->scalars;
    uint32_t a = pick(m, known), b = pick(m, known), id = m->next++;
    if (below(m, 3))
        berth_strbuf_addf(&m->text, "%%v%u = %s(%%v%u, %%v%u)", id, binary[below(m, 5)], a, b);
    else
        berth_strbuf_addf(&m->text, "%%v%u = %s(%%v%u)", id, unary[below(m, 3)], a);
    if (below(m, 3 * m->eagerness) == 0) {
        const char *where = device(m);
        berth_strbuf_addf(&m->text, " on %s", where);
        demand(m, id, where);
    }
    berth_strbuf_add(&m->text, "\n");
    learn(known, id);
}

static void annotation(maker *m, scope *s) {
    if (below(m, m->eagerness)) {
        plain(m, s);
        return;
    }
    plain(m, s);
    uint32_t made = m->next - 1, id = m->next++;
    bool tensor = s->tensors.count && s->tensors.ids[(s->tensors.count - 1) % most] == made;
    const char *where = device(m);
    berth_strbuf_addf(&m->text, "%%v%u = on_device(%%v%u) {device = %s%s}\n", id, made, where,
                      below(m, 8) ? "" : ", fixed = 1");
    demand(m, made, where);
    learn(tensor ? &s->tensors : &s->scalars, id);
}

static void copy(maker *m, scope *s) {
    uint32_t a = pick(m, &s->tensors), id = m->next++;
    berth_strbuf_addf(&m->text, "%%v%u = device_copy(%%v%u)", id, a);
    if (below(m, 2)) berth_strbuf_addf(&m->text, " {source = %s}", device(m));
    berth_strbuf_addf(&m->text, " on %s\n", device(m));
    learn(&s->tensors, id);
}

static void tuple(maker *m, scope *s) {
    uint32_t t = m->next++, from = t, a = pick(m, &s->tensors), b = pick(m, &s->tensors);
    berth_strbuf_addf(&m->text, "%%v%u = tuple(%%v%u, %%v%u)\n", t, a, b);
    if (below(m, m->eagerness) == 0) {
        from = m->next++;
        berth_strbuf_addf(&m->text, "%%v%u = on_device(%%v%u) {device = %s}\n", from, t, device(m));
    }
    for (uint32_t i = 0; i < 2; ++i) {
        uint32_t get = m->next++;
        berth_strbuf_addf(&m->text, "%%v%u = tuple_get(%%v%u) {index = %u}\n", get, from, i);
        learn(&s->tensors, get);
    }
}

static void call(maker *m, scope *s) {
    uint32_t id = m->next++, a = pick(m, &s->tensors), b = pick(m, &s->tensors);
    berth_strbuf_addf(&m->text, "%%v%u = call @f%u(%%v%u, %%v%u)\n", id, below(m, m->callees), a,
                      b);
    learn(&s->tensors, id);
}

// A reference, called at once, handed to @apply, or through a tuple.
static void higher_order(maker *m, scope *s) {
    uint32_t g = m->next++, a = pick(m, &s->tensors);
    berth_strbuf_addf(&m->text, "%%v%u = func_ref @unary%u()\n", g, below(m, 2));
    if (below(m, 6) == 0) {
        uint32_t t = m->next++, get = m->next++;
        berth_strbuf_addf(&m->text,
                          "%%v%u = tuple(%%v%u, %%v%u)\n%%v%u = tuple_get(%%v%u) {index = 0}\n", t,
                          g, a, get, t);
        g = get;
    }
    if (below(m, 2)) learn(&s->functions, g);
    if (s->functions.count && below(m, 2)) g = pick(m, &s->functions);
    uint32_t id = m->next++;
    if (below(m, 2))
        berth_strbuf_addf(&m->text, "%%v%u = call_value(%%v%u, %%v%u)\n", id, g, a);
    else
        berth_strbuf_addf(&m->text, "%%v%u = call @apply(%%v%u, %%v%u)\n", id, g, a);
    learn(&s->tensors, id);
}

static void constant(maker *m, scope *s) {
    uint32_t k = m->next++;
    berth_strbuf_addf(&m->text, "%%v%u = constant() {value = f32[4] (1, %u, -2, 0.5)}\n", k,
                      below(m, 9));
    learn(&s->tensors, k);
}

static void shapes(maker *m, scope *s) {
    uint32_t shape = m->next++, id = m->next++;
    berth_strbuf_addf(&m->text, "%%v%u = shape_of(%%v%u)\n%%v%u = reshape(%%v%u, %%v%u)\n", shape,
                      pick(m, &s->tensors), id, pick(m, &s->tensors), shape);
    learn(&s->tensors, id);
}

static void condition(maker *m, scope *s) {
    uint32_t id = m->next++;
    berth_strbuf_addf(&m->text, "%%v%u = greater(%%v%u, %%v%u)\n", id, pick(m, &s->scalars),
                      pick(m, &s->scalars));
    learn(&s->conditions, id);
}

static void fill(maker *m, scope *s, int depth);

static void branch(maker *m, const scope *s, int depth) {
    scope inner = *s;
    berth_strbuf_add(&m->text, "{\n");
    fill(m, &inner, depth + 1);
    berth_strbuf_addf(&m->text, "return %%v%u, %%v%u }", pick(m, &inner.tensors),
                      pick(m, &inner.tensors));
}

static void choice(maker *m, scope *s, int depth) {
    uint32_t a = m->next++, b = m->next++;
    berth_strbuf_addf(&m->text, "%%v%u, %%v%u = if(%%v%u) ", a, b, pick(m, &s->conditions));
    branch(m, s, depth);
    berth_strbuf_add(&m->text, " else ");
    branch(m, s, depth);
    berth_strbuf_add(&m->text, "\n");
    learn(&s->tensors, a);
    learn(&s->tensors, b);
}

static void loop(maker *m, scope *s, int depth) {
    uint32_t result = m->next++, i = m->next++, keep = m->next++, x = m->next++, n = m->next++;
    scope inner = *s;
    berth_strbuf_addf(&m->text, "%%v%u = constant() {value = i64[] (%u)}\n", n, below(m, 4));
    berth_strbuf_addf(&m->text, "%%v%u = loop(%%v%u, _, %%v%u) (%%v%u: i64[], %%v%u: bool[], ",
                      result, n, pick(m, &s->tensors), i, keep);
    berth_strbuf_addf(&m->text, "%%v%u: f32[4]) {\n", x);
    learn(&inner.tensors, x);
    learn(&inner.conditions, keep);
    fill(m, &inner, depth + 1);
    berth_strbuf_addf(&m->text, "return %%v%u, %%v%u }\n", pick(m, &inner.conditions),
                      pick(m, &inner.tensors));
    learn(&s->tensors, result);
}

static void fill(maker *m, scope *s, int depth) {
    for (uint32_t i = 2 + below(m, depth ? 4 : 12); i > 0; --i) {
        switch (below(m, depth < 3 ? 14 : 11)) {
        case 0:
        case 1: annotation(m, s); break;
        case 2:
            if (below(m, m->eagerness) == 0) copy(m, s);
            break;
        case 3: tuple(m, s); break;
        case 4:
        case 5:
            if (s->calls && m->callees) call(m, s);
            break;
        case 6:
            if (s->calls) higher_order(m, s);
            break;
        case 7: constant(m, s); break;
        case 8: shapes(m, s); break;
        case 9: condition(m, s); break;
        case 10: plain(m, s); break;
        case 11: loop(m, s, depth); break;
        default: choice(m, s, depth); break;
        }
    }
}

// ---- functions ----------------------------------------------------------------------------------

static const char *placed(maker *m, uint32_t id) {
    if (below(m, 2 * m->eagerness)) return "";
    const char *where = device(m);
    demand(m, id, where);
    return berth_arena_printf(m->arena, " on %s", where);
}

// `tensors` parameters of f32[4], then f32[] and bool[].
static void function(maker *m, const char *name, uint32_t tensors, const char *more,
                     uint32_t results, bool calls) {
    scope s = {.calls = calls};
    m->function = name;
    berth_strbuf_addf(&m->text, "graph @%s(", name);
    for (uint32_t i = 0; i < tensors; ++i) {
        uint32_t id = m->next++;
        berth_strbuf_addf(&m->text, "%s%%v%u: f32[4]%s", i ? ", " : "", id, placed(m, id));
        learn(&s.tensors, id);
    }
    if (more) {
        uint32_t scalar = m->next++, flag = m->next++, count = m->next++;
        berth_strbuf_addf(&m->text, ", %%v%u: f32[], %%v%u: bool[], %%v%u: i64[]", scalar, flag,
                          count);
        learn(&s.scalars, scalar);
        learn(&s.conditions, flag);
    }
    berth_strbuf_add(&m->text, ") {\n");
    if (!more) {
        uint32_t scalar = m->next++;
        berth_strbuf_addf(&m->text, "%%v%u = constant() {value = f32[] (%u.5)}\n", scalar,
                          below(m, 4));
        learn(&s.scalars, scalar);
        condition(m, &s);
    }
    fill(m, &s, 0);
    berth_strbuf_addf(&m->text, "return %%v%u", pick(m, &s.tensors));
    if (results > 1) berth_strbuf_addf(&m->text, ", %%v%u", pick(m, &s.tensors));
    berth_strbuf_add(&m->text, "\n}\n");
}

void random_planned_make(berth_arena *arena, uint64_t seed, random_planned *out) {
    *out = (random_planned){0};
    maker m = {.arena = arena, .out = out, .text = berth_strbuf_make(arena), .state = seed};
    uint32_t which = below(&m, sizeof(targets) / sizeof(targets[0]));
    out->target = targets[which];
    m.devices = devices[which];
    while (m.devices[m.device_count]) m.device_count++;
    m.eagerness = 3 + below(&m, 12);
    berth_strbuf_add(&m.text, "module \"random\"\n");
    function(&m, "unary0", 1, NULL, 1, false);
    function(&m, "unary1", 1, NULL, 1, false);
    uint32_t f = m.next, x = m.next + 1, y = m.next + 2;
    m.next += 3;
    berth_strbuf_addf(&m.text,
                      "graph @apply(%%v%u: fn(f32[4])->(f32[4]), %%v%u: f32[4]) {\n%%v%u = "
                      "call_value(%%v%u, %%v%u)\nreturn %%v%u\n}\n",
                      f, x, y, f, x, y);
    for (uint32_t i = below(&m, 3); i > 0; --i) {
        const char *name = berth_arena_printf(arena, "f%u", m.callees);
        function(&m, name, 2, NULL, 1, true);
        m.callees++;
    }
    function(&m, "main", 3, "more", 2, true);
    out->text = berth_strbuf_text(&m.text);
}
