// What others add to the compiler without touching this tree: lowerings of their operations, passes,
// schedules, code generators (operations themselves: ir/extend.h; strategies of placement:
// planner/solve/strategies/strategy.h). A plug-in registers them when it is loaded (compiler/plugin.h).
//
// Entries are never removed and must live as long as the process. Registering is for the time before
// anything is compiled: not while another thread compiles. Errors of all: OUT_OF_RANGE
// (BERTH_EXTEND_MAX of each); of what has a name or a kind of its own, ALREADY_EXISTS.
#ifndef BERTH_COMPILER_EXTEND_H_
#define BERTH_COMPILER_EXTEND_H_

#include "compiler/codegen/codegen.h"
#include "compiler/lower/context.h"
#include "compiler/rules.h"
#include "compiler/schedule/schedule.h"
#include "ir/extend.h"
#include "ir/pass.h"

// How a registered operation becomes loops: a row as of compiler/lower/table.c.
BERTH_MUST_USE berth_status berth_lower_register(berth_op_kind kind, const berth_lower_row *row);
const berth_lower_row *berth_lower_registered(berth_op_kind kind);  // NULL: none

// A pass of the pipeline, run after the built-in pass `after` and what was registered after it
// before. The pass records itself like any other, and has a name of its own. Errors: NOT_FOUND there
// is no pass `after`; INVALID_ARGUMENT the pass lacks its name, description or run.
BERTH_MUST_USE berth_status berth_pass_register(const berth_pass *pass, const char *after);

// A schedule for functions that it takes, asked before the policy of the kind of device.
BERTH_MUST_USE berth_status berth_schedule_register(const berth_schedule_policy *policy);
// A code generator for a kind of device that has none. What else the compiler asks about such a kind
// are its rules (berth_rules_register, compiler/rules.h).
BERTH_MUST_USE berth_status berth_codegen_register(const berth_codegen *codegen);

#endif  // BERTH_COMPILER_EXTEND_H_
