// Runs the ONNX conformance models of Debian's libonnx-testdata on each device, in child processes.
//   node_models [--data FOLDER] [--device NAME | --cpu-only] [--only GLOB] [--write-table FILE]
//   [--known FILE]... [--jobs N] [--every N]
// Prints a line per model that does not pass and a summary per target. A file of known ones has
// lines "target model CODE reason", where * is every target, with the code of the error that there
// must be, or WRONG for results that differ: unsupported.txt has what is refused,
// expected_failures.txt what fails otherwise, with reasons written by hand. Exit status 1 when a
// model does not pass and is not listed, ends in another way than listed (a refusal that became a
// crash, say), or is listed and passes. --write-table writes the table of docs/operators.md,
// --write-known the list of refusals.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hold_device.h"
#include "toolkit/verify.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

enum {
    most_models = 4096,
    most_targets = 4,
    most_text = 400,
    most_lists = 4,
    most_code = 32,
    most_rest = 1 << 20
};

typedef struct outcome {
    int state;             // 0 = passes, 1 = fails, 2 = refused with a clear error
    char code[most_code];  // how it does not pass, as lists of known ones say it
    bool folded;  // passes without a kernel: all was computed before from the inputs' values
    char text[most_text];
} outcome;

typedef struct model {
    bool of_strings;  // which no device has: the host computes them, whatever the target
    char *name;
    char *path;
    char operator_name[64];
    outcome outcomes[most_targets];
} model;

typedef struct run {
    const char *data;
    const char *targets[most_targets];
    const char *requires[most_targets];
    int target_count;
    const char *only;
    const char *known[most_lists];
    int known_count;
    const char *write_known;
    const char *write_table;
    const char *cache;
    int jobs;
    int every;
    model *models;
    int model_count;
} run;

static int by_name(const void *a, const void *b) {
    return strcmp(((const model *)a)->name, ((const model *)b)->name);
}

static void list_models(run *r) {
    DIR *folder = opendir(r->data);
    r->models = calloc(most_models, sizeof(model));
    if (!folder || !r->models) return;
    for (struct dirent *entry; (entry = readdir(folder)) && r->model_count < most_models;) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s/model.onnx", r->data, entry->d_name);
        if (entry->d_name[0] == '.' || access(path, R_OK) != 0) continue;
        if (r->only && !berth_glob_match(r->only, entry->d_name)) continue;
        model *m = &r->models[r->model_count++];
        m->name = strdup(entry->d_name);
        m->path = strdup(path);
    }
    closedir(folder);
    qsort(r->models, (size_t)r->model_count, sizeof(model), by_name);
    int kept = 0;
    for (int i = 0; i < r->model_count; ++i) {
        if (i % r->every == 0) {
            r->models[kept++] = r->models[i];
            continue;
        }
        free(r->models[i].name);
        free(r->models[i].path);
    }
    r->model_count = kept;
}

// ---- one model ----------------------------------------------------------------------------------

// The model's path says nothing in a list by model, and differs between machines.
static void drop_path(char *text, const char *path) {
    size_t length = strlen(path);
    for (char *at = text; (at = strstr(at, path));) {
        memcpy(at, "it", 2);
        memmove(at + 2, at + length, strlen(at + length) + 1);
    }
}

static outcome verify(const run *r, const model *m, int target) {
    outcome result = {.state = 2};
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    berth_verify_options options = {
        .compare = BERTH_COMPARE_DEFAULTS, .thread_count = 1, .on_callers_memory = true};
    options.model.target = r->targets[target];
    options.model.compile.cache_folder = r->cache;
    options.model.compile.jobs = 1;
    options.require_device = m->of_strings ? NULL : r->requires[target];
    options.kernels_optional = true;  // of a model that only makes constants, say
    result.state = 0;
    for (int set = 0; set < 16 && !status && result.state == 0; ++set) {
        char folder[4096];
        snprintf(folder, sizeof(folder), "%s/%s/test_data_set_%d", r->data, m->name, set);
        if (access(folder, R_OK) != 0) {
            if (set == 0) status = berth_status_make(BERTH_NOT_FOUND, "no test data");
            break;
        }
        berth_verify_result verified;
        status = berth_verify_folder(arena, m->path, folder, &options, &verified);
        if (!status) result.folded |= verified.known_input_count > 0 && verified.computed_before;
        if (!status && !verified.pass) {
            result.state = 1;
            snprintf(result.code, sizeof(result.code), "WRONG");
            for (uint32_t i = 0; i < verified.output_count; ++i)
                if (!verified.outputs[i].comparison.pass)
                    snprintf(result.text, sizeof(result.text),
                             "output %s differs: %g, expected %g (%lld of %lld elements)",
                             verified.outputs[i].name, verified.outputs[i].comparison.worst_got,
                             verified.outputs[i].comparison.worst_expected,
                             (long long)verified.outputs[i].comparison.mismatch_count,
                             (long long)verified.outputs[i].comparison.element_count);
        }
    }
    if (status) {
        bool refused = berth_status_code(status) == BERTH_UNSUPPORTED;
        result.state = refused ? 2 : 1;
        snprintf(result.code, sizeof(result.code), "%s",
                 berth_code_name(berth_status_code(status)));
        snprintf(result.text, sizeof(result.text), "%s: %s",
                 berth_code_name(berth_status_code(status)), berth_status_message(status));
        for (char *c = result.text; *c; ++c)
            if (*c == '\n') *c = ' ';
        drop_path(result.text, m->path);
        berth_status_free(status);
    }
    berth_arena_destroy(arena);
    return result;
}

static bool read_fully(int fd, void *data, size_t size) {
    char *at = data;
    while (size > 0) {
        ssize_t got = read(fd, at, size);
        if (got <= 0) return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static bool is_of_strings(const berth_module *module) {
    for (uint32_t i = 0; i < module->types.count; ++i)
        if (module->types.data[i].dtype == BERTH_DTYPE_STRING) return true;
    const berth_graph *graph = berth_graph_get(module, berth_module_find_function(module, "main"));
    for (uint32_t i = 0; graph && i < graph->ops.count; ++i)
        if (berth_op_has(graph->ops.data[i].kind, BERTH_TRAIT_INTERPRETED)) return true;
    return false;
}

// Operator of the model: the name of its folder says it less well than its first node.
static void find_operator(model *m) {
    berth_arena *arena = NULL;
    berth_module *module = NULL;
    // A model that is not imported goes under the first word of its name.
    const char *word = strncmp(m->name, "test_", 5) == 0 ? m->name + 5 : m->name;
    snprintf(m->operator_name, sizeof(m->operator_name), "(%.*s)", (int)strcspn(word, "_"), word);
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (!status) status = berth_onnx_import(arena, m->path, NULL, &module);
    for (uint32_t i = 0; !status && i < module->locs.count; ++i) {
        if (!module->locs.data[i].op_type) continue;
        snprintf(m->operator_name, sizeof(m->operator_name), "%s",
                 berth_module_str(module, module->locs.data[i].op_type));
        break;
    }
    m->of_strings = !status && is_of_strings(module);
    berth_status_free(status);
    berth_arena_destroy(arena);
}

// ---- child processes ----------------------------------------------------------------------------

// A child does models in turn, all on the first target, then all on the next: a compiler for OpenCL
// takes longer to start than to compile most of these. What ends the child counts for the model and
// the target that it was at, and another child goes on after it.
enum { models_of_child = 24 };

typedef struct child {
    pid_t pid;
    int fd;
    int first, count;  // of its models
    int at;            // how many of its count * target_count verifications are done
} child;

// What a child says of one verification.
typedef struct answer {
    outcome outcome;
    char operator_name[64];
    bool of_strings;
} answer;

// Ends the process where something leaked. Only on the first target (the CPU): looking for leaks
// stops all threads, and does not get along with those of OpenCL's drivers.
static void look_for_leaks(void) {
#if defined(__SANITIZE_ADDRESS__)
    __lsan_do_leak_check();
#endif
}

static void verify_rest(const run *r, const child *c, int fd) {
    for (int at = c->at; at < c->count * r->target_count; ++at) {
        int target = at / c->count;
        model *m = &r->models[c->first + at % c->count];
        if (target == 0) find_operator(m);
        if (strcmp(r->requires[target], "opencl:0") == 0) hold_device("opencl");
        answer told = {.outcome = verify(r, m, target), .of_strings = m->of_strings};
        if (target == 0) look_for_leaks();
        memcpy(told.operator_name, m->operator_name, sizeof(told.operator_name));
        if (write(fd, &told, sizeof(told)) != sizeof(told)) _exit(1);
    }
    _exit(0);
}

static void start(const run *r, child *c) {
    int ends[2];
    c->pid = -1;
    c->fd = -1;
    if (pipe(ends) != 0) return;
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        close(ends[0]);
        verify_rest(r, c, ends[1]);
    }
    close(ends[1]);
    c->fd = ends[0];
}

// Reads what the child says until it ends. Whether all of its verifications are done then.
static bool finish(const run *r, child *c) {
    int total = c->count * r->target_count;
    answer told;
    for (; c->at < total && read_fully(c->fd, &told, sizeof(told)); c->at++) {
        model *m = &r->models[c->first + c->at % c->count];
        m->outcomes[c->at / c->count] = told.outcome;
        m->of_strings = told.of_strings;
        memcpy(m->operator_name, told.operator_name, sizeof(m->operator_name));
    }
    int status = -1;
    close(c->fd);
    if (c->pid > 0) waitpid(c->pid, &status, 0);
    if (c->at == total && status == 0) return true;
    if (c->at == total) c->at--;  // it ended badly after its last one
    outcome *o = &r->models[c->first + c->at % c->count].outcomes[c->at / c->count];
    o->state = 1;
    snprintf(o->code, most_code, "DIED");
    snprintf(o->text, most_text, "the process died (status %d)", status);
    return ++c->at == total;
}

static void run_all(run *r) {
    child *children = calloc((size_t)r->jobs, sizeof(child));
    int first = 0;
    int count = 0;
    for (int next = 0; children && (next < r->model_count || count > 0);) {
        while (next < r->model_count && count < r->jobs) {
            child *c = &children[(first + count++) % r->jobs];
            int rest = r->model_count - next;
            *c = (child){.first = next, .count = rest < models_of_child ? rest : models_of_child};
            next += c->count;
            start(r, c);
        }
        if (finish(r, &children[first])) {
            first = (first + 1) % r->jobs;
            count--;
        } else {
            start(r, &children[first]);
        }
    }
    free(children);
}

// ---- reports ------------------------------------------------------------------------------------

// The code that the lists have for a model on a target, without what follows it; "" = not listed.
static void find_known(const run *r, const char *target, const char *name, char code[most_code]) {
    code[0] = 0;
    for (int i = 0; i < r->known_count && !*code; ++i) {
        FILE *file = fopen(r->known[i], "r");
        char line[1024];
        while (file && !*code && fgets(line, sizeof(line), file)) {
            char held_target[128], held_name[512], held_code[most_code];
            if (sscanf(line, "%127s %511s %31[A-Z_]", held_target, held_name, held_code) == 3 &&
                (strcmp(held_target, "*") == 0 || strcmp(held_target, target) == 0) &&
                strcmp(held_name, name) == 0)
                snprintf(code, most_code, "%s", held_code);
        }
        if (file) fclose(file);
    }
}

// Whether all is as listed.
static bool as_known(const run *r, const char *target, const model *m, const outcome *o) {
    char known[most_code];
    find_known(r, target, m->name, known);
    if (o->state == 0) {
        if (*known) printf("PASSES, but is listed as %s: %s %s\n", known, target, m->name);
        return !*known;
    }
    if (strcmp(known, o->code) == 0) return true;
    printf("%s %s %s: %s", o->state == 1 ? "FAILS" : "REFUSED", target, m->name, o->text);
    if (*known) printf(" (listed as %s)", known);
    printf("\n");
    return false;
}

static int report(const run *r) {
    int bad = 0;
    for (int t = 0; t < r->target_count; ++t) {
        int counts[3] = {0};
        int folded = 0, of_strings = 0;
        const char *label = r->requires[t];
        for (int i = 0; i < r->model_count; ++i) {
            const model *m = &r->models[i];
            counts[m->outcomes[t].state]++;
            folded += m->outcomes[t].state == 0 && m->outcomes[t].folded;
            of_strings += m->outcomes[t].state == 0 && m->of_strings;
            bad += !as_known(r, label, m, &m->outcomes[t]);
        }
        printf("BERTH-TABLE %s: %d of %d node models pass (%d of them computed before the run, as "
               "shapes depend on their inputs, %d on the host, being of strings or pictures), %d "
               "are refused "
               "with a "
               "reason, %d fail\n",
               label, counts[0], r->model_count, folded, of_strings, counts[2], counts[1]);
    }
    return bad;
}

static void write_known(const run *r) {
    FILE *file = fopen(r->write_known, "w");
    if (!file) return;
    fputs("# Node models that are refused: target, model, code, why. Made by node_models "
          "--write-known.\n",
          file);
    for (int t = 0; t < r->target_count; ++t)
        for (int i = 0; i < r->model_count; ++i)
            if (r->models[i].outcomes[t].state == 2)
                fprintf(file, "%s %s %s\n", r->requires[t], r -> models[i].name,
                        r->models[i].outcomes[t].text);
    fclose(file);
}

static int by_operator(const void *a, const void *b) {
    int order = strcmp(((const model *)a)->operator_name, ((const model *)b)->operator_name);
    return order ? order : by_name(a, b);
}

// What the file at `path` has from the first "## " on, which is written by hand; NULL when nothing.
static char *read_rest(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = calloc(1, most_rest + 1);
    size_t size = file && text ? fread(text, 1, most_rest, file) : 0;
    char *start = size ? strstr(text, "\n## ") : NULL;
    char *rest = start ? strdup(start) : NULL;
    if (file) fclose(file);
    free(text);
    return rest;
}

// One row per operator: how many models pass on each target, and the first reason for one that does
// not. Sections after the table stay.
static void write_table(const run *r) {
    char *rest = read_rest(r->write_table);
    FILE *file = fopen(r->write_table, "w");
    if (!file) {
        free(rest);
        return;
    }
    fputs("# Operators\n\nWhat the ONNX conformance models of Debian's libonnx-testdata do here. "
          "Made by\n"
          "`build/release/tests/node_models --write-table docs/operators.md`.\n\n| operator | "
          "models |",
          file);
    for (int t = 0; t < r->target_count; ++t) fprintf(file, " %s |", r->requires[t]);
    fputs(" a reason where not all pass |\n|---|---|", file);
    for (int t = 0; t < r->target_count; ++t) fputs("---|", file);
    fputs("---|\n", file);
    bool *done = calloc((size_t)r->model_count + 1, sizeof(bool));
    qsort(r->models, (size_t)r->model_count, sizeof(model), by_operator);
    for (int i = 0; done && i < r->model_count; ++i) {
        if (done[i]) continue;
        int total = 0;
        int pass[most_targets] = {0};
        const char *reason = "";
        for (int j = i; j < r->model_count; ++j) {
            if (strcmp(r->models[i].operator_name, r->models[j].operator_name) != 0) continue;
            done[j] = true;
            total++;
            for (int t = 0; t < r->target_count; ++t) {
                if (r->models[j].outcomes[t].state == 0)
                    pass[t]++;
                else if (!*reason)
                    reason = r->models[j].outcomes[t].text;
            }
        }
        fprintf(file, "| %s | %d |", r->models[i].operator_name, total);
        for (int t = 0; t < r->target_count; ++t) fprintf(file, " %d |", pass[t]);
        fprintf(file, " %.160s |\n", reason);
    }
    if (rest) fputs(rest, file);
    free(rest);
    free(done);
    fclose(file);
}

static const char *value_of(int argc, char **argv, int *at) {
    if (*at + 1 >= argc) {
        fprintf(stderr, "%s takes a value\n", argv[*at]);
        exit(2);
    }
    return argv[++*at];
}

static void add_known(run *r, const char *path) {
    if (r->known_count == most_lists || access(path, R_OK) != 0) {
        fprintf(stderr, "cannot read the list %s, or there are more than %d\n", path, most_lists);
        exit(2);
    }
    r->known[r->known_count++] = path;
}

static void keep_device(run *r, const char *device) {
    for (int t = 0; t < r->target_count; ++t) {
        if (strcmp(r->requires[t], device) != 0) continue;
        r->requires[0] = r->requires[t];
        r->targets[0] = r->targets[t];
        r->target_count = 1;
        return;
    }
    if (strcmp(device, "cuda:0") == 0) {  // not among those of the test run
        r->requires[0] = "cuda:0";
        r->targets[0] = "cuda -host=cpu";
        r->target_count = 1;
        return;
    }
    fprintf(stderr, "unknown device %s\n", device);
    exit(2);
}

static void parse(run *r, int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--data") == 0)
            r->data = value_of(argc, argv, &i);
        else if (strcmp(argv[i], "--only") == 0)
            r->only = value_of(argc, argv, &i);
        else if (strcmp(argv[i], "--known") == 0)
            add_known(r, value_of(argc, argv, &i));
        else if (strcmp(argv[i], "--write-known") == 0)
            r->write_known = value_of(argc, argv, &i);
        else if (strcmp(argv[i], "--write-table") == 0)
            r->write_table = value_of(argc, argv, &i);
        else if (strcmp(argv[i], "--jobs") == 0)
            r->jobs = atoi(value_of(argc, argv, &i));
        else if (strcmp(argv[i], "--every") == 0)
            r->every = atoi(value_of(argc, argv, &i));
        else if (strcmp(argv[i], "--cpu-only") == 0)
            r->target_count = 1;
        else if (strcmp(argv[i], "--device") == 0)
            keep_device(r, value_of(argc, argv, &i));
        else {
            fprintf(stderr, "unknown option %s\n", argv[i]);
            exit(2);
        }
    }
    if (r->jobs < 1) r->jobs = 1;
    if (r->every < 1) r->every = 1;
}

int main(int argc, char **argv) {
    run r = {.data = "/usr/share/libonnx-testdata/data/node",
             .targets = {"cpu", "opencl -host=cpu", "vulkan -host=cpu"},
             .requires = {"cpu:0", "opencl:0", "vulkan:0"},
             .target_count = 3,
             .cache = getenv("BERTH_CACHE_DIR"),
             .jobs = 2};
    parse(&r, argc, argv);
    list_models(&r);
    if (r.model_count == 0) {
        printf("BERTH-SKIPPED 1: no models in %s (Debian package libonnx-testdata)\n", r.data);
        return 0;
    }
    run_all(&r);
    if (r.write_known) write_known(&r);
    if (r.write_table) write_table(&r);
    int bad = report(&r);
    for (int i = 0; i < r.model_count; ++i) {
        free(r.models[i].name);
        free(r.models[i].path);
    }
    free(r.models);
    return bad != 0;
}
