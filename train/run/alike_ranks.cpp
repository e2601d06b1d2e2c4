#include "train/run/alike_ranks.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/equal_facts.h"
#include "comm/gather_texts.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "core/own_files.h"
#include "machine/this_host.h"
#include "train/data/token_digest.h"
#include "train/files/model_files.h"
#include "train/models/hf_config.h"
#include "train/run/model_directory.h"

namespace strata::train {
namespace {

/// Bytes that are looked at from each stored tensor.
constexpr std::int64_t kSampleBytes = 4096;

bool has_several_hosts(const RankContext& context) { return context.local_world < context.world; }

/// True for options that hosts may give in their own way: what the files hold is compared instead.
bool is_of_host(std::string_view option) {
  constexpr std::array kOfHost{"model",       "data",    "eval_data", "tokenizer",
                               "token_cache", "threads", "choices",   "offload.nvme_paths"};
  return std::ranges::find(kOfHost, option) != kOfHost.end();
}

std::vector<comm::Fact> settings_of(const RunRequest& request) {
  std::vector<comm::Fact> facts;
  const bool apart = has_several_hosts(request.context);
  for (const ResolvedField& field : request.config.fields)
    if (!apart || !is_of_host(field.name)) facts.push_back({field.name, field.value});
  const std::string shape = to_hf_config_json(request.model, "");
  for (const auto& [name, value] : parse_json(shape, "the model", {}).members()) {
    JsonWriter text;
    text.value(value);
    facts.push_back({"the model's " + name, text.finish()});
  }
  return facts;
}

/// Hashes names, types and shapes of all tensors, and the beginning of each.
std::string sample_weights(const std::string& directory) {
  const ModelFiles files(directory);
  std::vector<Hash128> hashes;
  std::optional<File> file;
  std::string opened;
  std::vector<std::byte> bytes;
  const auto add = [&hashes](std::span<const std::byte> what) { hashes.push_back(hash_128(what)); };
  for (const StoredTensor& tensor : files.tensors()) {
    if (!file || opened != tensor.file) {
      file.emplace(File::open_for_reading(tensor.file));
      opened = tensor.file;
    }
    const std::string described = tensor.name + tensor.stored_type + tensor.shape_text();
    add(std::as_bytes(std::span(described)));
    bytes.resize(static_cast<std::size_t>(std::min(kSampleBytes, tensor.size_bytes)));
    file->read(tensor.offset_bytes, bytes);
    add(bytes);
  }
  return fmt::format("{} tensors, hash {}", files.tensors().size(),
                     hash_128(std::as_bytes(std::span(hashes))).hex());
}

std::string describe_tokens(const TokenSource& tokens, const std::string& digest) {
  return fmt::format("{} tokens, hash {}", tokens.size(), digest);
}

/// Returns where this host has it: what is said relative to a folder may be found in several.
/// Other names, as of several files, stay.
std::string path_of(const std::string& name) {
  std::error_code error;
  if (!std::filesystem::exists(name, error)) return name;
  const std::filesystem::path path = std::filesystem::absolute(name, error);
  return error ? name : path.lexically_normal().string();
}

std::vector<comm::Fact> files_of(const RunParts& run) {
  std::vector<comm::Fact> facts{
      {"the program", fmt::format("hash {:016x}", hash_of_program()), own_directory()}};
  for (const OpenedModule& module : opened_modules())
    facts.push_back(
        {"the module " + module.file, fmt::format("hash {:016x}", module.hash), module.folder});
  const TokenSource& data = *run.corpus.training;
  facts.push_back({"the data",
                   describe_tokens(data, run.data_digest.empty() ? digest_tokens(data, run.beat)
                                                                 : run.data_digest),
                   path_of(data.name())});
  if (const auto& held_out = run.corpus.held_out)
    facts.push_back({"the held-out data",
                     describe_tokens(*held_out, digest_tokens(*held_out, run.beat)),
                     path_of(held_out->name())});
  const std::string directory = resolve_model_directory(run.options.model);
  if (!run.resume_point && ModelFiles::has_weights(directory))
    facts.push_back({"the weights", sample_weights(directory), path_of(directory)});
  return facts;
}

void note_unlike_processors(RunParts& run) {
  const std::vector<std::string> names =
      comm::gather_texts(*run.communicator, machine::processor_name());
  const std::set<std::string> kinds(names.begin(), names.end());
  if (kinds.size() < 2 || !run.first) return;
  run.listeners.note(
      fmt::format("hosts have different processors ({}): the bits depend on which of them computes "
                  "what",
                  fmt::join(kinds, ", ")));
}

}  // namespace

void require_same_settings(RunParts& run) {
  comm::require_equal_facts(*run.communicator, run.request.context.host, settings_of(run.request));
}

void require_same_files(RunParts& run) {
  const RankContext& context = run.request.context;
  if (!has_several_hosts(context)) return;
  // The ranks of a host read the same files.
  std::vector<comm::Fact> facts;
  run.output->fail_together([&] {
    if (context.local_rank == 0) facts = files_of(run);
  });
  comm::require_equal_facts(*run.communicator, context.host, facts);
  note_unlike_processors(run);
}

}  // namespace strata::train
