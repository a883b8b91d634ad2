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
if(BERTH_RUN_ONLY)  # what nothing calls is left out when libberth is linked
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
    target_link_options(berth_flags INTERFACE LINKER:-z,pack-relative-relocs)
  endif()
  target_compile_options(berth_flags INTERFACE -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables
    -fno-semantic-interposition)  # the library is linked with -Bsymbolic-functions
  # Where size is asked for, all of it: 3.5 KB (GCC 12 on).
  check_c_compiler_flag(-Oz BERTH_COMPILER_HAS_OZ)
  if(BERTH_COMPILER_HAS_OZ)
    target_compile_options(berth_flags INTERFACE $<$<CONFIG:MinSizeRel>:-Oz>)
  endif()
  target_compile_options(berth_flags INTERFACE -fno-plt)  # calls go through the table of addresses, without a piece of code for each
  # Tables aligned as the ABI asks, not as vectors would like: gaps between them.
  check_c_compiler_flag(-malign-data=abi BERTH_ALIGNS_DATA_AS_ABI)
  if(BERTH_ALIGNS_DATA_AS_ABI)
    target_compile_options(berth_flags INTERFACE -malign-data=abi)
  endif()
  # All files as one: 8 KB of 300 (GCC 12).
  include(CheckIPOSupported)
  check_ipo_supported(RESULT BERTH_LINKS_AS_ONE OUTPUT ipo_log LANGUAGES C)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ${BERTH_LINKS_AS_ONE})
  target_compile_definitions(berth_flags INTERFACE BERTH_NO_BUILT_IN_TAGS BERTH_NO_SOURCE_PLACES)
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU")  # with -Os it sees texts cut that are meant to be
    target_compile_options(berth_flags INTERFACE -Wno-format-truncation)
    # Objects of the static form that other compilers and linkers take, too.
    target_compile_options(berth_flags INTERFACE -ffat-lto-objects)
    if(BERTH_LINKS_AS_ONE)  # not in pieces that know little of each other: 1.4 KB
      target_link_options(berth_flags INTERFACE -flto-partition=one)
    endif()
  endif()
endif()
if(BERTH_FUZZ)
  target_compile_options(berth_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# berth_component(NAME [DEPENDS component...] [LINK library...] [NOT_TO_RUN file...] [ONLY_TO_RUN file...])
# A static library berth_NAME from every .c file below the folder NAME. New files are picked up by themselves. NOT_TO_RUN: what
# only the compiler and its tools use of it; BERTH_RUN_ONLY leaves these files out. ONLY_TO_RUN: what takes their place there.
function(berth_component name)
  cmake_parse_arguments(arg "" "" "DEPENDS;LINK;NOT_TO_RUN;ONLY_TO_RUN" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.c)
  if(BERTH_RUN_ONLY)
    set(left_out ${arg_NOT_TO_RUN})
  else()
    set(left_out ${arg_ONLY_TO_RUN})
  endif()
  if(left_out)
    list(TRANSFORM left_out PREPEND ${CMAKE_SOURCE_DIR}/${name}/)
    list(REMOVE_ITEM sources ${left_out})
  endif()
  if(NOT sources)
    add_library(berth_${name} INTERFACE)
    set(scope INTERFACE)
  else()
    add_library(berth_${name} STATIC ${sources})
    set(scope PUBLIC)
  endif()
  target_link_libraries(berth_${name} ${scope} berth_flags ${arg_LINK})
  if(NOT BERTH_RUN_ONLY)
    install(TARGETS berth_${name} EXPORT berth_internal ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
            COMPONENT plugin-sdk EXCLUDE_FROM_ALL)
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/${name} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth-internal
            COMPONENT plugin-sdk EXCLUDE_FROM_ALL
            FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
  endif()
  foreach(dependency ${arg_DEPENDS})
    target_link_libraries(berth_${name} ${scope} berth_${dependency})
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

# berth_map_for_drivers(VARIABLE): the version script of libberth alone, which has the public functions and, of everything else,
# what api/driver_names.map lists: nobody else is there to take more, and what is exported cannot be left out.
function(berth_map_for_drivers out_map)
  file(READ ${CMAKE_SOURCE_DIR}/api/berth.map script)
  file(READ ${CMAKE_SOURCE_DIR}/api/driver_names.map names)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/api/berth.map ${CMAKE_SOURCE_DIR}/api/driver_names.map)
  string(FIND "${script}" "global: berth_*;" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "api/berth.map: no \"global: berth_*;\" to put the names of api/driver_names.map in place of")
  endif()
  string(REPLACE "global: berth_*;" "global:\n${names}" script "${script}")
  set(${out_map} ${CMAKE_BINARY_DIR}/libberth.map PARENT_SCOPE)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/libberth.map CONTENT "${script}" @ONLY)
endfunction()

# berth_public_library(NAME EXPORT name OUTPUT file OBJECTS library COMPONENTS component... [WHOLE component...] LINK library...)
# lib<file>.so and lib<file>.a (NAME and NAME_static) from the objects of an OBJECT library of api/ and from components; the
# shared form has the symbols that api/<file>.map lists (docs/embedding.md), and of WHOLE (unless given, all of them) what
# it does not use itself, too. LINK: libraries that both need.
function(berth_public_library name)
  cmake_parse_arguments(arg "" "EXPORT;OUTPUT;OBJECTS" "COMPONENTS;WHOLE;LINK" ${ARGN})
  if(NOT arg_WHOLE)
    set(arg_WHOLE ${arg_COMPONENTS})
  endif()
  add_library(${name} SHARED $<TARGET_OBJECTS:${arg_OBJECTS}>)
  set(objects ${arg_COMPONENTS})
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  add_library(${name}_static STATIC $<TARGET_OBJECTS:${arg_OBJECTS}> ${objects})
  target_link_libraries(${name}_static PRIVATE $<BUILD_INTERFACE:berth_flags> ${arg_LINK})
  set(left ${arg_COMPONENTS})
  list(REMOVE_ITEM left ${arg_WHOLE})
  foreach(library berth_flags ${left} ${arg_LINK})
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:${library}>)
  endforeach()
  berth_link_whole(${name} ${arg_WHOLE})
  set(map ${CMAKE_SOURCE_DIR}/api/${arg_OUTPUT}.map)
  if(BERTH_RUN_ONLY)
    berth_map_for_drivers(map)
  endif()
  target_link_options(${name} PRIVATE LINKER:--version-script=${map} LINKER:-Bsymbolic-functions)
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${map})
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
