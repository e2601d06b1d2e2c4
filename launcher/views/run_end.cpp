#include "launcher/views/run_end.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace strata::launcher {
namespace {

constexpr const char* kRequest = "wait";
/// Between requests of one who was disconnected to make room for others.
constexpr std::chrono::milliseconds kAskAgain{200};

}  // namespace

RunEnd::RunEnd(const RunsOfUser& runs, std::string run_id)
    : runs_(runs), run_id_(std::move(run_id)), connection_(runs_.send(run_id_, kRequest)) {}

bool RunEnd::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (connection_) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const auto text = read_answer(*connection_, std::max(left, std::chrono::milliseconds(0)));
    if (!text) return false;
    connection_.reset();
    if (!text->empty()) {
      const JsonValue answer = parse_json(*text, "answer of run " + run_id_, {});
      if (const auto code = answer.find("exit_code"))
        exit_code_ = static_cast<int>(code->as_integer());
      return true;
    }
    std::this_thread::sleep_for(kAskAgain);
    connection_ = runs_.send(run_id_, kRequest);
  }
  return true;
}

std::string RunEnd::describe() const {
  return "run " + run_id_ + " has ended" +
         (exit_code_ ? " with code " + std::to_string(*exit_code_) : "");
}

}  // namespace strata::launcher
