// Fills the input buffers of one micro-step of one rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "train/data/sample_order.h"
#include "train/data/token_source.h"

namespace strata::train {

/// Says which rows of a step to fill: micro-step `micro_step` of a rank of the data axis.
struct BatchPlace {
  std::int64_t consumed_samples = 0;  ///< samples of all earlier steps: the run's only cursor
  std::int64_t micro_step = 0;
  std::int64_t data_rank = 0;
  std::int64_t data_ranks = 1;
};

enum class BatchEnd : std::uint8_t {
  repeat,  ///< training: epoch after epoch
  stop,    ///< evaluation: rows after the last window get 0 and ignored targets
};

class BatchLoader {
 public:
  /// `order` must be made for the size of `source`.
  BatchLoader(std::shared_ptr<const TokenSource> source, SampleOrder order,
              BatchEnd end = BatchEnd::repeat);

  /// Row j gets sample consumed_samples + (micro_step * data_ranks + data_rank) * B + j, with B =
  /// samples.size() (design 2.19). Writes ids int32 [B * T], targets int32 [B * T] (the next
  /// tokens; -1: ignored) and the global sample numbers int64 [B]; T is the order's sequence.
  /// Throws as TokenSource::read does.
  void fill(const BatchPlace& place, std::span<std::int32_t> ids, std::span<std::int32_t> targets,
            std::span<std::int64_t> samples) const;

  [[nodiscard]] const SampleOrder& order() const { return order_; }
  [[nodiscard]] const TokenSource& source() const { return *source_; }

 private:
  std::shared_ptr<const TokenSource> source_;
  SampleOrder order_;
  BatchEnd end_;
};

}  // namespace strata::train
