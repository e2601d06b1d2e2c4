// The dictionary that ranks of all hosts of a run share during an attempt, for addresses and
// fingerprints, and what a host's rendezvous asks of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace strata {

/// A rank wants to put a value, or to get one once it is there. Asking again does no harm.
struct ValueRequest {
  std::uint64_t id = 0;  ///< unique on its host during the attempt; repeated in the answer
  bool is_put = false;
  std::string key;
  std::string value = {};       ///< to put
  std::int64_t timeout_ms = 0;  ///< to wait for a value
  bool operator==(const ValueRequest&) const = default;
};

struct ValueAnswer {
  enum class Kind : std::uint32_t {
    done,       ///< it is put, or `value` is what was wanted
    timed_out,  ///< nobody has put it
    refused,    ///< a limit of the dictionary; `value` says which
    failed      ///< a rank or a host failed; `value` says which
  };
  std::uint64_t id = 0;
  Kind kind = Kind::done;
  std::string value = {};
  bool operator==(const ValueAnswer&) const = default;
};

/// Keys that begin so, after what the client adds, belong to their host alone.
inline constexpr const char* kKeyOfHost = "host/";

/// Where rank 0 says how many ranks the run may have, in a run whose number of hosts may change:
/// numbers with a space between, "1 2 4", after "keep " if ranks do not save and stop when they are
/// sent SIGUSR1, so that the run cannot grow. The coordinator reads it.
inline constexpr const char* kWorldsKey = "run/worlds";

/// The dictionary, as a pure function of requests and their times.
class SharedValues {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostWaiting = 65'536;

  /// An answer to what a host asked.
  struct Answered {
    std::string host;
    ValueAnswer answer;
  };

  /// Forgets everything: an attempt begins.
  void begin();
  /// Takes a request; returns the answers that it makes possible. A host that asks again, since its
  /// connection broke, gets the answer once.
  std::vector<Answered> ask(TimePoint now, const std::string& host, const ValueRequest& request);
  /// Answers those who have waited for too long.
  std::vector<Answered> expire(TimePoint now);
  /// A rank or a host failed: nobody need wait any more, now or later.
  std::vector<Answered> fail(const std::string& reason);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  struct Waiting {
    std::string host;
    std::uint64_t id = 0;
    std::string key;
    TimePoint until;
  };

  std::vector<Answered> put(const std::string& host, const ValueRequest& request);
  std::vector<Answered> answer_those_who_wait(const std::string& key);

  std::map<std::string, std::string> values_;
  std::size_t bytes_ = 0;
  std::vector<Waiting> waiting_;
  std::optional<std::string> failure_;
};

}  // namespace strata
