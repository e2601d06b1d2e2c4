#include "comm/equal_facts.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <vector>

#include "comm/gather_texts.h"
#include "comm/shown_collective.h"
#include "core/error.h"
#include "core/hash.h"

namespace strata::comm {
namespace {

/// The hash that a rank without facts sends.
constexpr std::int64_t kNoFacts = 0;
constexpr std::size_t kLongestValue = 200;

/// Hashes what has to be equal.
std::int64_t hash_of(std::span<const Fact> facts) {
  if (facts.empty()) return kNoFacts;
  std::string text;
  for (const Fact& fact : facts) text += fact.name + '\0' + fact.value + '\0';
  return static_cast<std::int64_t>(hash_64(std::as_bytes(std::span(text))) | 1u);
}

std::string packed(std::string_view host, std::span<const Fact> facts) {
  std::string text(host);
  text += '\0';
  for (const Fact& fact : facts) text += fact.name + '\0' + fact.value + '\0' + fact.path + '\0';
  return text;
}

struct RankFacts {
  std::string host;
  std::vector<Fact> facts;
};

RankFacts unpacked(std::string_view text) {
  const auto take = [&text] {
    const std::size_t end = std::min(text.find('\0'), text.size());
    std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  RankFacts rank;
  rank.host = take();
  while (!text.empty()) {
    std::string name = take(), value = take();
    rank.facts.push_back({std::move(name), std::move(value), take()});
  }
  return rank;
}

std::string shown(const Fact& fact) {
  const std::string& value = fact.value;
  if (value.empty()) return "nothing";
  return (value.size() <= kLongestValue ? value : value.substr(0, kLongestValue) + "...") +
         (fact.path.empty() ? "" : " of " + fact.path);
}

/// A rank and what it says.
struct Side {
  int rank;
  RankFacts says;
};

/// A line for each fact that the two sides do not both have with the same value.
std::string differences(const Side& first, const Side& other) {
  std::map<std::string, Fact> others;
  for (const Fact& fact : other.says.facts) others[fact.name] = fact;
  std::string lines;
  const auto add = [&](const std::string& name, const Fact& one, const Fact& another) {
    lines += fmt::format("\n{}: {} on rank {} ({}), {} on rank {} ({})", name, shown(one),
                         first.rank, first.says.host, shown(another), other.rank, other.says.host);
  };
  for (const Fact& fact : first.says.facts) {
    const auto found = others.find(fact.name);
    const Fact theirs = found == others.end() ? Fact{} : found->second;
    if (theirs.value != fact.value) add(fact.name, fact, theirs);
    if (found != others.end()) others.erase(found);
  }
  for (const auto& [name, fact] : others) add(name, {}, fact);
  return lines;
}

}  // namespace

void require_equal_facts(Communicator& communicator, std::string_view host,
                         std::span<const Fact> facts) {
  const ShownCollective shown_as(communicator, "compare settings and files of ranks");
  const std::vector<std::int64_t> all = gather_numbers(communicator, hash_of(facts));
  const auto has_facts = [](std::int64_t hash) { return hash != kNoFacts; };
  const auto first = std::ranges::find_if(all, has_facts);
  const auto other = std::find_if(
      first, all.end(), [&](std::int64_t hash) { return has_facts(hash) && hash != *first; });
  if (other == all.end()) return;
  const auto rank_of = [&](auto at) { return static_cast<int>(at - all.begin()); };
  const int rank = communicator.rank();
  const std::vector<std::string> texts = gather_texts(
      communicator, rank == rank_of(first) || rank == rank_of(other) ? packed(host, facts) : "");
  const auto side = [&](int of) { return Side{of, unpacked(texts[static_cast<std::size_t>(of)])}; };
  throw ConfigError(
      "the ranks do not mean the same run; give all of them the same settings, environment and "
      "files:" +
      differences(side(rank_of(first)), side(rank_of(other))));
}

}  // namespace strata::comm
