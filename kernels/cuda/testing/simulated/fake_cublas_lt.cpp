#include "kernels/cuda/testing/simulated/fake_cublas_lt.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "kernels/cuda/testing/simulated/column_major.h"

namespace strata::cuda {
namespace {

FakeCublasLt* the_fake = nullptr;

struct FakeHandle {};
struct FakeProduct {
  std::int32_t compute;
  std::map<int, std::uint64_t> attributes;
};
struct FakeLayout {
  DType type;
  std::int64_t rows, cols, stride;
};
struct FakePreference {
  std::map<int, std::uint64_t> attributes;
};

template <typename Fake, typename Handle>
Fake& behind(Handle handle) {
  return *reinterpret_cast<Fake*>(handle);
}

template <typename Handle, typename Fake>
cublasStatus_t make(Handle* handle, const Fake& fake) {
  *handle = reinterpret_cast<Handle>(new Fake(fake));
  ++the_fake->alive;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Fake, typename Handle>
cublasStatus_t destroy(Handle handle) {
  delete reinterpret_cast<Fake*>(handle);
  --the_fake->alive;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t keep(std::map<int, std::uint64_t>& attributes, int attribute, const void* value,
                    std::size_t bytes) {
  std::uint64_t word = 0;
  STRATA_CHECK(bytes == 4 || bytes == 8, attribute, bytes);
  std::memcpy(&word, value, bytes);
  attributes[attribute] = word;
  return CUBLAS_STATUS_SUCCESS;
}

DType dtype_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? DType::f32 : type == CUDA_R_16BF ? DType::bf16 : DType::f16;
}

int number_of(const cublasLtMatmulAlgo_t& algorithm) {
  return static_cast<int>(algorithm.data[0]) - 1000;
}

/// Returns the product that the descriptors describe, and checks that the layouts fit it.
LibraryProduct described(const FakeProduct& product, const FakeLayout& first,
                         const FakeLayout& second, const FakeLayout& result, bool accumulate) {
  const auto attribute = [&](int name) {
    const auto found = product.attributes.find(name);
    return found == product.attributes.end() ? 0 : found->second;
  };
  LibraryProduct p{.m = result.rows,
                   .n = result.cols,
                   .first_stride = first.stride,
                   .second_stride = second.stride,
                   .result_stride = result.stride,
                   .first_transposed = attribute(CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T,
                   .second_transposed = attribute(CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T,
                   .operands = first.type,
                   .result = result.type,
                   .accumulate = accumulate};
  p.k = p.first_transposed ? first.rows : first.cols;
  STRATA_CHECK((p.first_transposed ? first.cols : first.rows) == p.m);
  STRATA_CHECK((p.second_transposed ? second.rows : second.cols) == p.n);
  STRATA_CHECK((p.second_transposed ? second.cols : second.rows) == p.k);
  STRATA_CHECK(first.stride >= first.rows && second.stride >= second.rows);
  STRATA_CHECK(result.stride >= result.rows && second.type == first.type);
  if (attribute(CUBLASLT_MATMUL_DESC_EPILOGUE) == CUBLASLT_EPILOGUE_BIAS)
    p.bias = dtype_of(static_cast<cudaDataType_t>(attribute(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)));
  return p;
}

cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t,
                         cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                         cublasLtMatmulPreference_t preference, int most,
                         cublasLtMatmulHeuristicResult_t* results, int* count) {
  the_fake->preferences = behind<FakePreference>(preference).attributes;
  const auto& attributes = behind<FakeProduct>(product).attributes;
  const auto bias = attributes.find(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  the_fake->bias_asked = bias == attributes.end() ? 0 : bias->second;
  if (the_fake->offered == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  *count = std::min(most, the_fake->offered);
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(1000 + i);
    results[i].workspaceSize = the_fake->workspace_bytes;
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check_algorithm(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                               cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                               cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm,
                               cublasLtMatmulHeuristicResult_t* result) {
  const int number = number_of(*algorithm);
  if (number < 0 || number >= the_fake->offered) return CUBLAS_STATUS_INVALID_VALUE;
  if (number == the_fake->unchecked) return CUBLAS_STATUS_NOT_SUPPORTED;
  result->workspaceSize = the_fake->workspace_bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t multiply(cublasLtHandle_t, cublasLtMatmulDesc_t product_handle, const void* alpha,
                        const void* first, cublasLtMatrixLayout_t first_layout, const void* second,
                        cublasLtMatrixLayout_t second_layout, const void* beta, const void* c,
                        cublasLtMatrixLayout_t c_layout, void* result,
                        cublasLtMatrixLayout_t result_layout, const cublasLtMatmulAlgo_t* algorithm,
                        void* workspace, std::size_t workspace_bytes, cudaStream_t) {
  const int number = number_of(*algorithm);
  if (number == the_fake->refusing) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (workspace_bytes < the_fake->workspace_bytes) return CUBLAS_STATUS_INVALID_VALUE;
  const float a = *static_cast<const float*>(alpha), b = *static_cast<const float*>(beta);
  STRATA_CHECK(a == 1 && (b == 0 || b == 1) && c == result && c_layout == result_layout);
  const FakeProduct& product = behind<FakeProduct>(product_handle);
  the_fake->compute = product.compute;
  the_fake->ran.push_back(number);
  the_fake->workspace = workspace;
  const LibraryProduct p =
      described(product, behind<FakeLayout>(first_layout), behind<FakeLayout>(second_layout),
                behind<FakeLayout>(result_layout), b == 1);
  ColumnMajorOperands operands{.first = static_cast<const std::byte*>(first),
                               .second = static_cast<const std::byte*>(second),
                               .result = static_cast<std::byte*>(result)};
  if (p.bias)
    operands.bias = reinterpret_cast<const std::byte*>(
        product.attributes.at(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  column_major_product(p, operands);
  if (number == the_fake->noisy) operands.result[0] ^= std::byte(the_fake->ran.size() % 2);
  return CUBLAS_STATUS_SUCCESS;
}

CublasLtFunctions fake_functions() {
  CublasLtFunctions f;
  f.get_version = []() -> std::size_t { return 130100; };
  f.get_status_name = [](cublasStatus_t status) -> const char* {
    return status == CUBLAS_STATUS_INVALID_VALUE ? "INVALID_VALUE" : "OTHER";
  };
  f.create = [](cublasLtHandle_t* handle) {
    return the_fake->starts ? make(handle, FakeHandle{}) : CUBLAS_STATUS_NOT_INITIALIZED;
  };
  f.destroy = [](cublasLtHandle_t handle) { return destroy<FakeHandle>(handle); };
  f.matmul = multiply;
  f.algorithm_check = check_algorithm;
  f.algorithm_heuristic = heuristic;
  f.product_create = [](cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                        cudaDataType_t scale) {
    STRATA_CHECK(scale == CUDA_R_32F);
    return make(handle, FakeProduct{compute, {}});
  };
  f.product_destroy = [](cublasLtMatmulDesc_t handle) { return destroy<FakeProduct>(handle); };
  f.product_set = [](cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                     const void* value, std::size_t bytes) {
    return keep(behind<FakeProduct>(handle).attributes, attribute, value, bytes);
  };
  f.preference_create = [](cublasLtMatmulPreference_t* handle) {
    return make(handle, FakePreference{});
  };
  f.preference_destroy = [](cublasLtMatmulPreference_t handle) {
    return destroy<FakePreference>(handle);
  };
  f.preference_set = [](cublasLtMatmulPreference_t handle,
                        cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                        std::size_t bytes) {
    return keep(behind<FakePreference>(handle).attributes, attribute, value, bytes);
  };
  f.layout_create = [](cublasLtMatrixLayout_t* handle, cudaDataType_t type, std::uint64_t rows,
                       std::uint64_t cols, std::int64_t stride) {
    return make(handle, FakeLayout{dtype_of(type), static_cast<std::int64_t>(rows),
                                   static_cast<std::int64_t>(cols), stride});
  };
  f.layout_destroy = [](cublasLtMatrixLayout_t handle) { return destroy<FakeLayout>(handle); };
  return f;
}

}  // namespace

FakeCublasLt::FakeCublasLt() : functions_(fake_functions()) { the_fake = this; }
FakeCublasLt::~FakeCublasLt() { the_fake = nullptr; }

}  // namespace strata::cuda
