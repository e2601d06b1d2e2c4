#include "launcher/wire/secret_command.h"

#include "core/error.h"
#include "launcher/wire/control_wire.h"

namespace strata::launcher {
namespace {

constexpr const char* kHelp =
    R"(mlaunch secret makes the file that lets hosts take part in a run, and commands reach it from
elsewhere: a token of 256 bits, and a certificate with its key.

    mlaunch secret FILE

Make it once, on one host, and bring it to all others (a shared folder, scp, a Secret of
Kubernetes); each gets it by --run-secret FILE. Only its owner may read it (mode 0600): whoever has
it can start what the run starts, see it and end it. It may serve one run after the other. FILE must
not exist. It needs no port and starts nothing.

    -h, --help   this text

Exit codes: 0 it is made, 2 wrong command line, or FILE exists, 69 it cannot be made, 74 it cannot
be written.
A program that is called secret starts with: mlaunch -- secret
)";

}  // namespace

int secret_command(const std::vector<std::string>& arguments, StandardOutput& output) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  if (first == "-h" || first == "--help") {
    output.print(kHelp);
    return 0;
  }
  if (arguments.size() != 1 || first.empty() || first.starts_with('-'))
    throw InvalidArgument("expected: mlaunch secret FILE; see mlaunch secret --help");
  write_run_secret(first, open_control_module()->make_secret());
  return 0;
}

}  // namespace strata::launcher
