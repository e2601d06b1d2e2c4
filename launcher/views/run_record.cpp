#include "launcher/views/run_record.h"

#include <fmt/core.h>

#include "core/error.h"
#include "core/host_name.h"
#include "launcher/group/process_start.h"
#include "launcher/group/process_state.h"
#include "launcher/views/control_socket.h"
#include "launcher/views/told_members.h"

namespace strata::launcher {

bool RunRecord::is_here() const { return host == host_name(); }

bool RunRecord::was_killed() const { return is_here() && !goes_on(process, started); }

std::string RunRecord::why_silent() const {
  if (!is_here())
    return fmt::format(
        "it is on host {} (process {}), where it was seen last at {}, and answers there alone",
        host, process, seen_at);
  const ProcessState state = read_process_state(process);
  const std::string again = state.frozen    ? "goes on (" + state.thaw + ")"
                            : state.stopped ? fmt::format("goes on (kill -CONT {})", process)
                                            : "";
  return fmt::format(
      "its mlaunch (process {}) is there, but its socket was removed; it makes another one {}",
      process,
      again.empty() ? fmt::format("within {} s", ControlSocket::kLook.count())
                    : "once it " + again);
}

std::optional<RunRecord> read_record(const std::string& line) {
  try {
    const JsonValue told = parse_json(line, "a record", {});
    if (!told.is(JsonKind::object)) return {};
    const auto process = told_integer(told, "process");
    RunRecord record{.run_id = told_text(told, "run"),
                     .host = told_text(told, "host"),
                     .process = static_cast<pid_t>(process.value_or(0)),
                     .started = told_integer(told, "process_start"),
                     .seen_at = told_text(told, "seen_at"),
                     .told = told};
    if (record.run_id.empty() || record.host.empty() || record.seen_at.empty() || !process)
      return {};
    return record;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace strata::launcher
