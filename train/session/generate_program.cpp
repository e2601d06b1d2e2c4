#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "core/error.h"
#include "core/rank_context.h"
#include "core/standard_output.h"
#include "core/version.h"
#include "train/data/tokenizer_tool.h"
#include "train/run/generator.h"
#include "train/run/model_directory.h"
#include "train/run/tokenizer_choice.h"
#include "train/run/training_run.h"
#include "train/session/programs.h"

namespace strata::train {
namespace {

/// The text to go on from.
struct Prompt {
  std::string text;
  bool as_bytes = false;  ///< each is a token
};

/// Prints bytes as they come; ids of a tokenizer are decoded together at the end.
void print_sample(Generator& generator, const TokenizerTool& tokenizer, const Prompt& prompt,
                  std::int64_t count, StandardOutput& output) {
  std::vector<std::int32_t> tokens;
  if (prompt.as_bytes)
    for (const char c : prompt.text) tokens.push_back(static_cast<unsigned char>(c));
  else
    tokens = tokenizer.encode(prompt.text);
  if (tokens.empty()) throw InvalidArgument("--prompt must hold at least one token");
  for (const std::int32_t token : tokens)
    if (token >= generator.config().vocabulary)
      throw InvalidArgument(
          fmt::format("token {} of the prompt is outside the model's vocabulary of {}; name the "
                      "tokenizer that it was trained with (--tokenizer)",
                      token, generator.config().vocabulary));
  if (prompt.as_bytes) {
    constexpr std::int64_t kBytes = 256;  // other tokens of the vocabulary are no text
    generator.choose_among(kBytes);
    output.print(prompt.text);
  }
  for (std::int64_t i = 0; i < count && output.takes_text(); ++i) {
    tokens.push_back(generator.next(tokens));
    if (prompt.as_bytes) output.print(std::string(1, static_cast<char>(tokens.back())));
  }
  if (!prompt.as_bytes) output.print(tokenizer.decode(tokens));
  output.print("\n");
}

int run(int argc, char** argv, std::span<const ModelFamily> own, StandardOutput& output) {
  GeneratorOptions options;
  options.own = own;
  std::string prompt = "The ", dtype = "fp32", tokenizer, token_cache;
  std::int64_t tokens = 200, threads = 0;
  CLI::App app("Prints a sample of text from a model directory.");
  app.add_option("--model,--model_name_or_path", options.model,
                 "Hugging Face directory, or an output folder of train (its latest step)")
      ->required();
  app.add_option("--tokenizer", tokenizer,
                 "directory, tokenizer.json or bytes; default: the model's");
  app.add_option("--token-cache", token_cache, "folder; default: ~/.cache/strata/tokens");
  app.add_option("--prompt", prompt, "text to go on from")->capture_default_str();
  app.add_option("--tokens,--max_new_tokens", tokens, "tokens to add")->capture_default_str();
  app.add_option("--temperature", options.temperature, "0: always the likeliest token")
      ->capture_default_str();
  app.add_option("--sequence-length", options.sequence,
                 "longest context, tokens (0: model's, <= 256)");
  app.add_option("--dtype", dtype, "fp32, bf16 or fp16")->capture_default_str();
  app.add_option("--seed", options.seed, "of the draws")->capture_default_str();
  app.add_option("--threads", threads, "0: all cores");
  app.set_version_flag("--version", version_text("generate"), "print the version of Strata");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& version) {
    output.print(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  if (tokens < 1) throw InvalidArgument(fmt::format("--tokens {}: expected 1 or more", tokens));
  if (!(options.temperature >= 0))  // also true for NaN
    throw InvalidArgument(fmt::format(
        "--temperature {}: expected 0 (always the likeliest token) or more", options.temperature));
  options.model = resolve_model_directory(options.model);
  options.dtype = dtype_from_name(dtype);
  TrainOptions train_options;
  train_options.threads = threads;
  options.threads = threads_per_rank(train_options, {});
  Generator generator(options);
  tokenizer = choose_tokenizer(tokenizer, options.model, generator.config().vocabulary);
  print_sample(generator, TokenizerTool(tokenizer, token_cache), {prompt, tokenizer.empty()},
               tokens, output);
  return static_cast<int>(ExitCode::done);
}

}  // namespace

int generate_program(int argc, char** argv, std::span<const ModelFamily> own) {
  try {
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow (ulimit -f) is an error then
    open_closed_streams();
    StandardOutput output;
    return output.exit_code_after(run(argc, argv, own, output), [](const Error& error) {
      std::fprintf(stderr, "generate: %s\n", error.what());
    });
  } catch (const Error& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "generate: %s\n", error.what());
    return static_cast<int>(ExitCode::internal);
  }
}

}  // namespace strata::train
