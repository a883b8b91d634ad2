# Flags and helpers shared by every component.

add_library(berth_flags INTERFACE)
target_include_directories(berth_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/berth-internal>)
target_compile_definitions(berth_flags INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
set(berth_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla
  -Wcast-qual -Wformat=2 -fno-strict-aliasing)
if(BERTH_WERROR)
  list(APPEND berth_warnings -Werror)
endif()
target_compile_options(berth_flags INTERFACE "$<BUILD_INTERFACE:${berth_warnings}>")
# Statuses say which file made them: from this folder on, wherever that lies.
target_compile_options(berth_flags INTERFACE "$<BUILD_INTERFACE:-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>")
if(BERTH_SANITIZE)
  target_compile_options(berth_flags INTERFACE -fsanitize=${BERTH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  target_link_options(berth_flags INTERFACE -fsanitize=${BERTH_SANITIZE})
  if(BERTH_SANITIZE MATCHES address)
    set(berth_if_program "$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>")
    target_sources(berth_flags INTERFACE
      "$<BUILD_INTERFACE:$<${berth_if_program}:${CMAKE_SOURCE_DIR}/cmake/keep_libraries.c>>")
    target_link_options(berth_flags INTERFACE
      "$<BUILD_INTERFACE:$<${berth_if_program}:LINKER:--export-dynamic-symbol=dlclose>>")
  endif()
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")  # instrumented code makes GCC see null formats and short buffers that are not
    target_compile_options(berth_flags INTERFACE -Wno-format-truncation -Wno-format-overflow -Wno-maybe-uninitialized)
  endif()
endif()
# What libberth is made of (berth_run_*): beside berth_flags, all that makes it small. What nothing calls is left out when it is
# linked.
add_library(berth_run_flags INTERFACE)
target_link_libraries(berth_run_flags INTERFACE berth_flags)
target_compile_definitions(berth_run_flags INTERFACE BERTH_NO_BUILT_IN_TAGS BERTH_NO_SOURCE_PLACES)
# Tables of pointers: a bit for each that the loader moves, not 24 bytes, where the C library's loader reads that form.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckCSourceCompiles)
check_linker_flag(C LINKER:-z,pack-relative-relocs BERTH_LINKER_PACKS_RELOCATIONS)
check_c_source_compiles("#include <features.h>
#if !defined(__GLIBC__) || __GLIBC__ < 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ < 36)
#error older loaders do not read them
#endif
int main(void) { return 0; }" BERTH_LOADER_READS_PACKED_RELOCATIONS)
if(BERTH_LINKER_PACKS_RELOCATIONS AND BERTH_LOADER_READS_PACKED_RELOCATIONS)
  target_link_options(berth_run_flags INTERFACE LINKER:-z,pack-relative-relocs)
endif()
set(berth_optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")  # only there: sanitizers and debuggers see other code
if(NOT BERTH_SANITIZE)
  target_compile_options(berth_run_flags INTERFACE -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables
    -fno-semantic-interposition)  # the library is linked with -Bsymbolic-functions
  target_compile_options(berth_run_flags INTERFACE -fno-plt)  # calls go through the table of addresses, without a piece of code for each
  # Size before speed: kernels are code of programs, and what a call costs besides them is the same within the noise (GCC 12 on:
  # 3.5 KB less than -Os).
  check_c_compiler_flag(-Oz BERTH_COMPILER_HAS_OZ)
  set(small -Os)
  if(BERTH_COMPILER_HAS_OZ)
    set(small -Oz)
  endif()
  target_compile_options(berth_run_flags INTERFACE $<${berth_optimised}:${small}>)
  # Tables aligned as the ABI asks, not as vectors would like: gaps between them.
  check_c_compiler_flag(-malign-data=abi BERTH_ALIGNS_DATA_AS_ABI)
  if(BERTH_ALIGNS_DATA_AS_ABI)
    target_compile_options(berth_run_flags INTERFACE -malign-data=abi)
  endif()
  # All files as one: 8 KB of 300 (GCC 12).
  include(CheckIPOSupported)
  check_ipo_supported(RESULT BERTH_LINKS_AS_ONE OUTPUT ipo_log LANGUAGES C)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")  # with -Os it sees texts cut that are meant to be
    target_compile_options(berth_run_flags INTERFACE -Wno-format-truncation)
    # Paths are not doubled to save jumps (2.5 KB), and nothing is held in registers because a loop does not change it (1 KB).
    # Guesses of what is rare, and parameters that are split, cost 0.1 KB each.
    set(berth_smaller -fno-thread-jumps -fno-tree-dominator-opts -fno-move-loop-invariants -fno-tree-loop-im
      -fno-guess-branch-probability -fno-ipa-sra)
    target_compile_options(berth_run_flags INTERFACE "$<${berth_optimised}:${berth_smaller}>")
    if(BERTH_RUN_ONLY)  # objects of the static form that other compilers and linkers take, too
      target_compile_options(berth_run_flags INTERFACE -ffat-lto-objects)
    endif()
    if(BERTH_LINKS_AS_ONE)  # not in pieces that know little of each other: 1.4 KB; the linker has forgotten that flag
      target_link_options(berth_run_flags INTERFACE $<${berth_optimised}:-flto-partition=one> -fno-asynchronous-unwind-tables)
    endif()
  endif()
endif()
# berth_makes_small(TARGET): a part of libberth, or libberth.
function(berth_makes_small target)
  if(BERTH_LINKS_AS_ONE)
    foreach(kind RELEASE RELWITHDEBINFO MINSIZEREL)
      set_property(TARGET ${target} PROPERTY INTERPROCEDURAL_OPTIMIZATION_${kind} ON)
    endforeach()
  endif()
endfunction()
if(BERTH_FUZZ)
  target_compile_options(berth_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# berth_component(NAME [DEPENDS component...] [LINK library...] [RUNS [NOT_TO_RUN file...] [ONLY_TO_RUN file...]])
# A static library berth_NAME from every .c file below the folder NAME. New files are picked up by themselves. RUNS: libberth has
# it, as berth_run_NAME, without what only the compiler and its tools use of it (NOT_TO_RUN); ONLY_TO_RUN: what takes their place.
function(berth_component name)
  cmake_parse_arguments(arg "RUNS" "" "DEPENDS;LINK;NOT_TO_RUN;ONLY_TO_RUN" ${ARGN})
  foreach(left_out arg_NOT_TO_RUN arg_ONLY_TO_RUN)
    if(${left_out})
      list(TRANSFORM ${left_out} PREPEND ${CMAKE_SOURCE_DIR}/${name}/)
    endif()
  endforeach()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.c)
  if(arg_RUNS)
    set(run_sources ${sources})
    list(REMOVE_ITEM run_sources "" ${arg_NOT_TO_RUN})
    add_library(berth_run_${name} STATIC ${run_sources})
    target_link_libraries(berth_run_${name} PUBLIC berth_run_flags ${arg_LINK})
    berth_makes_small(berth_run_${name})
  endif()
  if(BERTH_RUN_ONLY)
    return()
  endif()
  list(REMOVE_ITEM sources "" ${arg_ONLY_TO_RUN})
  add_library(berth_${name} STATIC ${sources})
  target_link_libraries(berth_${name} PUBLIC berth_flags ${arg_LINK})
  install(TARGETS berth_${name} EXPORT berth_internal ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT plugin-sdk EXCLUDE_FROM_ALL)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${name} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth-internal
          COMPONENT plugin-sdk EXCLUDE_FROM_ALL
          FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
  foreach(dependency ${arg_DEPENDS})
    target_link_libraries(berth_${name} PUBLIC berth_${dependency})
  endforeach()
endfunction()

# berth_link_whole(TARGET library...): every object of static libraries, used by the program itself or not.
function(berth_link_whole target)
  foreach(library ${ARGN})
    target_link_options(${target} PRIVATE
      "LINKER:--whole-archive,$<TARGET_FILE:${library}>,--no-whole-archive")
    add_dependencies(${target} ${library})
    set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:${library}>)
  endforeach()
endfunction()

# berth_names(VARIABLE map...): the names in files of api/, one a line.
function(berth_names out_names)
  set(found)
  foreach(map ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/api/${map})
    file(STRINGS ${CMAKE_SOURCE_DIR}/api/${map} names REGEX "^ *berth_[a-z0-9_]+.$")
    list(APPEND found ${names})
  endforeach()
  string(REGEX REPLACE "[^a-z0-9_]+" ";\n" found "${found}")
  string(REGEX REPLACE "^;\n" "" found "${found}")
  set(${out_names} "${found}" PARENT_SCOPE)
endfunction()

# berth_version_script(VARIABLE LIBRARY TEXT): the script api/LIBRARY.map with TEXT in the place of what it says of BERTH_PRIVATE.
function(berth_version_script out_script library text)
  file(READ ${CMAKE_SOURCE_DIR}/api/${library}.map script)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/api/${library}.map)
  string(FIND "${script}" "global: berth_*;" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "api/${library}.map: no \"global: berth_*;\" to put other names in place of")
  endif()
  string(REPLACE "global: berth_*;" "${text}" script "${script}")
  set(${out_script} ${CMAKE_BINARY_DIR}/lib${library}.map PARENT_SCOPE)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/lib${library}.map CONTENT "${script}" @ONLY)
endfunction()

# berth_public_library(NAME EXPORT name OUTPUT file SCRIPT path SHARED object... [WHOLE component...] [PARTS component...]
#   STATIC object... LINK library...)
# lib<file>.so and lib<file>.a (NAME and NAME_static). SHARED and STATIC: objects of each; the shared form has all of the
# components WHOLE, and of PARTS what it uses; SCRIPT says what it exports. LINK: libraries that both need.
function(berth_public_library name)
  cmake_parse_arguments(arg "" "EXPORT;OUTPUT;SCRIPT" "SHARED;WHOLE;PARTS;STATIC;LINK" ${ARGN})
  add_library(${name} SHARED ${arg_SHARED})
  add_library(${name}_static STATIC ${arg_STATIC})
  target_link_libraries(${name}_static PRIVATE $<BUILD_INTERFACE:berth_flags> ${arg_LINK})
  foreach(library berth_flags ${arg_PARTS} ${arg_LINK})
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  berth_link_whole(${name} ${arg_WHOLE})
  target_link_options(${name} PRIVATE LINKER:--version-script=${arg_SCRIPT} LINKER:-Bsymbolic-functions)
  if(NOT BERTH_SANITIZE)  # whose functions are in programs
    target_link_options(${name} PRIVATE LINKER:--no-undefined)
  endif()
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${arg_SCRIPT})
  foreach(form ${name} ${name}_static)
    target_include_directories(${form} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    set_target_properties(${form} PROPERTIES OUTPUT_NAME ${arg_OUTPUT} LINKER_LANGUAGE C)
  endforeach()
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${arg_EXPORT}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS ${name} EXPORT berth LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT lib${arg_OUTPUT} NAMELINK_COMPONENT libberth-dev)
  set_target_properties(${name}_static PROPERTIES EXPORT_NAME ${arg_EXPORT}_static)
  install(TARGETS ${name}_static EXPORT berth_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libberth-dev)
endfunction()

# berth_driver_library(NAME files...): a module that BERTH_DRIVER_LIBRARY makes a driver. What it takes from base
# and devices comes from the program that loads it; what it defines itself it uses itself.
function(berth_driver_library name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE berth_flags)
  target_link_options(${name} PRIVATE LINKER:-Bsymbolic)
  set_target_properties(${name} PROPERTIES PREFIX "")
endfunction()

# berth_test(NAME LINK component... [SOURCES files...]): a Criterion program test_NAME from tests/NAME/test_*.c.
function(berth_test name)
  cmake_parse_arguments(arg "" "" "LINK;SOURCES" ${ARGN})
  if(NOT arg_SOURCES)
    file(GLOB arg_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.c)
  endif()
  if(NOT arg_SOURCES)
    return()
  endif()
  if(BERTH_SANITIZE MATCHES address)
    list(APPEND arg_SOURCES ${CMAKE_SOURCE_DIR}/tests/lsan_parent.c)
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  target_link_libraries(test_${name} PRIVATE ${arg_LINK} PkgConfig::CRITERION berth_flags)
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()

# berth_fuzz(NAME LINK component...): tests/fuzz/NAME.c with a libFuzzer entry. With -DBERTH_FUZZ=ON a fuzzer;
# otherwise (and in the test run) a program that replays the corpus in tests/fuzz/corpus/NAME.
function(berth_fuzz name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}.c)
    return()
  endif()
  if(BERTH_FUZZ)
    add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}.c)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}.c ${CMAKE_SOURCE_DIR}/tests/fuzz/replay.c)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
  target_link_libraries(fuzz_${name} PRIVATE ${arg_LINK} berth_flags)
endfunction()
