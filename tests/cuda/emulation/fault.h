// Faults of the emulated libraries. BERTH_EMULATION_FAIL=FUNCTION:N:RESULT makes the Nth call of a function fail (N = 0:
// every call), *FUNCTION:0:RESULT its first one and every call of any function from then on, as of a device that is gone.
#ifndef BERTH_TESTS_CUDA_EMULATION_FAULT_H_
#define BERTH_TESTS_CUDA_EMULATION_FAULT_H_

// The result that the function is to give; 0: it does what it does. Of a call in this library alone.
unsigned emulated_fault(const char *name);

#endif  // BERTH_TESTS_CUDA_EMULATION_FAULT_H_
