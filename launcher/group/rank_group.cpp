#include "launcher/group/rank_group.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/shown_text.h"
#include "core/system_call.h"
#include "launcher/command/program_path.h"
#include "launcher/group/descendants.h"
#include "launcher/group/process_state.h"
#include "launcher/group/rank_environment.h"
#include "launcher/output/log_folder.h"
#include "launcher/output/recent_output.h"

namespace strata::launcher {
RankGroup::RankGroup(const Run& run, StartAttempt attempt, Screen& screen)
    : run_(run), attempt_(std::move(attempt)), screen_(screen), foreign_children_(children()) {}

std::vector<Event> RankGroup::start(const std::optional<TimePoint>& lease) {
  std::vector<Event> events;
  if (run_.logs != nullptr) run_.logs->begin_attempt(attempt_.placement, attempt_.node);
  const Placement& placement = attempt_.placement;
  // The coordinator reads what rank 0 of an elastic run puts there.
  if (placement.hosts() > 1 || attempt_.is_elastic) server_.share_values();
  for (int rank = 0; rank < placement.ranks_of(attempt_.node); ++rank) {
    const int number = first_rank() + rank;
    ranks_.push_back({StatusPage::create(number, placement.attempt), {}});
    if (lease) set_lease(*lease);
    if (!events.empty()) {
      events.emplace_back(SpawnFailed{rank, "an earlier rank could not be started"});
      continue;
    }
    try {
      ranks_.back().process = start(rank, ranks_.back().page);
    } catch (const Error& error) {
      events.emplace_back(SpawnFailed{rank, error.what()});
    }
  }
  return events;
}

RankProcess RankGroup::start(int rank, const StatusPage& page) {
  const UniqueFd store = server_.add_client(rank);
  RankIdentity identity;
  identity.placement = attempt_.placement;
  identity.node = attempt_.node;
  identity.local_rank = rank;
  identity.last_step = attempt_.last_step;
  identity.is_elastic = attempt_.is_elastic;
  identity.lock_wait = attempt_.lock_wait;
  identity.run_id = run_.run_id;
  identity.host = run_.host;
  identity.grace = std::chrono::floor<std::chrono::seconds>(run_.options.grace);
  identity.store_fd = store.get();
  identity.status_fd = page.fd();
  identity.master_port = run_.master_port;
  if (!run_.master_address.empty()) identity.master_address = run_.master_address;
  identity.host_address = run_.host_address;
  identity.network_interface = run_.options.network_interface;
  identity.visible_devices = run_.visible_devices;
  if (rank == 0) {
    identity.output_on_terminal = screen_.queue(OutputKind::standard_output).is_terminal();
    identity.error_on_terminal = screen_.queue(OutputKind::standard_error).is_terminal();
  }
  RankCommand command;
  command.path =
      run_.program_path.empty() ? find_program(run_.options.command.front()) : run_.program_path;
  command.arguments = run_.options.command;
  command.environment = rank_environment(own_environment(), identity);
  command.kept_fds = {store.get(), page.fd()};
  // A rank is a background process of the terminal, so reading from it would stop the rank.
  command.reads_input = rank == 0 && ::isatty(STDIN_FILENO) != 1;
  command.open_files = run_.open_files;
  return start_rank(command);
}

void RankGroup::add_polls(std::vector<pollfd>& entries) {
  entries.push_back({server_.poll_fd(), POLLIN, 0});
  for (const OutputKind kind : kOutputKinds) {
    if (screen_.queue(kind).full()) continue;  // its writers shall wait
    for (int rank = 0; rank < size(); ++rank)
      if (const UniqueFd& fd = pipe(rank, kind); fd.valid())
        entries.push_back({fd.get(), POLLIN, 0});
  }
}

std::vector<Event> RankGroup::read_outputs() {
  std::vector<Event> events;
  for (const OutputKind kind : kOutputKinds)
    for (int rank = 0; rank < size(); ++rank)
      if (!screen_.queue(kind).full()) read_output(rank, kind, events);
  return events;
}

void RankGroup::read_output(int rank, OutputKind kind, std::vector<Event>& events) {
  UniqueFd& fd = pipe(rank, kind);
  if (!fd.valid()) return;
  std::array<char, 64 * 1024> bytes;
  const ssize_t count = ::read(fd.get(), bytes.data(), bytes.size());
  if (count > 0) {
    const std::string_view text(bytes.data(), static_cast<std::size_t>(count));
    if (run_.logs != nullptr) run_.logs->write(rank, kind, text);
    if (run_.recent != nullptr) run_.recent->feed(first_rank() + rank, kind, text);
    return screen_.feed(rank, kind, text);
  }
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  screen_.finish_line(rank, kind);
  if (run_.recent != nullptr) run_.recent->finish_line(first_rank() + rank, kind);
  fd.close();
  const RankProcess& process = at(rank).process;
  if (!process.output.valid() && !process.error.valid()) events.emplace_back(RankOutputEnded{rank});
}

std::vector<Event> RankGroup::reap() {
  std::vector<Event> events;
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return events;   // nothing ended, or there is no child
    foreign_children_.erase(pid);  // the number may be another's from now on
    const int rank = rank_of(pid);
    if (rank < 0) continue;  // pid is of an orphan
    at(rank).process.pid = -1;
    at(rank).peak_rss_bytes = std::int64_t{usage.ru_maxrss} * 1024;
    events.emplace_back(RankEnded{rank, Ending::from_wait_status(status)});
  }
}

std::set<pid_t> RankGroup::children_left() const {
  std::set<pid_t> left = children();
  for (const pid_t foreign : foreign_children_) left.erase(foreign);
  return left;
}

void RankGroup::kill_children() {
  // Children not waited for: their numbers cannot be reused.
  for (const pid_t pid : children_left()) (void)::kill(pid, SIGKILL);
}

void RankGroup::signal(int rank, int number) {
  if (rank < size() && at(rank).process.pid > 0) signal_rank(at(rank).process.pid, number);
}

void RankGroup::order_stop(const std::string& reason) {
  for (Rank& rank : ranks_) rank.page.order_stop(reason);
}

void RankGroup::set_lease(TimePoint until) {
  for (Rank& rank : ranks_)
    rank.page.set_lease(until.time_since_epoch() / std::chrono::nanoseconds(1));
}

std::vector<RankState> RankGroup::look() const {
  std::vector<RankState> states;
  for (int rank = 0; rank < size(); ++rank) {
    const StatusPageData& page = at(rank).page.data();
    const pid_t pid = at(rank).process.pid;
    const ProcessState process = pid > 0 ? read_process_state(pid) : ProcessState{};
    states.push_back(
        {.rank = page.rank,
         .phase = phase(rank),
         .step = std::max<std::int64_t>(page.step.load(), -1),
         .beats = page.beats.load(),
         .quiet = std::chrono::nanoseconds(std::max<std::int64_t>(page.quiet_ns.load(), 0)),
         .collective = std::max<std::int64_t>(page.collective.load(), 0),
         .collective_name = at(rank).page.collective_name(),
         .where = where(rank),
         .committed =
             std::max<std::int64_t>(page.committed_step.load(std::memory_order_acquire), -1),
         .checkpoint = checkpoint_of(rank),
         .ended = pid <= 0,
         .held = process.held(),
         .traced = process.traced,
         .frozen = process.frozen,
         .switches = process.switches,
         .unread = is_unread(rank),
         .work_ns = std::max<std::int64_t>(page.work_ns.load(), 0),
         .worked_steps = std::max<std::int64_t>(page.worked_steps.load(), 0),
         .view = view(rank)});
  }
  return states;
}

/// Pages belong to ranks, which may write anything to them.
Phase RankGroup::phase(int rank) const {
  const std::uint32_t phase = page(rank).phase.load();
  return phase <= static_cast<std::uint32_t>(Phase::failed) ? static_cast<Phase>(phase)
                                                            : Phase::starting;
}

/// True while a pipe of the rank is not read, since the screen takes no more.
bool RankGroup::is_unread(int rank) const {
  const RankProcess& process = at(rank).process;
  return (process.output.valid() && screen_.queue(OutputKind::standard_output).full()) ||
         (process.error.valid() && screen_.queue(OutputKind::standard_error).full());
}

RankView RankGroup::view(int rank) const {
  const StatusPageData& page = this->page(rank);
  RankView view;
  view.process = pid_of(rank);
  view.phase_seconds = 1e-9 * static_cast<double>(boot_time_ns() - page.phase_since_ns.load());
  view.loss = page.loss.load();
  view.tokens_per_second = page.tokens_per_second.load();
  std::ranges::copy(page.tier_bytes, view.tier_bytes.begin());
  view.save_failure = save_failure(rank);
  return view;
}

std::optional<SaveFailure> RankGroup::save_failure(int rank) const {
  const StatusPageData& page = this->page(rank);
  const std::int64_t step = page.failed_save_step.load(std::memory_order_acquire);
  if (step < 0) return std::nullopt;
  return SaveFailure{
      .step = step,
      .seconds = 1e-9 * static_cast<double>(boot_time_ns() - page.saves_fail_since_ns.load()),
      .why = shown_text(page.failed_save)};
}

std::string RankGroup::where(int rank) const {
  const std::string text = at(rank).page.describe();
  return text == name_of(Phase::starting) ? "" : text;
}

std::string RankGroup::error_of(int rank) const {
  const auto& error = at(rank).page.data().error;
  return {error, ::strnlen(error, sizeof error)};
}

std::string RankGroup::checkpoint_of(int rank) const {
  const auto& folder = at(rank).page.data().checkpoint;
  return {folder, ::strnlen(folder, sizeof folder)};
}

bool RankGroup::is_done(int rank) const {
  return at(rank).page.data().phase.load() == static_cast<std::uint32_t>(Phase::done);
}

UniqueFd& RankGroup::pipe(int rank, OutputKind kind) {
  RankProcess& process = at(rank).process;
  return kind == OutputKind::standard_output ? process.output : process.error;
}

int RankGroup::rank_of(pid_t pid) const {
  for (int rank = 0; rank < size(); ++rank)
    if (at(rank).process.pid == pid) return rank;
  return -1;
}

}  // namespace strata::launcher
