// Static memory allocation on plain data (libberth-compiler): buffers that are live for a while are placed in
// memory, so that those that are live at one moment do not overlap, in little of it. No model is needed.
//
//   berth_allocation_problem *problem;
//   berth_status status = berth_allocation_problem_create(&problem);
//   if (!status) status = berth_allocation_problem_add(problem, "a", "", 0, 2, 4096, 64);
//   if (!status) status = berth_allocation_problem_add(problem, "b", "", 1, 3, 1024, 64);
//   if (!status) status = berth_allocation_problem_solve(problem, 0, 1000000000);
//   if (!status) printf("b at %llu\n", (unsigned long long)berth_allocation_problem_buffer(problem, 1)->offset_bytes);
//   berth_allocation_problem_destroy(problem);
//
// A problem is used by one thread at a time; texts and facts that it gives live until it changes.
#ifndef BERTH_ALLOCATION_H_
#define BERTH_ALLOCATION_H_

#include <berth/status.h>
#include <stddef.h>
#include <stdint.h>

BERTH_BEGIN

typedef struct berth_allocation_problem berth_allocation_problem;

// A buffer, live in [lower, upper) on any scale of time. Later versions may add members at the end.
typedef struct berth_allocation_buffer {
    const char *id;
    const char *pool;
    int64_t lower, upper;
    uint64_t size_bytes;
    uint64_t alignment_bytes;  // its offset is a multiple of it
    uint64_t offset_bytes;     // in its pool; 0 while there is no solution
} berth_allocation_buffer;

// What is known of whether buffers fit into the capacity of their pool. Numbers do not change.
typedef enum berth_allocation_verdict {
    BERTH_ALLOCATION_UNKNOWN = 0,    // not looked at, or neither was found out within the limits
    BERTH_ALLOCATION_FITS = 1,       // so also where there is no capacity
    BERTH_ALLOCATION_CANNOT_FIT = 2  // proven
} berth_allocation_verdict;

// A memory of its own. Later versions may add members at the end.
typedef struct berth_allocation_pool {
    const char *name;
    uint64_t capacity_bytes;           // 0 = none: as little as possible
    berth_allocation_verdict verdict;  // these of the solution; 0 while there is none
    uint64_t height_bytes;       // greatest end of a buffer; the best known where it does not fit
    uint64_t lower_bound_bytes;  // proven: no solution is lower
    int proven;  // not 0: the height is the least, or with a capacity, the verdict is not UNKNOWN
    const char *strategy;  // what found it; "" = the caller or a file
} berth_allocation_pool;

// An empty problem, one from a CSV file, or one from such text. A file has a header with the columns id,
// lower, upper and size, and optionally alignment, pool, and offset, a solution. `name` starts the
// messages about text ("NAME:LINE:COLUMN: what").
//   ownership: the caller destroys it; nothing given is kept
//   errors:    NOT_FOUND, IO; INVALID_ARGUMENT and OUT_OF_RANGE say where and what
BERTH_API BERTH_MUST_USE berth_status
berth_allocation_problem_create(berth_allocation_problem **out_problem);
BERTH_API BERTH_MUST_USE berth_status
berth_allocation_problem_read(const char *path, berth_allocation_problem **out_problem);
// From a file within limits ("bytes=1MiB,items=10000,time=5s"; docs/limits.md; items are buffers).
// Errors: as those of reading; OUT_OF_RANGE a limit is met; INVALID_ARGUMENT `limits` is no such text.
BERTH_API BERTH_MUST_USE berth_status berth_allocation_problem_read_limited(
    const char *path, const char *limits, berth_allocation_problem **out_problem);
BERTH_API BERTH_MUST_USE berth_status berth_allocation_problem_parse(
    const char *name, const char *text, size_t length, berth_allocation_problem **out_problem);
BERTH_API void berth_allocation_problem_destroy(berth_allocation_problem *problem);  // NULL is fine

// Adds a buffer; a solution that there was is gone. `pool` NULL = "".
//   errors: INVALID_ARGUMENT an id that is empty or there already, lower >= upper, size 0, an alignment that
//           is no power of two; OUT_OF_RANGE more than fits in 62 bits
BERTH_API BERTH_MUST_USE berth_status berth_allocation_problem_add(
    berth_allocation_problem *problem, const char *id, const char *pool, int64_t lower,
    int64_t upper, uint64_t size_bytes, uint64_t alignment_bytes);

// What the buffers of a pool are to fit into; `pool` NULL = each of them, 0 bytes = as little as possible.
// Errors: NOT_FOUND no buffer has that pool.
BERTH_API BERTH_MUST_USE berth_status berth_allocation_problem_set_capacity(
    berth_allocation_problem *problem, const char *pool, uint64_t size_bytes);

// Places the buffers: heuristics, then an exact search until the height is proven the least (or what is
// asked is decided) or a limit is reached: `node_limit` search nodes (0 = none), which give the same answer every
// time, or `time_limit_ns` (0 = none). The answer is checked by other code. That it does not fit is no
// error: see the verdicts. Errors: FAILED_PRECONDITION there are no buffers.
BERTH_API BERTH_MUST_USE berth_status berth_allocation_problem_solve(
    berth_allocation_problem *problem, uint64_t node_limit, int64_t time_limit_ns);

// Checks the offsets that the problem has, against the capacities, too; heights and lower bounds of the pools
// are then those of these offsets. Errors: FAILED_PRECONDITION wrong (names the buffers), or no offsets.
BERTH_API BERTH_MUST_USE berth_status
berth_allocation_problem_check(berth_allocation_problem *problem);

// Not 0: there are offsets, from the file or a solution.
BERTH_API int berth_allocation_problem_is_solved(const berth_allocation_problem *problem);
// Search nodes that the last solution took.
BERTH_API uint64_t berth_allocation_problem_node_count(const berth_allocation_problem *problem);

BERTH_API uint32_t berth_allocation_problem_buffer_count(const berth_allocation_problem *problem);
BERTH_API uint32_t berth_allocation_problem_pool_count(const berth_allocation_problem *problem);
// NULL when there is no such index. Pools in the order of their first buffers.
BERTH_API const berth_allocation_buffer *
berth_allocation_problem_buffer(const berth_allocation_problem *problem, uint32_t index);
BERTH_API const berth_allocation_pool *
berth_allocation_problem_pool(const berth_allocation_problem *problem, uint32_t index);

// Writes the buffers as CSV, with offsets where there are some ("-" = stdout). Errors: IO.
BERTH_API BERTH_MUST_USE berth_status
berth_allocation_problem_save(const berth_allocation_problem *problem, const char *path);

// The solution as an SVG document: time to the right, memory upwards. `title` may be NULL. Errors:
// FAILED_PRECONDITION no offsets.
BERTH_API BERTH_MUST_USE berth_status berth_allocation_problem_draw(
    berth_allocation_problem *problem, const char *title, const char **out_svg);

BERTH_END

#endif  // BERTH_ALLOCATION_H_
