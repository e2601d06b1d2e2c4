#include "core/slurm_variables.h"

#include "core/integer.h"

namespace strata {
namespace {

constexpr std::int64_t kMostNodes = 65'536;
constexpr std::int64_t kFirstSpecialStep = 0xffff'fff0;

}  // namespace

std::optional<std::vector<int>> parse_slurm_counts(std::string_view text, int most_of_node) {
  std::vector<int> counts;
  while (true) {
    const std::string_view group = text.substr(0, text.find(','));
    const std::size_t repeat = group.find("(x");
    const auto count = parse_integer(group.substr(0, repeat));
    std::optional<std::int64_t> nodes = 1;
    if (repeat != std::string_view::npos) {
      if (group.back() != ')') return std::nullopt;
      nodes = parse_integer(group.substr(repeat + 2, group.size() - repeat - 3));
    }
    if (!count || *count < 1 || *count > most_of_node || !nodes || *nodes < 1 ||
        *nodes > kMostNodes - static_cast<std::int64_t>(counts.size()))
      return std::nullopt;
    counts.insert(counts.end(), static_cast<std::size_t>(*nodes), static_cast<int>(*count));
    if (group.size() == text.size()) return counts;
    text.remove_prefix(group.size() + 1);
  }
}

bool is_step_of_srun(std::string_view step_id) {
  const auto step = parse_integer(step_id);
  return step && *step >= 0 && *step < kFirstSpecialStep;
}

}  // namespace strata
