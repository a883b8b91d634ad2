// A driver for another version of the interface: it must be refused.
#include "devices/library.h"

extern const berth_driver_library berth_driver_library_of_this;
const berth_driver_library berth_driver_library_of_this = {.interface_version =
                                                               BERTH_DRIVER_INTERFACE + 1};
