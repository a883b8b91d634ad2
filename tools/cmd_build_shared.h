// berth build A B --share-workspace: what stands beside the C sources of several models, whose static
// memory is one array as large as the largest one's, and another one for each further memory that they use
// (docs/bare.md).
#ifndef BERTH_TOOLS_CMD_BUILD_SHARED_H_
#define BERTH_TOOLS_CMD_BUILD_SHARED_H_

#include "base/arena.h"
#include "base/status.h"

// Writes workspace.c, which defines these arrays, and a Makefile for libmodels.a into `folder`, which
// has the sources of each model in a folder of its own.
//   errors: IO; INVALID_ARGUMENT two models have the same name in C
BERTH_MUST_USE berth_status berth_cli_write_workspace(berth_arena *arena, const char *folder,
                                                      const char *const *models, uint32_t count);

#endif  // BERTH_TOOLS_CMD_BUILD_SHARED_H_
