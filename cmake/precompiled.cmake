# Standard headers that most files include take longer to parse than the files themselves, so they are precompiled: once
# for libraries (-fPIC), once with GoogleTest for programs of tests (-fPIE). Targets without code of their own hold
# them. A file still includes what it uses: presets with sanitizers build without these.
# Of equal sources the compiler makes another precompiled header each time, so build folders do not share through ccache
# what uses one: libraries of the preset bundle go without, and those of cpu where STRATA_PRECOMPILED is TESTS, as in CI.
set(headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory>
  <mutex> <optional> <span> <sstream> <string> <thread> <vector>)
set(nothing ${PROJECT_BINARY_DIR}/precompiled/nothing.cpp)
set(main ${PROJECT_BINARY_DIR}/precompiled/main.cpp)
file(CONFIGURE OUTPUT ${nothing} CONTENT "")
file(CONFIGURE OUTPUT ${main} CONTENT "int main() {}")

# strata_precompiled_headers(TARGET OF): TARGET uses the headers that the target OF precompiles.
function(strata_precompiled_headers name of)
  target_precompile_headers(${name} REUSE_FROM ${of})
  # For ccache; and g++ 12 sees copies past the end of std::string where its header is precompiled.
  target_compile_options(${name} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess;-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread>")
endfunction()

if(STRATA_PRECOMPILED STREQUAL ALL)
  add_library(strata_precompiled OBJECT ${nothing})
  target_link_libraries(strata_precompiled PRIVATE strata_flags)
  target_precompile_headers(strata_precompiled PRIVATE ${headers})
endif()

if(STRATA_TESTS)
  find_package(GTest REQUIRED)
  add_executable(strata_test_precompiled EXCLUDE_FROM_ALL ${main})
  target_link_libraries(strata_test_precompiled PRIVATE strata_flags GTest::gtest)
  target_compile_options(strata_test_precompiled PRIVATE ${strata_test_flags})  # of another -O, the compiler crashes
  target_precompile_headers(strata_test_precompiled PRIVATE ${headers} <gtest/gtest.h>)
endif()
