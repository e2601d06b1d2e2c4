#include "train/run/corpus.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "train/data/token_file.h"
#include "train/data/tokenizer_tool.h"
#include "train/models/presets.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const TokenSource> open_files(const std::vector<std::string>& files,
                                              const ModelConfig& config, const std::string& model) {
  const std::string tokenizer = tokenizer_of(model);
  std::vector<std::string> token_files;
  for (const std::string& file : files) {
    if (tokenizer.empty() || is_token_file(file)) {
      token_files.push_back(file);
      continue;
    }
    for (std::string& part : TokenizerTool(tokenizer).encode_file(file, ""))
      token_files.push_back(std::move(part));
  }
  return open_token_files(token_files, config.vocabulary);
}

void read_share(const TokenSource& source, int rank, int world) {
  constexpr std::int64_t kAtOnce = 1 << 18;
  const std::int64_t share = (source.size() + world - 1) / world;
  const std::int64_t end = std::min(source.size(), (rank + 1) * share);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(std::min(kAtOnce, share)));
  for (std::int64_t first = rank * share; first < end; first += kAtOnce)
    source.read(first,
                std::span(ids).first(static_cast<std::size_t>(std::min(kAtOnce, end - first))));
}

}  // namespace

std::string tokenizer_of(const std::string& model) {
  const fs::path path = fs::path(model) / "tokenizer.json";
  return fs::is_regular_file(path) ? path.string() : "";
}

std::string bundled_text() {
  const std::string path = configs_directory() + "/text/alice.txt";
  if (!fs::is_regular_file(path))
    throw HostError("the bundled text " + path + " is missing; name your own with --data FILE");
  return path;
}

void check_tokens(const Corpus& corpus, const TrainOptions& options, int rank, int world) {
  if (std::any_of(options.data.begin(), options.data.end(), is_token_file))
    read_share(*corpus.training, rank, world);
  if (corpus.held_out != nullptr && is_token_file(options.eval_data))
    read_share(*corpus.held_out, rank, world);
}

Corpus open_corpus(const TrainOptions& options, const ModelConfig& config,
                   const std::string& model) {
  Corpus corpus;
  corpus.training =
      open_files(options.data.empty() ? std::vector{bundled_text()} : options.data, config, model);
  if (!options.eval_data.empty()) {
    corpus.held_out = open_files({options.eval_data}, config, model);
  } else if (options.eval_every_steps > 0) {
    constexpr double kHeldOut = 0.1;
    const SplitTokens split = hold_out(corpus.training, kHeldOut);
    corpus.training = split.training;
    corpus.held_out = split.held_out;
  }
  return corpus;
}

}  // namespace strata::train
