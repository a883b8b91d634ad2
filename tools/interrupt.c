// Signals that end the program: while it has temporary files, and when a file that it reads is cut.
#include <stddef.h>
#include <unistd.h>

#include "tools/cli.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { signal_count = sizeof(signals) / sizeof(signals[0]) };

// The one thing a handler may write.
static volatile sig_atomic_t caught;

static void note(int number) {
    caught = number;
}

static void defer(void *state, bool on) {
    berth_cli_model *cli = state;
    struct sigaction action = {.sa_handler = note};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < signal_count; ++i) {
        if (!on)
            sigaction(signals[i], &cli->saved_actions[i], NULL);
        else if (sigaction(signals[i], NULL, &cli->saved_actions[i]) == 0 &&
                 cli->saved_actions[i].sa_handler != SIG_IGN)  // nohup: stays ignored
            sigaction(signals[i], &action, NULL);
    }
    if (!on && caught) raise(caught);
}

static bool is_pending(void *state) {
    (void)state;
    return caught != 0;
}

berth_interrupt berth_cli_interrupt(berth_cli_model *cli) {
    _Static_assert(sizeof(cli->saved_actions) / sizeof(cli->saved_actions[0]) == signal_count,
                   "one place for each signal");
    return (berth_interrupt){defer, is_pending, cli};
}

// Models and programs are read where they are mapped: bytes that are no longer there, or that the
// disk does not give, come as this signal.
static void say_file_was_cut(int number) {
    (void)number;
    static const char text[] =
        "berth: error: a file in use became shorter, or its disk failed: put a new file in the "
        "place of one that is in use instead of writing over it\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
    _exit(1);
}

void berth_cli_watch_files(void) {
    struct sigaction action = {.sa_handler = say_file_was_cut};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
