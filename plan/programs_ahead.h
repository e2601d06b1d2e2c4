// Makes Programs before they are asked for, on other threads.
#pragma once

#include <functional>
#include <future>
#include <vector>

#include "compile/compile.h"

namespace strata::plan {

/// Answers questions whose answers depend on them alone, some of them before they are asked, on
/// threads of their own: what a search asks next is often one of few questions. Which ones are
/// answered before changes no answer, nor the work that it counts. One thread asks.
class ProgramsAhead {
 public:
  /// What is made: of equal ones, make() must be equal.
  struct Question {
    runtime::Plan plan;
    compile::Effort effort = compile::Effort::full;
    bool operator==(const Question&) const = default;
  };
  using Make = std::function<compile::Compiled()>;

  /// `threads`: that may make Programs beside the caller's; 0: none. `least_work`: answers of less
  /// work (compile::Compiled) than this are not worth a thread; the last one tells.
  explicit ProgramsAhead(int threads, std::int64_t least_work = 10'000)
      : threads_(threads), least_work_(least_work) {}

  /// Starts to make the answer, unless all threads are at work, or none is worth it. Whatever
  /// `make` borrows must outlive this. Errors are those of ask().
  void begin(const Question& question, Make make);
  /// Returns the answer: the one begun, once it is made, else that of `make`.
  [[nodiscard]] compile::Compiled ask(const Question& question, const Make& make);
  /// The number of answers that had been begun when they were asked for.
  [[nodiscard]] int taken() const { return taken_; }

 private:
  struct Begun {
    Question question;
    std::future<compile::Compiled> answer;
  };
  [[nodiscard]] int at_work() const;

  int threads_;
  std::int64_t least_work_;
  std::int64_t last_work_ = 0;
  int taken_ = 0;
  std::vector<Begun> begun_;
};

}  // namespace strata::plan
