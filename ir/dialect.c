#include "ir/dialect.h"

const berth_dialect berth_dialect_graph = {.name = "graph"};
const berth_dialect berth_dialect_tensor = {.name = "tensor"};
const berth_dialect berth_dialect_external = {.name = "external"};
