#include "launcher/run_views.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launcher/group/process_start.h"
#include "launcher/output/log_folder.h"
#include "launcher/views/metrics_text.h"

namespace strata::launcher {
namespace {

/// Of lines in one answer.
constexpr std::size_t kAnswerBytes = std::size_t{256} << 10;
/// Who was answered within this time follows still, ...
constexpr std::chrono::seconds kFollows{1};
/// ... and has this time to ask for what was printed last.
constexpr std::chrono::milliseconds kLastQuestions{300};
/// It is known so exactly when a run that was killed was seen last.
constexpr std::chrono::seconds kBetweenRecords{60};
/// The last answer is sent without waiting for its reader.
constexpr std::size_t kLastAnswerBytes = std::size_t{64} << 10;

}  // namespace

RunViews::RunViews(const Run& run, const Coordinator& coordinator, RecentOutput& output,
                   ControlWire* wire, Answers answers)
    : run_(run),
      coordinator_(coordinator),
      output_(output),
      wire_(wire),
      look_(std::move(answers.look)),
      process_start_(process_start(::getpid())),
      answers_{[this] { return status_json(status()); }, std::move(answers.stop),
               [this](const AskLogs& asked, bool ended) { return logs(asked, ended); }} {}

void RunViews::open_socket() {
  const auto open_folder = [] { return ControlFolder::make(ControlFolder::places().front()); };
  recorded_.reset();
  socket_.emplace(open_folder, run_.run_id, answers_);
}

/// Keeps what is to be known of the run if this process is killed.
void RunViews::keep_record(const RunStatus& status) {
  if (!socket_) return;
  if (recorded_ && recorded_->attempt == status.attempt &&
      recorded_->committed == status.committed && now_ < recorded_->when + kBetweenRecords)
    return;
  recorded_ = {status.attempt, status.committed, now_};
  socket_->keep_record(record_json(status, std::chrono::system_clock::now()));
}

void RunViews::open_page(int port) {
  page_ = open_web_server(
      port, {[this] { return runs_json(status_json(status())); },
             [this] { return progress_.json(); }, [this] { return metrics_text(status()); }});
}

RunStatus RunViews::current() const {
  RunStatus status;
  status.run_id = run_.run_id;
  status.program = run_.options.command.front();
  status.host = run_.host;
  status.process = ::getpid();
  status.process_start = process_start_;
  status.started_at = started_at_;
  const TimePoint time = launcher::now();
  status.seconds = std::chrono::duration<double>(time - began_).count();
  status.attempt = coordinator_.attempt();
  status.world = coordinator_.world();
  status.restarts = coordinator_.restarts_within(time);
  status.most_restarts = run_.options.restarts.most_restarts;
  status.all_restarts = coordinator_.restarts();
  status.regroupings = coordinator_.regroupings();
  status.grace_seconds = std::chrono::floor<std::chrono::seconds>(run_.options.grace).count();
  status.stopping = coordinator_.is_asked_to_end();
  if (run_.logs != nullptr) status.log_folder = run_.logs->path();
  status.committed = coordinator_.committed();
  status.checkpoint = coordinator_.checkpoint();
  status.waiting = coordinator_.waiting(time);
  status.hosts = coordinator_.hosts();
  add_ranks(status);
  return status;
}

/// A look at the own ranks is newer than their last heartbeat.
void RunViews::add_ranks(RunStatus& status) const {
  const std::vector<RankState> own = look_();
  for (const Coordinator::RankOfHost& one : coordinator_.ranks()) {
    const auto newer = std::ranges::find(own, one.state.rank, &RankState::rank);
    const RankState& state = newer != own.end() ? *newer : one.state;
    if (state.committed > status.committed) {
      status.committed = state.committed;
      status.checkpoint = state.checkpoint;
    }
    status.ranks.push_back({run_.options.hosts.are_several() ? one.host : run_.host, state});
  }
}

RunStatus RunViews::status() const {
  RunStatus status = current();
  progress_.complete(now_, status);
  return status;
}

void RunViews::add_polls(std::vector<pollfd>& entries) const {
  if (page_) entries.push_back({page_->poll_fd(), POLLIN, 0});
  if (socket_) socket_->add_polls(entries);
}

std::optional<TimePoint> RunViews::next_deadline() const {
  std::optional<TimePoint> next = sooner(fetch_, progress_.next_look());
  if (socket_) next = sooner(next, socket_->next_deadline());
  if (page_)
    if (const auto timeout = page_->timeout()) next = sooner(next, now_ + *timeout);
  return next;
}

void RunViews::work(TimePoint now) {
  now_ = now;
  fetches_ = !fetch_ || *fetch_ <= now;
  if (fetches_) fetch_.reset();
  if (progress_.next_look() <= now) {
    const RunStatus status = current();
    progress_.look(now, std::chrono::system_clock::now(), status);
    keep_record(status);
  }
  if (socket_) socket_->work(now);
  if (page_) page_->work();
  std::erase_if(questions_, [this](const ViewAsked& asked) {
    const auto answer = answer_view(answers_, asked.question);
    if (answer) wire_->answer(asked.number, *answer);
    return answer.has_value();
  });
}

void RunViews::hear(const ViewLeft& event) {
  std::erase_if(questions_, [&](const ViewAsked& asked) { return asked.number == event.number; });
}

/// Who prints the last answer has not asked for the next one yet.
void RunViews::await_followers(const std::string& line) {
  if (!followed_ || *followed_ + kFollows <= now_) return;
  const TimePoint limit = launcher::now() + kLastQuestions;
  for (TimePoint time = launcher::now(); time < limit; time = launcher::now()) {
    std::vector<pollfd> entries;
    if (socket_) socket_->add_polls(entries);
    if (wire_ != nullptr) entries.push_back({wire_->poll_fd(), POLLIN, 0});
    (void)::poll(entries.data(), entries.size(), 20);
    if (socket_) socket_->work(time);
    if (wire_ == nullptr) continue;
    for (const WireEvent& event : wire_->take())
      if (const auto* asked = std::get_if<ViewAsked>(&event))
        wire_->answer(asked->number, last_answer(answers_, asked->question, line));
  }
}

void RunViews::end(int exit_code, const KilledRanks& killed) {
  ended_ = true;
  const std::string line =
      ended_json(current(), {exit_code, std::chrono::system_clock::now(), coordinator_.committed(),
                             coordinator_.checkpoint(), killed});
  await_followers(line);
  if (socket_) socket_->end(line);
  for (const ViewAsked& asked : std::exchange(questions_, {}))
    wire_->answer(asked.number, last_answer(answers_, asked.question, line));
}

std::optional<std::string> RunViews::logs(const AskLogs& asked, bool ended) {
  ended |= ended_;
  // Those who follow are asked about whenever anything happens.
  std::vector<std::string> waiting_for;
  if (!ended && (fetches_ || !asked.follow)) waiting_for = fetch_output(asked.rank);
  LogAnswer answer{.run_id = run_.run_id,
                   .piece = output_.read(asked, ended ? kLastAnswerBytes : kAnswerBytes),
                   .waiting_for = std::move(waiting_for),
                   .ended = ended};
  if (asked.follow && !ended && answer.piece.lines.empty()) return std::nullopt;
  if (asked.follow) followed_ = now_;
  return logs_json(answer);
}

/// Asks other hosts for what their ranks print; returns those that have not sent all of it.
std::vector<std::string> RunViews::fetch_output(const std::optional<int>& rank) {
  if (wire_ == nullptr) return {};
  std::vector<Coordinator::AgentOfHost> others = coordinator_.agents();
  std::erase_if(others, [this](const Coordinator::AgentOfHost& host) {
    return host.host == std::to_string(run_.options.hosts.node);
  });
  if (others.empty()) return {};
  OutputOfHosts::Wanted wanted = hosts_.want(now_, rank, others);
  for (const OutputOfHosts::Fetch& fetch : wanted.fetches)
    wire_->fetch_output(fetch.host, fetch.agent, fetch.number);
  fetch_ = now_ + OutputOfHosts::kBetweenFetches;
  return std::move(wanted.waiting_for);
}

}  // namespace strata::launcher
