#include <berth/version.h>

const char *berth_version(void) {
    return BERTH_VERSION;
}
