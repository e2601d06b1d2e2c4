# Defines what every target of this repository shares: language flags that bits depend on, warnings, tests. strata_flags has what users of a
# library need too; add_compile_options has what is for this repository alone.

find_package(Threads REQUIRED)

find_program(STRATA_CCACHE ccache)
if(STRATA_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${STRATA_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${STRATA_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${STRATA_CCACHE})
  if(STRATA_PRECOMPILED)  # what ccache asks for then
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${STRATA_CCACHE})
  endif()
endif()

add_library(strata_flags INTERFACE)
target_include_directories(strata_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_features(strata_flags INTERFACE cxx_std_20)
# The compiler must not contract a*b+c by itself, so that bits are the same everywhere; kernels write fma where they mean it. Users need the
# flag too, since their programs may keep their own copy of an inline function.
target_compile_options(strata_flags INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>")
if(PROJECT_IS_TOP_LEVEL)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off;-Wall;-Wextra;-Wpedantic;-Wshadow;-Wno-missing-field-initializers>")
endif()
if(STRATA_WERROR)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Werror>")
endif()
if(STRATA_SANITIZE)
  target_compile_options(strata_flags INTERFACE -fsanitize=${STRATA_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(strata_flags INTERFACE -fsanitize=${STRATA_SANITIZE})
  # g++ 12 with a sanitizer warns of uninitialized reads in standard containers that do not happen.
  target_compile_options(strata_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()
if(STRATA_FUZZ)
  target_compile_options(strata_flags INTERFACE -fsanitize=fuzzer-no-link)
  add_custom_target(fuzzers)
endif()
target_link_libraries(strata_flags INTERFACE Threads::Threads)
# These libraries are headers only; CMake leaves out the compiler's own folders.
find_path(STRATA_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_path(STRATA_CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
target_include_directories(strata_flags SYSTEM INTERFACE
  ${STRATA_XXHASH_INCLUDE_DIR} ${STRATA_CLI11_INCLUDE_DIR})

# Tests are compiled once and run once, so -O1 suffices for them; the code they test keeps its -O2.
set(strata_test_flags "$<$<AND:$<CONFIG:RelWithDebInfo>,$<COMPILE_LANGUAGE:CXX>>:-O1>")
if(STRATA_PRECOMPILED)
  include(${CMAKE_CURRENT_LIST_DIR}/precompiled.cmake)
endif()

# strata_library(NAME SOURCES... [LINK libraries...])
function(strata_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(STRATA_SHARED)
    add_library(strata_${name} SHARED ${ARG_SOURCES})
  else()
    add_library(strata_${name} STATIC ${ARG_SOURCES})
  endif()
  add_library(strata::${name} ALIAS strata_${name})
  target_link_libraries(strata_${name} PUBLIC strata_flags ${ARG_LINK})
  if(STRATA_PRECOMPILED STREQUAL ALL)
    strata_precompiled_headers(strata_${name} strata_precompiled)
  endif()
endfunction()

# strata_program(NAME SOURCES... [LINK libraries...]): an executable in <build>/bin, none where STRATA_PROGRAMS is OFF.
function(strata_program name)
  if(NOT STRATA_PROGRAMS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
endfunction()

# strata_test(NAME SOURCES... [LINK libraries...] [LABELS unit|multiprocess|slow] [TIMEOUT seconds])
function(strata_test name)
  if(NOT STRATA_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests
    UNITY_BUILD OFF)  # its files say `value_of` and `kSize` each in its own sense
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${strata_test_flags})
  if(STRATA_PRECOMPILED)
    strata_precompiled_headers(${name} strata_test_precompiled)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# strata_bench(NAME SOURCES... [LINK libraries...]): a Google Benchmark program in <build>/bench. A test runs it for an instant, so that it
# keeps working.
function(strata_bench name)
  if(NOT STRATA_BENCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  find_package(benchmark REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_link_libraries(${name} PRIVATE ${ARG_LINK} benchmark::benchmark benchmark::benchmark_main)
  add_test(NAME ${name} COMMAND ${name} --benchmark_min_time=0.0001)
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()

# strata_fuzz(NAME_fuzz SOURCES... [LINK libraries...]): LLVMFuzzerTestOneInput over the inputs in tests/corpora/NAME_fuzz. The fuzz preset
# builds a libFuzzer program; others build a test that replays the corpus, so that each preset's sanitizers see it.
function(strata_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(STRATA_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_LINK})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${name})
  elseif(STRATA_TESTS)
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/corpora/replay.cpp)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(${name} PRIVATE ${ARG_LINK})
    add_test(NAME ${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/corpora/${name})
    set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
endfunction()
