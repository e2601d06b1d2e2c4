#include "kernels/cuda/testing/gpu/staged_call.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::cuda {
namespace {

using kernels::Shape;
using kernels::Tensor;
using kernels::TensorType;

/// A block in host memory, in place of a device's.
class Block {
 public:
  explicit Block(const StagedCall& call)
      : size_(call.image().size()),
        bytes_(static_cast<std::byte*>(::operator new[](size_, std::align_val_t{256}))) {
    std::memcpy(bytes_.get(), call.image().data(), size_);
  }
  [[nodiscard]] std::byte* base() const { return bytes_.get(); }
  [[nodiscard]] std::span<const std::byte> all() const { return {bytes_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{256}); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte[], Free> bytes_;
};

/// Two rows of three floats, with a row stride of five.
struct Matrix {
  alignas(16) float values[10] = {1, 2, 3, -7, -7, 4, 5, 6, -7, -7};
  [[nodiscard]] Tensor view() {
    return {TensorType(DType::f32, {2, 3}, 5), reinterpret_cast<std::byte*>(values)};
  }
};

constexpr std::uint32_t kPoison = 0xFFFFFFFF;

std::uint32_t bits(const float* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

TEST(StagedCall, InputsArriveAndOutputsArePoisonedFirst) {
  Matrix in, out;
  const Tensor input = in.view(), output = out.view();
  StagedCall call({&input, 1}, {&output, 1}, 12);
  const Block block(call);
  const Tensor x = call.inputs(block.base())[0], y = call.outputs(block.base())[0];
  EXPECT_EQ(x.row<float>(1)[2], 6);
  EXPECT_EQ(bits(y.row<float>(0)), kPoison);
  EXPECT_EQ(bits(y.row<float>(1) + 2), kPoison);
  EXPECT_EQ(y.row<float>(0)[3], -7) << "gaps keep what they held";
  EXPECT_EQ(call.workspace(block.base()).size(), 12U);
  EXPECT_EQ(call.workspace(block.base())[11], std::byte{0xFF});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(call.workspace(block.base()).data()) % 256, 0U);

  y.row<float>(1)[2] = 42;
  call.finish(block.all());
  EXPECT_EQ(out.values[7], 42);
  EXPECT_EQ(bits(out.values), kPoison) << "what the kernel left unwritten shows";
}

TEST(StagedCall, InPlaceSharesMemoryAndKeepsTheInput) {
  Matrix matrix;
  const Tensor tensor = matrix.view();
  StagedCall call({&tensor, 1}, {&tensor, 1}, 0);
  const Block block(call);
  const Tensor y = call.outputs(block.base())[0];
  EXPECT_EQ(y.data, call.inputs(block.base())[0].data);
  EXPECT_EQ(y.row<float>(0)[1], 2);
  y.row<float>(0)[1] = 20;
  call.finish(block.all());
  EXPECT_EQ(matrix.values[1], 20);
  EXPECT_EQ(matrix.values[0], 1);
}

TEST(StagedCall, PartsOfOneMatrixKeepTheirDistance) {
  Matrix matrix;
  auto* data = reinterpret_cast<std::byte*>(matrix.values);
  const Tensor parts[] = {{TensorType(DType::f32, {2, 1}, 5), data},
                          {TensorType(DType::f32, {2, 2}, 5), data + sizeof(float)}};
  StagedCall call(parts, {}, 0);
  const Block block(call);
  const auto staged = call.inputs(block.base());
  EXPECT_EQ(staged[1].data - staged[0].data, static_cast<std::ptrdiff_t>(sizeof(float)));
  EXPECT_EQ(staged[0].row<float>(1)[0], 4);
  EXPECT_EQ(staged[1].row<float>(1)[1], 6);
}

TEST(StagedCall, AlignmentIsThatOfTheHost) {
  Matrix matrix;
  for (const std::size_t shift : {0, 4, 8, 12}) {
    const Tensor tensor{TensorType(DType::f32, {3}),
                        reinterpret_cast<std::byte*>(matrix.values) + shift};
    StagedCall call({&tensor, 1}, {}, 0);
    const Block block(call);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(call.inputs(block.base())[0].data) % 16, shift);
  }
}

/// Returns the message of finish() when a kernel does `damage` to the block.
template <typename Damage>
std::string refusal(const Damage& damage) {
  Matrix in, out;
  const Tensor input = in.view(), output = out.view();
  StagedCall call({&input, 1}, {&output, 1}, 8);
  const Block block(call);
  damage(call.inputs(block.base())[0], call.outputs(block.base())[0], call.workspace(block.base()));
  return message_of<InternalError>([&] { call.finish(block.all()); });
}

TEST(StagedCall, WritesBesideTheOutputsAreNamed) {
  using Span = std::span<std::byte>;
  EXPECT_EQ(refusal([](Tensor, Tensor y, Span w) {
              y.row<float>(1)[2] = 0;
              w[7] = std::byte{0};
            }),
            "no error");
  EXPECT_EQ(refusal([](Tensor x, Tensor, Span) { x.row<float>(0)[1] = 0; }),
            "the kernel wrote byte 7 of input 0 fp32[2, 3] stride 5, which it may not");
  EXPECT_NE(refusal([](Tensor, Tensor y, Span) { y.row<float>(0)[3] = 0; }).find("of output 0"),
            std::string::npos);
  EXPECT_NE(
      refusal([](Tensor, Tensor y, Span) { y.row<float>(1)[3] = 0; }).find(" bytes after output 0"),
      std::string::npos);
  EXPECT_NE(refusal([](Tensor x, Tensor, Span) {
              x.data[-1] = std::byte{0};
            }).find("1 bytes before input 0"),
            std::string::npos);
  EXPECT_NE(refusal([](Tensor, Tensor, Span w) {
              w.data()[8] = std::byte{0};
            }).find("0 bytes after the workspace"),
            std::string::npos);
}

}  // namespace
}  // namespace strata::cuda
