// `berth memory plot MODEL`: where the values of a model's plan lie, as a picture.
#ifndef BERTH_TOOLS_MEMORY_PLOT_H_
#define BERTH_TOOLS_MEMORY_PLOT_H_

#include <stdbool.h>

// Whether the arguments of `berth memory` ask to plot a file that is there and is no CSV. argv[0] is the command.
bool berth_memory_plots_model(int argc, char **argv);

// The command line is that of `berth plan`, with --output, and "plot" before MODEL. Returns the exit status.
int berth_memory_plot_model(int argc, char **argv);

#endif  // BERTH_TOOLS_MEMORY_PLOT_H_
