#include "launcher/screen.h"

#include <sys/ioctl.h>

#include <algorithm>

namespace strata::launcher {
namespace {

constexpr std::string_view kClearLine = "\r\x1b[K";

/// What a terminal would show of a line that contains carriage returns: the text after the last
/// one.
std::string_view visible_part(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  const std::size_t last = line.rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

/// A progress line that wraps cannot be cleared again: cut it (at a character) to the terminal's
/// width.
std::string cut_to_terminal(std::string text, int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return text;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (text[i] == '\x1b') return text;  // colours take no column; leave such lines alone
    if (starts_character && ++columns == size.ws_col) return text.substr(0, i);
  }
  return text;
}

}  // namespace

Screen::Screen(int ranks, bool prefix, int output_fd, int error_fd)
    : pass_through_(ranks == 1),
      queues_{OutputQueue(output_fd), OutputQueue(error_fd)},
      tails_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank)
    for (const OutputKind kind : {OutputKind::standard_output, OutputKind::standard_error})
      streams_.push_back({rank, kind, prefix ? "[" + std::to_string(rank) + "] " : "", ""});
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

void Screen::say(std::string_view line) {
  OutputQueue& q = queue(OutputKind::standard_error);
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

/// The line is `first` + `second`; `second` ends with its newline.
void Screen::print_line(const Stream& s, std::string_view first, std::string_view second) {
  OutputQueue& q = queue(s.kind);
  hide_progress(q);
  q.append(s.prefix);
  if (rewrites_lines(s)) {
    q.append(visible_part(std::string(first) + std::string(second)));
    q.append("\n");
    progress_.clear();
  } else {
    q.append(first);
    q.append(second);
  }
  show_progress(q);
}

bool Screen::rewrites_lines(const Stream& s) const {
  return s.rank == 0 && queues_[static_cast<int>(s.kind)].is_terminal();
}

void Screen::update_progress(const Stream& s) {
  if (!rewrites_lines(s) || s.partial.find('\r') == std::string::npos) return;
  OutputQueue& q = queue(s.kind);
  std::string text = cut_to_terminal(s.prefix + std::string(visible_part(s.partial)), q.fd());
  if (text == progress_) return;
  hide_progress(q);
  progress_ = std::move(text);
  show_progress(q);
}

void Screen::hide_progress(OutputQueue& q) {
  if (!progress_.empty() && q.is_terminal()) q.append(kClearLine);
}

void Screen::show_progress(OutputQueue& q) {
  if (!progress_.empty() && q.is_terminal()) q.append(progress_);
}

}  // namespace strata::launcher
