// TCP sockets of this host and whose they are, from /proc.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace strata {

/// Returns the user whose process has connected to `accepted`, a TCP connection from this host;
/// nullopt: it is not from this host, or has ended.
std::optional<uid_t> user_of_peer(int accepted, const std::filesystem::path& proc = "/proc");

/// Says who holds a TCP port of this host, for messages: "process 1234 (python3)", as far as this
/// user may see it, else "a process of user NAME"; "another program" if nothing is known.
std::string holder_of_port(int port, const std::filesystem::path& proc = "/proc");

/// True if one of the processes listens at a TCP port of this host, as far as this user may see it.
/// Does not wait for any of them, whatever holds it.
bool any_listens(std::span<const pid_t> processes, int port,
                 const std::filesystem::path& proc = "/proc");

}  // namespace strata
