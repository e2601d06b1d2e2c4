// Addresses of hosts: where the coordinator listens, and by which address others reach a host.
#pragma once

#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace strata::launcher {

/// Returns "10.0.0.1:29500", or "[fd00::1]:29500".
std::string host_and_port(const std::string& address, int port);

/// Reads what host_and_port wrote, with a name or a numeric address; `option` names it in messages.
/// Throws InvalidArgument.
std::pair<std::string, int> parse_host_and_port(const std::string& option, const std::string& text);

/// Returns the numeric address that a name leads to on this host; a numeric address as it is.
/// Throws HostError for a name that leads nowhere, ConfigError for a link-local address
/// (fe80::1%eth0): no other host could be told of it.
std::string numeric_address(const std::string& name);

/// Looks names up in threads, 32 at a time: one that a name server does not answer for takes many
/// seconds. The results, in the order of the names, are what `look_up` returns or
/// throws, and need not be waited for.
std::vector<std::future<std::string>> look_up_at_once(
    const std::vector<std::string>& names,
    const std::function<std::string(const std::string&)>& look_up = numeric_address);

/// True for addresses that lead to the same host from everywhere.
bool is_loopback(const std::string& numeric);

/// Throws HostError if this host does not have the address, or the port is in use (0: any port).
void check_listening_address(const std::string& numeric, int port);

/// Returns the address of this host by which it reaches another one; nothing is sent. Throws
/// HostError if there is no way there.
std::string address_towards(const std::string& numeric, int port);

}  // namespace strata::launcher
