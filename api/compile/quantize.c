// Quantisation (<berth/quantize.h>).
#include "toolkit/quantize/quantize.h"

#include <berth/quantize.h>
#include <string.h>

#include "api/compile/compiler.h"
#include "base/file.h"

struct berth_quantized {
    berth_arena *arena;  // of this struct
    berth_quantize_result result;
    berth_quantized_facts facts;
    const char *reports[BERTH_REPORT_SVG + 1];
};

typedef struct quantize_job {
    berth_arena *arena;
    const char *path;
    berth_quantize_settings settings;
    berth_quantize_options options;
    berth_quantized *quantized;
    berth_report_form form;
} quantize_job;

// ---- the target ---------------------------------------------------------------------------------

static bool shifts_results(const berth_multi_target *target) {
    for (uint32_t d = 0; d < target->device_count; ++d)
        if (berth_device_kind_shifts(target->devices[d].target->kind)) return true;
    return false;
}

// Conventions of the target that the model is for.
static berth_status take_target(quantize_job *job) {
    berth_quantize_options *o = &job->options;
    if (!o->model.target) return BERTH_OK;
    berth_machine_facts facts;
    berth_multi_target *target = NULL;
    berth_target_options target_options = o->model.target_options;
    BERTH_TRY(berth_machine_facts_for(job->arena, o->model.target, &facts));
    target_options.machine = &facts;
    BERTH_TRY(berth_target_parse(job->arena, o->model.target, &target_options, &target));
    if (!shifts_results(target)) return BERTH_OK;
    if (job->settings.scales == BERTH_SCALES_FLOAT || o->per_channel)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a VTA shifts results, all channels alike: with %s no layer would "
                                 "run there, all would run elsewhere; leave that out, or give "
                                 "another target",
                                 o->per_channel ? "a scale per channel" : "float scales");
    o->power_of_two = o->whole = true;
    return BERTH_OK;
}

// ---- quantising ---------------------------------------------------------------------------------

static berth_status read_settings(const berth_quantize_settings *given, quantize_job *job) {
    berth_quantize_settings *s = &job->settings;
    if (!given || given->size_bytes < sizeof(size_t) || given->size_bytes > sizeof(*s))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_quantize_settings: set size_bytes to "
                                 "sizeof(berth_quantize_settings), %zu in this version",
                                 sizeof(*s));
    memcpy(s, given, given->size_bytes);
    if (!s->calibration)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "berth_quantize_settings.calibration is missing: a folder of data "
                                 "sets, or one file");
    if ((unsigned)s->range > BERTH_RANGE_ENTROPY ||
        (unsigned)s->scales > BERTH_SCALES_POWER_OF_TWO ||
        (unsigned)s->equalization > BERTH_EQUALIZATION_OFF)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "no such range, scales or equalization");
    _Static_assert((int)BERTH_RANGE_ENTROPY == (int)BERTH_QUANTIZE_ENTROPY &&
                       (int)BERTH_RANGE_PERCENTILE == (int)BERTH_QUANTIZE_PERCENTILE &&
                       (int)BERTH_RANGE_MINMAX == (int)BERTH_QUANTIZE_MINMAX &&
                       (int)BERTH_EQUALIZATION_OFF == (int)BERTH_QUANTIZE_EQUALIZE_OFF &&
                       (int)BERTH_EQUALIZATION_ON == (int)BERTH_QUANTIZE_EQUALIZE_ON,
                   "the same numbers");
    job->options = (berth_quantize_options){.calibrate = s->calibration,
                                            .labels = s->labels,
                                            .power_of_two = s->scales == BERTH_SCALES_POWER_OF_TWO,
                                            .per_channel = s->per_channel != 0,
                                            .method = (berth_quantize_method)s->range,
                                            .percentile = s->percentile,
                                            .equalize = (berth_quantize_equalize)s->equalization,
                                            .no_bias_correction = s->no_bias_correction != 0,
                                            .keep_worst = s->keep_worst,
                                            .compare_values = s->compare_values != 0,
                                            .max_drop = s->has_max_drop ? s->max_drop : -1,
                                            .thread_count = s->thread_count,
                                            .progress = s->progress,
                                            .progress_user = s->progress_user};
    return BERTH_OK;
}

// The model runs on the processor here, whatever it is for.
static void run_here(berth_model_options *model) {
    model->target = "cpu";
    model->target_options = (berth_target_options){.log = model->target_options.log,
                                                   .tag_folder = model->target_options.tag_folder};
    model->compile.progress = NULL;
    model->import.default_batch = 0;
    model->import.inputs = NULL;
    model->import.input_count = 0;
    model->only_these_inputs = false;
}

static berth_status quantize(void *user) {
    quantize_job *job = user;
    berth_quantized *quantized = berth_arena_new(job->arena, berth_quantized);
    quantized->arena = job->arena;
    BERTH_TRY(take_target(job));
    run_here(&job->options.model);
    const berth_quantize_result *result = &quantized->result;
    BERTH_TRY(berth_quantize(job->arena, job->path, &job->options, &quantized->result));
    quantized->facts =
        (berth_quantized_facts){.layer_count = result->layer_count,
                                .quantized_count = result->quantized_count,
                                .drop = result->drop,
                                .agreement = result->row_count ? result->agreement : 0,
                                .weight_bytes = result->weight_bytes,
                                .quantized_bytes = result->quantized_bytes};
    job->quantized = quantized;
    return BERTH_OK;
}

berth_status berth_compiler_quantize_file(berth_compiler *compiler, const char *path,
                                          const berth_quantize_settings *settings,
                                          berth_quantized **out_result) {
    *out_result = NULL;
    quantize_job job = {.path = path};
    BERTH_TRY(read_settings(settings, &job));
    BERTH_TRY(berth_api__compiler_options(compiler, &job.options.model));
    BERTH_TRY(berth_arena_make(quantize, &job, &job.arena));
    *out_result = job.quantized;
    return BERTH_OK;
}

void berth_quantized_free(berth_quantized *result) {
    if (result) berth_arena_destroy(result->arena);
}

berth_status berth_quantized_save(const berth_quantized *result, const char *path) {
    return berth_file_write(path, result->result.model, result->result.model_bytes);
}

static berth_status report(void *user) {
    static const berth_quantize_form forms[] = {[BERTH_REPORT_TEXT] = BERTH_QUANTIZE_TEXT,
                                                [BERTH_REPORT_JSON] = BERTH_QUANTIZE_JSON,
                                                [BERTH_REPORT_SVG] = BERTH_QUANTIZE_SVG};
    const quantize_job *job = user;
    berth_strbuf out = berth_strbuf_make(job->arena);
    berth_quantize_report(&job->quantized->result, forms[job->form], &out);
    job->quantized->reports[job->form] = berth_strbuf_text(&out);
    return BERTH_OK;
}

berth_status berth_quantized_report(berth_quantized *result, berth_report_form form,
                                    const char **out_text) {
    *out_text = NULL;
    if ((unsigned)form > BERTH_REPORT_SVG)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "no such form: %u", (unsigned)form);
    quantize_job job = {.arena = result->arena, .quantized = result, .form = form};
    if (!result->reports[form]) BERTH_TRY(berth_arena_try(result->arena, report, &job));
    *out_text = result->reports[form];
    return BERTH_OK;
}

const berth_quantized_facts *berth_quantized_facts_of(const berth_quantized *result) {
    return &result->facts;
}
