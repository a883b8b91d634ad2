// Berth's C API in one include: load a model for a target, open it, run it. See
// examples/run_model.c.
//
//   berth_status        base/status.h       every fallible call returns one; NULL = success
//   berth_tensor        base/tensor.h       element type, shape, data
//   berth_model         toolkit/model.h     an ONNX file compiled for a target, or a built program
//   berth_session       executor/session.h  a program opened on this machine's devices
//   tensor files        toolkit/tensor_file.h
#ifndef BERTH_BERTH_H_
#define BERTH_BERTH_H_

#include "base/status.h"
#include "base/tensor.h"
#include "executor/session.h"
#include "toolkit/model.h"
#include "toolkit/tensor_file.h"

#endif  // BERTH_BERTH_H_
