// What nvrtc.c makes and libcuda.c loads.
#ifndef BERTH_TESTS_CUDA_EMULATION_IMAGE_H_
#define BERTH_TESTS_CUDA_EMULATION_IMAGE_H_

#define EMULATED_MAGIC "berth emulated\n"
#define EMULATED_MAGIC_BYTES 16
#define EMULATED_HEADER_BYTES 24

#endif  // BERTH_TESTS_CUDA_EMULATION_IMAGE_H_
