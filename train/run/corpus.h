// Opens the tokens that a run reads: its data files, or the bundled text if none are named.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/beat.h"
#include "train/config/options.h"
#include "train/data/token_source.h"
#include "train/data/tokenizer_tool.h"

namespace strata::train {

struct Corpus {
  std::shared_ptr<const TokenSource> training;
  std::shared_ptr<const TokenSource> held_out;  ///< nullptr: no evaluation
  std::vector<std::string> notes;               ///< notes that rank 0 prints
};

/// Called before ranks meet. Throws DataError naming a data file that is missing, empty or no text
/// (data_kind.h), and InvalidArgument if stored weights are to be trained without --data.
void require_data(const TrainOptions& options);

/// Collective: one rank turns text into tokens for all, unless bytes are tokens, and tells `hear`
/// its progress. The end token of the tokenizer, or of the model, separates two files unless both
/// are token files; byte 0 separates files that are read as bytes. Throws InvalidArgument if
/// nothing says how text becomes ids (tokenizer_choice.h), and DataError naming the file.
Corpus open_corpus(const TrainOptions& options, std::int64_t vocabulary,
                   comm::Communicator& communicator,
                   const std::function<void(const EncodingProgress&)>& hear);

/// Reads this rank's share of the tokens (all ranks together read all of them) if `options` name
/// token files, which may hold anything. Throws DataError naming file and position of an id beyond
/// the vocabulary, before training rather than when its sample comes. Beats after each piece.
void check_tokens(const Corpus& corpus, const TrainOptions& options, int rank, int world,
                  const Beat& beat = {});

/// Path of the text of this installation (configs/text), which no commit changes.
std::string bundled_text();

}  // namespace strata::train
