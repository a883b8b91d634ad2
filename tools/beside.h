// Commands that are programs of their own: `berth NAME ...` runs the program berth-NAME with the
// arguments after NAME. It is looked for beside this program, and then where an installation has
// such programs (libexec/berth); never in PATH, so that nobody else's program becomes a command.
#ifndef BERTH_TOOLS_BESIDE_H_
#define BERTH_TOOLS_BESIDE_H_

#include <stdint.h>

enum { BERTH_BESIDE_MOST = 32, BERTH_BESIDE_NAME_BYTES = 32 };

typedef struct berth_beside {
    char names[BERTH_BESIDE_MOST][BERTH_BESIDE_NAME_BYTES];
    uint32_t count;
} berth_beside;

// The names that are there, each once, in order.
void berth_beside_list(berth_beside *out_list);

// Becomes the program of the command argv[0], if there is one; returns if not. A program that is
// there and does not start ends the process with an error.
void berth_beside_run(int argc, char **argv);

#endif  // BERTH_TOOLS_BESIDE_H_
