#include "tests/cuda/emulation/fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned emulated_fault(const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int calls;
    static atomic_bool gone;
    const char *wanted = getenv("BERTH_EMULATION_FAIL");
    char function[64];
    int number = 0;
    unsigned result = 0;
    bool stays = wanted && *wanted == '*';
    if (!stays) atomic_store(&gone, false);
    if (stays && sscanf(wanted, "*%63[^:]:%d:%u", function, &number, &result) == 3) {
        if (strcmp(function, name) == 0) atomic_store(&gone, true);
        return atomic_load(&gone) ? result : 0;
    }
    if (!wanted || sscanf(wanted, "%63[^:]:%d:%u", function, &number, &result) != 3 ||
        strcmp(function, name) != 0)
        return 0;
    pthread_mutex_lock(&lock);
    int call = ++calls;
    pthread_mutex_unlock(&lock);
    return number == 0 || call == number ? result : 0;
}
