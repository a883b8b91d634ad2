// Functions of one number in whole registers and in what is left of a row: within some units in the
// last place of the C library's results in f64, for numbers of every size.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/schedule/support.h"

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

typedef struct function {
    const char *name;
    double (*reference)(double);
    double units;  // in the last place, but for subnormal results, which may be 0
} function;

static const function functions[] = {{"exp", exp, 2}, {"tanh", tanh, 4}, {"sigmoid", sigmoid, 4},
                                     {"erf", erf, 4}, {"sin", sin, 2},   {"cos", cos, 2}};

enum { function_count = sizeof(functions) / sizeof(functions[0]), count = 16 * 700 + 7 };

// Of every exponent and both signs, and what is special; many between -100 and 100.
static float argument(int i) {
    static const float special[] = {0.0F,     -0.0F,      INFINITY,  -INFINITY, NAN,
                                    1e-45F,   -1e-45F,    88.72F,    88.73F,    -87.33F,
                                    -103.97F, -104.5F,    9.01F,     0.625F,    0.9375F,
                                    4.0F,     2.68435e8F, 2.6844e8F, 3.4e38F,   -3.4e38F};
    enum { specials = sizeof(special) / sizeof(special[0]) };
    if (i < specials) return special[i];
    float part = (float)((i * 7919) % 10007) / 10007;
    if (i % 2) return (part - 0.5F) * 200;
    return ldexpf(1 + part, i % 256 - 128) * (i % 4 ? 1.0F : -1.0F);
}

static bool is_near(float got, double wanted, double units) {
    if (isnan(wanted)) return isnan(got);
    if (isinf((float)wanted)) return got == (float)wanted || (double)got > 3.40282e38;
    if (fabs(wanted) < ldexp(1, -126)) return fabs((double)got) <= ldexp(1, -126);
    double unit = ldexp(fabs(wanted), -23);
    return fabs((double)got - wanted) <= units * unit;
}

ParameterizedTestParameters(functions, of_one_number) {
    static int indices[3 * function_count];
    for (int i = 0; i < 3 * function_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, 3 * function_count);
}

ParameterizedTest(int *index, functions, of_one_number) {
    static const char *const targets[] = {"cpu", "cpu -vector_bits=128", "cpu -vector_bits=256"};
    const function *f = &functions[*index / 3];
    char text[512];
    snprintf(text, sizeof(text),
             "module \"m\"\ntensor @f(%%x: f32[%d] in, %%y: f32[%d] out) {\n"
             "  for %%i in %d { %%y[%%i] = %s(%%x[%%i]) }\n}\n",
             count, count, count, f->name);
    bench_case c = support_case_parse(text);
    support_fill(&c, 1);
    float *x = c.buffers[0];
    for (int i = 0; i < count; ++i) x[i] = argument(i);
    const berth_target *target = support_target(c.arena, targets[*index % 3]);
    berth_status status = berth_schedule_apply(c.fn, target);
    if (!status) status = support_run_compiled(&c, target, true);
    cr_assert(!status, "%s: %s", f->name, berth_status_message(status));
    const float *y = c.buffers[1];
    for (int i = 0; i < count; ++i)
        cr_assert(is_near(y[i], f->reference((double)x[i]), f->units),
                  "%s(%.9g) is %.9g, expected %.9g (%s)", f->name, (double)x[i], (double)y[i],
                  f->reference((double)x[i]), targets[*index % 3]);
    support_case_destroy(&c);
}
