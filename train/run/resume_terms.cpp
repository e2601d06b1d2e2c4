#include "train/run/resume_terms.h"

#include <fmt/core.h>
#include <bit>
#include <utility>

#include "core/error.h"
#include "train/config/option_fields.h"
#include "train/config/settle_steps.h"
#include "train/models/model_family.h"

namespace strata::train {
namespace {

/// Compares settings one after another, and throws for the first that differs.
class TermsComparison {
 public:
  explicit TermsComparison(const std::string& where) : where_(where) {}

  void require(bool same, const std::string& what, const std::string& then, const std::string& now,
               const std::string& advice) const {
    if (!same)
      throw ConfigError("cannot resume from " + where_ + ": it was saved with " + what + " " +
                        then + ", this run has " + now + "; " + advice);
  }
  void require(const std::string& what, std::int64_t then, std::int64_t now,
               const std::string& advice) const {
    require(then == now, what, std::to_string(then), std::to_string(now), advice);
  }
  void refuse_unknown(const TrainerState& saved) const {
    if (saved.data_digest == kUnknownData)
      throw ConfigError(
          fmt::format("cannot resume from {}: it was imported, and nothing in it says which data "
                      "it was trained on; --resume-with-changed-data goes on with the data, seed "
                      "and sequence length of this run after {} samples",
                      where_, saved.consumed_samples));
  }

 private:
  const std::string& where_;
};

std::string_view family(std::string_view optimizer) {
  return optimizer == "adam" ? "adamw" : optimizer;
}

/// Returns a number of the batch with the flag or the key that says it: "--global-batch 8", or
/// "train_batch_size 8 (ds.json:2)".
std::string said_text(const SaidBatch::Number& said, std::int64_t value) {
  const std::size_t colon = said.where.rfind(": ");
  if (!said.in_file || colon == std::string::npos) return fmt::format("{} {}", said.where, value);
  return fmt::format("{} {} ({})", said.where.substr(colon + 2), value,
                     said.where.substr(0, colon));
}

/// Says how the batch of the run can become one that divides the saved global batch.
std::string batch_advice(std::int64_t saved, const ResumingRun& run, const TrainOptions& options,
                         const std::string& kind) {
  const std::int64_t ranks = leaves(options, run.world);
  if (saved % ranks != 0) return "go on with a number of" + kind + " that does";
  const SaidBatch& said = run.said;
  if (!said.global.is_said())
    return fmt::format("set --micro-batch to a divisor of {}", saved / ranks);
  const bool default_divides = saved % (ranks * TrainOptions{}.micro_batch) == 0;
  const bool is_alone = !said.micro && !said.accumulation.is_said() && !said.global.in_file;
  if (is_alone && default_divides)
    return fmt::format("leave out {}, or give {}", said_text(said.global, options.global_batch),
                       saved);
  std::string text = "give " + said_text(said.global, saved);
  if (said.micro) text += fmt::format(" with a --micro-batch that divides {}", saved / ranks);
  if (said.accumulation.is_said() && (said.micro || saved % (ranks * options.accumulation) != 0))
    text += ", and leave out " + said_text(said.accumulation, options.accumulation);
  return text;
}

/// Says that the run keeps the saved global batch, and which numbers were said in vain.
BatchNote note_on_batch(std::int64_t asked, std::int64_t asked_accumulation, const SaidBatch& said,
                        const TrainOptions& now) {
  BatchNote note{fmt::format("global batch {} as saved, not {}: accumulation {}", now.global_batch,
                             asked, now.accumulation)};
  const auto check = [&](const SaidBatch::Number& number, std::int64_t was, std::int64_t is) {
    if (!number.is_said() || was == is) return;
    note.is_warning = true;
    note.text += fmt::format("; {} is not obeyed: {} {}", said_text(number, was),
                             number.in_file ? "set it to" : "leave it out, or give", is);
  };
  check(said.global, asked, now.global_batch);
  check(said.accumulation, asked_accumulation, now.accumulation);
  return note;
}

void require_same_samples(const TermsComparison& comparison, const TrainerState& saved,
                          const ResumingRun& run, const TrainOptions& options) {
  comparison.refuse_unknown(saved);
  comparison.require("seed", saved.seed, options.seed,
                     fmt::format("set --seed {}, or --resume-with-changed-data", saved.seed));
  const std::string advice = "; or accept that samples repeat: --resume-with-changed-data";
  const auto data = [](const std::string& digest, std::int64_t tokens) {
    return fmt::format("{} ({} tokens)", digest, tokens);
  };
  comparison.require(
      saved.data_digest == run.data_digest && saved.data_tokens == run.data_tokens, "data",
      data(saved.data_digest, saved.data_tokens), data(run.data_digest, run.data_tokens),
      "give the same --data, and the --model and --tokenizer whose tokens it becomes" + advice);
  comparison.require("sequence length", saved.sequence_length, options.sequence_length,
                     fmt::format("set --sequence-length {}{}", saved.sequence_length, advice));
  comparison.require(saved.shuffle == options.shuffle, "shuffle", saved.shuffle ? "true" : "false",
                     options.shuffle ? "true" : "false", "set it as it was" + advice);
}

}  // namespace

std::string option_text(const TrainOptions& options, std::string_view name) {
  TrainOptions copy = options;
  const std::vector<OptionField> fields = option_fields(copy);
  return text_of(*find_field(fields, name));
}

std::string note_on_leaves(std::int64_t saved, std::int64_t micro_batch, int world,
                           const TrainOptions& options) {
  const std::int64_t now = leaves(options, world);
  if (saved <= 0 || saved == now) return "";
  std::string note = fmt::format(
      "the checkpoint is of a run with the sums of {} {}, this one makes those of {}: the state "
      "is the same, losses of later steps agree closely, not to the bit",
      saved, saved == 1 ? "rank" : "ranks", now);
  if (std::has_single_bit(static_cast<std::uint64_t>(saved)) && saved % world == 0)
    note += fmt::format("; --virtual-ranks {} {}keeps the bits", saved,
                        micro_batch <= 0 || micro_batch == options.micro_batch
                            ? ""
                            : fmt::format("with --micro-batch {} ", micro_batch));
  return note;
}

std::string note_on_micro_batch(std::int64_t saved, const TrainOptions& options) {
  if (saved <= 0 || saved == options.micro_batch) return "";
  return fmt::format(
      "the checkpoint is of a run with micro-batch {}, this one has {}. {}; --micro-batch {} keeps "
      "the bits",
      saved, options.micro_batch, kOtherMicroBatch, saved);
}

void require_same_model(const ModelConfig& saved, const std::string& where,
                        const ModelConfig& now) {
  const TermsComparison comparison(where);
  const std::string advice =
      "set --model " + where + ", or leave --resume out to begin with another model";
  comparison.require(saved.family->model_type == now.family->model_type, "model type",
                     std::string(saved.family->model_type), std::string(now.family->model_type),
                     advice);
  const auto require = [&](const char* name, std::int64_t ModelConfig::*field) {
    comparison.require(name, saved.*field, now.*field, advice);
  };
  require("layers", &ModelConfig::layers);
  require("hidden size", &ModelConfig::hidden);
  require("vocabulary", &ModelConfig::vocabulary);
  require("heads", &ModelConfig::heads);
  require("key-value heads", &ModelConfig::kv_heads);
  require("head size", &ModelConfig::head_size);
  require("intermediate size", &ModelConfig::intermediate);
  comparison.require("tied embeddings", saved.tied_embeddings, now.tied_embeddings, advice);
}

BatchNote take_terms(const TrainerState& saved, const std::string& where, const ResumingRun& run,
                     TrainOptions& options) {
  const TermsComparison comparison(where);
  const std::string optimizer = option_text(options, "optimizer.type");
  comparison.require(
      family(saved.optimizer) == family(optimizer), "optimizer", saved.optimizer, optimizer,
      "set --optimizer " + saved.optimizer + ", or start anew from its weights: --model " + where);
  if (!options.checkpoint.changed_data) require_same_samples(comparison, saved, run, options);
  BatchNote note;
  if (saved.global_batch != options.global_batch) {
    const std::int64_t ranks = leaves(options, run.world);
    const std::string kind = options.virtual_ranks > 0 ? " virtual ranks" : " ranks";
    const std::int64_t per_micro_step = options.micro_batch * ranks;
    comparison.require(saved.global_batch % per_micro_step == 0, "a global batch of",
                       std::to_string(saved.global_batch), std::to_string(options.global_batch),
                       fmt::format("{}{} x micro-batch {} {} not divide it: {}", ranks,
                                   ranks == 1 ? kind.substr(0, kind.size() - 1) : kind,
                                   options.micro_batch, ranks == 1 ? "does" : "do",
                                   batch_advice(saved.global_batch, run, options, kind)));
    const std::int64_t asked = std::exchange(options.global_batch, saved.global_batch);
    const std::int64_t accumulation =
        std::exchange(options.accumulation, saved.global_batch / per_micro_step);
    note = note_on_batch(asked, accumulation, run.said, options);
  }
  settle_steps(options, run.samples);
  const bool to_do = saved.step < options.steps || (run.may_be_done && saved.step == options.steps);
  comparison.require(to_do, "step", std::to_string(saved.step),
                     fmt::format("{} to do", options.steps), "set --steps to more");
  return note;
}

}  // namespace strata::train
