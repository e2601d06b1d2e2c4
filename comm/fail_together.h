// Steps that all ranks take together: if one rank fails, all learn of it.
#pragma once

#include <fmt/core.h>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "comm/gather_texts.h"
#include "comm/shown_collective.h"
#include "core/error.h"

namespace strata::comm {

/// An error that occurred on some of the ranks.
struct SharedFailure {
  ExitCode code = ExitCode::done;     ///< exit code of the first rank that failed
  int rank = 0;                       ///< the first rank that failed
  std::vector<std::string> messages;  ///< one per rank; "" where nothing failed

  /// Returns the message of the first rank that failed.
  [[nodiscard]] const std::string& message() const {
    return messages[static_cast<std::size_t>(rank)];
  }
  /// Returns that message with the rank before it: "rank 1: ...".
  [[nodiscard]] std::string message_with_rank() const {
    return fmt::format("rank {}: {}", rank, message());
  }
};

/// Collective: runs `body`; returns on every rank the failures of all, or nullopt if there are
/// none. Lets PeerError through, since a dead communicator cannot tell the others.
template <typename Body>
std::optional<SharedFailure> fail_together(Communicator& communicator, const Body& body) {
  std::string mine;
  ExitCode code = ExitCode::done;
  try {
    body();
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    mine = error.what();
    code = error.exit_code();
  } catch (const std::bad_alloc&) {
    mine = "out of host memory";
    code = ExitCode::host;
  } catch (const std::exception& error) {
    mine = error.what();
    code = ExitCode::internal;
  }
  const ShownCollective shown(communicator, "learn whether all ranks succeeded");
  const std::vector<std::int64_t> codes =
      gather_numbers(communicator, static_cast<std::int64_t>(code));
  for (std::size_t rank = 0; rank < codes.size(); ++rank)
    if (codes[rank] != 0)
      return SharedFailure{static_cast<ExitCode>(codes[rank]), static_cast<int>(rank),
                           gather_texts(communicator, mine)};
  return {};
}

}  // namespace strata::comm
