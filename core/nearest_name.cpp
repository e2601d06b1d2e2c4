#include "core/nearest_name.h"

#include <algorithm>
#include <tuple>

#include "core/ascii.h"

namespace strata {
namespace {

bool separates(char c) { return c == '-' || c == '_' || c == ' '; }

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : name) {
    if (!separates(c) && !inside) words.emplace_back();
    inside = !separates(c);
    if (inside) words.back() += ascii_lower_case(c);
  }
  return words;
}

std::string run_together(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word;
  return text;
}

/// Number of edits that count as a misspelling between words of `a` and `b` letters.
int allowance(std::size_t a, std::size_t b) {
  return std::max(1, static_cast<int>(std::max(a, b)) / 3);
}

/// Edit distance: insertions, deletions, replacements, swaps of neighbours from a to b.
int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<int> before(columns), last(columns), now(columns);
  for (std::size_t j = 0; j < columns; ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = static_cast<int>(i);
    for (std::size_t j = 1; j < columns; ++j) {
      const bool same = a[i - 1] == b[j - 1];
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

/// True if the words of `part` occur in `whole` in the same order.
bool are_among(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
  auto next = part.begin();
  for (const std::string& word : whole)
    if (next != part.end() && *next == word) ++next;
  return next == part.end();
}

/// Compares word by word: "lora-rank" is not meant to be "local-rank". If the numbers of words
/// differ, a word is missing or too many, or a separator is.
bool is_near(const std::vector<std::string>& a, const std::vector<std::string>& b, int distance) {
  if (a.size() != b.size()) return distance <= 1 || are_among(a, b) || are_among(b, a);
  for (std::size_t i = 0; i < a.size(); ++i)
    if (edit_distance(a[i], b[i]) > allowance(a[i].size(), b[i].size())) return false;
  return true;
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string_view>& candidates) {
  // A key of a hostile file may be a megabyte long; nobody means a known name by it.
  constexpr std::size_t kLongestName = 100;
  if (name.size() > kLongestName) return "";
  const std::vector<std::string> wanted_words = words_of(name);
  const std::string wanted = run_together(wanted_words);
  if (wanted.empty()) return "";
  std::string_view best;
  int best_distance = 1000;
  std::size_t best_difference = 0;
  for (const std::string_view candidate : candidates) {
    const std::vector<std::string> other_words = words_of(candidate);
    const std::string other = run_together(other_words);
    const bool longer = wanted.size() >= 4 && other.starts_with(wanted);
    const bool shorter = other.size() >= 4 && wanted.starts_with(other);
    const int edits = edit_distance(wanted, other);
    // One name that begins with the other is at most 2 away from it.
    const int distance = longer || shorter ? std::min(2, edits) : edits;
    const bool near = longer || shorter ||
                      (edits <= allowance(wanted.size(), other.size()) &&
                       is_near(wanted_words, other_words, edits));
    const std::size_t difference =
        std::max(wanted.size(), other.size()) - std::min(wanted.size(), other.size());
    if (near && std::tie(distance, difference) < std::tie(best_distance, best_difference)) {
      best = candidate;
      best_distance = distance;
      best_difference = difference;
    }
  }
  return std::string(best);
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates) {
  const std::string near = nearest_name(name, candidates);
  return near.empty() ? "" : ", did you mean '" + near + "'?";
}

}  // namespace strata
