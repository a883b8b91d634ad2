// The graphs of Tarnawski et al. (NeurIPS 2020) in ../shared/placement, where they are: with small
// budgets, every answer is checked, and `contiguous` meets the published optima.
#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/solve/problem/problem_file.h"
#include "planner/solve/solve.h"

enum { FILE_LIMIT = 256, NODES = 300000 };
#define FOLDER "../shared/placement"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(placement_published, .init = setup, .fini = teardown);

// The values of the published dynamic program.
static const struct {
    const char *file;
    double value;
} contiguous[] = {
    {"layer_bert24_inference.json", 17.790},      {"layer_bert24_training.json", 41.746},
    {"layer_gnmt_inference.json", 32.911},        {"layer_inceptionv3_training.json", 122.76},
    {"layer_resnet50_inference.json", 33.775},    {"operator_bert_l-3_inference.json", 27.919},
    {"operator_bert_l-3_training.json", 65.303},  {"operator_bert_l-6_inference.json", 29.580},
    {"operator_resnet50_inference.json", 124.35}, {"operator_resnet50_training.json", 255.19},
};

static int by_name(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

// The .json files of a folder, sorted.
static uint32_t list_files(const char *folder, const char **out_names) {
    DIR *directory = opendir(folder);
    uint32_t count = 0;
    if (!directory) return 0;
    for (const struct dirent *entry; (entry = readdir(directory)) && count < FILE_LIMIT;)
        if (strlen(entry->d_name) > 5 &&
            strcmp(entry->d_name + strlen(entry->d_name) - 5, ".json") == 0)
            out_names[count++] = berth_arena_strdup(arena, entry->d_name);
    closedir(directory);
    qsort(out_names, count, sizeof(*out_names), by_name);
    return count;
}

static void check(const berth_place_problem *p, const berth_place_options *options,
                  const char *name, berth_place_answer *answer) {
    berth_status status = berth_place_solve(arena, p, options, answer);
    cr_assert_null(status, "%s: %s", name, berth_status_message(status));
    berth_place_value value;
    status = berth_place_evaluate(arena, p, options->objective, options->contiguous,
                                  answer->assignment, &value);
    cr_assert_null(status, "%s: %s", name, berth_status_message(status));
    cr_assert_eq(value.value, answer->value.value, "%s", name);
    cr_assert_leq(answer->lower_bound, value.value);
    cr_assert_gt(answer->lower_bound, 0);
    if (answer->proven) cr_assert_eq(answer->gap, 0);
}

Test(placement_published, answers_keep_their_promises) {
    static const char *const folders[] = {"throughput", "latency"};
    uint32_t found = 0;
    for (int f = 0; f < 2; ++f) {
        char folder[64];
        snprintf(folder, sizeof(folder), FOLDER "/%s", folders[f]);
        const char *names[FILE_LIMIT];
        uint32_t count = list_files(folder, names);
        for (uint32_t i = 0; i < count; ++i) {
            char path[512];
            berth_place_problem *p = NULL;
            snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
            berth_status status = berth_place_problem_read(arena, path, NULL, &p);
            cr_assert_null(status, "%s", berth_status_message(status));
            berth_place_options options = {.objective =
                                               f ? BERTH_PLACE_LATENCY : BERTH_PLACE_THROUGHPUT,
                                           .node_budget = NODES};
            berth_place_answer answer;
            check(p, &options, path, &answer);
            ++found;
        }
    }
    if (!found) cr_skip("skipped: " FOLDER " is not here\n");
}

Test(placement_published, contiguous_optima) {
    uint32_t found = 0;
    for (size_t i = 0; i < sizeof(contiguous) / sizeof(contiguous[0]); ++i) {
        char path[512];
        berth_place_problem *p = NULL;
        snprintf(path, sizeof(path), FOLDER "/throughput/%s", contiguous[i].file);
        berth_status status = berth_place_problem_read(arena, path, NULL, &p);
        if (berth_status_code(status) == BERTH_NOT_FOUND) {
            berth_status_free(status);
            continue;
        }
        cr_assert_null(status, "%s", berth_status_message(status));
        berth_place_options options = {.objective = BERTH_PLACE_THROUGHPUT, .contiguous = true};
        berth_place_answer answer;
        check(p, &options, path, &answer);
        cr_assert_float_eq(answer.value.value, contiguous[i].value, contiguous[i].value * 1e-3,
                           "%s: %.9g, published %.5g", path, answer.value.value,
                           contiguous[i].value);
        cr_assert(answer.proven, "%s: %.9g is not proven", path, answer.value.value);
        ++found;
    }
    if (!found) cr_skip("skipped: " FOLDER " is not here\n");
}
