#include "plan/programs_ahead.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <utility>

namespace strata::plan {
namespace {

/// Answers that are kept for a question that may never come.
constexpr std::size_t kMostKept = 4;

bool is_made(const std::future<compile::Compiled>& answer) {
  return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

int ProgramsAhead::at_work() const {
  return static_cast<int>(
      std::ranges::count_if(begun_, [](const Begun& one) { return !is_made(one.answer); }));
}

void ProgramsAhead::begin(const Question& question, Make make) {
  if (last_work_ < least_work_ || at_work() >= threads_) return;
  if (std::ranges::find(begun_, question, &Begun::question) != begun_.end()) return;
  if (begun_.size() >= kMostKept)
    if (const auto oldest =
            std::ranges::find_if(begun_, [](const Begun& one) { return is_made(one.answer); });
        oldest != begun_.end())
      begun_.erase(oldest);
  try {
    begun_.push_back({question, std::async(std::launch::async, std::move(make))});
  } catch (const std::system_error&) {  // there are no more threads: it is made when asked for
  }
}

compile::Compiled ProgramsAhead::ask(const Question& question, const Make& make) {
  const auto at = std::ranges::find(begun_, question, &Begun::question);
  compile::Compiled answer;
  if (at == begun_.end()) {
    answer = make();
  } else {
    std::future<compile::Compiled> begun = std::move(at->answer);
    begun_.erase(at);
    ++taken_;
    answer = begun.get();
  }
  last_work_ = answer.work;
  return answer;
}

}  // namespace strata::plan
