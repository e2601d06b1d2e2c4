// The socket on which a run answers `mlaunch status`, `mlaunch stop` and `mlaunch logs` of its
// user. A request is one line, an answer one line of JSON, then the connection ends
// (control/view_question.h). Nothing here blocks, and what a peer sends, or does not send, harms
// the run in no way.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/unique_fd.h"
#include "launcher/group/state_machine.h"
#include "launcher/views/control_folder.h"
#include "launcher/views/view_answers.h"

namespace strata::launcher {

class ControlSocket {
 public:
  static constexpr std::size_t kMaxRequestBytes = 4096;
  /// Beyond it the oldest one that has said nothing is closed.
  static constexpr std::size_t kMostConnections = 16;
  /// Time from the connection to its request, and from there until the answer is read.
  static constexpr std::chrono::seconds kPatience{5};
  /// Time after which a socket that somebody removed is made again: $XDG_RUNTIME_DIR goes when its
  /// user logs out, and the run may go on.
  static constexpr std::chrono::seconds kLook{10};

  /// Listens from now on, in the folder that `open_folder` returns. Throws HostError.
  ControlSocket(std::function<ControlFolder()> open_folder, std::string run_id,
                ViewAnswers answers);
  /// Removes the socket and the record: a run that ends by an exception was not killed.
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  /// Adds what to poll for.
  void add_polls(std::vector<pollfd>& entries) const;
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  /// Does what is due.
  void work(TimePoint now);
  /// Keeps a line (record_json) in its folder for the case that this process is killed.
  void keep_record(const std::string& line);
  /// Removes the socket, keeps `line` (ended_json) in its folder and answers all that wait. Nothing
  /// works afterwards.
  void end(const std::string& line);

 private:
  struct Connection {
    enum class State { asks, waits, is_answered, is_over };
    UniqueFd socket;
    TimePoint deadline;  ///< unless it waits
    State state = State::asks;
    std::string request = {};
    ViewQuestion question = {};  ///< while it waits
    std::string answer = {};
    std::size_t sent = 0;
  };

  void keep_name(TimePoint now);
  void accept(TimePoint now);
  void make_room();
  void serve(Connection& connection, short events, TimePoint now);
  void read_request(Connection& connection, TimePoint now);
  void obey(Connection& connection, std::string_view request, TimePoint now);
  void try_answer(Connection& connection, TimePoint now);
  static void answer(Connection& connection, std::string text, TimePoint now);
  static void send(Connection& connection);

  const std::function<ControlFolder()> open_folder_;
  ControlFolder folder_;
  const std::string run_id_;
  const ViewAnswers answers_;
  UniqueFd listening_;
  std::string record_;                   ///< the last one that was kept; empty: none
  std::vector<Connection> connections_;  ///< oldest first
  TimePoint last_look_{};                ///< for the socket's name
  std::optional<TimePoint> pause_;       ///< until then nobody is let in: descriptors ran out
};

}  // namespace strata::launcher
