// Devices in the serial forms: virtual devices as they print ("opencl:0@s1"), and the names that a
// target gives to its devices ("g", "g@s1"), which mean those devices and no others: the kind, the
// number and the hash of the device's target. Private to ir/.
#ifndef BERTH_IR_DEVICE_NAMES_H_
#define BERTH_IR_DEVICE_NAMES_H_

#include "ir/module.h"

struct berth_multi_target;

// Length of the device at the beginning of text[0, length), with its scope and its target's hash;
// 0 = none. A name of `target` (may be NULL) counts where it is longer than KIND:N, so that what
// names no device means the same with and without a target.
size_t berth_device_name_length(const struct berth_multi_target *target, const char *text,
                                size_t length);
// Reads all of `name` into the module's table. Inside berth_arena_try.
// Errors: INVALID_ARGUMENT what devices there are.
BERTH_MUST_USE berth_status berth_device_name_read(const struct berth_multi_target *target,
                                                   berth_module *module, const char *name,
                                                   berth_device_id *out_device);

#endif  // BERTH_IR_DEVICE_NAMES_H_
