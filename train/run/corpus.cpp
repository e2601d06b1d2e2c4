#include "train/run/corpus.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "comm/fail_together.h"
#include "core/error.h"
#include "core/round_up.h"
#include "train/data/data_kind.h"
#include "train/data/token_file.h"
#include "train/files/model_files.h"
#include "train/models/presets.h"
#include "train/run/tokenizer_choice.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

/// Separates files that are read as bytes; plain text does not contain it.
constexpr std::int32_t kEndByte = 0;

/// Opens the files of a run as ids.
class DataFiles {
 public:
  DataFiles(std::int64_t vocabulary, std::string tokenizer)
      : vocabulary_(vocabulary), tokenizer_(std::move(tokenizer)) {
    if (tokenizer_.empty()) end_ = kEndByte;
  }

  /// Collective: turns all `texts` into token files in the cache.
  void encode(const std::vector<std::string>& texts, const std::string& cache,
              comm::Communicator& communicator,
              const std::function<void(const EncodingProgress&)>& hear) {
    if (texts.empty()) return;
    std::string answer;
    const auto failure = comm::fail_together(communicator, [&] {
      if (communicator.rank() == 0)
        answer = TokenizerTool(tokenizer_, cache).encode_texts(texts, vocabulary_, hear);
    });
    if (failure) throw Error(failure->code, failure->message());
    EncodedTexts encoded = parse_encoded_texts(comm::gather_texts(communicator, answer)[0]);
    for (std::size_t i = 0; i < texts.size(); ++i)
      encoded_.emplace_back(texts[i], std::move(encoded.texts[i].files));
    notes_ = std::move(encoded.notes);
    end_token_ = std::move(encoded.end);
    if (end_token_) end_ = end_token_->id;
  }

  [[nodiscard]] bool is_text(const std::string& path) const { return !is_token_file(path); }
  /// True if a text must be encoded before it can be opened.
  [[nodiscard]] bool needs_encoding(const std::string& path) const {
    return !tokenizer_.empty() && is_text(path);
  }

  /// Opens the files as one sequence of tokens.
  [[nodiscard]] std::shared_ptr<const TokenSource> open(const std::vector<std::string>& paths) {
    std::vector<std::shared_ptr<const TokenSource>> parts;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (i > 0 && (is_text(paths[i - 1]) || is_text(paths[i]))) separate(parts);
      parts.push_back(open_one(paths[i]));
    }
    std::string name = paths[0];
    if (paths.size() > 1) name += fmt::format(" and {} more", paths.size() - 1);
    return paths.size() == 1 ? parts[0] : renamed(concatenate(std::move(parts)), name);
  }

  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> all = notes_;
    if (separated_) all.push_back(describe_end());
    return all;
  }

 private:
  [[nodiscard]] std::shared_ptr<const TokenSource> open_one(const std::string& path) const {
    if (!needs_encoding(path)) return open_token_file(path, vocabulary_);
    const auto found = std::find_if(encoded_.begin(), encoded_.end(),
                                    [&](const auto& one) { return one.first == path; });
    return renamed(open_token_files(found->second, vocabulary_), path);
  }

  void separate(std::vector<std::shared_ptr<const TokenSource>>& parts) {
    separated_ = true;
    if (end_) parts.push_back(single_token(*end_, vocabulary_));
  }

  [[nodiscard]] std::string describe_end() const {
    if (tokenizer_.empty()) return "byte 0 stands between data files";
    if (!end_token_)
      return "neither the tokenizer " + tokenizer_ +
             " nor the model names an end token: data files follow one another without one";
    return fmt::format("the end token {} ({}) stands between data files, as {} says",
                       end_token_->text, end_token_->id, end_token_->from);
  }

  std::int64_t vocabulary_;
  std::string tokenizer_;  ///< "": bytes are ids
  std::vector<std::pair<std::string, std::vector<std::string>>> encoded_;
  std::vector<std::string> notes_;
  std::optional<EndToken> end_token_;
  std::optional<std::int32_t> end_;
  bool separated_ = false;
};

void read_share(const TokenSource& source, int rank, int world, const Beat& beat) {
  constexpr std::int64_t kAtOnce = 1 << 18;
  const std::int64_t share = divide_up(source.size(), world);
  const std::int64_t end = std::min(source.size(), (rank + 1) * share);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min(kAtOnce, share)));
  for (std::int64_t first = rank * share; first < end; first += kAtOnce) {
    source.read(first,
                std::span(ids).first(static_cast<std::size_t>(std::min(kAtOnce, end - first))));
    beat();
  }
}

}  // namespace

std::string bundled_text() {
  const std::string path = configs_directory() + "/text/alice.txt";
  if (!fs::is_regular_file(path))
    throw HostError("the bundled text " + path + " is missing; name your own with --data FILE");
  return path;
}

void check_tokens(const Corpus& corpus, const TrainOptions& options, int rank, int world,
                  const Beat& beat) {
  if (std::any_of(options.data.begin(), options.data.end(), is_token_file))
    read_share(*corpus.training, rank, world, beat);
  if (corpus.held_out != nullptr && is_token_file(options.eval_data))
    read_share(*corpus.held_out, rank, world, beat);
}

void require_data(const TrainOptions& options) {
  if (options.data.empty() && trains(options) && ModelFiles::has_weights(options.model))
    throw InvalidArgument("--model " + options.model +
                          " holds trained weights: say with --data FILE what to train them on");
  for (const std::string& file : options.data) require_plain_data(file, options.data_is_text);
  if (!options.eval_data.empty()) require_plain_data(options.eval_data, options.data_is_text);
}

Corpus open_corpus(const TrainOptions& options, std::int64_t vocabulary,
                   comm::Communicator& communicator,
                   const std::function<void(const EncodingProgress&)>& hear) {
  std::vector<std::string> training = options.data;
  std::vector<std::string> held_out;
  if (!options.eval_data.empty()) held_out = {options.eval_data};
  // A run that only evaluates trains on nothing, but the engine needs some tokens.
  if (training.empty() && !trains(options)) training = held_out;
  const bool bundled = training.empty();
  if (bundled) training = {bundled_text()};

  std::vector<std::string> all = training;
  all.insert(all.end(), held_out.begin(), held_out.end());
  const bool any_text = !std::all_of(all.begin(), all.end(), is_token_file);
  const bool as_bytes = bundled && options.tokenizer.empty() &&
                        (!trains(options) || tokenizer_of(options.model).empty());
  DataFiles files(vocabulary, any_text && !as_bytes
                                  ? choose_tokenizer(options.tokenizer, options.model, vocabulary)
                                  : "");
  std::erase_if(all, [&](const std::string& path) { return !files.needs_encoding(path); });
  files.encode(all, options.token_cache, communicator, hear);

  Corpus corpus;
  corpus.training = files.open(training);
  if (!held_out.empty()) {
    corpus.held_out = files.open(held_out);
  } else if (evaluates_during(options)) {
    constexpr double kHeldOut = 0.1;
    const SplitTokens split = hold_out(corpus.training, kHeldOut);
    corpus.training = split.training;
    corpus.held_out = split.held_out;
  }
  corpus.notes = files.notes();
  if (bundled)
    corpus.notes.push_back("no --data: the text that comes with Strata, for a trial" +
                           std::string(as_bytes ? ", byte by byte" : ""));
  std::error_code unknown;
  if (trains(options) && std::ranges::any_of(options.data, [&](const std::string& file) {
        return fs::equivalent(file, options.eval_data, unknown);
      }))
    corpus.notes.push_back("--eval-data " + options.eval_data +
                           " is trained on, too: its loss says nothing of other text");
  return corpus;
}

}  // namespace strata::train
