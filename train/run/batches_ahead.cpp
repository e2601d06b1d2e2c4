#include "train/run/batches_ahead.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/check.h"

namespace strata::train {
namespace {

/// Returns part `index` of `count` equal parts.
template <typename T>
std::span<T> part_of(std::span<T> all, std::int64_t index, std::int64_t count) {
  const std::size_t size = all.size() / static_cast<std::size_t>(count);
  return all.subspan(static_cast<std::size_t>(index) * size, size);
}

}  // namespace

BatchesAhead::BatchesAhead(FillBatch read, StepShape shape, std::int64_t first, std::int64_t end)
    : read_(std::move(read)), shape_(shape), first_(first), end_(end) {
  while (std::ssize(steps_) < kSteps && first_ + std::ssize(steps_) < end_) read_next();
}

void BatchesAhead::read_next() {
  const auto samples = static_cast<std::size_t>(shape_.micro_steps * shape_.samples);
  const std::size_t tokens = samples * static_cast<std::size_t>(shape_.sequence);
  const std::int64_t number = first_ + std::ssize(steps_);
  Step step{std::vector<std::int32_t>(tokens), std::vector<std::int32_t>(tokens),
            std::vector<std::int64_t>(samples)};
  for (std::int64_t m = 0; m < shape_.micro_steps; ++m)
    read_(number, static_cast<int>(m),
          {part_of(std::span(step.tokens), m, shape_.micro_steps),
           part_of(std::span(step.targets), m, shape_.micro_steps),
           part_of(std::span(step.samples), m, shape_.micro_steps)});
  steps_.push_back(std::move(step));
}

bool BatchesAhead::reach(std::int64_t step) {
  for (; first_ < step; ++first_) {
    STRATA_CHECK(!steps_.empty(), first_, step);
    steps_.pop_front();
  }
  try {
    while (!error_ && first_ + std::ssize(steps_) < std::min(end_, step + kSteps + 1)) read_next();
  } catch (...) {  // rethrow() throws it once the state is saved
    error_ = std::current_exception();
  }
  return error_ != nullptr;
}

void BatchesAhead::give(std::int64_t step, int micro_step, const MicroBatch& batch) const {
  STRATA_CHECK(step >= first_ && step < first_ + std::ssize(steps_), step, first_);
  STRATA_CHECK(micro_step >= 0 && micro_step < shape_.micro_steps, micro_step, shape_.micro_steps);
  const Step& all = steps_[static_cast<std::size_t>(step - first_)];
  const auto copy = [&](const auto& from, auto to) {
    const auto part = part_of(std::span(from), micro_step, shape_.micro_steps);
    STRATA_CHECK(part.size() == to.size(), part.size(), to.size());
    std::ranges::copy(part, to.begin());
  };
  copy(all.tokens, batch.tokens);
  copy(all.targets, batch.targets);
  copy(all.samples, batch.samples);
}

void BatchesAhead::rethrow() const {
  if (error_) std::rethrow_exception(error_);
}

}  // namespace strata::train
