#include "train/session/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/file.h"

namespace strata::train {
namespace {

constexpr std::int64_t kReadBytes = std::int64_t{1} << 20;
constexpr std::string_view kStepKey = "{\"step\": ";

bool is_regular(const UniqueFd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
}

/// The step of a line about a step, an evaluation or a checkpoint; the least number for others.
std::int64_t step_of(std::string_view line) {
  std::int64_t step = std::numeric_limits<std::int64_t>::min();
  if (!line.starts_with(kStepKey)) return step;
  std::from_chars(line.data() + kStepKey.size(), line.data() + line.size(), step);
  return step;
}

/// Text of a number; null for NaN and infinity, which JSON does not have.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

std::string put_earlier_metrics_aside(const std::string& path) {
  struct stat status {};
  // Leaves a path that is no regular file (a pipe, /dev/null, a link) as it is.
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    return "";
  // The user may have named any file; only metrics may be moved.
  char first = 0;
  File::open_for_reading(path).read(0, std::as_writable_bytes(std::span(&first, 1)));
  if (first != '{')
    throw InvalidArgument("--metrics " + path +
                          ": the file holds something else than metrics; name another");
  std::string aside = path + ".old";
  if (::rename(path.c_str(), aside.c_str()) != 0)
    throw IoError(path, 0, "cannot rename it to " + aside, errno);
  return aside;
}

MetricsLog::MetricsLog(const std::string& path, std::int64_t first_step, OnFailure on_failure)
    : path_(path), on_failure_(std::move(on_failure)) {
  const int begin = first_step > 0 ? O_APPEND : O_TRUNC | O_APPEND;
  file_ = UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | begin, 0666));
  if (!file_.valid()) throw IoError(path, 0, "cannot create the metrics file", errno);
  if (first_step > 0 && is_regular(file_)) cut_after(first_step);
}

/// Removes the lines of steps after `step`, and keeps all others wherever they stand.
void MetricsLog::cut_after(std::int64_t step) {
  const File file = File::open_for_reading(path_);
  const std::int64_t size = file.size_bytes();
  std::string block, line, kept;
  std::int64_t line_begin = 0, cut = size;  // kept lines after `cut` are written again
  for (std::int64_t at = 0; at < size; at += std::ssize(block)) {
    block.resize(static_cast<std::size_t>(std::min(kReadBytes, size - at)));
    file.read(at, std::as_writable_bytes(std::span(block)));
    for (const char c : block) {
      line += c;
      if (c != '\n') continue;
      const bool goes = step_of(line) > step;
      if (goes && cut == size) cut = line_begin;
      if (!goes && cut < size) kept += line;
      line_begin += std::ssize(line);
      line.clear();
    }
  }
  if (!line.empty()) cut = std::min(cut, line_begin);
  if (cut == size) return;
  if (::ftruncate(file_.get(), cut) != 0)
    throw IoError(path_, static_cast<std::uint64_t>(cut), "cannot cut the metrics file", errno);
  append(kept);
}

void MetricsLog::append(const std::string& lines) {
  std::size_t done = 0;
  while (done < lines.size()) {
    const ssize_t n = ::write(file_.get(), lines.data() + done, lines.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) {
      done += static_cast<std::size_t>(n);
      continue;
    }
    const IoError error(path_, 0, "cannot write metrics", n < 0 ? errno : 0);
    struct stat status {};
    // Half a line would spoil the next one, which is tried nonetheless: disks get free space.
    if (done > 0 && is_regular(file_) && ::fstat(file_.get(), &status) == 0)
      (void)!::ftruncate(file_.get(), status.st_size - static_cast<off_t>(done));
    if (on_failure_) std::exchange(on_failure_, nullptr)(error);
    return;
  }
}

void MetricsLog::write(const StepDone& r) {
  append("{\"step\": " + std::to_string(r.step) + ", \"loss\": " + number(r.metrics.loss) +
         ", \"learning_rate\": " + number(r.metrics.learning_rate) + ", \"grad_norm\": " +
         number(r.metrics.gradient_norm) + ", \"loss_scale\": " + number(r.metrics.loss_scale) +
         ", \"skipped_steps\": " + std::to_string(r.metrics.skipped) + ", \"overflow\": " +
         (r.metrics.overflow != 0 ? "true" : "false") + ", \"seconds\": " + number(r.seconds) +
         ", \"foreseen_seconds\": " + number(r.foreseen_seconds) + ", \"tokens_per_second\": " + number(r.tokens_per_second) +
         ", \"smoothed_tokens_per_second\": " + number(r.smoothed_tokens_per_second) +
         ", \"rank_flops_per_second\": " + number(r.flops_per_second) + ", \"mfu\": " +
         (r.mfu ? number(*r.mfu) : "null") + ", \"arena_bytes\": " + std::to_string(r.arena_bytes) +
         ", \"peak_rss_bytes\": " + std::to_string(r.peak_rss_bytes) +
         (r.checkpoint_age_seconds
              ? ", \"checkpoint_age_seconds\": " + number(*r.checkpoint_age_seconds)
              : "") +
         (r.bound ? ", " + to_json_members(*r.bound) : "") + "}\n");
}

void MetricsLog::write(const Evaluated& e) {
  append("{\"step\": " + std::to_string(e.step) + ", \"eval_loss\": " + number(e.loss) + "}\n");
}

void MetricsLog::write(const Saved& s) {
  append("{\"step\": " + std::to_string(s.step) + ", \"checkpoint_bytes\": " +
         std::to_string(s.bytes) + ", \"checkpoint_seconds\": " + number(s.seconds) +
         ", \"checkpoint_blocked_seconds\": " + number(s.blocked_seconds) + "}\n");
}

void MetricsLog::write(const Transfers& t) {
  std::string ranks;
  for (const std::string& rank : t.by_rank) ranks += (ranks.empty() ? "" : ", ") + rank;
  append("{\"steps\": " + std::to_string(t.steps) + ", \"ranks\": [" + ranks + "]}\n");
}

}  // namespace strata::train
