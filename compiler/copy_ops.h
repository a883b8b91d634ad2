// Operations of one module copied into the function @main of a new one: a stretch of a graph that is
// to be compiled, or only looked at, apart from the rest.
//
//   berth_op_copier c = berth_op_copier_make(module, graph, "part", arena);
//   c.map[value] = berth_graph_add_param(c.to, c.main, "x", type);   // what comes from outside
//   for (...) berth_op_copier_add(&c, op);
#ifndef BERTH_COMPILER_COPY_OPS_H_
#define BERTH_COMPILER_COPY_OPS_H_

#include "ir/graph/graph.h"

// Arena memory of the new module; inside berth_arena_try of it, like the functions.
typedef struct berth_op_copier {
    const berth_module *from;
    const berth_graph *graph;  // of `from`
    berth_module *to;
    berth_func_id main;   // of `to`
    berth_value_id *map;  // per value of `graph`: its value in @main; BERTH_NONE = not there yet
    berth_loc_id *locs;   // per location of `from`, + 1
    bool has_callees;  // tensor and external functions of `from` are in `to`, by the same numbers
} berth_op_copier;

berth_op_copier berth_op_copier_make(const berth_module *from, const berth_graph *graph,
                                     const char *name, berth_arena *arena);
// Copies an operation without regions to the end of @main: attributes but for types, devices,
// graph functions and opaque ones; locations; constants among its operands, whose bytes stay where they
// are. Results have no type yet.
berth_op_id berth_op_copier_add(berth_op_copier *copier, berth_op_id op);

#endif  // BERTH_COMPILER_COPY_OPS_H_
