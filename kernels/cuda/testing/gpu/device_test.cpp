// Tests what all users of a device rely on: memory, order, recordings. It runs on the simulated
// device, and on a GPU, where it tests the driver's rules and the libraries inside recordings, too.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "kernels/cuda/testing/gpu/tested_device.h"
#include "kernels/ops/operation.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::Device;
using kernels::EventUse;
using kernels::Memory;
using kernels::MemoryKind;
using kernels::Stream;
using kernels::Tensor;
using kernels::TensorType;

constexpr std::int64_t kMany = 1 << 20;  // elements

std::vector<float> numbers(std::int64_t count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = first + static_cast<float>(i % 1000) / 8;
  return values;
}

/// Memory of the device under test, raw or as fp32 numbers.
struct Block {
  std::unique_ptr<Memory> memory;

  explicit Block(std::int64_t bytes, MemoryKind kind = MemoryKind::device)
      : memory(tested_device().allocate(kind, bytes)) {}
  static Block of(const std::vector<float>& values, MemoryKind kind = MemoryKind::device) {
    Block block(static_cast<std::int64_t>(values.size() * sizeof(float)), kind);
    tested_device().copy_now(block.memory->base(), values.data(), block.memory->bytes());
    return block;
  }
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> result(static_cast<std::size_t>(memory->bytes()) / sizeof(float));
    tested_device().copy_now(result.data(), memory->base(), memory->bytes());
    return result;
  }
  [[nodiscard]] Tensor vector() const {
    return {TensorType(DType::f32, {memory->bytes() / 4}), memory->base()};
  }
};

void enqueue(Stream& stream, std::string_view operation, const std::vector<Tensor>& inputs,
             const std::vector<Tensor>& outputs, const Attributes& attributes = {},
             std::span<std::byte> workspace = {}) {
  tested_device().bind_thread();
  tested_device().kernels().find(operation)(stream, {inputs, outputs, workspace, attributes});
}

TEST(Device, SaysWhatItIs) {
  Device& device = tested_device();
  EXPECT_FALSE(device.description().empty());
  EXPECT_FALSE(device.identity().empty());
  EXPECT_GT(device.memory().total_bytes, 0);
  EXPECT_LE(device.memory().free_bytes, device.memory().total_bytes);
}

TEST(Device, CopiesAnyBytesOfAnyHostMemory) {
  Device& device = tested_device();
  std::vector<std::byte> sent(100'003), back(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7);
  const Block block(200'000);
  device.copy_now(block.memory->base() + 13, sent.data(), std::ssize(sent));
  device.copy_now(back.data(), block.memory->base() + 13, std::ssize(back));
  EXPECT_EQ(back, sent);
}

TEST(Device, ClearsBothKindsOfMemory) {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
    const Block block = Block::of(numbers(1000, 1), kind);
    tested_device().clear_now(block.memory->base(), block.memory->bytes());
    EXPECT_EQ(block.values(), std::vector<float>(1000));
  }
}

TEST(Device, KernelsReadAndWritePinnedMemoryWhereTheHostHasIt) {
  Device& device = tested_device();
  const auto stream = device.make_stream();
  const Block from = Block::of(numbers(kMany, 1), MemoryKind::pinned), middle(4 * kMany),
              to(4 * kMany, MemoryKind::pinned);
  enqueue(*stream, "copy", {from.vector()}, {middle.vector()});
  enqueue(*stream, "copy", {middle.vector()}, {to.vector()});
  device.synchronize(*stream);
  EXPECT_EQ(std::memcmp(to.memory->base(), from.memory->base(), 4 * kMany), 0);
}

TEST(Device, StreamsWaitForEventsOfOthers) {
  Device& device = tested_device();
  const auto first = device.make_stream(), second = device.make_stream();
  const auto done = device.make_event(EventUse::order);
  const Block one = Block::of(numbers(kMany, 1)), sum = Block::of(numbers(kMany, 0)),
              copied(4 * kMany);
  constexpr int kAdditions = 50;
  for (int i = 0; i < kAdditions; ++i)
    enqueue(*first, "add", {sum.vector(), one.vector()}, {sum.vector()});
  device.record(*first, *done);
  device.wait(*second, *done);
  enqueue(*second, "copy", {sum.vector()}, {copied.vector()});
  device.synchronize(*second);
  const std::vector<float> result = copied.values();
  for (std::size_t i : {std::size_t{0}, std::size_t{777}, std::size_t{kMany - 1}})
    EXPECT_EQ(result[i],
              static_cast<float>(kAdditions) + (kAdditions + 1) * static_cast<float>(i % 1000) / 8);
}

TEST(Device, TheHostWaitsForEventsAndReadsTheirTimes) {
  Device& device = tested_device();
  const auto stream = device.make_stream();
  const auto begin = device.make_event(EventUse::timing), end = device.make_event(EventUse::timing);
  const auto plain = device.make_event(EventUse::host);
  const Block x = Block::of(numbers(kMany, 1)), y(4 * kMany);
  device.record(*stream, *begin);
  enqueue(*stream, "copy", {x.vector()}, {y.vector()});
  device.record(*stream, *end);
  device.record(*stream, *plain);
  device.wait_on_host(*plain);
  EXPECT_TRUE(device.reached(*plain));
  EXPECT_TRUE(device.reached(*end));
  EXPECT_GE(device.milliseconds(*begin, *end), 0);
}

TEST(Device, ThreadsHaveStreamsOfTheirOwn) {
  const auto work = [](float first) {
    tested_device().bind_thread();
    const auto stream = tested_device().make_stream();
    const Block x = Block::of(numbers(kMany, first)), y(4 * kMany);
    for (int i = 0; i < 20; ++i) enqueue(*stream, "copy", {x.vector()}, {y.vector()});
    tested_device().synchronize(*stream);
    EXPECT_EQ(y.values(), numbers(kMany, first));
  };
  std::thread other(work, 5.0f);
  work(9.0f);
  other.join();
}

TEST(Device, RefusesMoreMemoryThanThereIsAndGoesOn) {
  const auto message = message_of<OutOfMemory>(
      [] { (void)tested_device().allocate(MemoryKind::device, std::int64_t{1} << 45); });
  EXPECT_NE(message.find("device"), std::string::npos) << message;
  const Block block = Block::of(numbers(10, 1));
  EXPECT_EQ(block.values(), numbers(10, 1));
}

/// Records what `work` enqueues on `origin` and on `beside`, which is forked from it and joined.
std::unique_ptr<kernels::Recording> recorded(Stream& origin, Stream& beside,
                                             const std::function<void()>& work) {
  Device& device = tested_device();
  const auto fork = device.make_event(EventUse::order), join = device.make_event(EventUse::order);
  device.begin_recording(origin);
  device.record(origin, *fork);
  device.wait(beside, *fork);
  work();
  device.record(beside, *join);
  device.wait(origin, *join);
  return device.end_recording(origin);
}

TEST(Device, RecordingsReplayWhatTheyReadAnew) {
  Device& device = tested_device();
  const auto stream = device.make_stream(), beside = device.make_stream();
  const Block input = Block::of(numbers(kMany, 1), MemoryKind::pinned), x(4 * kMany), y(4 * kMany),
              z(4 * kMany);
  const auto recording = recorded(*stream, *beside, [&] {
    enqueue(*beside, "copy", {input.vector()}, {x.vector()});
    enqueue(*stream, "copy", {input.vector()}, {y.vector()});
  });
  EXPECT_FALSE(x.values() == numbers(kMany, 1)) << "it ran while it was recorded";
  for (const float first : {3.0f, 4.0f}) {
    const std::vector<float> values = numbers(kMany, first);
    std::memcpy(input.memory->base(), values.data(), 4 * kMany);
    device.replay(*stream, *recording);
    enqueue(*stream, "add", {x.vector(), y.vector()}, {z.vector()});
    device.synchronize(*stream);
    EXPECT_EQ(z.values()[17], 2 * values[17]) << first;
  }
}

TEST(Device, RecordingsMarkInPinnedMemoryWhatTheyHaveComeTo) {
  Device& device = tested_device();
  const auto stream = device.make_stream(), beside = device.make_stream();
  const Block words(128, MemoryKind::pinned);
  device.clear_now(words.memory->base(), words.memory->bytes());
  auto* first = reinterpret_cast<std::uint32_t*>(words.memory->base());
  std::uint32_t* second = first + 16;
  const auto read = [](std::uint32_t* word) {
    return std::atomic_ref<std::uint32_t>(*word).load(std::memory_order_acquire);
  };
  const auto recording = recorded(*stream, *beside, [&] {
    device.mark(*stream, first, 7);
    device.mark(*beside, second, 0x12345678);
    device.mark(*stream, first, 70'000);
  });
  EXPECT_EQ(read(first), 0U) << "it ran while it was recorded";
  for (int replay = 0; replay < 2; ++replay) {
    device.replay(*stream, *recording);
    device.synchronize(*stream);
    EXPECT_EQ(read(first), 70'000U);
    EXPECT_EQ(read(second), 0x12345678U);
    device.mark(*stream, first, 1);
    device.synchronize(*stream);
    EXPECT_EQ(read(first), 1U);
  }
}

TEST(Device, AbandonedRecordingsLeaveTheirStreamsUsable) {
  Device& device = tested_device();
  const auto stream = device.make_stream(), beside = device.make_stream();
  const auto fork = device.make_event(EventUse::order);
  const Block x = Block::of(numbers(kMany, 1)), y(4 * kMany);
  device.begin_recording(*stream);
  device.record(*stream, *fork);
  device.wait(*beside, *fork);  // it is never joined
  enqueue(*beside, "copy", {x.vector()}, {y.vector()});
  device.abandon_recording(*stream);
  for (Stream* each : {stream.get(), beside.get()}) {
    enqueue(*each, "copy", {x.vector()}, {y.vector()});
    device.synchronize(*each);
  }
  EXPECT_EQ(y.values(), numbers(kMany, 1));
}

TEST(Device, OtherThreadsMayAllocateAndCopyWhileOneRecords) {
  Device& device = tested_device();
  const auto stream = device.make_stream();
  const Block x = Block::of(numbers(kMany, 1)), y(4 * kMany);
  device.begin_recording(*stream);
  enqueue(*stream, "copy", {x.vector()}, {y.vector()});
  std::thread([] {
    tested_device().bind_thread();
    const Block block = Block::of(numbers(1000, 2));
    EXPECT_EQ(block.values(), numbers(1000, 2));
  }).join();
  const auto recording = device.end_recording(*stream);
  device.replay(*stream, *recording);
  device.synchronize(*stream);
  EXPECT_EQ(y.values(), numbers(kMany, 1));
}

/// A call of an operation that libraries may run, with operands of its own.
class LibraryCall {
 public:
  LibraryCall(std::string_view name, const kernels::Types& inputs, const Attributes& attributes)
      : name_(name), attributes_(attributes) {
    const kernels::Operation& operation = kernels::find_operation(name);
    const kernels::Types outputs = operation.infer(inputs, attributes);
    for (const TensorType& type : inputs) inputs_.push_back(filled(type));
    for (const TensorType& type : outputs) outputs_.push_back(filled(type));
    const std::int64_t bytes = kernels::workspace_bytes(operation, inputs, outputs, attributes,
                                                        tested_device().capabilities());
    if (bytes == 0) return;
    memory_.emplace_back(bytes);
    workspace_ = {memory_.back().memory->base(), static_cast<std::size_t>(bytes)};
  }
  void enqueue(Stream& stream) const {
    cuda::enqueue(stream, name_, inputs_, outputs_, attributes_, workspace_);
  }
  /// Returns the bits of all outputs, and sets the outputs to zeros.
  [[nodiscard]] std::vector<std::byte> take() const {
    std::vector<std::byte> all;
    for (const Tensor& output : outputs_) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(output.type.span_bytes()));
      tested_device().copy_now(bytes.data(), output.data, std::ssize(bytes));
      tested_device().clear_now(output.data, std::ssize(bytes));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return all;
  }

 private:
  Tensor filled(const TensorType& type) {
    memory_.emplace_back(type.span_bytes());
    const Tensor tensor{type, memory_.back().memory->base()};
    const auto stream = tested_device().make_stream();
    cuda::enqueue(
        *stream, "initialize", {},
        {{TensorType(type.dtype, {type.span_bytes() / size_of(type.dtype)}), tensor.data}},
        {{"deviation", 0.5}, {"tensor_low", static_cast<double>(memory_.size())}});
    tested_device().synchronize(*stream);
    return tensor;
  }

  std::string_view name_;
  Attributes attributes_;
  std::vector<Block> memory_;
  std::vector<Tensor> inputs_, outputs_;
  std::span<std::byte> workspace_;
};

/// Expects the same bits when the call is enqueued, and when it is recorded and replayed.
void expect_recordable(const LibraryCall& call) {
  Device& device = tested_device();
  const auto stream = device.make_stream();
  call.enqueue(*stream);
  device.synchronize(*stream);
  const std::vector<std::byte> plain = call.take();
  EXPECT_NE(plain, std::vector<std::byte>(plain.size())) << "nothing was computed";
  device.begin_recording(*stream);
  call.enqueue(*stream);
  const auto recording = device.end_recording(*stream);
  for (int i = 0; i < 2; ++i) {
    device.replay(*stream, *recording);
    device.synchronize(*stream);
    EXPECT_EQ(call.take(), plain) << "replay " << i;
  }
}

TEST(Device, RecordsMatrixProducts) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const TensorType x(dtype, {96, 64}), w(dtype, {80, 64}), bias(dtype, {80}), dy(dtype, {96, 80});
    expect_recordable({"linear", {x, w, bias}, {}});
    expect_recordable({"linear_backward_input", {dy, w}, {}});
    expect_recordable({"linear_backward_weight", {dy, x}, {}});
  }
}

TEST(Device, RecordsAttention) {
  const std::int64_t sequence = 64, heads = 4, kv_heads = 2, size = 64;
  const Attributes attributes{{"sequence", static_cast<double>(sequence)},
                              {"scale", 1 / std::sqrt(static_cast<double>(size))}};
  const TensorType q(DType::bf16, {sequence, heads, size}),
      k(DType::bf16, {sequence, kv_heads, size}), lse(DType::f32, {1, heads, sequence});
  expect_recordable({"attention", {q, k, k}, attributes});
  expect_recordable({"attention_backward", {q, q, k, k, q, lse}, attributes});
}

}  // namespace
}  // namespace strata::cuda
