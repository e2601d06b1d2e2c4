#include "launcher/views/run_end.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include "launcher/views/told_members.h"

namespace strata::launcher {
namespace {

constexpr const char* kRequest = "wait";
/// Between requests of one who was disconnected to make room for others.
constexpr std::chrono::milliseconds kAskAgain{200};

}  // namespace

void RunEnd::tell(const std::string& answer) {
  told_ = parse_json(answer, "answer of run " + run_id_, {});
}

EndOfLocalRun::EndOfLocalRun(const RunsOfUser& runs, const std::string& run_id)
    : RunEnd(run_id), runs_(runs), connection_(runs_.send(run_id, kRequest)) {}

bool EndOfLocalRun::wait(std::chrono::milliseconds limit) {
  using std::chrono::milliseconds;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit;
  while (!is_told()) {
    // One who does not listen just now may go on all the same.
    if (!connection_) connection_ = runs_.send(run_id(), kRequest);
    if (!connection_ && !runs_.unheard(run_id())) break;
    const auto left =
        std::max(std::chrono::ceil<milliseconds>(end - Clock::now()), milliseconds(0));
    if (connection_) {
      const auto text = read_answer(*connection_, left);
      if (!text) return false;
      connection_.reset();
      if (!text->empty()) tell(*text);
    } else if (left == milliseconds(0)) {
      return false;
    }
    if (!is_told()) std::this_thread::sleep_for(std::min(kAskAgain, left));
  }
  if (!is_told())
    if (auto kept = runs_.find_ended(run_id())) take(std::move(*kept));
  return true;
}

std::optional<int> RunEnd::exit_code() const {
  const auto code = told_ ? told_->find("exit_code") : std::nullopt;
  return code ? std::optional(static_cast<int>(code->as_integer())) : std::nullopt;
}

std::string RunEnd::describe() const {
  return told_ ? describe_end(*told_) : "run " + run_id_ + " has ended";
}

std::string describe_end(const JsonValue& end) {
  const auto word = [&](std::string_view name) { return told_text(end, name); };
  const bool was_killed = word("state") == "killed";
  const auto process = end.find("process");
  std::string text = "run " + word("run") + " has ended";
  if (was_killed && process && process->is_number())
    text += fmt::format(
        " without a report: its mlaunch (process {} on {}) was killed, or the host went down; it "
        "was seen last at {}",
        process->as_integer(), word("host"), word("seen_at"));
  const auto code = end.find("exit_code");
  if (code) text += " with code " + std::to_string(code->as_integer());
  const bool was_asked = told_true(end, "killed_on_request");
  if (const auto killed = end.find("killed");
      killed && killed->is(JsonKind::array) && killed->size() > 0)
    text += fmt::format(
        "\n{} of its ranks {}: what they did since the last checkpoint is lost", killed->size(),
        was_asked ? "were killed on request" : "did not end in time and had to be killed");
  if (const auto step = end.find("committed_step"); step && step->is_number())
    text +=
        fmt::format("\nstep {} is saved in {}{}", step->as_integer(), word("checkpoint"),
                    was_killed ? "; the same command with --resume auto goes on from there" : "");
  if (const std::string folder = word("log_folder"); !folder.empty())
    text += "\nits logs and reports are in " + folder;
  return text;
}

}  // namespace strata::launcher
