# Precompiles standard headers that most files include, since parsing them takes longer than the files themselves: once for
# libraries (-fPIC), once with GoogleTest for test programs (-fPIE). Targets without code of their own hold them. A file still
# includes what it uses, because presets with sanitizers build without precompiled headers.
# The compiler makes a different precompiled header from equal sources each time, so ccache cannot share between build folders
# what uses one. So the preset bundle precompiles nothing for libraries, nor does cpu where STRATA_PRECOMPILED is TESTS, as in CI.
set(headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory>
  <mutex> <optional> <span> <sstream> <string> <thread> <vector>)
set(nothing ${PROJECT_BINARY_DIR}/precompiled/nothing.cpp)
set(main ${PROJECT_BINARY_DIR}/precompiled/main.cpp)
file(CONFIGURE OUTPUT ${nothing} CONTENT "")
file(CONFIGURE OUTPUT ${main} CONTENT "int main() {}")

# strata_precompiled_headers(TARGET OF): TARGET uses the headers that the target OF precompiles.
function(strata_precompiled_headers name of)
  target_precompile_headers(${name} REUSE_FROM ${of})
  # ccache needs -fpch-preprocess. With the header precompiled, g++ 12 warns of copies past the end of std::string, hence the -Wno flags.
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
