// The public header in a C++ program: loads a model and says how many operations the plan has.
#include <berth/berth.h>

#include <iostream>

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    berth_model_options options{};
    options.target = "cpu";
    berth_model *model = nullptr;
    berth_status status = berth_model_load(argv[1], &options, &model);
    if (status) {
        std::cerr << berth_status_message(status) << '\n';
        berth_status_free(status);
        return 1;
    }
    std::cout << berth_model_program(model)->placement_count << '\n';
    berth_model_destroy(model);
}
