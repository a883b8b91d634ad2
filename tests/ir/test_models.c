// Real models, as imported and after every pass of the pipeline, survive the text and JSON forms.
// They are in ../shared/models; without it they are skipped, and said to be.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "compiler/compile.h"
#include "compiler/onnx/import.h"
#include "target/target.h"
#include "tests/ir/round_trip.h"

static const char *const models[] = {"mnist",
                                     "mnist_quantized",
                                     "super_resolution",
                                     "tfl_helloworld",
                                     "rfb320",
                                     "rfb320_nopost",
                                     "light_bvlc_alexnet",
                                     "light_densenet121",
                                     "light_inception_v1",
                                     "light_inception_v2",
                                     "light_resnet50",
                                     "light_shufflenet",
                                     "light_squeezenet",
                                     "light_vgg19",
                                     "light_zfnet512"};

enum {
    model_count = sizeof(models) / sizeof(models[0]),
    // In stages with more literals than this, large ones are replaced by small ones: everything
    // else is compared, without minutes of copying under sanitizers.
    most_literal_bytes = 4 << 20,
    most_stages = 128
};

typedef struct run {
    const char *model;
    const char *problem;
    char text[1024];
    int stages;
    // Of the texts that were seen: passes that change nothing are not looked at again.
    berth_hash128 *seen;
} run;

typedef struct saved_literal {
    berth_attr *attr;
    const berth_tensor *tensor;
} saved_literal;

typedef struct saved_literals {
    BERTH_VEC(saved_literal) items;
} saved_literals;

static void shrink_literals(const berth_module *module, berth_arena *arena, saved_literals *saved) {
    static float zero = 0;
    static const berth_tensor small = {.dtype = BERTH_DTYPE_F32, .data = &zero};
    for (uint32_t f = 0; f < module->functions.count; ++f) {
        berth_graph *graph = berth_graph_get(module, f);
        for (uint32_t i = 0; graph && i < graph->ops.count; ++i) {
            berth_attrs *attrs = &graph->ops.data[i].attrs;
            for (uint32_t a = 0; a < attrs->items.count; ++a) {
                berth_attr *attr = &attrs->items.data[a];
                if (attr->kind != BERTH_ATTR_TENSOR ||
                    berth_tensor_size_bytes(attr->tensor) < 65536)
                    continue;
                berth_vec_push(arena, &saved->items, (saved_literal){attr, attr->tensor});
                attr->tensor = &small;
            }
        }
    }
}

static void check(berth_status status, const char *what) {
    cr_assert_null(status, "%s: %s", what, berth_status_message(status));
}

// Whether an earlier stage had the same text; the run keeps it.
static bool was_seen(run *r, const berth_module *module, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    check(print_module(module, &text), r->model);
    berth_hash128 hash = berth_hash128_of(berth_strbuf_text(&text), text.length);
    for (int i = 0; i < r->stages; ++i)
        if (berth_hash128_equal(r->seen[i], hash)) return true;
    cr_assert_lt(r->stages, most_stages);
    r->seen[r->stages++] = hash;
    return false;
}

static void check_stage(run *r, const char *stage, const berth_module *module) {
    berth_arena *arena = NULL;
    if (r->problem) return;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    saved_literals saved = {{0}};
    bool large = literal_bytes(module) > most_literal_bytes;
    if (large) shrink_literals(module, arena, &saved);
    const char *problem = was_seen(r, module, arena) ? NULL : round_trip(module, arena, !large);
    for (uint32_t i = 0; i < saved.items.count; ++i)
        saved.items.data[i].attr->tensor = saved.items.data[i].tensor;
    if (problem) {
        snprintf(r->text, sizeof(r->text), "%s after %s: %s", r->model, stage, problem);
        r->problem = r->text;
    }
    berth_arena_destroy(arena);
}

static void after_pass(void *user, const berth_pass *pass, const berth_module *module,
                       int64_t elapsed_ns) {
    (void)elapsed_ns;
    check_stage(user, pass->name, module);
}

// Through the pipeline up to where kernels are compiled. `seen`: of most_stages, the first `stages`
// are those of the model's other targets. Returns how many there are then.
static int run_model(const char *name, const char *target_text, berth_hash128 *seen, int stages) {
    static const char *const features[] = {"avx2", "fma"};
    static const berth_machine_facts machine = {
        .cpu_model = "", .arch = "x86_64", .cpu = "", .features = {features, 2}, .cores = 2};
    char path[256];
    run r = {.model = name, .seen = seen, .stages = stages};
    snprintf(path, sizeof(path), "../shared/models/%s/model.onnx", name);
    berth_arena *arena = NULL;
    check(berth_arena_create(berth_allocator_system(), &arena), name);
    berth_target_options target_options = {.machine = &machine, .no_files = true};
    berth_multi_target *target = NULL;
    check(berth_target_parse(arena, target_text, &target_options, &target), target_text);
    bool batch = strcmp(name, "super_resolution") == 0;
    bool n = strcmp(name, "tfl_helloworld") == 0;
    berth_dim_binding dim = {batch ? "batch_size" : "N", 2};
    berth_import_options options = {.dims = &dim, .dim_count = batch || n};
    berth_module *module = NULL;
    check(berth_onnx_import(arena, path, &options, &module), name);
    check_stage(&r, "import", module);
    berth_pass_instrument instrument = {after_pass, &r};
    berth_compile_options compile = {.target = target,
                                     .plan_only = true,
                                     .verify = true,
                                     .instruments = &instrument,
                                     .instrument_count = 1};
    enum { most_passes = 64 };
    const char *passes[most_passes] = {NULL};
    for (int i = 0; berth_compile_passes()[i]; ++i) {
        cr_assert_lt(i, most_passes - 1);
        passes[i] = berth_compile_passes()[i]->name;
        if (strcmp(passes[i], "schedule") == 0) break;
    }
    berth_compile_result result;
    check(berth_compile_run_passes(module, passes, &compile, &result), name);
    cr_assert_null(r.problem, "%s", r.problem);
    cr_assert(r.stages > stages);
    berth_arena_destroy(arena);
    return r.stages;
}

ParameterizedTestParameters(models, round_trips) {
    static int indices[model_count];
    for (int i = 0; i < model_count; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, model_count);
}

ParameterizedTest(int *index, models, round_trips) {
    if (access("../shared/models", R_OK) != 0)
        cr_skip_test("../shared/models is absent: %s is not tested", models[*index]);
    berth_hash128 seen[most_stages];
    int stages = run_model(models[*index], "cpu", seen, 0);
    run_model(models[*index], "opencl,cpu", seen, stages);
}
