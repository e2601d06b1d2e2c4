#include "launcher/views/control_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/json_writer.h"

namespace strata::launcher {
namespace {

constexpr std::chrono::seconds kPause{1};
constexpr const char* kKnownRequests =
    "known requests are: status, stop, stop now, logs, follow, wait";

/// True for a process of this user or of root.
bool may_ask(const UniqueFd& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         size == sizeof peer && (peer.uid == ::geteuid() || peer.uid == 0);
}

bool is_temporary(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

ControlSocket::ControlSocket(std::function<ControlFolder()> open_folder, std::string run_id,
                             ViewAnswers answers)
    : open_folder_(std::move(open_folder)),
      folder_(open_folder_()),
      run_id_(std::move(run_id)),
      answers_(std::move(answers)),
      listening_(folder_.listen(run_id_)) {}

ControlSocket::~ControlSocket() {
  if (!listening_.valid()) return;
  folder_.remove_record(run_id_);
  folder_.remove(run_id_);
}

void ControlSocket::keep_record(const std::string& line) {
  record_ = line + "\n";
  folder_.keep_record(run_id_, record_);
}

void ControlSocket::add_polls(std::vector<pollfd>& entries) const {
  entries.push_back({pause_ ? -1 : listening_.get(), POLLIN, 0});
  for (const Connection& connection : connections_) {
    const short events = connection.state == Connection::State::asks          ? POLLIN
                         : connection.state == Connection::State::is_answered ? POLLOUT
                                                                              : 0;
    entries.push_back({connection.socket.get(), events, 0});
  }
}

std::optional<TimePoint> ControlSocket::next_deadline() const {
  std::optional<TimePoint> next = pause_;
  for (const Connection& connection : connections_)
    if (connection.state != Connection::State::waits) next = sooner(next, connection.deadline);
  return next;
}

void ControlSocket::work(TimePoint now) {
  if (!listening_.valid()) return;
  if (last_look_ + kLook <= now) keep_name(now);
  if (pause_ && *pause_ <= now) pause_.reset();
  std::vector<pollfd> entries;
  add_polls(entries);
  if (::poll(entries.data(), entries.size(), 0) < 0) return;  // interrupted, or no memory
  for (std::size_t i = 0; i < connections_.size(); ++i)
    if (entries[i + 1].revents != 0) serve(connections_[i], entries[i + 1].revents, now);
  for (Connection& connection : connections_)
    if (connection.state == Connection::State::waits) try_answer(connection, now);
  std::erase_if(connections_, [now](const Connection& connection) {
    return connection.state == Connection::State::is_over ||
           (connection.state != Connection::State::waits && connection.deadline <= now);
  });
  if (entries[0].revents != 0) accept(now);
}

void ControlSocket::keep_name(TimePoint now) {
  last_look_ = now;
  if (folder_.has(run_id_)) return;
  try {
    ControlFolder folder = open_folder_();
    listening_ = folder.listen(run_id_);
    // It may be another folder, or a new one in the place of the old one.
    if (folder.path() != folder_.path()) folder_.remove_record(run_id_);
    folder_ = std::move(folder);
    if (!record_.empty()) folder_.keep_record(run_id_, record_);
  } catch (const HostError&) {
    // The next look tries again.
  }
}

void ControlSocket::accept(TimePoint now) {
  for (std::size_t i = 0; i < kMostConnections; ++i) {
    UniqueFd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      // Who waits stays readable, and would keep the loop busy.
      if (!is_temporary(errno) && errno != ECONNABORTED) pause_ = now + kPause;
      return;
    }
    if (!may_ask(socket)) continue;
    make_room();
    connections_.push_back({.socket = std::move(socket), .deadline = now + kPatience});
  }
}

void ControlSocket::make_room() {
  if (connections_.size() < kMostConnections) return;
  const auto silent = std::ranges::find(connections_, Connection::State::asks, &Connection::state);
  connections_.erase(silent != connections_.end() ? silent : connections_.begin());
}

void ControlSocket::serve(Connection& connection, short events, TimePoint now) {
  if (connection.state == Connection::State::asks)
    read_request(connection, now);
  else if (connection.state == Connection::State::is_answered)
    send(connection);
  else if ((events & (POLLHUP | POLLERR)) != 0)
    connection.state = Connection::State::is_over;
}

void ControlSocket::read_request(Connection& connection, TimePoint now) {
  std::array<char, kMaxRequestBytes + 1> bytes;
  const ssize_t count = ::read(connection.socket.get(), bytes.data(), bytes.size());
  if (count < 0) {
    if (!is_temporary(errno)) connection.state = Connection::State::is_over;
    return;
  }
  connection.request.append(bytes.data(), static_cast<std::size_t>(count));
  const std::size_t end = connection.request.find('\n');
  if (end != std::string::npos)
    obey(connection, std::string_view(connection.request).substr(0, end), now);
  else if (count == 0 || connection.request.size() > kMaxRequestBytes)
    obey(connection, "", now);
}

void ControlSocket::obey(Connection& connection, std::string_view request, TimePoint now) {
  if (const auto question = parse_view_question(request)) {
    connection.state = Connection::State::waits;
    connection.question = *question;
    return try_answer(connection, now);
  }
  JsonWriter json(0);
  json.begin_object().member("error", kKnownRequests).end_object();
  answer(connection, json.finish(), now);
}

void ControlSocket::try_answer(Connection& connection, TimePoint now) {
  if (auto text = answer_view(answers_, connection.question))
    answer(connection, std::move(*text), now);
}

void ControlSocket::answer(Connection& connection, std::string text, TimePoint now) {
  connection.state = Connection::State::is_answered;
  connection.answer = std::move(text) + "\n";
  connection.deadline = now + kPatience;
  send(connection);
}

void ControlSocket::send(Connection& connection) {
  while (connection.sent < connection.answer.size()) {
    const ssize_t count =
        ::send(connection.socket.get(), connection.answer.data() + connection.sent,
               connection.answer.size() - connection.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (!is_temporary(errno)) connection.state = Connection::State::is_over;
      return;
    }
    connection.sent += static_cast<std::size_t>(count);
  }
  connection.state = Connection::State::is_over;
}

void ControlSocket::end(const std::string& line) {
  if (!listening_.valid()) return;
  folder_.keep_end(run_id_, line + "\n");
  folder_.remove_record(run_id_);
  folder_.remove(run_id_);
  listening_.close();
  for (Connection& connection : connections_)
    if (connection.state == Connection::State::waits)
      answer(connection, last_answer(answers_, connection.question, line), {});
  connections_.clear();
}

}  // namespace strata::launcher
