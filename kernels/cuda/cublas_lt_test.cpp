// Needs the library, no device.
#include "kernels/cuda/cublas_lt.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/test_directory.h"

namespace strata::cuda {
namespace {

/// Looks in the compiler's toolkit.
const LibraryEnvironment kToolkit{.cuda_path = STRATA_CUDA_TOOLKIT};

TEST(CublasLtLibrary, OpensThatOfTheToolkit) {
  if (!std::filesystem::exists(std::string(STRATA_CUDA_TOOLKIT) + "/lib/libcublasLt.so"))
    GTEST_SKIP() << "the toolkit has no cuBLAS";
  const CublasLt library(kToolkit);
  EXPECT_EQ(library.version(), std::size_t{CUBLAS_VERSION});
  EXPECT_NE(library.path().find("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)),
            std::string::npos);
  EXPECT_STREQ(library.functions().get_status_name(CUBLAS_STATUS_NOT_SUPPORTED),
               "CUBLAS_STATUS_NOT_SUPPORTED");
}

TEST(CublasLtLibrary, ALibraryOfThatNameWithoutItsFunctionsIsRefused) {
  const TestDirectory directory;
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  std::filesystem::copy_file(STRATA_OTHER_LIBRARY, directory / name);
  const std::string message =
      message_of<HostError>([&] { CublasLt library({.cuda_path = directory.path()}); });
  EXPECT_NE(message.find(name + " lacks cublasLtGetVersion, "), std::string::npos) << message;
  EXPECT_NE(message.find("STRATA_CUDA_PATH"), std::string::npos) << message;
}

}  // namespace
}  // namespace strata::cuda
