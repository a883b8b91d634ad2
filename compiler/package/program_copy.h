// A program by itself, apart from what the compiler needed to make it.
//
//   BERTH_TRY(berth_arena_try(kept, copy, &job));   // job->copy = berth_program_copy(program, from, kept)
//   berth_arena_destroy(from);
#ifndef BERTH_COMPILER_PACKAGE_PROGRAM_COPY_H_
#define BERTH_COMPILER_PACKAGE_PROGRAM_COPY_H_

#include "artifact/program.h"

// Copies the program's records to `to`, and of the bytes that it borrows (constants, code, attachments)
// those that lie in `from`; others have to outlive the copy. Inside berth_arena_try of `to`. O(program +
// chunks of `from` for each of these).
const berth_program *berth_program_copy(const berth_program *program, const berth_arena *from,
                                        berth_arena *to);

#endif  // BERTH_COMPILER_PACKAGE_PROGRAM_COPY_H_
