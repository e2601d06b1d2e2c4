# Builds CUDA as an optional backend: libraries of .cu files where nvcc is found, of the CUDA that cuda_version.cmake asks for.
#   STRATA_CUDA                AUTO (default: when nvcc is found), ON (or fail), OFF
#   STRATA_CUDA_ARCHITECTURES  as CMAKE_CUDA_ARCHITECTURES; a release builds 80;89;90a;100;120
set(STRATA_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO, ON or OFF")
set(STRATA_CUDA_ARCHITECTURES "90" CACHE STRING "GPU architectures to compile for")

set(STRATA_NVCC OFF)
if(NOT STRATA_CUDA STREQUAL "OFF" AND NOT STRATA_SANITIZE AND NOT STRATA_FUZZ)
  include(CheckLanguage)
  set(CMAKE_CUDA_ARCHITECTURES ${STRATA_CUDA_ARCHITECTURES})
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    # CMake 3.25 does not know how nvcc 13 spells the language.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    set(STRATA_NVCC ON)
    find_package(CUDAToolkit REQUIRED)
    include(${CMAKE_CURRENT_LIST_DIR}/cuda_version.cmake)
    set_target_properties(CUDA::cudart_static CUDA::cudart_static_deps PROPERTIES IMPORTED_GLOBAL ON)
    # Code in any folder may link this to include CUDA's headers.
    add_library(strata_cuda_headers INTERFACE)
    target_include_directories(strata_cuda_headers SYSTEM INTERFACE
      ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
    message(STATUS "CUDA backend: ${CMAKE_CUDA_COMPILER} ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${STRATA_CUDA_ARCHITECTURES}")
  elseif(STRATA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "STRATA_CUDA=ON, but nvcc is not on PATH")
  endif()
endif()

# strata_cuda_library(NAME SOURCES... [LINK libraries...]): .cu and .cpp files that see CUDA's headers.
function(strata_cuda_library name)
  # The launcher moves what ptxas reports to files beside the objects.
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/nvcc_report ${CMAKE_CUDA_COMPILER_LAUNCHER})
  strata_library(${name} ${ARGN})
  set(target strata_${name})
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${STRATA_CUDA_ARCHITECTURES}"
    CUDA_RUNTIME_LIBRARY None)
  # The runtime is static, so that programs start where there is no CUDA. It is named here because CMake itself would put it before
  # libraries that need it when a C++ program links.
  target_link_libraries(${target} PUBLIC CUDA::cudart_static)
  # Arithmetic is as on the CPU: fma only where written.
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;--extended-lambda;-diag-suppress=20012;-Xptxas=-v>")
  target_link_libraries(${target} PRIVATE strata_cuda_headers)
endfunction()
