// Random modules after lowering: calls of tensor functions whose buffers demand scopes or leave
// them open.
#include "base/str.h"
#include "tests/planner/random_planned.h"

typedef struct maker {
    berth_strbuf text;
    uint64_t state;
    uint32_t known;      // values %v0 ... of f32[4]
    uint32_t reference;  // the latest function that is a value: %f1 ..., 0 = none
} maker;

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
static uint32_t below(maker *m, uint32_t count) {
    uint64_t z = (m->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % count);
}

static const char *const names[] = {"t", "u"};

static const char *scope(maker *m) {
    static const char *const scopes[] = {"", "", " scope \"s1\"", " scope \"s2\""};
    return scopes[below(m, 4)];
}

static void tensor_function(maker *m, uint32_t number) {
    berth_strbuf_addf(&m->text, "tensor @t%u(%%a: f32[4] in%s, %%b: f32[4] in%s, ", number,
                      scope(m), scope(m));
    berth_strbuf_addf(&m->text,
                      "%%o: f32[4] out%s) { for %%i in 4 { %%o[%%i] = %%a[%%i] * %%b[%%i] } }\n",
                      scope(m));
    berth_strbuf_addf(&m->text, "tensor @u%u(%%a: f32[4] in%s, ", number, scope(m));
    berth_strbuf_addf(&m->text,
                      "%%b: f32[4] inout%s) { for %%i in 4 { %%b[%%i] = %%a[%%i] * %%b[%%i] } }\n",
                      scope(m));
}

static void operation(maker *m) {
    static const char *const places[] = {"*@s1", "*@s2", "opencl:0", "cpu:0", "cpu:0@s2"};
    uint32_t a = below(m, m->known), b = below(m, m->known), id = m->known++;
    switch (below(m, 8)) {
    case 0: berth_strbuf_addf(&m->text, "%%v%u = add(%%v%u, %%v%u)\n", id, a, b); break;
    case 1:
        berth_strbuf_addf(&m->text, "%%v%u = on_device(%%v%u) {device = %s}\n", id, a,
                          places[below(m, 5)]);
        break;
    case 2:
        if (below(m, 2)) {
            berth_strbuf_addf(&m->text, "%%v%u = constant() {value = f32[4] (1, 2, 3, 4)}\n", id);
            break;
        }
        berth_strbuf_addf(&m->text, "%%v%u = device_copy(%%v%u) on %s\n", id, a,
                          places[below(m, 5)]);
        break;
    case 3:
        berth_strbuf_addf(&m->text, "%%f%u = func_ref @%s%u(): fn(f32[4], f32[4])->(f32[4])\n", id,
                          names[below(m, 2)], below(m, 3));
        berth_strbuf_addf(&m->text, "%%v%u = call_value(%%f%u, %%v%u, %%v%u)\n", id, id, a, b);
        m->reference = id;
        break;
    case 4:
        if (m->reference) {
            berth_strbuf_addf(&m->text, "%%v%u = call_value(%%f%u, %%v%u, %%v%u)\n", id,
                              m->reference, a, b);
            break;
        }
        // fall through
    default:
        berth_strbuf_addf(&m->text, "%%v%u = call @%s%u(%%v%u, %%v%u): f32[4]\n", id,
                          names[below(m, 2)], below(m, 3), a, b);
        break;
    }
}

const char *random_lowered_make(berth_arena *arena, uint64_t seed) {
    static const char *const places[] = {"", "", " on *@s1", " on *@s2", " on cpu:0"};
    maker m = {.text = berth_strbuf_make(arena), .state = seed, .known = 3};
    berth_strbuf_add(&m.text, "module \"lowered\"\n");
    for (uint32_t i = 0; i < 3; ++i) tensor_function(&m, i);
    berth_strbuf_add(&m.text, "graph @main(");
    for (uint32_t i = 0; i < 3; ++i)
        berth_strbuf_addf(&m.text, "%s%%v%u: f32[4]%s", i ? ", " : "", i, places[below(&m, 5)]);
    berth_strbuf_add(&m.text, ") {\n");
    for (uint32_t i = 3 + below(&m, 12); i > 0; --i) operation(&m);
    berth_strbuf_addf(&m.text, "return %%v%u, %%v%u\n}\n", m.known - 1, below(&m, m.known));
    return berth_strbuf_text(&m.text);
}
