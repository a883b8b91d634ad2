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

#endif  // BERTH_API_RUN_PROGRAM_H_
