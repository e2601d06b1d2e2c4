// What lets a host take part in a run: a token that agents show, and the certificate by which they
// know the coordinator. It is handed over by a file or a pipe, never on a command line or in the
// environment of ranks.
//
//   strata-run-secret 1
//   token 64 hexadecimal digits
//   -----BEGIN CERTIFICATE-----
//   ...
//   -----END CERTIFICATE-----
//   -----BEGIN PRIVATE KEY-----      the coordinator's alone; a file for all hosts has it, too
//   ...
//   -----END PRIVATE KEY-----
#pragma once

#include <string>
#include <string_view>

namespace strata::launcher {

struct RunSecret {
  std::string token;        ///< 64 hexadecimal digits: 256 bits
  std::string certificate;  ///< PEM, self-signed
  std::string key;          ///< PEM, of the certificate; empty: for agents only
  bool operator==(const RunSecret&) const = default;
};

/// Writes it as above.
std::string format_run_secret(const RunSecret& secret);

/// Reads it. `source` names it in messages. Throws ConfigError that says which line is wrong.
RunSecret parse_run_secret(std::string_view text, const std::string& source);

/// Reads it from a file that not everybody may read, or from standard input for "-". Throws
/// ConfigError for a file that others may read, or that is no secret; HostError if it cannot be
/// read.
RunSecret read_run_secret(const std::string& path);

/// "the secret in FILE", "the secret from standard input" for "-".
std::string secret_for_people(const std::string& path);

/// Writes it to a new file (mode 0600). Throws InvalidArgument if the file exists, as hosts of a
/// run may have read it; HostError if it cannot be made, IoError if it cannot be written.
void write_run_secret(const std::string& path, const RunSecret& secret);

}  // namespace strata::launcher
