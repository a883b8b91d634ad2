// Berth's C API in one include (docs/embedding.md, examples/run_model.c).
//
//   version.h   which version this is
//   status.h    what every fallible call returns; NULL = success
//   tensor.h    element type, shape, data
//   allocator.h the caller's allocator
//   threads.h   the caller's threads
//   dlpack.h    tensors as DLPack has them, and back
//   vulkan_queue.h  a queue of the caller's on a Vulkan device
//   device.h    the devices of this machine
//   program.h   a compiled model: from a file, from memory, or from the compiler
//   session.h   a program opened on this machine's devices: inputs, outputs, runs, times
//   request.h   runs that do not hold up the caller, any number at once
//   model.h     what a model takes and gives    (libberth-compiler)
//   compile.h   a model and a target -> program (libberth-compiler)
//   plan.h      where operations would run, and why (libberth-compiler)
//   tensor_file.h  tensors from and to files (libberth-compiler)
//   target.h    machines: by name, by field, and this one (libberth-compiler)
//   simulate.h  how a model would run on a machine that is not here (libberth-compiler)
//   verify.h    a model's results against expected ones (libberth-compiler)
//   calibrate.h measured times of kernels and copies (libberth-compiler)
//   tune.h      tuned schedules of kernels (libberth-compiler)
//   quantize.h  a float model as one with 8-bit weights and activations (libberth-compiler)
//   allocation.h  static memory allocation on plain data (libberth-compiler)
//   placement.h device placement on plain data (libberth-compiler)
//   signing.h   keys, and programs that are signed (libberth-compiler)
//   kernel_cache.h  the folder of compiled kernels (libberth-compiler)
//   module.h    a model inside the compiler, pass by pass (libberth-compiler)
//   inspect.h   what programs and models of the virtual machine consist of (libberth-compiler)
//   dynamic.h   models whose shapes or control flow only the run knows (libberth-compiler)
//
// Programs that only run need libberth; what model.h and compile.h declare is in libberth-compiler.
// Functions and types of these headers keep their names and meaning; internal headers, which lie
// elsewhere (docs/embedding.md), do not.
#ifndef BERTH_BERTH_H_
#define BERTH_BERTH_H_

#include <berth/allocation.h>
#include <berth/allocator.h>
#include <berth/calibrate.h>
#include <berth/compile.h>
#include <berth/device.h>
#include <berth/dlpack.h>
#include <berth/dynamic.h>
#include <berth/inspect.h>
#include <berth/kernel_cache.h>
#include <berth/model.h>
#include <berth/module.h>
#include <berth/placement.h>
#include <berth/plan.h>
#include <berth/program.h>
#include <berth/quantize.h>
#include <berth/request.h>
#include <berth/session.h>
#include <berth/signing.h>
#include <berth/simulate.h>
#include <berth/status.h>
#include <berth/target.h>
#include <berth/tensor.h>
#include <berth/tensor_file.h>
#include <berth/threads.h>
#include <berth/tune.h>
#include <berth/verify.h>
#include <berth/version.h>
#include <berth/vulkan_queue.h>

#endif  // BERTH_BERTH_H_
