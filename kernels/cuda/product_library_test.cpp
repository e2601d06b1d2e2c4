#include "kernels/cuda/product_library.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "kernels/cuda/product_workspace.h"
#include "kernels/cuda/testing/simulated/fake_cublas_lt.h"
#include "kernels/testing/linear_reference.h"
#include "kernels/testing/product_test_support.h"

namespace strata::cuda {
namespace {

using kernels::Tensor;
using kernels::TensorType;
using kernels::testing::Storage;

struct Form {
  DType operands = DType::bf16, result = DType::bf16;
  bool a_transposed = false, b_transposed = true, with_bias = false, accumulate = false;
};

/// A product of 6x5x4 with gaps between rows, and its error.
struct Product {
  static constexpr std::int64_t kM = 6, kN = 5, kK = 4;
  Form form;
  Storage a, b, bias, c, before;
  Tensor bias_tensor;
  std::vector<std::byte> workspace;

  explicit Product(const Form& f = {})
      : form(f),
        a(TensorType(f.operands, {f.a_transposed ? kK : kM, f.a_transposed ? kM : kK}, 9), 1),
        b(TensorType(f.operands, {f.b_transposed ? kN : kK, f.b_transposed ? kK : kN}, 10), 2),
        bias(TensorType(f.operands, {1, kN}), 3),
        c(TensorType(f.result, {kM, kN}, 8), 4),
        before(TensorType(f.result, {kM, kN}, 8), 4),
        bias_tensor(bias.tensor()),
        workspace(static_cast<std::size_t>(product_workspace_bytes(kM * kN))) {}

  [[nodiscard]] MatrixProduct get() {
    return {.a = a.tensor(),
            .b = b.tensor(),
            .c = c.tensor(),
            .a_transposed = form.a_transposed,
            .b_transposed = form.b_transposed,
            .bias = form.with_bias ? &bias_tensor : nullptr,
            .accumulate = form.accumulate};
  }
  [[nodiscard]] double error() {
    kernels::reference::Values right = kernels::reference::matmul(
        a.values(), form.a_transposed, b.values(), form.b_transposed, kM, kN, kK);
    const std::vector<double> added = bias.values(), held = before.values();
    for (std::size_t i = 0; i < right.size(); ++i) {
      if (form.with_bias) right[i] += added[i % kN];
      if (form.accumulate) right[i] += held[i];
    }
    return kernels::testing::relative_error(c.values(), right);
  }
};

/// Runs products on host memory, and gives trials scripted times, in their order.
class HostTrials final : public ProductTrials {
 public:
  explicit HostTrials(std::vector<double> times) : times_(std::move(times)) {}
  void prepare(const LibraryProduct& product) override {
    ++prepared;
    if (!fits) throw OutOfMemory("device", 1000, 10, "advice");
    first_.assign(static_cast<std::size_t>(product.first_stride * (product.k + product.m) * 4),
                  std::byte{0});
    second_.assign(static_cast<std::size_t>(product.second_stride * (product.k + product.n) * 4),
                   std::byte{0});
    result_.assign(static_cast<std::size_t>(product.result_stride * product.n * 4), std::byte{0});
    workspace_.assign(static_cast<std::size_t>(library_bytes(product.m * product.n)), {});
  }
  TrialOutcome run(const Enqueue& enqueue) override {
    std::vector<std::byte> reference;
    for (int i = 0; i < 5; ++i) {
      if (!enqueue(nullptr, {.first = first_.data(),
                             .second = second_.data(),
                             .result = result_.data(),
                             .workspace = workspace_}))
        return {};
      if (i == 0) reference = result_;
      if (result_ != reference) return {.ran = true};
    }
    return {.ran = true, .same_bits = true, .microseconds = times_.at(next_++)};
  }

  int prepared = 0;
  bool fits = true;  ///< false: prepare throws OutOfMemory

 private:
  std::vector<double> times_;
  std::size_t next_ = 0;
  std::vector<std::byte> first_, second_, result_, workspace_;
};

class ProductLibraryTest : public testing::Test {
 protected:
  ProductLibrary make(bool tf32 = false) {
    return ProductLibrary(
        fake_.functions(),
        {.gpu = "NVIDIA H200", .tf32 = tf32, .report = [this](const std::string& message) {
           reports_.push_back(message);
         }});
  }
  static bool multiply(ProductLibrary& library, Product& product) {
    return library.multiply(nullptr, product.get(), product.workspace);
  }
  /// Multiplies once, and returns the algorithm that the library took.
  int chosen(ProductLibrary& library) {
    Product product;
    EXPECT_TRUE(multiply(library, product));
    return fake_.ran.back();
  }

  FakeCublasLt fake_;
  std::vector<std::string> reports_;
};

TEST_F(ProductLibraryTest, MultipliesEveryFormThatLibrariesOffer) {
  {
    ProductLibrary library = make();
    for (const auto& [operands, result] :
         {std::pair{DType::f32, DType::f32}, std::pair{DType::bf16, DType::bf16},
          std::pair{DType::f16, DType::f32}})
      for (int form = 0; form < 16; ++form) {
        Product product(
            {operands, result, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0, (form & 8) != 0});
        ASSERT_TRUE(multiply(library, product));
        EXPECT_LE(product.error(), kernels::testing::tolerance(result)) << form;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(fake_.workspace) % 256, 0U);
        EXPECT_EQ(fake_.compute, CUBLAS_COMPUTE_32F);
      }
  }
  EXPECT_EQ(fake_.alive, 0) << "something of the library was not destroyed";
  EXPECT_TRUE(reports_.empty());
}

TEST_F(ProductLibraryTest, AsksForPartialSumsInFp32AndTellsAlignments) {
  ProductLibrary library = make();
  Product product({.with_bias = true});
  const Tensor shifted{TensorType(DType::bf16, {1, Product::kN}), product.a.tensor().data + 4};
  product.bias_tensor = shifted;
  product.form.accumulate = true;
  multiply(library, product);
  EXPECT_EQ(fake_.preferences.at(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK),
            CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  EXPECT_EQ(fake_.preferences.at(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES),
            static_cast<std::uint64_t>(library_bytes(Product::kM * Product::kN)));
  EXPECT_EQ(fake_.preferences.at(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES), 16U);
  EXPECT_EQ(fake_.bias_asked % 8, 4U);
}

TEST_F(ProductLibraryTest, TakesAnotherBiasEachTime) {
  ProductLibrary library = make();
  Product first({.with_bias = true}), second({.with_bias = true});
  for (std::int64_t i = 0; i < Product::kN; ++i) second.bias.set(0, i, static_cast<float>(i));
  for (Product* product : {&first, &second}) {
    ASSERT_TRUE(multiply(library, *product));
    EXPECT_LE(product->error(), kernels::testing::tolerance(DType::bf16));
  }
}

TEST_F(ProductLibraryTest, Tf32IsUsedWhenAskedForFp32Alone) {
  ProductLibrary library = make(true);
  Product single({.operands = DType::f32, .result = DType::f32});
  multiply(library, single);
  EXPECT_EQ(fake_.compute, CUBLAS_COMPUTE_32F_FAST_TF32);
  Product half({.operands = DType::f16, .result = DType::f16});
  multiply(library, half);
  EXPECT_EQ(fake_.compute, CUBLAS_COMPUTE_32F);
}

TEST_F(ProductLibraryTest, LeavesWhatIsNotOfferedToOurKernelsAndSaysSoOnce) {
  ProductLibrary library = make();
  Product mixed;
  MatrixProduct product = mixed.get();
  Storage wide(TensorType(DType::f32, {Product::kN, Product::kK}), 1);
  product.b = wide.tensor();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(library.multiply(nullptr, product, mixed.workspace));
  EXPECT_EQ(reports_, std::vector<std::string>{
                          "products of bf16 by fp32 to bf16 run by Strata's own kernels"});
  fake_.offered = 0;
  Product plain;
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(multiply(library, plain));
  ASSERT_EQ(reports_.size(), 2U);
  EXPECT_EQ(reports_[1].rfind("no algorithm of cuBLASLt for 5x6x4: bf16 transposed", 0), 0U)
      << reports_[1];
}

TEST_F(ProductLibraryTest, WithoutTuningTheFirstProposalStands) {
  ProductLibrary library = make();
  Product product;
  library.choose_first(std::vector{product.get()});
  EXPECT_TRUE(fake_.ran.empty());
  EXPECT_EQ(chosen(library), 0);
}

TEST_F(ProductLibraryTest, TuningKeepsTheFastest) {
  ProductLibrary library = make();
  Product product;
  HostTrials trials({3.0, 1.0, 2.0});
  library.tune(std::vector{product.get(), product.get()}, trials);
  EXPECT_EQ(trials.prepared, 1) << "the same product was tuned twice";
  EXPECT_EQ(chosen(library), 1);
}

TEST_F(ProductLibraryTest, TuningDropsAlgorithmsWhoseBitsDifferOrThatFail) {
  fake_.noisy = 0;
  fake_.refusing = 1;
  ProductLibrary library = make();
  Product product;
  HostTrials trials({9.0});
  library.tune(std::vector{product.get()}, trials);
  EXPECT_EQ(chosen(library), 2);
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0].rfind("dropped an algorithm whose bits differ", 0), 0U);
}

TEST_F(ProductLibraryTest, WhereTrialsDoNotFitTheFirstProposalStands) {
  ProductLibrary library = make();
  Product product;
  HostTrials trials({});
  trials.fits = false;
  library.tune(std::vector{product.get()}, trials);
  EXPECT_EQ(chosen(library), 0);
  ASSERT_EQ(reports_.size(), 1U);
  EXPECT_EQ(reports_[0].rfind("took the first proposal of cuBLASLt untried for 5x6x4", 0), 0U);
  EXPECT_NE(reports_[0].find("1000"), std::string::npos) << reports_[0];
}

TEST_F(ProductLibraryTest, ProposalsThatTheLibraryWouldRefuseAreNotTaken) {
  fake_.unchecked = 0;
  ProductLibrary library = make();
  Product product;
  library.choose_first(std::vector{product.get()});
  EXPECT_EQ(chosen(library), 1);
}

TEST_F(ProductLibraryTest, AProductThatFailsIsNamed) {
  fake_.refusing = 0;
  ProductLibrary library = make();
  Product product;
  const std::string message = message_of<HostError>([&] { multiply(library, product); });
  EXPECT_EQ(message.rfind("cublasLtMatmul of 5x6x4: bf16 transposed", 0), 0U) << message;
}

TEST_F(ProductLibraryTest, WhereNoAlgorithmRepeatsItsBitsOurKernelsMultiply) {
  fake_.offered = 1;
  fake_.noisy = 0;
  ProductLibrary library = make();
  Product product;
  HostTrials trials({});
  library.tune(std::vector{product.get()}, trials);
  EXPECT_FALSE(multiply(library, product));
}

TEST_F(ProductLibraryTest, AnotherRankTakesTheChoicesOfTheFirst) {
  ProductLibrary first = make();
  Product product;
  HostTrials trials({3.0, 2.0, 1.0});
  first.tune(std::vector{product.get()}, trials);
  ProductLibrary second = make();
  second.load(first.save(), "the table of rank 0");
  EXPECT_EQ(second.save(), first.save());
  fake_.preferences.clear();
  EXPECT_EQ(chosen(second), 2);
  EXPECT_TRUE(fake_.preferences.empty()) << "it asked for proposals";
}

TEST_F(ProductLibraryTest, ChoicesOfAnotherMachineAreKeptAndNotTaken) {
  ProductTable table;
  const LibraryProduct key = *library_product(Product().get());
  table[{.gpu = "another", .library = 130100}][key] = {.algorithm = ProductAlgorithm{{1002}}};
  ProductLibrary library = make();
  library.load(to_json(table), "file");
  EXPECT_EQ(chosen(library), 0);
  EXPECT_EQ(product_table_from_json(library.save(), "saved").size(), 2U);
}

TEST_F(ProductLibraryTest, AnAlgorithmInAFileThatTheLibraryRefusesIsAnError) {
  ProductTable table;
  const LibraryProduct key = *library_product(Product().get());
  table[{.gpu = "NVIDIA H200", .library = 130100}][key] = {.algorithm = ProductAlgorithm{{1007}}};
  ProductLibrary library = make();
  library.load(to_json(table), "file");
  Product product;
  const std::string message = message_of<DataError>([&] { multiply(library, product); });
  EXPECT_EQ(message.rfind("file: cuBLASLt refuses the algorithm for 5x6x4", 0), 0U) << message;
  EXPECT_NE(message.find("INVALID_VALUE"), std::string::npos);
  EXPECT_TRUE(fake_.ran.empty());
}

TEST_F(ProductLibraryTest, ALibraryThatDoesNotStartIsAnError) {
  fake_.starts = false;
  EXPECT_EQ(message_of<HostError>([&] { make(); }), "cublasLtCreate failed: OTHER");
}

}  // namespace
}  // namespace strata::cuda
