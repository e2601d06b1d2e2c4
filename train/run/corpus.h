// Which tokens a run reads: its data files, or the bundled text when none are named.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "train/config/options.h"
#include "train/data/batch_loader.h"
#include "train/models/model_config.h"

namespace strata::train {

struct Corpus {
  std::shared_ptr<const TokenSource> training;
  std::shared_ptr<const TokenSource> held_out;  ///< nullptr: no evaluation
};

/// `model`: what --model said; a directory with tokenizer.json turns text into ids with it, others
/// read bytes. Throws DataError or ConfigError naming the file.
Corpus open_corpus(const TrainOptions& options, const ModelConfig& config,
                   const std::string& model);

/// Reads this rank's share of the tokens (all ranks together: all of them) when `options` name
/// token files, which may hold anything. Throws DataError naming file and position of an id beyond
/// the vocabulary: before training, not when its sample comes.
void check_tokens(const Corpus& corpus, const TrainOptions& options, int rank, int world);

/// Path of tokenizer.json in a model directory, "" when there is none.
std::string tokenizer_of(const std::string& model);

/// The text of this installation (configs/text), the same for every commit of the repository.
std::string bundled_text();

}  // namespace strata::train
