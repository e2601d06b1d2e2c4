#include "runtime/graph/block_actions.h"

#include <algorithm>

#include "core/json_writer.h"
#include "runtime/graph/strict_json.h"

namespace strata::runtime {
namespace {

constexpr std::array kSavedActions{SavedAction::keep, SavedAction::recompute, SavedAction::host,
                                   SavedAction::disk};
constexpr std::int64_t kMostBlocks = 1 << 30;

BlockActions read_range(const JsonValue& object, const BlockActions* before) {
  expect_keys(object, {"blocks", "actions"});
  const std::vector<JsonValue> blocks = object.at("blocks").elements();
  if (blocks.size() != 2) refuse(object.at("blocks"), "a first and a last block");
  const int first = number(blocks[0], 0, kMostBlocks);
  if (before != nullptr && first <= before->last_block)
    blocks[0].fail(
        fmt::format("blocks from {} on overlap with, or come before, those of the range before, "
                    "[{}, {}]; ranges are ascending and disjoint",
                    first, before->first_block, before->last_block));
  BlockActions range{first, number(blocks[1], first, kMostBlocks), {}};
  for (const auto& [name, action] : object.at("actions").members())
    range.actions.emplace_back(name, one_of(action, kSavedActions));
  return range;
}

}  // namespace

std::string_view name_of(SavedAction action) {
  constexpr std::string_view kNames[] = {"keep", "recompute", "host", "disk"};
  return kNames[static_cast<int>(action)];
}

bool has_action(const std::vector<BlockActions>& saved, SavedAction action) {
  return std::ranges::any_of(saved, [&](const BlockActions& range) {
    return std::ranges::find(range.actions, action, &std::pair<std::string, SavedAction>::second) !=
           range.actions.end();
  });
}

std::vector<BlockActions> without_kept(const std::vector<BlockActions>& saved) {
  std::vector<BlockActions> kept;
  for (BlockActions range : saved) {
    std::erase_if(range.actions,
                  [](const auto& named) { return named.second == SavedAction::keep; });
    if (range.actions.empty()) continue;
    if (!kept.empty() && kept.back().last_block + 1 == range.first_block &&
        kept.back().actions == range.actions)
      kept.back().last_block = range.last_block;
    else
      kept.push_back(std::move(range));
  }
  return kept;
}

std::string to_json(const BlockActions& range) {
  std::string text;
  for (const auto& [name, action] : range.actions)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", quoted_json(name),
                        quoted_json(name_of(action)));
  return fmt::format("{{\"blocks\": [{}, {}], \"actions\": {{{}}}}}", range.first_block,
                     range.last_block, text);
}

std::string to_json(const std::vector<BlockActions>& saved) {
  std::string text;
  for (const BlockActions& range : saved) text += (text.empty() ? "" : ", ") + to_json(range);
  return "[" + text + "]";
}

std::vector<BlockActions> block_actions_of(const JsonValue& list) {
  std::vector<BlockActions> saved;
  for (const JsonValue& object : list.elements())
    saved.push_back(read_range(object, saved.empty() ? nullptr : &saved.back()));
  return saved;
}

std::vector<BlockActions> read_block_actions(std::string_view text, const std::string& file) {
  JsonOptions options;
  options.fault = JsonFault::configuration;
  return block_actions_of(parse_json(text, file, options));
}

}  // namespace strata::runtime
