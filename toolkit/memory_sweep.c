#include "toolkit/memory_sweep.h"

#include <math.h>
#include <string.h>

#include "artifact/file.h"
#include "base/axis.h"

typedef struct sweeper {
    berth_arena *arena;
    const char *path;
    const berth_model_options *options;
    const char *name;    // of the memory, or of its device
    const char *others;  // budgets of the other memories, each with a comma behind it
    berth_model *model;  // without a budget; gone once that plan was looked at
    bool on_board;       // of plain C, whose flash and RAM have limits of their own
    uint64_t over_bytes;
    berth_memory_sweep *out;
} sweeper;

// ---- plans --------------------------------------------------------------------------------------

// Whether a budget is of the memory that is swept.
static bool is_swept(const sweeper *s, const berth_multi_target *target, const char *name) {
    if (!target) return strcmp(name, s->name) == 0;
    return berth_multi_target_memory_meant(target, name) ==
           berth_multi_target_memory_meant(target, s->name);
}

// `target`: NULL where it is not known yet, and memories are told by their names.
static const char *other_budgets(const sweeper *s, const berth_multi_target *target) {
    berth_strbuf text = berth_strbuf_make(s->arena);
    const char *at = s->options->target_options.budgets;
    for (size_t length = 0; at; at = at[length] ? at + length + 1 : NULL) {
        length = strcspn(at, ",");
        const char *name = berth_arena_strndup(s->arena, at, strcspn(at, "=,"));
        if (is_swept(s, target, name)) continue;
        berth_strbuf_add_n(&text, at, length);
        berth_strbuf_add(&text, ",");
    }
    return berth_strbuf_text(&text);
}

// A plan with a budget of the memory; 0 = none.
static berth_status load(sweeper *s, uint64_t budget_bytes, berth_model **out_model) {
    berth_model_options options = *s->options;
    options.compile.plan_only = true;
    options.over_bytes = &s->over_bytes;
    if (budget_bytes)
        options.target_options.budgets = berth_arena_printf(
            s->arena, "%s%s=%llu", s->others, s->name, (unsigned long long)budget_bytes);
    return berth_model_load(s->path, &options, out_model);
}

static uint32_t memory_of(const berth_multi_target *target, const berth_program_pool *pool) {
    const berth_target_device *device = &target->devices[pool->device];
    if (strcmp(pool->scope, target->memories[device->own_memory].scope) != 0)
        return berth_multi_target_memory_of(target, pool->device, pool->scope);
    return pool->usage == BERTH_POOL_CONSTANT ? device->constant_memory : device->own_memory;
}

static berth_memory_sweep_point point_of(const sweeper *s, const berth_model *model,
                                         uint64_t budget_bytes) {
    const berth_program *program = berth_model_program(model);
    const berth_multi_target *target = berth_model_target(model);
    const berth_memory_report *memory = berth_model_memory(model);
    berth_memory_sweep_point point = {.budget_bytes = budget_bytes,
                                      .predicted_ns = program->predicted_ns};
    bool of_board = target->executor == BERTH_EXECUTOR_AOT;
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        const berth_target_device *device = &target->devices[pool->device];
        uint32_t index = memory_of(target, pool);
        // Constants of a board are in flash, whether it is named or not.
        bool counts =
            pool->usage != BERTH_POOL_STORE && !(of_board && pool->usage == BERTH_POOL_CONSTANT &&
                                                 device->constant_memory == device->own_memory);
        if (counts && index != BERTH_NO_INDEX &&
            strcmp(target->memories[index].name, s->out->memory) == 0)
            point.planned_bytes += program->pools[i].size_bytes;
    }
    // What a board reads is read into its RAM for want of flash.
    for (uint32_t i = 0; i < memory->streamed_count; ++i)
        if (of_board || strcmp(memory->streamed[i].memory, s->out->memory) == 0)
            point.read_bytes += memory->streamed[i].loaded_bytes;
    return point;
}

// The memory that is meant, from the plan without a budget of it.
static berth_status find_memory(void *user) {
    sweeper *s = user;
    const berth_multi_target *target = berth_model_target(s->model);
    if (!s->name)
        s->name = berth_arena_strdup(s->arena, target->devices[target->default_device].name);
    uint32_t memory = berth_multi_target_memory_meant(target, s->name);
    if (memory == BERTH_NO_INDEX)
        return berth_status_make(BERTH_NOT_FOUND, "the target has no memory or device \"%s\"",
                                 s->name);
    s->others = other_budgets(s, target);
    s->on_board = target->executor == BERTH_EXECUTOR_AOT;
    s->out->memory = berth_arena_strdup(s->arena, target->memories[memory].name);
    s->out->model = berth_arena_strdup(s->arena, berth_model_program(s->model)->name);
    return BERTH_OK;
}

static const uint64_t most_addressed_bytes = UINT64_C(1) << 32;  // of a board: what 32 bits address

// Boards have RAM and flash of any size for those who name them (target/memory_budgets.c).
static berth_status load_board(sweeper *s) {
    const char *runtime = s->options->target_options.runtime, *given = s->name;
    if (!runtime || strcmp(runtime, "bare") != 0) return load(s, 0, &s->model);
    if (!s->name) s->name = "sram";
    s->others = other_budgets(s, NULL);
    berth_status status = load(s, most_addressed_bytes, &s->model);
    if (!status || berth_status_code(status) == BERTH_OUT_OF_MEMORY) return status;
    berth_status_free(status);  // its memories are declared, and have a size
    s->name = given;
    return load(s, 0, &s->model);
}

// The plan without a budget: its need is the first one.
static berth_status plan_whole(sweeper *s, berth_memory_sweep_point *out_point) {
    BERTH_TRY(load_board(s));
    berth_status status = berth_arena_try(s->arena, find_memory, s);  // the model goes in any case
    if (!status) *out_point = point_of(s, s->model, 0);
    berth_model_destroy(s->model);
    out_point->budget_bytes = out_point->planned_bytes;
    return status;
}

// Whether there is a plan for a budget.
static berth_status fits(sweeper *s, uint64_t budget_bytes, bool *out_fits) {
    berth_model *model = NULL;
    berth_status status = load(s, budget_bytes, &model);
    *out_fits = !status;
    if (!status) berth_model_destroy(model);
    if (berth_status_code(status) != BERTH_OUT_OF_MEMORY || s->over_bytes == 0) return status;
    berth_status_free(status);
    return BERTH_OK;
}

// Of a board, where another memory may be what a plan exceeds: by halves, to a 128th.
static berth_status search_least(sweeper *s, uint64_t whole) {
    uint64_t high = whole, low = 0;
    bool does = false;
    for (;;) {  // private arrays of kernels count, too
        BERTH_TRY(fits(s, high, &does));
        if (does) break;
        if (high > most_addressed_bytes / 2)
            return berth_status_make(BERTH_OUT_OF_MEMORY,
                                     "memory \"%s\": the plan without a limit has room, but none "
                                     "with one up to %llu bytes",
                                     s->out->memory, (unsigned long long)high);
        low = high;
        high += high / 4 + 1024;
    }
    while (high - low > whole / 128 + 16) {
        uint64_t middle = low + (high - low) / 2;
        bool less = false;
        BERTH_TRY(fits(s, middle, &less));
        if (less)
            high = middle;
        else
            low = middle;
    }
    s->out->least_bytes = high;
    return BERTH_OK;
}

// What the refusal of a byte says.
static berth_status find_least(sweeper *s, uint64_t whole) {
    bool one = false;
    s->out->least_bytes = 1;
    BERTH_TRY(fits(s, 1, &one));
    if (one) return BERTH_OK;
    s->out->least_bytes += s->over_bytes;
    if (!s->on_board) return BERTH_OK;
    BERTH_TRY(fits(s, s->out->least_bytes, &one));
    return one && s->out->least_bytes <= whole ? BERTH_OK : search_least(s, whole);
}

static berth_status sweep_body(void *user) {
    sweeper *s = user;
    uint32_t wanted = s->out->point_count;
    berth_memory_sweep_point *points =
        berth_arena_new_array(s->arena, berth_memory_sweep_point, wanted);
    BERTH_TRY(plan_whole(s, &points[0]));
    uint64_t whole = points[0].budget_bytes;
    BERTH_TRY(find_least(s, whole));
    uint64_t least = s->out->least_bytes;
    if (s->on_board && whole < least)  // of a board, what kernels keep for themselves counts, too
        points[0].budget_bytes = whole = least;
    s->out->points = points;
    s->out->point_count = 1;
    for (uint32_t i = 1; i < wanted && least < whole; ++i) {
        double share = (double)i / (wanted - 1);
        uint64_t budget = (uint64_t)((double)whole * pow((double)least / (double)whole, share));
        if (i + 1 == wanted || budget < least) budget = least;
        berth_model *model = NULL;
        berth_status status = load(s, budget, &model);
        if (s->on_board && berth_status_code(status) == BERTH_OUT_OF_MEMORY && s->over_bytes) {
            berth_status_free(status);  // less may do, in other pieces
            continue;
        }
        BERTH_TRY(status);
        points[s->out->point_count++] = point_of(s, model, budget);
        berth_model_destroy(model);
    }
    return BERTH_OK;
}

berth_status berth_memory_sweep_make(berth_arena *arena, const char *path,
                                     const berth_model_options *options, const char *memory,
                                     uint32_t count, berth_memory_sweep *out_sweep) {
    if (berth_program_is_file(path))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "\"%s\" is a built program, planned already; a sweep takes a model", path);
    *out_sweep = (berth_memory_sweep){.point_count = count < 2 ? 2 : count};
    sweeper s = {
        .arena = arena, .path = path, .options = options, .name = memory, .out = out_sweep};
    return sweep_body(&s);
}

// ---- the picture --------------------------------------------------------------------------------

enum {
    WIDTH = 640,
    HEIGHT = 320,  // of the drawing area
    MARGIN_LEFT = 80,
    MARGIN_RIGHT = 50,
    MARGIN_TOP = 56,
    MARGIN_BOTTOM = 58,
};

typedef struct canvas {
    const berth_memory_sweep *in;
    berth_strbuf *out;
    double most_bytes, most_ns;  // at the right and upper edge
    double tick_bytes, tick_ns;
} canvas;

static double x_of(const canvas *c, double bytes) {
    return MARGIN_LEFT + WIDTH * bytes / c->most_bytes;
}

static double y_of(const canvas *c, double ns) {
    return MARGIN_TOP + HEIGHT * (1 - ns / c->most_ns);
}

static void draw_axes(const canvas *c) {
    char text[32];
    for (double bytes = 0; bytes < c->most_bytes + c->tick_bytes / 2; bytes += c->tick_bytes) {
        berth_format_bytes((uint64_t)bytes, text);
        berth_strbuf_addf(c->out,
                          "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#e3e7eb\"/>"
                          "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                          x_of(c, bytes), x_of(c, bytes), MARGIN_TOP, MARGIN_TOP + HEIGHT,
                          x_of(c, bytes), MARGIN_TOP + HEIGHT + 18, text);
    }
    for (double ns = 0; ns < c->most_ns + c->tick_ns / 2; ns += c->tick_ns)
        berth_strbuf_addf(c->out,
                          "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e3e7eb\"/>"
                          "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.3g ms</text>\n",
                          MARGIN_LEFT, MARGIN_LEFT + WIDTH, y_of(c, ns), y_of(c, ns),
                          MARGIN_LEFT - 8, y_of(c, ns) + 4, ns / 1e6);
    berth_strbuf_addf(c->out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">budget of memory ",
                      MARGIN_LEFT + WIDTH / 2, MARGIN_TOP + HEIGHT + 44);
    berth_strbuf_add_xml(c->out, c->in->memory, 60);
    berth_strbuf_add(c->out, "</text>\n");
}

static void draw_least(const canvas *c) {
    char text[32];
    double x = x_of(c, (double)c->in->least_bytes);
    bool left = x > MARGIN_LEFT + WIDTH / 2.0;
    berth_format_bytes(c->in->least_bytes, text);
    berth_strbuf_addf(c->out,
                      "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#b3261e\" "
                      "stroke-dasharray=\"4 3\"/>"
                      "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\" fill=\"#b3261e\">the smallest: "
                      "%s</text>\n",
                      x, x, MARGIN_TOP, MARGIN_TOP + HEIGHT, left ? x - 6 : x + 6,
                      MARGIN_TOP + HEIGHT - 10, left ? "end" : "start", text);
}

static void draw_curve(const canvas *c) {
    char budget[32], read[32];
    berth_strbuf_add(c->out, "<polyline fill=\"none\" stroke=\"#0b6bcb\" stroke-width=\"2\" "
                             "points=\"");
    for (uint32_t i = 0; i < c->in->point_count; ++i)
        berth_strbuf_addf(c->out, "%.1f,%.1f ", x_of(c, (double)c->in->points[i].budget_bytes),
                          y_of(c, c->in->points[i].predicted_ns));
    berth_strbuf_add(c->out, "\"/>\n");
    for (uint32_t i = 0; i < c->in->point_count; ++i) {
        const berth_memory_sweep_point *point = &c->in->points[i];
        berth_format_bytes(point->budget_bytes, budget);
        berth_format_bytes(point->read_bytes, read);
        berth_strbuf_addf(c->out,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#0b6bcb\">"
                          "<title>%s: %.3f ms, %s read in each run</title></circle>\n",
                          x_of(c, (double)point->budget_bytes), y_of(c, point->predicted_ns),
                          budget, point->predicted_ns / 1e6, read);
    }
}

void berth_memory_sweep_draw(const berth_memory_sweep *sweep, berth_strbuf *out) {
    canvas c = {.in = sweep, .out = out};
    double most_bytes = 0, most_ns = 0;
    for (uint32_t i = 0; i < sweep->point_count; ++i) {
        most_bytes = fmax(most_bytes, (double)sweep->points[i].budget_bytes);
        most_ns = fmax(most_ns, sweep->points[i].predicted_ns);
    }
    c.tick_bytes = berth_axis_tick(most_bytes, 1024);
    c.tick_ns = berth_axis_tick(most_ns, 1000);
    c.most_bytes = c.tick_bytes * fmax(ceil(most_bytes / c.tick_bytes), 1);
    c.most_ns = c.tick_ns * fmax(ceil(most_ns / c.tick_ns), 1);
    berth_strbuf_addf(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n"
                      "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                      "<text x=\"%d\" y=\"24\" font-size=\"15\">",
                      WIDTH + MARGIN_LEFT + MARGIN_RIGHT, HEIGHT + MARGIN_TOP + MARGIN_BOTTOM,
                      MARGIN_LEFT);
    berth_strbuf_add_xml(out, sweep->model, 70);
    berth_strbuf_addf(out,
                      "</text>\n<text x=\"%d\" y=\"42\" fill=\"#555\">predicted time of a run "
                      "against the memory it may have</text>\n",
                      MARGIN_LEFT);
    draw_axes(&c);
    draw_least(&c);
    draw_curve(&c);
    berth_strbuf_add(out, "</svg>\n");
}
