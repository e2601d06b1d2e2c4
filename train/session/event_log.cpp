#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <utility>

#include "train/session/event_records.h"
#include "train/session/host_label.h"
#include "train/session/scalar_log.h"

namespace strata::train {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

double now_s() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

/// Readers take files in the order of their names, in which the second comes first: the current
/// one, or one after those that the folder has.
std::int64_t second_of_new_file(const std::string& folder) {
  auto second = static_cast<std::int64_t>(now_s());
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    std::int64_t other = 0;
    if (!name.starts_with(kPrefix)) continue;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), other);
    constexpr std::int64_t kMostSeconds = 1'000'000'000'000;  // others name no second
    if (other < kMostSeconds) second = std::max(second, other + 1);
  }
  return second;
}

class EventLog final : public ScalarLog {
 public:
  EventLog(const LogBeginning& beginning, AppendedFile::OnFailure on_failure)
      : file_(fmt::format("{}/{}{}.{}.{}", beginning.folder, kPrefix,
                          second_of_new_file(beginning.folder), host_label(), ::getpid()),
              "events", std::move(on_failure)) {
    (void)file_.append(version_record(now_s()));
    (void)file_.append(restart_record(now_s(), beginning.done + 1));
  }

  bool write(std::int64_t x, std::span<const Scalar> scalars) override {
    return file_.append(scalars_record(now_s(), x, scalars));
  }

 private:
  AppendedFile file_;
};

}  // namespace

std::unique_ptr<ScalarLog> open_event_log(const LogBeginning& beginning,
                                          AppendedFile::OnFailure on_failure) {
  return std::make_unique<EventLog>(beginning, std::move(on_failure));
}

}  // namespace strata::train
