# Finds the headers for attention by cuDNN: those of cuDNN, in the CUDA toolkit or beside it, and those of its frontend.
#   STRATA_CUDNN_FRONTEND  folder with cudnn_frontend.h; empty: taken from the wheel that cmake/cudnn-frontend.txt
#                          pins, which pip fetches once for all build folders
# Sets STRATA_CUDNN to ON when both are found. Nothing is linked: the library is opened at run time.
set(STRATA_CUDNN_FRONTEND "" CACHE PATH "Folder with cudnn_frontend.h; empty: fetched with pip")

# Only headers are taken, so the wheel may be one for another Python.
function(strata_fetch_cudnn_frontend to)
  set(wheels ${to}.wheels)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  if(NOT Python3_FOUND)
    return()
  endif()
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -m pip download --quiet --disable-pip-version-check --retries 0 --no-deps
      --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311
      --platform manylinux_2_28_x86_64 --require-hashes
      -r ${PROJECT_SOURCE_DIR}/cmake/cudnn-frontend.txt -d ${wheels}
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE reason TIMEOUT 120)
  if(failed)
    file(REMOVE_RECURSE ${wheels})
    string(REGEX REPLACE "[\r\n]+" " " reason "${reason}")
    message(STATUS "cuDNN attention: pip did not fetch its frontend: ${reason}")
    return()
  endif()
  file(GLOB wheel ${wheels}/*.whl)
  file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${to} PATTERNS include/*)
  file(REMOVE_RECURSE ${wheels})
endfunction()

set(STRATA_CUDNN OFF)
if(STRATA_NVCC)
  find_path(STRATA_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  set(STRATA_CUDNN_FRONTEND_DIR ${STRATA_CUDNN_FRONTEND})
  if(NOT STRATA_CUDNN_FRONTEND_DIR)
    file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/cudnn-frontend.txt pinned)
    string(REGEX MATCH "==([0-9.]+)" pinned "${pinned}")
    set(frontend ${PROJECT_SOURCE_DIR}/build/cudnn-frontend-${CMAKE_MATCH_1})
    if(NOT PROJECT_IS_TOP_LEVEL)
      set(frontend ${PROJECT_BINARY_DIR}/cudnn-frontend-${CMAKE_MATCH_1})
    endif()
    if(NOT EXISTS ${frontend}/include/cudnn_frontend.h AND STRATA_CUDNN_INCLUDE_DIR)
      strata_fetch_cudnn_frontend(${frontend})
    endif()
    set(STRATA_CUDNN_FRONTEND_DIR ${frontend}/include)
  endif()
  if(STRATA_CUDNN_INCLUDE_DIR AND EXISTS ${STRATA_CUDNN_FRONTEND_DIR}/cudnn_frontend.h)
    set(STRATA_CUDNN ON)
    message(STATUS "cuDNN attention: ${STRATA_CUDNN_INCLUDE_DIR}/cudnn.h, ${STRATA_CUDNN_FRONTEND_DIR}")
  else()
    message(STATUS "cuDNN attention: not built, no cudnn.h in the toolkit or no cudnn_frontend.h (STRATA_CUDNN_FRONTEND)")
  endif()
endif()
