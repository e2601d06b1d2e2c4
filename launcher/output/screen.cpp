#include "launcher/output/screen.h"

#include <fmt/core.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "launcher/output/terminal_text.h"

namespace strata::launcher {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

/// Cuts a progress line to the terminal's width: one that wraps could not be cleared.
std::string cut_to_terminal(const std::string& text, int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return text;
  return cut_to_columns(text, static_cast<std::size_t>(size.ws_col) - 1);
}

}  // namespace

Screen::Screen(int ranks, bool prefix, int output_fd, int error_fd, bool alone)
    : queues_{OutputQueue(output_fd), OutputQueue(error_fd)},
      alone_(alone && ranks == 1),
      prefix_(prefix && !alone_),
      pass_through_(alone_ && !(queues_[0].is_terminal() && queues_[1].is_terminal())),
      tails_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank)
    for (const OutputKind kind : {OutputKind::standard_output, OutputKind::standard_error})
      streams_.push_back({rank, kind, "", ""});
  begin(0);
}

void Screen::feed(int rank, OutputKind kind, std::string_view bytes) {
  if (kind == OutputKind::standard_error) keep_tail(rank, bytes);
  if (pass_through_) {
    queue(kind).append(bytes);
    if (!bytes.empty()) line_open_ = bytes.back() != '\n';
    return;
  }
  Stream& s = stream(rank, kind);
  for (std::size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos;) {
    print_line(s, s.partial, bytes.substr(0, end + 1));
    s.partial.clear();
    bytes.remove_prefix(end + 1);
  }
  s.partial += bytes;
  if (s.partial.size() > kMaxLineBytes) finish_line(rank, kind);
  update_progress(s);
}

void Screen::finish_line(int rank, OutputKind kind) {
  Stream& s = stream(rank, kind);
  if (s.partial.empty()) return;
  print_line(s, s.partial, "\n");
  s.partial.clear();
  update_progress(s);
}

void Screen::begin(int first_rank) {
  for (std::string& tail : tails_) tail.clear();
  for (Stream& one : streams_)
    if (prefix_) one.prefix = fmt::format("[{}] ", first_rank + one.rank);
}

void Screen::say(std::string_view line) {
  if (listener_) listener_(line);
  print(OutputKind::standard_error, line);
}

void Screen::print(OutputKind kind, std::string_view line) {
  OutputQueue& q = queue(kind);
  hide_progress(q);
  if (line_open_) q.append("\n");
  line_open_ = false;
  q.append(line);
  q.append("\n");
  show_progress(q);
}

Screen::Stream& Screen::stream(int rank, OutputKind kind) {
  return streams_[static_cast<std::size_t>(2 * rank) + static_cast<std::size_t>(kind)];
}

void Screen::keep_tail(int rank, std::string_view bytes) {
  std::string& tail = tails_[static_cast<std::size_t>(rank)];
  tail += bytes.substr(bytes.size() - std::min(bytes.size(), kTailBytes));
  if (tail.size() > kTailBytes) tail.erase(0, tail.size() - kTailBytes);
}

/// Prints `first` + `second`; `second` ends with the line's newline.
void Screen::print_line(const Stream& s, std::string_view first, std::string_view second) {
  OutputQueue& q = queue(s.kind);
  std::string line = s.prefix + std::string(first) + std::string(second);
  if (rewrites_lines(s)) {
    line = s.prefix + std::string(visible_part(std::string_view(line).substr(s.prefix.size())));
    if (progress_.empty() || progress_of_ == s.kind) {
      rewrite(s, std::move(line));
      q.append("\n");
      progress_.clear();
      return;
    }
    line += '\n';
  }
  hide_progress(q);
  q.append(line);
  show_progress(q);
}

bool Screen::rewrites_lines(const Stream& s) const {
  return s.rank == 0 && queues_[static_cast<int>(s.kind)].is_terminal();
}

/// Shows an unfinished line: of progress, or of a single rank, where it may be a question.
void Screen::update_progress(const Stream& s) {
  const bool is_progress = s.partial.find('\r') != std::string::npos;
  if (!rewrites_lines(s) || s.partial.empty() || !(is_progress || alone_)) return;
  std::string text = s.prefix + std::string(visible_part(s.partial));
  if (is_progress) text = cut_to_terminal(text, queue(s.kind).fd());
  rewrite(s, std::move(text));
}

/// Makes `text` the lowest line. Writes only the new part if it grew: it may have wrapped.
void Screen::rewrite(const Stream& s, std::string text) {
  OutputQueue& q = queue(s.kind);
  progress_of_ = s.kind;
  if (!progress_.empty() && text.starts_with(progress_)) {
    q.append(std::string_view(text).substr(progress_.size()));
  } else {
    hide_progress(q);
    q.append(text);
  }
  progress_ = std::move(text);
}

void Screen::hide_progress(OutputQueue& q) {
  if (!progress_.empty() && q.is_terminal()) q.append(kClearLine);
}

void Screen::show_progress(OutputQueue& q) {
  if (!progress_.empty() && q.is_terminal()) q.append(progress_);
}

}  // namespace strata::launcher
