#include "launcher/wire/run_secret.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/system_call.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

constexpr std::string_view kFirstLine = "strata-run-secret 1";
constexpr std::string_view kToken = "token ";
constexpr std::size_t kTokenDigits = 64;
constexpr std::int64_t kMostBytes = 64 << 10;

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(text, [](char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
  });
}

/// Reads to the end, which comes when its writer has closed it.
std::string read_standard_input() {
  std::string text;
  std::array<char, 4096> bytes;
  ssize_t count = 0;
  while ((count = ::read(STDIN_FILENO, bytes.data(), bytes.size())) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_system_error("reading the run's secret from standard input");
    text.append(bytes.data(), static_cast<std::size_t>(count));
    if (std::cmp_greater(text.size(), kMostBytes))
      throw ConfigError("standard input is no secret of a run: it is too long");
  }
  return text;
}

/// Reads the lines of a secret one after the other.
class Lines {
 public:
  Lines(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

  [[nodiscard]] bool ended() const { return rest_.empty(); }

  std::string_view next() {
    ++number_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) refuse("a line that ends");
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  /// Reads a block of PEM with its first and last line.
  std::string block(std::string_view name) {
    const std::string begin = fmt::format("-----BEGIN {}-----", name);
    const std::string last = fmt::format("-----END {}-----", name);
    std::string_view line = next();
    if (line != begin) refuse("\"" + begin + "\"");
    std::string text = begin + "\n";
    while (line != last) {
      if (ended()) refuse("\"" + last + "\"");
      line = next();
      text += std::string(line) + "\n";
    }
    return text;
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    throw ConfigError(fmt::format(
        "{} is no secret of a run: line {} should be {}; make one with: mlaunch secret FILE",
        source_, std::max(number_, 1), expected));
  }

 private:
  std::string_view rest_;
  const std::string& source_;
  int number_ = 0;
};

}  // namespace

std::string format_run_secret(const RunSecret& secret) {
  return fmt::format("{}\n{}{}\n{}{}", kFirstLine, kToken, secret.token, secret.certificate,
                     secret.key);
}

RunSecret parse_run_secret(std::string_view text, const std::string& source) {
  Lines lines(text, source);
  if (lines.ended() || lines.next() != kFirstLine)
    lines.refuse("\"" + std::string(kFirstLine) + "\"");
  std::string_view token = lines.next();
  if (!token.starts_with(kToken)) lines.refuse("the token");
  token.remove_prefix(kToken.size());
  if (token.size() != kTokenDigits || !is_hexadecimal(token))
    lines.refuse("the token with 64 hexadecimal digits");
  RunSecret secret{
      .token = std::string(token), .certificate = lines.block("CERTIFICATE"), .key = {}};
  if (!lines.ended()) secret.key = lines.block("PRIVATE KEY");
  if (!lines.ended()) {
    (void)lines.next();
    lines.refuse("the end");
  }
  return secret;
}

RunSecret read_run_secret(const std::string& path) {
  if (path == "-") return parse_run_secret(read_standard_input(), "standard input");
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw HostError(
        fmt::format("cannot read the run's secret {}: {}; make it on one host with "
                    "`mlaunch secret FILE`, and bring it to all of them",
                    path, std::strerror(errno)));
  if ((status.st_mode & S_IRWXO) != 0)
    throw ConfigError(
        fmt::format("everybody on this host may use the run's secret {} (mode {:o}): "
                    "chmod 600 {} (Kubernetes: defaultMode: 0400)",
                    path, status.st_mode & 07777U, path));
  return parse_run_secret(read_whole_file(path, kMostBytes), path);
}

std::string secret_for_people(const std::string& path) {
  return path == "-" ? "the secret from standard input" : "the secret in " + path;
}

void write_run_secret(const std::string& path, const RunSecret& secret) {
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() && errno == EEXIST)
    throw InvalidArgument(path +
                          " exists; hosts of a run may have read it: remove it if none runs, or "
                          "name another file");
  if (!file.valid()) throw HostError(fmt::format("cannot make {}: {}", path, std::strerror(errno)));
  const std::string text = format_run_secret(secret);
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size()) && ::fsync(file.get()) == 0) return;
  const int error = written < 0 ? errno : ENOSPC;
  (void)::unlink(path.c_str());
  throw IoError(path, 0, "cannot write", error);
}

}  // namespace strata::launcher
