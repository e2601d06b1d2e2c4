// Tests of NCCL itself on one rank, since two ranks cannot share a GPU: every kind of collective,
// with odd sizes, enqueued directly and replayed from a recording.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "comm/factory.h"
#include "comm/nccl/make_nccl_communicator.h"
#include "core/error.h"
#include "kernels/cuda/testing/gpu/tested_device.h"
#include "kernels/device/device.h"

namespace strata::comm {
namespace {

constexpr std::int64_t kElements = 1003;
constexpr std::int64_t kPlace = 8192;  ///< bytes reserved for each operand

class NcclOnOneRank : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_nccl(); !why.empty()) GTEST_SKIP() << why;
    device_.bind_thread();
    host_ = std::move(make_thread_communicators(1)[0]);
    nccl_ = make_nccl_communicator(*host_, device_, {});
    memory_ = device_.allocate(kernels::MemoryKind::device, 3 * kPlace);
    nccl_->register_arena({memory_->base(), memory_->bytes(), -1});
    stream_ = device_.make_stream();
  }
  void TearDown() override {
    if (!nccl_) return;
    nccl_->close();
    nccl_.reset();
    host_->close();
  }

  /// Returns the output of a collective whose input holds `values`.
  template <typename T>
  std::vector<T> run(const Collective& collective, const std::vector<T>& values, bool in_place) {
    std::byte* input = memory_->base();
    std::byte* output = in_place ? input : input + kPlace;
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
    device_.copy_now(input, values.data(), bytes);
    const auto enqueue = [&] {
      nccl_->run(*stream_, collective, input, output,
                 {memory_->base() + 2 * kPlace, static_cast<std::size_t>(kPlace)});
    };
    enqueue();
    device_.synchronize(*stream_);
    nccl_->check();
    const std::vector<T> plain = read<T>(output, values.size());
    device_.copy_now(input, values.data(), bytes);
    device_.begin_recording(*stream_);
    enqueue();
    const auto recording = device_.end_recording(*stream_);
    device_.replay(*stream_, *recording);
    device_.synchronize(*stream_);
    nccl_->check();
    EXPECT_EQ(read<T>(output, values.size()), plain) << "replayed";
    return plain;
  }

  kernels::Device& device_ = cuda::tested_device();
  std::unique_ptr<Communicator> host_, nccl_;
  std::unique_ptr<kernels::Memory> memory_;
  std::unique_ptr<kernels::Stream> stream_;

 private:
  template <typename T>
  std::vector<T> read(const std::byte* from, std::size_t count) {
    std::vector<T> values(count);
    device_.copy_now(values.data(), from, static_cast<std::int64_t>(count * sizeof(T)));
    return values;
  }
};

std::vector<float> numbers() {
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 101) / 16.0f - 3.0f;
  return values;
}

TEST_F(NcclOnOneRank, FloatsArriveAsTheyWere) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_to_all})
    EXPECT_EQ(run(Collective{.kind = kind, .partition = {{0, kElements}}}, numbers(), false),
              numbers())
        << name_of(kind);
  EXPECT_EQ(run(Collective{.kind = CollectiveKind::broadcast, .partition = {{0, kElements}}},
                numbers(), true),
            numbers());
}

TEST_F(NcclOnOneRank, IntegersAddUp) {
  std::vector<std::int64_t> values(100);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(i) * 1'000'000'007 - 5;
  EXPECT_EQ(run(integer_sum(100, 1), values, true), values);
}

TEST_F(NcclOnOneRank, ABarrierIsPassed) {
  nccl_->run(*stream_, Collective{.partition = {{0, 0}}}, nullptr, nullptr, {});
  device_.synchronize(*stream_);
  nccl_->check();
}

}  // namespace
}  // namespace strata::comm
