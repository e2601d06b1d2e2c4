// Tests with the real cuBLASLt, if the toolkit has it. They need no device.
#include "kernels/cuda/cublas_lt.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "kernels/cuda/product_library.h"

namespace strata::cuda {
namespace {

/// An environment in which the library of the compiler's toolkit is found.
const LibraryEnvironment kToolkit{.cuda_path = STRATA_CUDA_TOOLKIT};

bool toolkit_has_it() {
  return std::filesystem::exists(std::string(STRATA_CUDA_TOOLKIT) + "/lib/libcublasLt.so");
}

TEST(CublasLtLibrary, OpensThatOfTheToolkit) {
  if (!toolkit_has_it()) GTEST_SKIP() << "the toolkit has no cuBLAS";
  const CublasLt library(kToolkit);
  EXPECT_EQ(library.version(), std::size_t{CUBLAS_VERSION});
  EXPECT_NE(library.path().find("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)),
            std::string::npos);
  EXPECT_STREQ(library.functions().get_status_name(CUBLAS_STATUS_NOT_SUPPORTED),
               "CUBLAS_STATUS_NOT_SUPPORTED");
}

// The test pretends to have made a handle, which needs a device. ProductLibrary makes all
// descriptions of a product before it first uses the handle, so the error about the handle shows
// that cuBLASLt accepted them.
TEST(CublasLtLibrary, TakesOurDescriptionOfProducts) {
  if (!toolkit_has_it()) GTEST_SKIP() << "the toolkit has no cuBLAS";
  const CublasLt library(kToolkit);
  CublasLtFunctions functions = library.functions();
  functions.create = [](cublasLtHandle_t*) { return CUBLAS_STATUS_SUCCESS; };
  functions.destroy = [](cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; };
  ProductLibrary products(functions, {.gpu = "none"});
  const kernels::Tensor matrix{kernels::TensorType(DType::bf16, {64, 64}, 72), nullptr};
  const kernels::Tensor bias{kernels::TensorType(DType::bf16, {64}), nullptr};
  EXPECT_EQ(message_of<HostError>([&] {
              products.choose_first(std::vector{MatrixProduct{.a = matrix,
                                                              .b = matrix,
                                                              .c = matrix,
                                                              .b_transposed = true,
                                                              .bias = &bias,
                                                              .accumulate = true}});
            }),
            "cublasLtMatmulAlgoGetHeuristic failed: CUBLAS_STATUS_NOT_INITIALIZED");
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
