// The part of a VTA's schedule after the sums of products (private to compiler/).
#ifndef BERTH_DRIVERS_VTA_COMPILER_SCHEDULE_STEPS_H_
#define BERTH_DRIVERS_VTA_COMPILER_SCHEDULE_STEPS_H_

#include "compiler/schedule/nest.h"
#include "drivers/vta/config.h"

// A nest whose last loop is over the results of a block of channels, taken apart.
typedef struct berth_vta_block {
    berth_tfn *fn;
    int64_t block;
    berth_nest outer;      // the other loops over results
    berth_nest_loop lane;  // the last one
    berth_nest reduction;  // loops of a sum or maximum; none where elements are added up
    berth_stmt products;   // the sum of products by the matrix unit, into `sums`; 0: there is none
    berth_buf sums;
    berth_stmt result;  // the store of one result
} berth_vta_block;

// The nest with instructions for all that it computes; 0: there are none. `whole`: the nest with its
// result as arithmetic.
berth_stmt berth_vta_schedule_steps(const berth_vta_block *block, const berth_vta_config *config,
                                    berth_stmt whole);

#endif  // BERTH_DRIVERS_VTA_COMPILER_SCHEDULE_STEPS_H_
