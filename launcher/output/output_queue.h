// Bytes that wait for one of mlaunch's own output descriptors; writing never blocks mlaunch's loop.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata::launcher {

class OutputQueue {
 public:
  /// The size above which mlaunch stops reading the ranks' pipes, so that their writers wait.
  static constexpr std::size_t kFullBytes = std::size_t{1} << 20;

  explicit OutputQueue(int fd);

  void append(std::string_view bytes);
  /// Writes as much as the descriptor takes at once.
  void write_some();

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool pending() const { return written_ < bytes_.size(); }
  [[nodiscard]] bool full() const { return bytes_.size() - written_ > kFullBytes; }
  [[nodiscard]] bool is_terminal() const { return is_terminal_; }
  /// errno of the write that failed; since then all bytes are dropped. 0: no failure.
  [[nodiscard]] int error() const { return error_; }

 private:
  bool write_once();

  int fd_;
  bool is_terminal_;
  bool is_file_;
  std::string bytes_;
  std::size_t written_ = 0;
  int error_ = 0;
};

}  // namespace strata::launcher
