// Standard output of a program: text that it does not take, as on a full disk, is an error.
#pragma once

#include <cstdio>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace strata {

/// True if a write that failed with `error_number` failed because nobody reads what is written: the
/// stream or the other end of a pipe is closed, a terminal has gone. Nobody misses that text.
bool reader_has_gone(int fd, int error_number);

/// Opens /dev/null in place of standard input, output and error that are closed: what a program
/// opens next would get their numbers, and what it prints. Call it before anything is opened.
/// Throws HostError.
void open_closed_streams();

/// Prints text, at once. A failure stops nothing, since a program may have more to do than to print
/// (files to write, a run to end): it is kept until the program asks. A reader that has gone is no
/// failure. One thread at a time.
class StandardOutput {
 public:
  explicit StandardOutput(std::FILE* stream = stdout) : stream_(stream) {}

  /// Text that cannot be written is lost; the next one is tried nonetheless, for disks become free.
  void print(std::string_view text);
  /// False once text was lost, also where nobody reads it: who would print on and on should end.
  [[nodiscard]] bool takes_text() const { return takes_text_; }
  /// Throws the first failure, once, as IoError.
  void throw_if_lost();
  /// The same at the end of a program, when also the text must have arrived that others left in the
  /// stream, as CLI11 does with its help.
  void finish();
  /// Does so, and returns the exit code of a program that is done with `code`: the failure's, of
  /// which `tell` is told, if that is 0; other codes say more.
  template <typename Tell>
  int exit_code_after(int code, const Tell& tell) {
    try {
      finish();
    } catch (const IoError& error) {
      tell(error);
      if (code == static_cast<int>(ExitCode::done)) return static_cast<int>(error.exit_code());
    }
    return code;
  }

 private:
  void note_failure(int error_number);

  std::FILE* stream_;
  bool takes_text_ = true;
  std::optional<int> lost_;  ///< errno of the first failure, 0 if it is not known
  bool thrown_ = false;
};

}  // namespace strata
