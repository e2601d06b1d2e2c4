#include "kernels/cuda/product_library.h"

#include <fmt/core.h>
#include <array>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "kernels/cuda/product_workspace.h"

namespace strata::cuda {
namespace {

static_assert(sizeof(cublasLtMatmulAlgo_t::data) == sizeof(ProductAlgorithm::words));

cudaDataType_t data_type(DType type) {
  return type == DType::f32 ? CUDA_R_32F : type == DType::bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

/// True for answers that mean "no algorithm for this", not "something is broken".
bool means_not_offered(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
         status == CUBLAS_STATUS_ARCH_MISMATCH;
}

cublasLtMatmulAlgo_t to_library(const ProductAlgorithm& algorithm) {
  cublasLtMatmulAlgo_t result{};
  std::memcpy(result.data, algorithm.words.data(), sizeof result.data);
  return result;
}

/// The types of a product, by which reports tell products apart whatever their shapes.
std::string kind_of(const MatrixProduct& product) {
  return fmt::format("{} by {} to {}", name_of(product.a.dtype()), name_of(product.b.dtype()),
                     name_of(product.c.dtype()));
}

}  // namespace

/// Owns the library's description of one product.
class ProductLibrary::Descriptors {
 public:
  Descriptors(const ProductLibrary& library, const LibraryProduct& p)
      : library_(library), functions_(library.functions_) {
    const bool tf32 = library.settings_.tf32 && p.operands == DType::f32;
    cublasLtMatmulDesc_t product = nullptr;
    library_.check(
        functions_.product_create(
            &product, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
    product_.reset(product);
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.first_transposed));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.second_transposed));
    if (p.bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(*p.bias));
      // The library looks only at the alignment of this address until a product runs.
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
          std::uintptr_t{4096} + static_cast<unsigned>(p.bias_alignment));
    }
    first_ = layout(p.operands, p.first_transposed ? p.k : p.m, p.first_transposed ? p.m : p.k,
                    p.first_stride);
    second_ = layout(p.operands, p.second_transposed ? p.n : p.k, p.second_transposed ? p.k : p.n,
                     p.second_stride);
    result_ = layout(p.result, p.m, p.n, p.result_stride);
  }

  void set_bias(const std::byte* bias) { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

  [[nodiscard]] cublasLtMatmulDesc_t product() const { return product_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t first() const { return first_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t second() const { return second_.get(); }
  [[nodiscard]] cublasLtMatrixLayout_t result() const { return result_.get(); }

 private:
  template <typename Handle>
  struct Destroy {
    cublasStatus_t (*function)(Handle);
    using pointer = Handle;
    void operator()(Handle handle) const noexcept { (void)function(handle); }
  };
  template <typename Handle>
  using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<Handle>>;

  static std::int32_t operation(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    library_.check(functions_.product_set(product_.get(), attribute, &value, sizeof value),
                   "cublasLtMatmulDescSetAttribute");
  }

  Owned<cublasLtMatrixLayout_t> layout(DType type, std::int64_t rows, std::int64_t cols,
                                       std::int64_t stride) {
    cublasLtMatrixLayout_t made = nullptr;
    library_.check(
        functions_.layout_create(&made, data_type(type), static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(cols), stride),
        "cublasLtMatrixLayoutCreate");
    return {made, {functions_.layout_destroy}};
  }

  const ProductLibrary& library_;
  const CublasLtFunctions& functions_;
  Owned<cublasLtMatmulDesc_t> product_{nullptr, {functions_.product_destroy}};
  Owned<cublasLtMatrixLayout_t> first_{nullptr, {functions_.layout_destroy}};
  Owned<cublasLtMatrixLayout_t> second_{nullptr, {functions_.layout_destroy}};
  Owned<cublasLtMatrixLayout_t> result_{nullptr, {functions_.layout_destroy}};
};

struct ProductLibrary::Plan {
  Descriptors descriptors;
  std::optional<ProductAlgorithm> algorithm;
};

ProductLibrary::ProductLibrary(const CublasLtFunctions& functions, Settings settings)
    : functions_(functions), settings_(std::move(settings)) {
  check(functions_.create(&handle_), "cublasLtCreate");
  machine_ = {.gpu = settings_.gpu,
              .library = static_cast<std::int64_t>(functions_.get_version()),
              .tf32 = settings_.tf32};
}

ProductLibrary::~ProductLibrary() { (void)functions_.destroy(handle_); }

void ProductLibrary::check(cublasStatus_t status, std::string_view call) const {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw HostError(fmt::format("{} failed: {}", call, functions_.get_status_name(status)));
}

void ProductLibrary::report_once(const std::string& message) {
  if (reported_.insert(message).second) settings_.report(message);
}

std::vector<ProductAlgorithm> ProductLibrary::proposals(const LibraryProduct& p,
                                                        const Descriptors& descriptors) {
  cublasLtMatmulPreference_t made = nullptr;
  check(functions_.preference_create(&made), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                        decltype(functions_.preference_destroy)>
      preference(made, functions_.preference_destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(functions_.preference_set(made, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      static_cast<std::uint64_t>(library_bytes(p.m * p.n)));
  // Partial sums must stay fp32, which excludes the schemes INPLACE and OUTPUT_TYPE.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(p.first_alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(p.second_alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(p.result_alignment));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(p.result_alignment));

  std::array<cublasLtMatmulHeuristicResult_t, kProposals> found{};
  int count = 0;
  const cublasStatus_t status = functions_.algorithm_heuristic(
      handle_, descriptors.product(), descriptors.first(), descriptors.second(),
      descriptors.result(), descriptors.result(), made, kProposals, found.data(), &count);
  if (means_not_offered(status)) return {};
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<ProductAlgorithm> algorithms;
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = found[static_cast<std::size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    ProductAlgorithm algorithm;
    std::memcpy(algorithm.words.data(), result.algo.data, sizeof result.algo.data);
    algorithm.workspace_bytes = static_cast<std::int64_t>(result.workspaceSize);
    // The library may refuse its own proposals; those must not get into the table.
    if (refusal(p, descriptors, algorithm).empty()) algorithms.push_back(algorithm);
  }
  return algorithms;
}

ProductChoice ProductLibrary::first_choice(const LibraryProduct& product) {
  const std::vector<ProductAlgorithm> algorithms = proposals(product, Descriptors(*this, product));
  return algorithms.empty() ? ProductChoice{} : ProductChoice{.algorithm = algorithms.front()};
}

ProductChoice ProductLibrary::fastest(const LibraryProduct& product, ProductTrials& trials) {
  Descriptors descriptors(*this, product);
  ProductChoice best;
  const std::vector<ProductAlgorithm> algorithms = proposals(product, descriptors);
  if (algorithms.empty()) return best;
  try {
    trials.prepare(product);
  } catch (const OutOfMemory& error) {
    report_once(fmt::format("took the first proposal of cuBLASLt untried for {}: {}",
                            product.to_string(), error.what()));
    return {.algorithm = algorithms.front()};
  }
  for (const ProductAlgorithm& algorithm : algorithms) {
    const TrialOutcome outcome = trials.run([&](cudaStream_t stream,
                                                const ProductOperands& operands) {
      return enqueue(stream, descriptors, product, algorithm, operands) == CUBLAS_STATUS_SUCCESS;
    });
    if (outcome.ran && !outcome.same_bits)
      report_once(fmt::format("dropped an algorithm whose bits differ from run to run, of {}",
                              product.to_string()));
    if (!outcome.ran || !outcome.same_bits) continue;
    if (!best.algorithm || outcome.microseconds < best.microseconds)
      best = {algorithm, outcome.microseconds};
  }
  return best;
}

template <typename Choose>
void ProductLibrary::choose_missing(std::span<const MatrixProduct> products, const Choose& choose) {
  const std::lock_guard lock(mutex_);
  for (const MatrixProduct& product : products) {
    const std::optional<LibraryProduct> key = library_product(product);
    if (!key || table_[machine_].contains(*key)) continue;
    const ProductChoice choice = choose(*key);
    table_[machine_].emplace(*key, choice);
  }
}

void ProductLibrary::choose_first(std::span<const MatrixProduct> products) {
  choose_missing(products, [this](const LibraryProduct& product) { return first_choice(product); });
}

void ProductLibrary::tune(std::span<const MatrixProduct> products, ProductTrials& trials) {
  choose_missing(products, [&](const LibraryProduct& product) { return fastest(product, trials); });
}

std::string ProductLibrary::refusal(const LibraryProduct& product, const Descriptors& descriptors,
                                    const ProductAlgorithm& algorithm) const {
  const cublasLtMatmulAlgo_t wanted = to_library(algorithm);
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status = functions_.algorithm_check(
      handle_, descriptors.product(), descriptors.first(), descriptors.second(),
      descriptors.result(), descriptors.result(), &wanted, &result);
  if (status != CUBLAS_STATUS_SUCCESS) return functions_.get_status_name(status);
  if (static_cast<std::int64_t>(result.workspaceSize) <= library_bytes(product.m * product.n))
    return "";
  return fmt::format("it needs {} bytes of workspace", result.workspaceSize);
}

ProductLibrary::Plan& ProductLibrary::plan_for(const LibraryProduct& product) {
  std::unique_ptr<Plan>& plan = plans_[product];
  if (plan) return *plan;
  ProductChoices& choices = table_[machine_];
  auto choice = choices.find(product);
  if (choice == choices.end()) choice = choices.emplace(product, first_choice(product)).first;
  auto made = std::make_unique<Plan>(Plan{Descriptors(*this, product), choice->second.algorithm});
  // The table may come from a file, so the library checks the algorithm before it runs.
  if (made->algorithm)
    if (const std::string why = refusal(product, made->descriptors, *made->algorithm); !why.empty())
      throw DataError(
          fmt::format("{}: cuBLASLt refuses the algorithm for {} ({}); remove the file, "
                      "or that entry, to choose anew",
                      table_file_, product.to_string(), why));
  plan = std::move(made);
  return *plan;
}

cublasStatus_t ProductLibrary::enqueue(cudaStream_t stream, Descriptors& descriptors,
                                       const LibraryProduct& product,
                                       const ProductAlgorithm& algorithm,
                                       const ProductOperands& x) {
  if (product.bias) descriptors.set_bias(x.bias);
  const float alpha = 1, beta = product.accumulate ? 1 : 0;
  const cublasLtMatmulAlgo_t chosen = to_library(algorithm);
  return functions_.matmul(handle_, descriptors.product(), &alpha, x.first, descriptors.first(),
                           x.second, descriptors.second(), &beta, x.result, descriptors.result(),
                           x.result, descriptors.result(), &chosen, x.workspace.data(),
                           x.workspace.size(), stream);
}

bool ProductLibrary::multiply(cudaStream_t stream, const MatrixProduct& product,
                              std::span<std::byte> workspace) {
  const std::optional<LibraryProduct> key = library_product(product);
  const std::lock_guard lock(mutex_);
  if (!key) {
    report_once(fmt::format("products of {} run by Strata's own kernels", kind_of(product)));
    return false;
  }
  Plan& plan = plan_for(*key);
  if (!plan.algorithm) {
    report_once(
        fmt::format("no algorithm of cuBLASLt for {}; Strata's own kernels run", key->to_string()));
    return false;
  }
  const std::span<std::byte> scratch = aligned_workspace(workspace);
  STRATA_CHECK(static_cast<std::int64_t>(scratch.size()) >= plan.algorithm->workspace_bytes,
               workspace.size(), plan.algorithm->workspace_bytes);
  const cublasStatus_t status =
      enqueue(stream, plan.descriptors, *key, *plan.algorithm,
              {.first = product.b.data,
               .second = product.a.data,
               .result = product.c.data,
               .bias = product.bias == nullptr ? nullptr : product.bias->data,
               .workspace = scratch});
  if (status != CUBLAS_STATUS_SUCCESS)
    check(status, fmt::format("cublasLtMatmul of {}", key->to_string()));
  return true;
}

std::string ProductLibrary::save() const {
  const std::lock_guard lock(mutex_);
  return to_json(table_);
}

void ProductLibrary::load(std::string_view json, const std::string& file) {
  ProductTable table = product_table_from_json(json, file);
  const std::lock_guard lock(mutex_);
  table_ = std::move(table);
  table_file_ = file;
  plans_.clear();
}

}  // namespace strata::cuda
