// The driver for processor cores as a shared library, in place of the one built in.
#include "devices/library.h"

extern const berth_driver_ops berth_devices__cpu_driver;
BERTH_DRIVER_LIBRARY(berth_devices__cpu_driver)
