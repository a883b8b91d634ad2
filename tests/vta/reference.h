// A second interpreter, as plain as can be: one instruction after the other in the order of the
// stream, on arrays of numbers. What the model computes must agree with it.
#ifndef BERTH_TESTS_VTA_REFERENCE_H_
#define BERTH_TESTS_VTA_REFERENCE_H_

#include "tests/vta/fields.h"

typedef struct reference {
    berth_vta_config config;
    int batch, block;
    uint32_t *uop;
    int64_t *inp, *wgt, *acc;  // a lane each
} reference;

reference *reference_make(const berth_vta_config *config);
void reference_free(reference *r);
// False where an index is outside of a buffer or of DRAM [base, base + size), or an instruction does
// not exist; what ran before has had its effect.
bool reference_run(reference *r, uint8_t *dram, int64_t base, int64_t size, int64_t address,
                   int count);

#endif  // BERTH_TESTS_VTA_REFERENCE_H_
