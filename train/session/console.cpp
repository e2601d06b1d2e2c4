#include "train/session/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "core/unique_fd.h"

namespace strata::train {
namespace {

constexpr std::string_view kClearLine = "\r\033[K";
constexpr std::chrono::milliseconds kBetweenDraws{50};
/// The width of "[0] ", which a launcher of several ranks writes before what rank 0 says.
constexpr int kPrefixColumns = 4;
/// The width to assume if a terminal does not tell its own.
constexpr int kUsualColumns = 80;

int columns_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// Width of the session's terminal, needed since standard output is a pipe under a launcher.
int columns_of_session() {
  const UniqueFd terminal(::open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY));
  return terminal.valid() ? columns_of(terminal.get()) : 0;
}

/// The first `columns` characters of UTF-8 text.
std::string_view first_columns(std::string_view text, std::size_t columns) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (starts_character && characters++ == columns) return text.substr(0, i);
  }
  return text;
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++count;
  return count;
}

}  // namespace

ConsoleStreams console_streams(const RankContext& context) {
  ConsoleStreams streams;
  streams.output_is_terminal = context.stdout_is_terminal;
  streams.error_is_terminal = context.stderr_is_terminal;
  const bool prefixed = context.world > 1;
  streams.columns = [prefixed] {
    int columns = columns_of(STDOUT_FILENO);
    if (columns == 0) columns = columns_of_session();
    if (columns == 0) columns = kUsualColumns;
    return prefixed ? columns - kPrefixColumns : columns;
  };
  return streams;
}

std::string fit_fields(const std::vector<std::string>& fields, int columns) {
  const auto room = static_cast<std::size_t>(columns > 0 ? columns : 0);
  std::string line;
  std::size_t used = 0;
  for (const std::string& field : fields) {
    const std::size_t needed = (line.empty() ? 0 : 2) + characters(field);
    if (room > 0 && used + needed > room) break;
    line += (line.empty() ? "" : "  ") + field;
    used += needed;
  }
  if (line.empty() && !fields.empty()) line = first_columns(fields.front(), room);
  return line;
}

std::string time_stamp(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm local{};
  char text[32];
  if (::localtime_r(&seconds, &local) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local) == 0)
    return "(no time)";
  return text;
}

Console::Console(ConsoleStreams streams, int rank)
    : streams_(std::move(streams)), heard_(rank == 0), output_(streams_.output) {}

void Console::print(std::string_view text) {
  if (heard_) say(streams_.output, streams_.output_is_terminal, "", text);
}

void Console::note(std::string_view text) {
  if (heard_) say(streams_.error, streams_.error_is_terminal, "note: ", text);
}

void Console::warn(std::string_view text) {
  if (heard_) say(streams_.error, streams_.error_is_terminal, "warning: ", text);
}

void Console::fail(std::string_view text) {
  end_progress();  // keeps the last progress on the screen, clears the echo of Ctrl-C
  say(streams_.error, streams_.error_is_terminal,
      streams_.error_is_terminal ? "\r\033[Ktrain: " : "train: ", text);
}

/// Writes a text, clearing the progress line in the same stream: two pipes keep no order.
void Console::say(std::FILE* file, bool terminal, std::string_view label, std::string_view text) {
  const std::scoped_lock lock(mutex_);
  const bool over_progress = terminal && rewrites() && !fields_.empty();
  std::string whole(over_progress ? kClearLine : "");
  whole += label;
  whole += text;
  if (!text.ends_with('\n')) whole += '\n';
  if (file == streams_.output) {
    output_.print(whole);
  } else {
    (void)std::fwrite(whole.data(), 1, whole.size(), file);
    std::fflush(file);
  }
  if (over_progress) draw();
}

void Console::show_progress(std::vector<std::string> fields) {
  if (!rewrites()) return;
  const std::scoped_lock lock(mutex_);
  fields_ = std::move(fields);
  drawn_ = false;
  if (Clock::now() - drawn_at_ >= kBetweenDraws) draw();
}

void Console::end_progress() {
  if (!rewrites()) return;
  const std::scoped_lock lock(mutex_);
  if (fields_.empty()) return;
  if (!drawn_) draw();
  fields_.clear();
  output_.print("\n");
}

void Console::drop_progress() {
  if (!rewrites()) return;
  const std::scoped_lock lock(mutex_);
  if (fields_.empty()) return;
  fields_.clear();
  output_.print(kClearLine);
}

void Console::throw_if_lost() {
  const std::scoped_lock lock(mutex_);
  output_.throw_if_lost();
}

void Console::finish() {
  const std::scoped_lock lock(mutex_);
  output_.finish();
}

/// Draws the progress line; the last column stays free, since some terminals wrap there.
void Console::draw() {
  const int columns = streams_.columns();
  output_.print(std::string(kClearLine) + fit_fields(fields_, columns > 1 ? columns - 1 : columns));
  drawn_ = true;
  drawn_at_ = Clock::now();
}

}  // namespace strata::train
