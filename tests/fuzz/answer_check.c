// Any bytes as an answer to a placement problem (`berth place check`): reading says no, or gives an
// assignment of every node that the evaluator can value or refuse.
#include <stdlib.h>
#include <string.h>

#include "planner/solve/problem/evaluate.h"
#include "planner/solve/problem/problem_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char problem_text[] =
    "{\"maxSizePerFPGA\": 3, \"maxFPGAs\": 2, \"maxCPUs\": 1, \"nodes\": ["
    "{\"id\": 0, \"cpuLatency\": 3, \"fpgaLatency\": 1, \"size\": 2, \"supportedOnFpga\": true},"
    "{\"id\": 1, \"cpuLatency\": 4, \"fpgaLatency\": 1, \"size\": 2, \"supportedOnFpga\": true},"
    "{\"id\": 2, \"cpuLatency\": 5, \"fpgaLatency\": 2, \"size\": 1, \"supportedOnFpga\": false}],"
    "\"edges\": [{\"sourceId\": 0, \"destId\": 1, \"cost\": 0.5},"
    "{\"sourceId\": 1, \"destId\": 2, \"cost\": 1}]}";

typedef struct job {
    berth_arena *arena;
    const char *text;
    size_t length;
} job;

static berth_status check(void *user) {
    job *j = user;
    berth_place_problem *problem = NULL;
    if (berth_place_problem_parse(j->arena, "fuzz", problem_text, strlen(problem_text), NULL,
                                  &problem))
        abort();
    uint32_t *assignment = NULL;
    BERTH_TRY(berth_place_answer_parse(j->arena, "fuzz", j->text, j->length, problem, &assignment));
    for (uint32_t i = 0; i < problem->node_count; ++i)
        if (assignment[i] >= problem->device_count) abort();
    for (int contiguous = 0; contiguous < 2; ++contiguous) {
        berth_place_value value;
        BERTH_TRY(berth_place_evaluate(j->arena, problem, BERTH_PLACE_THROUGHPUT, contiguous == 1,
                                       assignment, &value));
    }
    return BERTH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    job j = {.text = (const char *)data, .length = size};
    if (berth_arena_create(berth_allocator_system(), &j.arena)) return 0;
    berth_status_ignore(berth_arena_try(j.arena, check, &j));
    berth_arena_destroy(j.arena);
    return 0;
}
