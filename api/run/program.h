// What is behind the public berth_program: the record that executors read, counted, with its owner.
#ifndef BERTH_API_RUN_PROGRAM_H_
#define BERTH_API_RUN_PROGRAM_H_

#include <berth/program.h>

#include "artifact/program.h"

// Makes a public program of a record. With its last reference `destroy(owner)` goes, which frees the
// record and all that it refers to.
//   ownership: takes `owner`, also where it fails
//   errors:    OUT_OF_MEMORY
BERTH_MUST_USE berth_status berth_api__program_adopt(const berth_program *record,
                                                     void (*destroy)(void *owner), void *owner,
                                                     berth_program **out_program);

// What was given to berth_api__program_adopt, if that was with this `destroy`; else NULL. A fallback's is that
// of the program that has it.
void *berth_api__program_owner(const berth_program *program, void (*destroy)(void *owner));

#endif  // BERTH_API_RUN_PROGRAM_H_
