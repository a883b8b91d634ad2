// What the planner's tests share: short modules as text, planned, and shown as one line per
// function.
#ifndef BERTH_TESTS_PLANNER_SUPPORT_H_
#define BERTH_TESTS_PLANNER_SUPPORT_H_

#include "ir/graph/graph.h"
#include "planner/planner.h"

berth_arena *new_arena(void);
void require(berth_status status);
// `body` without its `module` line; positions in messages are "case:LINE:COLUMN" with "module" on
// line 1.
berth_module *parse_module(berth_arena *arena, const char *body);
const char *print_module(const berth_module *module);

// opencl:0 (the default), cpu:0, and the host cpu:1.
extern const char *const target_gch;
berth_multi_target *parse_target(berth_arena *arena, const char *text);
// Plans with options whose target is set.
berth_status plan_with(berth_module *module, const berth_plan_options *options,
                       berth_plan **out_plan);
berth_status plan_on(berth_module *module, const char *target, berth_plan **out_plan);
// Fails unless the planned module is well-formed and stays as it is when planned again, before and
// after print and parse. Gives the text. plan_twice plans it first.
const char *plan_twice(berth_module *module, const berth_plan_options *options);
const char *plan_again(berth_module *module, const berth_plan_options *options);

// "@main a:G x:C {i:H p:G =p} y>G R:G": parameters, operations by their results, copies with `>`,
// regions in braces with their results after `=`, results. Places: the name of the target's device
// in capitals ("G" for a device named "g"), "@s1" after it a scope, "-" none.
const char *show_module(const berth_module *module, const berth_multi_target *target);

#endif  // BERTH_TESTS_PLANNER_SUPPORT_H_
