// The link between "hosts" that are groups of rank threads of one process: bytes are copied.
#pragma once

#include <memory>

#include "comm/hosts/host_link.h"

namespace strata::comm {

/// State that all links of a world share. Thread-safe.
class ThreadHosts;

std::shared_ptr<ThreadHosts> make_thread_hosts(int world);
std::unique_ptr<HostLink> make_thread_host_link(std::shared_ptr<ThreadHosts> hosts, int rank);

}  // namespace strata::comm
