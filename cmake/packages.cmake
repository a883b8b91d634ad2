# Debian packages of what is installed, one per component (scripts/package.sh; cpack in the build folder):
#   libberth0.1            runs programs, no compiler
#   libberth-compiler0.1   compiles models
#   libberth-dev           public headers, static libraries, pkg-config and CMake files of both
#   libberth-internal-dev  internal headers and static components, for plug-ins and drivers of the very same version
#   berth                  the command, its manual pages and completions
#   berth-vta              the NPU: driver, plug-in of the compiler, `berth vta`
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME berth)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Berth developers <berth@localhost>")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(same "(= ${PROJECT_VERSION})")

# berth_package(COMPONENT NAME DESCRIPTION [DEPENDS text] [RECOMMENDS text] [SUGGESTS text] [SECTION name])
macro(berth_package component name description)
  cmake_parse_arguments(arg "" "DEPENDS;RECOMMENDS;SUGGESTS;SECTION" "" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${description}")
  foreach(field DEPENDS RECOMMENDS SUGGESTS SECTION)
    if(arg_${field})
      set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${arg_${field}}")
    endif()
  endforeach()
  set(only_by_name)
  if("${component}" STREQUAL plugin-sdk)
    set(only_by_name EXCLUDE_FROM_ALL)
  endif()
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright
          COMPONENT ${component} ${only_by_name})
  list(APPEND CPACK_COMPONENTS_ALL ${component})
endmacro()

set(CPACK_COMPONENTS_ALL)
# What reads pictures, loaded when one of its format comes: common formats, and others.
set(pictures "libjpeg62-turbo, libpng16-16")
set(other_pictures "libtiff6, libwebp7, libopenjp2-7")
berth_package(libberth libberth${soversion} "Runs compiled models\nOpens programs that Berth has compiled and runs them on the devices of this machine."
  SECTION libs SUGGESTS "pocl-opencl-icd, mesa-vulkan-drivers")
berth_package(libberth-compiler libberth-compiler${soversion} "Compiles trained models\nReads ONNX, plans which device computes what, and makes kernels for each."
  SECTION libs DEPENDS "libberth${soversion} ${same}" RECOMMENDS "gcc | clang" SUGGESTS "${pictures}, ${other_pictures}")
berth_package(libberth-dev libberth-dev "Headers of Berth's libraries\nFor programs in C and C++, with static libraries, pkg-config and CMake files."
  SECTION libdevel SUGGESTS "libxxhash-dev, libjansson-dev, libhwloc-dev, libsodium-dev"
  DEPENDS "libberth${soversion} ${same}, libberth-compiler${soversion} ${same}")
berth_package(plugin-sdk libberth-internal-dev "Internal headers and static components of Berth\nFor plug-ins and drivers, which are built for one version of Berth."
  SECTION libdevel DEPENDS "libberth-dev ${same}, libxxhash-dev, libjansson-dev, libhwloc-dev, libsodium-dev")
berth_package(berth berth "Runs trained models across the processors of a machine\nThe command: plans, builds, runs, measures and explains."
  RECOMMENDS "gcc | clang, ${pictures}" SUGGESTS "${other_pictures}, berth-vta, pocl-opencl-icd, mesa-vulkan-drivers")
berth_package(berth-vta berth-vta "VTA, a neural processing unit, for Berth\nIts driver with a functional and a timing model, the compiler's plug-in, and a command."
  DEPENDS "berth ${same}")
include(CPack)
