// Berth's C API in one include: load a model for a target, open it, run it. See
// examples/run_model.c.
//
//   berth_status        base/status.h       every fallible call returns one; NULL = success
//   berth_tensor        base/tensor.h       element type, shape, data
//   berth_model         toolkit/model.h     a model or module compiled for a target, or a program
//   berth_session       executor/session.h  a program opened on this machine's devices
//   tensor files        toolkit/tensor_file.h
#ifndef BERTH_BERTH_H_
#define BERTH_BERTH_H_

// C++ programs may include this header too. What it includes of the standard libraries is named
// here, because nothing of those belongs inside extern "C".
#ifdef __cplusplus
#include <atomic>
#endif
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"
#include "base/tensor.h"
#include "executor/session.h"
#include "toolkit/model.h"
#include "toolkit/tensor_file.h"

#ifdef __cplusplus
}
#endif

#endif  // BERTH_BERTH_H_
