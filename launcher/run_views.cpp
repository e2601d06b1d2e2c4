#include "launcher/run_views.h"

#include <utility>

namespace strata::launcher {
namespace {

/// Of lines in one answer.
constexpr std::size_t kAnswerBytes = std::size_t{256} << 10;
/// The last answer is sent without waiting for its reader.
constexpr std::size_t kLastAnswerBytes = std::size_t{64} << 10;

}  // namespace

RunViews::RunViews(const Run& run, const RecentOutput& output, ControlWire* wire, Answers answers)
    : run_(run),
      output_(output),
      wire_(wire),
      answers_{std::move(answers.status), std::move(answers.stop),
               [this](const AskLogs& asked, bool ended) { return logs(asked, ended); }} {}

void RunViews::open_socket() {
  const auto open_folder = [] { return ControlFolder::make(ControlFolder::places().front()); };
  socket_.emplace(open_folder, run_.run_id, answers_);
}

void RunViews::add_polls(std::vector<pollfd>& entries) const {
  if (socket_) socket_->add_polls(entries);
}

std::optional<TimePoint> RunViews::next_deadline() const {
  return socket_ ? socket_->next_deadline() : std::nullopt;
}

void RunViews::work(TimePoint now) {
  if (socket_) socket_->work(now);
  std::erase_if(questions_, [this](const ViewAsked& asked) {
    const auto answer = answer_view(answers_, asked.question);
    if (answer) wire_->answer(asked.number, *answer);
    return answer.has_value();
  });
}

void RunViews::hear(const ViewLeft& event) {
  std::erase_if(questions_, [&](const ViewAsked& asked) { return asked.number == event.number; });
}

void RunViews::end(const std::string& line) {
  if (socket_) socket_->end(line);
  for (const ViewAsked& asked : std::exchange(questions_, {}))
    wire_->answer(asked.number, last_answer(answers_, asked.question, line));
}

std::optional<std::string> RunViews::logs(const AskLogs& asked, bool ended) const {
  LogAnswer answer{.run_id = run_.run_id,
                   .piece = output_.read(asked, ended ? kLastAnswerBytes : kAnswerBytes)};
  answer.ended = ended;
  if (asked.follow && !ended && answer.piece.lines.empty()) return std::nullopt;
  return logs_json(answer);
}

}  // namespace strata::launcher
