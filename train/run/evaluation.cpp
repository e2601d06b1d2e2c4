#include "train/run/evaluation.h"

#include <fmt/core.h>
#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "comm/fail_together.h"
#include "core/error.h"
#include "core/round_up.h"
#include "train/run/run_batches.h"

namespace strata::train {
namespace {

/// Fills batches, and after an error goes on with targets that are ignored: other ranks are in the
/// middle of collectives, and hear of the error at the end.
class ForgivingFill {
 public:
  /// `hear` is told of each batch.
  ForgivingFill(const FillBatch& fill, std::function<void(std::int64_t)> hear)
      : fill_(fill), hear_(std::move(hear)) {}

  void operator()(std::int64_t number, int micro_step, const MicroBatch& batch) {
    hear_(number);
    if (!error_) try {
        return fill_(number, micro_step, batch);
      } catch (const Error&) {
        error_ = std::current_exception();
      }
    std::ranges::fill(batch.tokens, 0);
    std::ranges::fill(batch.targets, -1);
    std::ranges::fill(batch.samples, 0);
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const FillBatch& fill_;
  std::function<void(std::int64_t)> hear_;
  std::exception_ptr error_;
};

}  // namespace

void evaluate(RunParts& run) {
  if (run.corpus.held_out == nullptr) return;
  run.listeners.tell(Entered{Phase::evaluate});
  const BatchLoader batches = held_out_loader(run);
  const std::int64_t per_batch =
      run.options.micro_batch * run.engine->programs().settings.plan.data_ranks();
  const std::int64_t most = run.options.eval_samples;
  const std::int64_t all = batches.order().windows();
  const std::int64_t windows = most > 0 ? std::min(all, most) : all;
  const FillBatch fill = make_filler(run, batches, per_batch);
  const std::int64_t count = divide_up(windows, per_batch);
  const std::int64_t step = run.position.steps_done, steps = run.options.steps;
  ForgivingFill forgiving(fill, [&](std::int64_t batch) {
    run.listeners.tell(Evaluating{step, steps, batch, count});
  });
  const double loss = run.engine->evaluate(count, std::ref(forgiving));
  if (const auto failure = comm::fail_together(*run.communicator, [&] { forgiving.rethrow(); })) {
    if (run.first)
      run.late_failures.add(failure->code, fmt::format("no held-out loss of step {}: {}", step,
                                                       failure->message_with_rank()));
    return;
  }
  run.tell(Evaluated{step, steps, loss});
}

}  // namespace strata::train
