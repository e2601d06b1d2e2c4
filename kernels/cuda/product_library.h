// Matrix products by cuBLASLt. Only matrix_product.cpp and the device that owns it use this.
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
/// that add partial sums in the type of the result, or in C itself, are not used. Thread-safe.
class ProductLibrary {
 public:
  struct Settings {
    std::string gpu;    ///< cudaDeviceProp::name, part of the table's key
    bool tf32 = false;  ///< fp32 operands may be rounded to TF32
    /// Gets a message once for every kind of product that our own kernels multiply instead, and for
    /// algorithms that were dropped.
    std::function<void(const std::string&)> report = [](const std::string&) {};
  };

  /// Serves the current device. `functions` must outlive this. Throws HostError if cuBLASLt does
  /// not start.
  ProductLibrary(const CublasLtFunctions& functions, Settings settings);
  ~ProductLibrary();
  ProductLibrary(const ProductLibrary&) = delete;
  ProductLibrary& operator=(const ProductLibrary&) = delete;

  /// Enqueues the product, by the algorithm of the table, or else by the library's first proposal,
  /// which is then added to the table. Returns false, with nothing enqueued, if the library offers
  /// none. `workspace` has product_workspace_bytes. Allocates host memory for a product that it
  /// meets for the first time. Throws HostError when the library fails, and DataError, which names
  /// the table's file, when the library refuses the algorithm in it.
  bool multiply(cudaStream_t stream, const MatrixProduct& product, std::span<std::byte> workspace);

  /// Chooses the first proposal for each product that the table lacks (`--autotune false`).
  void choose_first(std::span<const MatrixProduct> products);
  /// Chooses, for each product that the table lacks, the fastest of the first kProposals whose bits
  /// repeat, by running each on `trials`; if none will do, our own kernels. Takes the first
  /// proposal, and reports it, if there is no memory for trials.
  void tune(std::span<const MatrixProduct> products, ProductTrials& trials);

  /// Returns the table as text, other machines' choices included, to store with a checkpoint and to
  /// send from rank 0 to all.
  [[nodiscard]] std::string save() const;
  /// Replaces the table, before the first multiply. Throws DataError, which names `file`.
  void load(std::string_view json, const std::string& file);

  static constexpr int kProposals = 8;

 private:
  class Descriptors;
  /// The descriptors of a product and its algorithm, or none if our own kernels multiply.
  struct Plan;

  Plan& plan_for(const LibraryProduct& product);
  [[nodiscard]] std::vector<ProductAlgorithm> proposals(const LibraryProduct& product,
                                                        const Descriptors& descriptors);
  /// Says why the library would refuse `algorithm`; empty if it would run it.
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
