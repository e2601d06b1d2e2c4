// Matrix products by cuBLASLt. Seen by matrix_product.cpp and by the device that owns it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "kernels/cuda/cublas_lt.h"
#include "kernels/cuda/library_product.h"
#include "kernels/cuda/product_table.h"
#include "kernels/cuda/product_trials.h"

namespace strata::cuda {

/// One device's cuBLASLt: its handle, the descriptors of the products met so far, and the choice of
/// their algorithms. Results are fp32 sums rounded once, as matrix_product.h promises: algorithms
/// that add partial sums in the type of the result, or in C itself, are not considered. Any thread.
class ProductLibrary {
 public:
  struct Settings {
    std::string gpu;    ///< cudaDeviceProp::name: choices are kept by it
    bool tf32 = false;  ///< fp32 operands may be rounded to TF32
    /// Told once of every kind of product that our own kernels multiply instead, and of algorithms
    /// that were dropped.
    std::function<void(const std::string&)> report = [](const std::string&) {};
  };

  /// For the current device. `functions` must outlive this. Throws HostError where cuBLASLt does
  /// not start.
  ProductLibrary(const CublasLtFunctions& functions, Settings settings);
  ~ProductLibrary();
  ProductLibrary(const ProductLibrary&) = delete;
  ProductLibrary& operator=(const ProductLibrary&) = delete;

  /// Enqueues the product, by the algorithm of the table, else by the first that the library
  /// proposes, which then stands in the table. False, and nothing enqueued, where the library
  /// offers none. `workspace`: product_workspace_bytes of C. Allocates host memory for a product
  /// that it meets for the first time. Throws HostError when the library fails, DataError naming
  /// the table's file when the library refuses the algorithm in it.
  bool multiply(cudaStream_t stream, const MatrixProduct& product, std::span<std::byte> workspace);

  /// Chooses for those products that the table lacks: the library's first proposal (`--autotune
  /// off`) ...
  void choose_first(std::span<const MatrixProduct> products);
  /// ... or the fastest of its first kProposals whose bits repeat, by running each on `trials`.
  /// None of them: our own kernels. Where the memory for trials is missing, the first proposal, and
  /// a report.
  void tune(std::span<const MatrixProduct> products, ProductTrials& trials);

  /// The table, with what it held for other machines: to keep with a checkpoint, and for rank 0 to
  /// send to all.
  [[nodiscard]] std::string save() const;
  /// Replaces the table. Before the first multiply. Throws DataError naming `file`.
  void load(std::string_view json, const std::string& file);

  static constexpr int kProposals = 8;

 private:
  class Descriptors;
  /// Descriptors and, where the library multiplies, the algorithm.
  struct Plan;

  Plan& plan_for(const LibraryProduct& product);
  [[nodiscard]] std::vector<ProductAlgorithm> proposals(const LibraryProduct& product,
                                                        const Descriptors& descriptors);
  /// Why the library would not run it; empty: it would.
  [[nodiscard]] std::string refusal(const LibraryProduct& product, const Descriptors& descriptors,
                                    const ProductAlgorithm& algorithm) const;
  ProductChoice first_choice(const LibraryProduct& product);
  ProductChoice fastest(const LibraryProduct& product, ProductTrials& trials);
  template <typename Choose>
  void choose_missing(std::span<const MatrixProduct> products, const Choose& choose);
  [[nodiscard]] cublasStatus_t enqueue(cudaStream_t stream, Descriptors& descriptors,
                                       const LibraryProduct& product,
                                       const ProductAlgorithm& algorithm,
                                       const ProductOperands& operands);
  void check(cublasStatus_t status, std::string_view call) const;
  void report_once(const std::string& message);

  const CublasLtFunctions& functions_;
  Settings settings_;
  ProductMachine machine_;
  cublasLtHandle_t handle_ = nullptr;
  mutable std::mutex mutex_;
  ProductTable table_;
  std::string table_file_ = "the table of algorithms";
  std::map<LibraryProduct, std::unique_ptr<Plan>> plans_;
  std::set<std::string> reported_;
};

}  // namespace strata::cuda
