#include "train/run/run_batches.h"

namespace strata::train {
namespace {

BatchLoader make_loader(const RunParts& run, const std::shared_ptr<const TokenSource>& source,
                        bool shuffle, BatchEnd end) {
  SampleOrderOptions order;
  order.sequence = run.options.sequence_length;
  order.shuffle = shuffle;
  order.seed = static_cast<std::uint64_t>(run.options.seed);
  return {source, SampleOrder(source->size(), source->name(), order), end};
}

}  // namespace

BatchLoader training_loader(const RunParts& run) {
  return make_loader(run, run.corpus.training, run.options.shuffle, BatchEnd::repeat);
}

BatchLoader held_out_loader(const RunParts& run) {
  return make_loader(run, run.corpus.held_out, false, BatchEnd::stop);
}

FillBatch make_filler(const RunParts& run, const BatchLoader& batches,
                      std::int64_t samples_per_step, std::int64_t first_sample) {
  const step::StepSettings& settings = run.engine->programs().settings;
  return [&settings, &batches, samples_per_step, first_sample](std::int64_t step, int micro_step,
                                                               const MicroBatch& batch) {
    batches.fill({first_sample + step * samples_per_step, micro_step, settings.data_rank(),
                  settings.plan.data_ranks()},
                 batch.tokens, batch.targets, batch.samples);
  };
}

}  // namespace strata::train
