// What the coordinator of a run and the agents of its hosts tell one another. Plain values: on one
// host they are handed over in the process, between hosts a module sends them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/shared_values.h"
#include "launcher/control/attempt_facts.h"
#include "launcher/control/hang_watch.h"
#include "launcher/control/placement.h"
#include "launcher/control/rank_state.h"

namespace strata::launcher {

// From an agent.

/// The first word of an agent, and of one that comes back after its connection broke.
struct Hello {
  std::string host;            ///< its name, unique in the run
  std::string agent = "";      ///< differs for each process that is an agent of the host
  int slots = 1;               ///< ranks that it may start
  int newest = -1;             ///< the newest attempt that it knows of; -1: none. Older never start
  bool has_had_ranks = false;  ///< ranks of an attempt have started under it
  std::string host_name = {};  ///< for people, if `host` is a number
  std::string address = {};    ///< from which it came, as the coordinator sees it; may be empty
};

/// Comes every second, and at once after ranks were started or ended.
struct Heartbeat {
  std::int64_t number = 0;  ///< counts the agent's heartbeats; a lease names it
  int newest = -1;          ///< as in Hello
  bool has_ranks = false;   ///< false: none is left, and no descendant of one
  std::size_t signals = 0;  ///< of the newest attempt, that its ranks got
  std::vector<RankState> ranks = {};
};

/// A rank of the host failed, and its peers will end because of it. Facts follow in AttemptEnded.
struct RankFailed {
  int attempt = 0;
  int rank = 0;        ///< in the whole run
  std::string reason;  ///< one line for peers: "rank 3 was killed by signal 9 (SIGKILL)"
  bool blames_a_peer = false;
};

/// No rank of the attempt is left on the host, and no descendant of one. Told again after a
/// connection broke.
struct AttemptEnded {
  int attempt = 0;
  AttemptFacts facts;
  bool lease_ended = false;  ///< the agent killed them, since nobody had answered it
};

/// The agent got a signal, as from a scheduler that wants its host back. What it asks for is asked
/// of the whole run. Schedulers signal all hosts: the same number from several is one signal.
/// Told again on each new connection.
struct SignalCame {
  int number = 0;
  int index = 0;  ///< among the signals of this number to the agent
};

/// Tells what holds the ranks of this host that Collect asked for.
struct Evidence {
  int attempt = 0;
  std::string text;         ///< several lines for people
  std::string advice = {};  ///< what to do, as far as this host can tell
  /// More lines, for files alone: the last events of all ranks of this host, and what NCCL says.
  std::string details = {};
};

/// A rank of the host asks for a value that all hosts share. Told again on each new connection
/// until it is answered.
struct StoreRequest {
  int attempt = 0;
  ValueRequest request;
};

using AgentMessage =
    std::variant<Hello, Heartbeat, RankFailed, AttemptEnded, SignalCame, StoreRequest, Evidence>;

// From the coordinator.

/// Start the ranks of `placement` on host number `node`. Told again until a heartbeat shows that
/// they were started; an agent whose lease has ended, or that has ranks, does not obey.
struct StartAttempt {
  Placement placement;
  int node = 0;
  std::int64_t last_step = -1;  ///< the last step that an earlier attempt was seen in; -1: none
  bool is_elastic = false;      ///< rank 0 is to say how many ranks the run may have
  /// Time that rank 0 waits for ranks of an earlier attempt to let go of the output folder.
  std::chrono::seconds lock_wait{5};
  bool operator==(const StartAttempt&) const = default;
};

/// A rank elsewhere failed, or a host is lost: end the ranks as if a peer on this host had failed.
struct StopAttempt {
  int attempt = 0;
  std::string reason;
  bool operator==(const StopAttempt&) const = default;
};

/// The user or a scheduler sent mlaunch a signal, which all ranks are to get, once. Told again
/// until a heartbeat shows that they have.
struct ForwardSignal {
  int number = 0;
  int attempt = 0;
  std::size_t index = 0;  ///< among the signals to the attempt
  bool operator==(const ForwardSignal&) const = default;
};

/// Answers a heartbeat: ranks may live for the time of a lease from when that one was sent.
struct Lease {
  std::int64_t heartbeat = 0;
  int attempt = -1;       ///< the run's newest: no older one may start any more
  bool is_spare = false;  ///< that attempt runs without this host
  bool operator==(const Lease&) const = default;
};

/// The run is over, can do without this host, or has another agent there: end.
struct Dismiss {
  int exit_code = 0;        ///< that the agent ends with
  std::string reason = {};  ///< for people on its host; empty: all went well
  bool operator==(const Dismiss&) const = default;
};

/// Ranks hang, and some to blame for it are on this host, or some that wait for those: say what
/// holds them before they are ended.
struct Collect {
  int attempt = 0;
  Hang hang;
};

/// Answers a StoreRequest.
struct StoreReply {
  int attempt = 0;
  ValueAnswer answer;
  bool operator==(const StoreReply&) const = default;
};

using CoordinatorMessage =
    std::variant<StartAttempt, StopAttempt, ForwardSignal, Lease, Dismiss, StoreReply, Collect>;

}  // namespace strata::launcher
