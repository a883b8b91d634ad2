// Signals that end the program while it has temporary files.
#include <stddef.h>

#include "tools/cli.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
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
