#include "train/run/run_data.h"

#include "train/run/model_directory.h"
#include "train/run/tokenizer_choice.h"

namespace strata::train {

void open_data(RunParts& run) {
  const TrainOptions& options = run.options;
  const RankContext& context = run.request.context;
  run.corpus = open_corpus(
      options, run.request.model.vocabulary, *run.communicator,
      [&](const EncodingProgress& progress) { run.listeners.tell(Encoding{progress}); });
  run.listeners.tell(Encoding{});
  check_tokens(run.corpus, options, context.rank, context.world, run.beat);
  run.print_notes(run.corpus.notes);
  if (options.output.empty()) return;
  run.model_config = config_text(options.model);
  if (!run.first) return;
  run.beside_weights = read_beside_weights(
      options.model, options.tokenizer == kBytesAsTokens ? "" : options.tokenizer);
  run.print_notes(run.beside_weights.notes);
}

}  // namespace strata::train
