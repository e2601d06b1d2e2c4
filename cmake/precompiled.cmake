# Standard headers that most files include take longer to parse than the files themselves, so they are precompiled: once
# for libraries (-fPIC), once with GoogleTest for programs of tests (-fPIE). Targets without code of their own hold
# them. A file still includes what it uses: presets with sanitizers build without these.
set(headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory>
  <mutex> <optional> <span> <sstream> <string> <thread> <vector>)
set(nothing ${PROJECT_BINARY_DIR}/precompiled/nothing.cpp)
set(main ${PROJECT_BINARY_DIR}/precompiled/main.cpp)
file(CONFIGURE OUTPUT ${nothing} CONTENT "")
file(CONFIGURE OUTPUT ${main} CONTENT "int main() {}")

add_library(strata_precompiled OBJECT ${nothing})
target_link_libraries(strata_precompiled PRIVATE strata_flags)
target_precompile_headers(strata_precompiled PRIVATE ${headers})

if(STRATA_TESTS)
  find_package(GTest REQUIRED)
  add_executable(strata_test_precompiled EXCLUDE_FROM_ALL ${main})
  target_link_libraries(strata_test_precompiled PRIVATE strata_flags GTest::gtest)
  target_precompile_headers(strata_test_precompiled PRIVATE ${headers} <gtest/gtest.h>)
endif()
