#include "train/session/run_scalars.h"

#include <string_view>
#include <utility>

namespace strata::train {
namespace {

/// Collects scalars under one kind of names.
class Collector {
 public:
  Collector(LogNames names, bool scaled) : names_(names), scaled_(scaled) {}
  [[nodiscard]] bool scaled() const { return scaled_; }

  /// `deepspeed`: the name that DeepSpeed gives it, or that fits among DeepSpeed's.
  void add(std::string_view trainer, std::string_view deepspeed, double value) {
    scalars_.push_back({names_ == LogNames::trainer ? std::string(trainer)
                                                    : "Train/Samples/" + std::string(deepspeed),
                        value});
  }
  void add_bytes(std::string_view name, std::int64_t bytes) {
    if (bytes > 0)
      add("memory/" + std::string(name), std::string(name), static_cast<double>(bytes));
  }
  std::vector<Scalar> take() { return std::move(scalars_); }

 private:
  LogNames names_;
  bool scaled_;
  std::vector<Scalar> scalars_;
};

void collect(const StepDone& done, Collector& to) {
  to.add("train/loss", "train_loss", done.metrics.loss);
  to.add("train/learning_rate", "lr", done.metrics.learning_rate);
  to.add("train/grad_norm", "grad_norm", done.metrics.gradient_norm);
  if (to.scaled()) to.add("train/loss_scale", "loss_scale", done.metrics.loss_scale);
  to.add("train/train_tokens_per_second", "tokens_per_second", done.tokens_per_second);
  to.add("train/seconds_per_step", "seconds_per_step", done.seconds);
  to.add("train/foreseen_seconds", "foreseen_seconds", done.foreseen_seconds);
  if (done.mfu) to.add("train/mfu", "mfu", *done.mfu);
  to.add_bytes("device_arena_bytes", done.arena_bytes);
  to.add_bytes("host_arena_bytes", done.host_arena_bytes);
  to.add_bytes("pinned_arena_bytes", done.pinned_arena_bytes);
  to.add_bytes("pageable_arena_bytes", done.pageable_arena_bytes);
  to.add_bytes("disk_arena_bytes", done.disk_arena_bytes);
  to.add_bytes("device_used_bytes", done.device_bytes.value_or(0));
  to.add_bytes("process_peak_bytes", done.peak_rss_bytes);
}

void collect(const Evaluated& evaluated, Collector& to) {
  to.add("eval/loss", "eval_loss", evaluated.loss);
}

void collect(const Saved& saved, Collector& to) {
  to.add("checkpoint/bytes", "checkpoint_bytes", static_cast<double>(saved.bytes));
  to.add("checkpoint/seconds", "checkpoint_seconds", saved.seconds);
  to.add("checkpoint/blocked_seconds", "checkpoint_blocked_seconds", saved.blocked_seconds);
}

}  // namespace

StepScalars scalars_of(const RunEvent& event, LogNames names, bool scaled) {
  StepScalars found;
  Collector collector(names, scaled);
  const auto take = [&](const auto* of_a_kind) {
    if (of_a_kind == nullptr) return;
    collect(*of_a_kind, collector);
    found.step = of_a_kind->step;
  };
  take(std::get_if<StepDone>(&event));
  take(std::get_if<Evaluated>(&event));
  take(std::get_if<Saved>(&event));
  found.scalars = collector.take();
  return found;
}

}  // namespace strata::train
