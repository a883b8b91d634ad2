// Decomposition of a planned module, module → module: what each device computes becomes a function of
// its own that knows only this device, and @main becomes the driver that calls these and copies
// between them; what each machine does becomes a module of its own. A decomposed module computes
// what the whole does (ir/eval.h), prints and parses like any other, and goes on through the
// pipeline: inline-calls puts it together again.
#ifndef BERTH_COMPILER_DECOMPOSE_H_
#define BERTH_COMPILER_DECOMPOSE_H_

#include "ir/pass.h"
#include "target/target.h"

// Passes that run only where they are named, after plan-devices; NULL-terminated.
const berth_pass *const *berth_decompose_passes(void);

// The operations of `main` that compute become functions, each for one device: as many of a device's
// operations together as leave no circle between functions (of one device, the same number of
// changes of device on the longest way from main's parameters). Such a function has the attribute
// "target", the name of its device; parameters, results and operations are on it. What is left in
// `main`: constants that functions do not need, device_copy, tuples, what only the host does (shapes), calls.
// With `keep_host` also what the host's device computes.
// O(operations and operands). Errors: UNSUPPORTED an `if` or `loop`; FAILED_PRECONDITION an
// operation has no device.
BERTH_MUST_USE berth_status berth_decompose_devices(berth_module *module, berth_func_id main,
                                                    const berth_multi_target *target,
                                                    bool keep_host);

// The operations of `main` that a backend takes - a library that the plan chose (compiler/libraries), a
// kind of device with rules and code of its own (compiler/rules.h) - become functions, one for each
// maximal region: operations of one backend and device that are connected, as many as leave no
// circle between functions. Such a function has the attributes "backend", the library's or the kind's
// name, and "target". What our own code generators compute stays in `main`.
// O(operations and operands), and for each operand between operations of one backend at most 16384
// operations that are looked at: where that ends a search, a region is two.
// Errors as above.
BERTH_MUST_USE berth_status berth_decompose_backends(berth_module *module, berth_func_id main,
                                                     const berth_multi_target *target);

// Leaves of a module that is planned for several machines what one of them does: parameters and
// results that it has, its operations in their order, and in the place of a device_copy between two
// machines `send` (to the other) or `receive` (from it), on a channel of that number on both sides.
// The order is the same everywhere, so nobody waits for ever. The target that it is for, its devices
// counted anew, is *out_target and the module's. Planning is forgotten, but all devices are decided.
// The errors above, and INVALID_ARGUMENT there is no such machine, or no other; FAILED_PRECONDITION a
// value that the machine needs is on another one; what berth_multi_target_change says.
// An entry point: not inside berth_arena_try.
BERTH_MUST_USE berth_status berth_decompose_machine(berth_module *module, berth_func_id main,
                                                    const berth_multi_target *target,
                                                    uint32_t machine,
                                                    berth_multi_target **out_target);

// Functions with the attribute "target" (those of berth_decompose_devices): the device is the
// target's, operations and values that have a device have this one, they call functions of the same
// device only, and calls of them are on it. Errors: FAILED_PRECONDITION with function, operation and
// both devices.
BERTH_MUST_USE berth_status berth_decompose_check(const berth_module *module,
                                                  const berth_multi_target *target);

#endif  // BERTH_COMPILER_DECOMPOSE_H_
