// Runs a program of the executor "vm" (artifact/vm.h): byte code whose segments are compiled already, for the
// shapes that the program has.
//
//   berth_vm_runner *runner;
//   BERTH_TRY(berth_vm_runner_open(program, &options, &runner));
//   BERTH_TRY(berth_vm_runner_run(runner, inputs, outputs));   // a berth_vm_value per input, output
#ifndef BERTH_EXECUTOR_VM_RUNNER_H_
#define BERTH_EXECUTOR_VM_RUNNER_H_

#include "executor/vm.h"
#include "executor/vm_heap.h"
#include "memory/pool.h"

typedef struct berth_vm_runner berth_vm_runner;

typedef struct berth_vm_runner_options {
    uint32_t thread_count;     // of processors; 0 = all cores
    const char *cache_folder;  // of kernels that drivers compile; outlives the runner; NULL = none
    berth_vm_heap *heap;       // what values lie in, outlives the runner; NULL = one of its own
    atomic_uint *cancelled;  // what ends a run, outlives the runner; NULL = berth_vm_runner_cancel
} berth_vm_runner_options;

typedef struct berth_vm_runner_report {
    uint64_t instructions, segments, host_operations;  // of the last run
    uint32_t opened_count;  // segments' programs that ran so far, each of them opened once
    uint64_t
        copied_bytes;  // of the last run: rows of what grows that had to be copied, to have room
    berth_vm_traffic traffic;  // of the last run, without copies that are steps of segments
} berth_vm_runner_report;

// Verifies the program, which outlives the runner. Devices and segments are opened when a run first reaches
// them. `options` NULL = defaults. Errors: INVALID_ARGUMENT the program breaks a rule, or is none of the
// executor "vm"; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_runner_open(const berth_program *program,
                                                 const berth_vm_runner_options *options,
                                                 berth_vm_runner **out_runner);
void berth_vm_runner_close(berth_vm_runner *runner);  // NULL is fine

// As berth_vm_run; one thread at a time, except cancel. Errors: also INCOMPATIBLE an input's type;
// UNSUPPORTED a segment has no program for the shapes that come (says which it has, and the option that
// adds them); those of sessions and devices.
BERTH_MUST_USE berth_status berth_vm_runner_run(berth_vm_runner *runner,
                                                berth_vm_value *const *inputs,
                                                berth_vm_value **outputs);
// From here on, states that the program declares are kept from run to run: an input that is NULL is what the
// last run gave for it (at first zeros, of the least of its bounds), one that is given takes its place, and the
// outputs are NULL. A failed run leaves them as they were.
// Errors: INVALID_ARGUMENT the program declares none; OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_runner_keep_states(berth_vm_runner *runner);
void berth_vm_runner_reset_states(berth_vm_runner *runner);  // as before the first run
// What is kept for an input, dense: a reference, the caller's. NULL: nothing yet, or no state.
// Errors: OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_vm_runner_get_state(const berth_vm_runner *runner, uint32_t input,
                                                      berth_vm_value **out_value);
// Before the first run: who is told each piece that uses a session.
void berth_vm_runner_watch(berth_vm_runner *runner, berth_vm_watch watch);
// Ends a run under way on another thread, or the next one. Thread-safe.
void berth_vm_runner_cancel(berth_vm_runner *runner);

// What values in memories of devices lie in. Lives with the runner.
berth_workspaces *berth_vm_runner_blocks(berth_vm_runner *runner);
// What values lie in: its limit and what it holds. Lives with the runner, or the heap that it was given.
berth_pool *berth_vm_runner_pool(const berth_vm_runner *runner);
// Lives with the runner, and tells of its last run.
const berth_vm_runner_report *berth_vm_runner_get_report(const berth_vm_runner *runner);

#endif  // BERTH_EXECUTOR_VM_RUNNER_H_
