// Products and convolutions that OpenBLAS and oneDNN compute (docs/libraries.md).
#include <criterion/criterion.h>

#include "tests/toolkit/library_problems.h"

Test(libraries, products_of_openblas, .timeout = 300) {
    library_family_try(&(library_family){"openblas",
                                         "cpu -cores=3 -libs=openblas -libs_policy=always", false,
                                         BERTH_DTYPE_F32, 2e-6, 12, 1, false});
}

Test(libraries, products_of_openblas_in_f64, .timeout = 300) {
    library_family_try(&(library_family){"openblas",
                                         "cpu -cores=2 -libs=openblas -libs_policy=always", false,
                                         BERTH_DTYPE_F64, 1e-14, 6, 1, false});
}

Test(libraries, products_of_dnnl, .timeout = 300) {
    library_family_try(&(library_family){"dnnl", "cpu -cores=3 -libs=dnnl -libs_policy=always",
                                         false, BERTH_DTYPE_F32, 2e-6, 12, 1, false});
}

Test(libraries, convolutions_of_dnnl, .timeout = 300) {
    library_family_try(&(library_family){"dnnl", "cpu -cores=3 -libs=dnnl -libs_policy=always",
                                         true, BERTH_DTYPE_F32, 2e-6, 12, 2, false});
}

// A library that has no such operation is passed over for the next.
Test(libraries, the_first_that_has_it, .timeout = 300) {
    library_family_try(&(library_family){
        "dnnl", "cpu -cores=2 -vector_bits=256 -libs=openblas,dnnl -libs_policy=always", true,
        BERTH_DTYPE_F32, 2e-6, 4, 2, false});
}
