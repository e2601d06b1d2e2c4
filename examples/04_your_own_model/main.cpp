// Gives the programs train and generate a model family of your own: they bring ranks, stages,
// checkpoints and Hugging Face files, the row below is yours.
//
//     build/bin/example_own_model train|generate [flags of that program]
#include <cstdio>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/json_writer.h"
#include "train/models/hf_reader.h"
#include "train/models/transformer.h"
#include "train/session/programs.h"

using namespace strata;

namespace {

void read(const train::HfReader& reader, train::ModelConfig& config) {
  config.vocabulary = reader.size("vocab_size", train::kLargestVocabulary);
  config.layers = reader.size("num_hidden_layers", train::kLargestCount);
  config.hidden = reader.size("hidden_size", train::kLargestWidth);
  config.intermediate = reader.size("intermediate_size", train::kLargestWidth, 4 * config.hidden);
  config.context = reader.size("max_position_embeddings", train::kLargestContext, 128);
  config.tied_embeddings = true;
}

void write(const train::ModelConfig& config, JsonWriter& out) {
  out.member("vocab_size", config.vocabulary)
      .member("num_hidden_layers", config.layers)
      .member("hidden_size", config.hidden)
      .member("intermediate_size", config.intermediate)
      .member("max_position_embeddings", config.context);
}

/// Builds layers without attention: each token is predicted from the one before it.
train::Body build(runtime::GraphBuilder& b, const train::ModelConfig& config, bool /*training*/) {
  const runtime::Initializer normal{config.initializer_range, 0}, one{0, 1};
  b.begin_block("embedding");
  const auto table = b.padded_matrix("table.weight", config.vocabulary, config.padded_vocabulary(),
                                     config.hidden, normal);
  runtime::ValueId x = b.embedding(table, runtime::kNoValue);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string layer = "layer." + std::to_string(i);
    b.begin_block(layer);
    const runtime::Affine norm{b.vector({{layer + ".norm.weight", config.hidden}}, one)};
    const auto up = b.matrix({{layer + ".up.weight", config.intermediate}}, config.hidden, normal);
    const auto down =
        b.matrix({{layer + ".down.weight", config.hidden}}, config.intermediate, normal);
    const auto wide = b.gelu(b.linear(b.norm(x, norm, config.norm_epsilon, true), {up}), true);
    x = b.residual_add(x, b.linear(wide, {down}), 0);
  }
  b.begin_block("head");
  return {.hidden = x, .head = table};
}

constexpr train::ModelFamily kFamilies[] = {{.model_type = "byte_pairs",
                                             .architecture = "BytePairsForCausalLM",
                                             .build = build,
                                             .read = read,
                                             .write = write}};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view program = argc > 1 ? argv[1] : "";
  if (program == "train") return train::train_program(argc - 1, argv + 1, kFamilies);
  if (program == "generate") return train::generate_program(argc - 1, argv + 1, kFamilies);
  std::fprintf(stderr, "usage: example_own_model train|generate FLAGS\n");
  return static_cast<int>(ExitCode::usage);
}
