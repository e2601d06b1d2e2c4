#include "launcher/command/host_filter.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/error.h"
#include "core/integer.h"
#include "launcher/command/device_choice.h"

namespace strata::launcher {
namespace {

HostFilter::Entry entry_of(const std::string& typed, std::string_view word) {
  const std::size_t colon = std::min(word.find(':'), word.size());
  HostFilter::Entry entry{.host = std::string(word.substr(0, colon))};
  if (entry.host.empty())
    throw InvalidArgument(typed + ": expected hosts and numbers of slots, as in a:0,2@b");
  if (colon < word.size())
    entry.slots = parse_device_list(typed, std::string(word.substr(colon + 1)));
  return entry;
}

/// A filter names hosts without the user, since '@' parts its entries.
bool is_named(const ListedHost& host, const std::string& name) {
  return host.name == name || host.name.ends_with("@" + name);
}

void require_there(const HostFilter& filter, const std::vector<ListedHost>& hosts,
                   int usual_slots) {
  for (const HostFilter::Entry& entry : filter.entries) {
    const auto host = std::ranges::find_if(
        hosts, [&](const ListedHost& one) { return is_named(one, entry.host); });
    if (host == hosts.end())
      throw InvalidArgument(filter.typed + ": " + entry.host + " is none of the listed hosts");
    if (host->slots == 0 && !filter.excludes) continue;  // nobody says which there are
    const int slots = host->slots != 0 ? host->slots : usual_slots;
    for (const std::string& slot : entry.slots)
      if (*parse_integer(slot) >= slots)
        throw InvalidArgument(
            fmt::format("{}: {} has {} slots, numbered from 0", filter.typed, entry.host, slots));
  }
}

/// Returns the slots that an entry leaves of a host.
std::vector<std::string> slots_left(const HostFilter& filter, const HostFilter::Entry& entry,
                                    int slots) {
  if (!filter.excludes) return entry.slots;
  std::vector<std::string> left;
  for (int slot = 0; slot < slots; ++slot)
    if (const std::string number = std::to_string(slot);
        std::ranges::find(entry.slots, number) == entry.slots.end())
      left.push_back(number);
  return left;
}

}  // namespace

HostFilter parse_host_filter(const std::string& typed, std::string_view text, bool excludes) {
  HostFilter filter{.typed = typed, .excludes = excludes};
  for (bool more = true; more;) {
    const std::size_t end = std::min(text.find('@'), text.size());
    more = end < text.size();
    HostFilter::Entry entry = entry_of(typed, text.substr(0, end));
    if (std::ranges::find(filter.entries, entry.host, &HostFilter::Entry::host) !=
        filter.entries.end())
      throw InvalidArgument(typed + ": " + entry.host + " is named twice");
    filter.entries.push_back(std::move(entry));
    if (more) text.remove_prefix(end + 1);
  }
  return filter;
}

std::vector<ListedHost> filter_hosts(const HostFilter& filter, const std::vector<ListedHost>& hosts,
                                     int usual_slots) {
  require_there(filter, hosts, usual_slots);
  std::vector<ListedHost> left;
  for (ListedHost host : hosts) {
    const auto entry = std::ranges::find_if(
        filter.entries, [&](const HostFilter::Entry& one) { return is_named(host, one.host); });
    const bool is_found = entry != filter.entries.end();
    const bool is_whole = !is_found || entry->slots.empty();
    if (is_whole && is_found == filter.excludes) continue;
    if (!is_whole) {
      host.devices = slots_left(filter, *entry, host.slots != 0 ? host.slots : usual_slots);
      if (host.devices.empty()) continue;
      host.slots = static_cast<int>(host.devices.size());
    }
    left.push_back(std::move(host));
  }
  if (left.empty()) throw InvalidArgument(filter.typed + " leaves no host");
  return left;
}

}  // namespace strata::launcher
