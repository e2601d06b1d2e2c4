#include "launcher/run_output.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/standard_output.h"
#include "launcher/command/command_text.h"
#include "launcher/several_hosts.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::milliseconds kLastWords{500};
/// Of lines that an agent sends at a time: heartbeats wait behind it.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
/// Somebody looks at an agent's ranks if their lines were asked for within this time.
constexpr std::chrono::seconds kWatched{3};

bool ends_mlaunch(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

/// Of all ranks together 64 MiB are kept, and never more than 1 MiB of one. An agent keeps what the
/// ranks of its host print, the coordinator gets that of all hosts where somebody looks.
std::size_t bytes_kept_of_a_rank(const Options& options) {
  constexpr std::size_t kOfAll = std::size_t{64} << 20, kOfOne = std::size_t{1} << 20;
  std::size_t ranks = 0;
  for (const ListedHost& host : options.hosts.listed) ranks += static_cast<std::size_t>(host.slots);
  if (ranks == 0) ranks = static_cast<std::size_t>(options.ranks);
  if (options.hosts.listed.empty() && options.hosts.coordinates)
    ranks *= static_cast<std::size_t>(options.hosts.count);
  return std::min(kOfOne, kOfAll / ranks);
}

}  // namespace

RunOutput::RunOutput(const Options& options)
    : recent_(bytes_kept_of_a_rank(options)),
      screen_(options.ranks, options.prefix, STDOUT_FILENO, STDERR_FILENO,
              !options.hosts.are_several()) {
  screen_.listen([this](std::string_view line) {
    if (logs_) logs_->note(line);
    recent_.say(line);
  });
}

void RunOutput::keep_logs(const Run& run) {
  if (run.options.log_directory.empty() || logs_) return;
  logs_.emplace(run.options.log_directory, run.run_id,
                is_agent(run) ? std::optional(run.options.hosts.node) : std::nullopt);
  std::error_code error;
  note(command_text(run.typed));
  note(fmt::format("run {} begins on host {}, process {}, in {}", run.run_id, run.host, ::getpid(),
                   std::filesystem::current_path(error).string()));
  for (const std::string& given : run.options.notes) note("note: " + given);
  say("logs of ranks are kept in " + logs_->path());
}

void RunOutput::take_up(const std::string& run_id) {
  if (!logs_) return;
  if (logs_->move_to(run_id)) say("logs of ranks are kept in " + logs_->path());
}

void RunOutput::begin_attempt(const Placement& placement) {
  recent_.begin_attempt(placement.attempt);
  note(fmt::format("attempt {} starts with {} ranks", placement.attempt, placement.world()));
}

void RunOutput::end_attempt() {
  if (!logs_) return;
  logs_->end_attempt();
  note("the attempt has ended on this host");
}

void RunOutput::add_polls(std::vector<pollfd>& entries) {
  for (const OutputKind kind : kOutputKinds)
    if (OutputQueue& queue = screen_.queue(kind); queue.pending())
      entries.push_back({queue.fd(), POLLOUT, 0});
}

void RunOutput::write() {
  if (logs_)
    if (const auto complaint = logs_->take_complaint()) say(*complaint);
  for (const OutputKind kind : kOutputKinds) {
    OutputQueue& queue = screen_.queue(kind);
    queue.write_some();
    const std::string name =
        std::string("standard ") + (kind == OutputKind::standard_output ? "output" : "error");
    if (unread_[static_cast<int>(kind)].is_news(now(), queue.full()))
      say("nobody reads " + name +
          " (a stopped terminal or pager, a full pipe?): ranks that print wait until it is read, "
          "and are not taken for hung");
    bool& told = error_told_[static_cast<int>(kind)];
    if (queue.error() == 0 || std::exchange(told, true)) continue;
    say(reader_has_gone(queue.fd(), queue.error())
            ? "nobody reads " + name + " any more; the ranks go on without it (Ctrl-C ends them)"
            : name + " is lost, the ranks go on: " + std::strerror(queue.error()));
  }
}

bool RunOutput::write_last_words(bool is_short, SignalQueue& signals) {
  TimePoint limit = now() + kLastWords;
  for (const OutputKind kind : kOutputKinds) {
    OutputQueue& queue = screen_.queue(kind);
    for (queue.write_some(); queue.pending(); queue.write_some()) {
      while (const int number = signals.next())
        if (ends_mlaunch(number) && !std::exchange(is_short, true)) limit = now() + kLastWords;
      if (is_short && now() > limit) break;
      std::array<pollfd, 2> entries{{{queue.fd(), POLLOUT, 0}, {signals.fd(), POLLIN, 0}}};
      if (::poll(entries.data(), entries.size(), 100) < 0 && errno != EINTR) break;
    }
  }
  return is_short;
}

int RunOutput::exit_code_after(int run_code) {
  const OutputQueue& queue = screen_.queue(OutputKind::standard_output);
  const bool is_whole = queue.error() == 0 || reader_has_gone(queue.fd(), queue.error());
  if (is_whole || run_code != static_cast<int>(ExitCode::done)) return run_code;
  say(std::string("all ranks are done, but standard output is not whole: ") +
      std::strerror(queue.error()));
  return static_cast<int>(ExitCode::io);
}

RecentOutput::Piece RunOutput::piece_for_coordinator(std::uint64_t from) {
  RecentOutput::Piece piece = recent_.read({.number = from}, kPieceBytes);
  sent_ = {now(), piece.next};
  return piece;
}

std::optional<RecentOutput::Piece> RunOutput::last_piece_for_coordinator() {
  if (!sent_ || now() >= sent_->when + kWatched) return {};
  return piece_for_coordinator(sent_->next);
}

}  // namespace strata::launcher
