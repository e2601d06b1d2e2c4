#include "launcher/command/host_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/host_name.h"
#include "core/integer.h"

namespace strata::launcher {
namespace {

constexpr std::int64_t kMostSlots = 1024;
constexpr std::size_t kMostHosts = 1024;
constexpr std::int64_t kMostFileBytes = 1 << 20;

bool is_name(std::string_view name) {
  const auto is_good = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' ||
           letter == '-' || letter == '_' || letter == '@';
  };
  // A name that begins with a hyphen would be an option of ssh.
  return !name.empty() && name.size() <= 255 && name.front() != '-' && name.front() != '@' &&
         name.back() != '@' && std::ranges::all_of(name, is_good) &&
         std::ranges::count(name, '@') <= 1;
}

/// Collects hosts. `where` begins messages.
class Hosts {
 public:
  void add(const std::string& where, std::string_view name, std::optional<std::string_view> slots) {
    if (!is_name(name))
      throw InvalidArgument(fmt::format(
          "{}: '{}' is no name of a host (letters, digits, '.', '-', '_', and user@ before it)",
          where, name));
    ListedHost host{.name = std::string(name)};
    if (slots) {
      const auto number = parse_integer(std::string(*slots));
      if (slots->starts_with('0') || !number || *number < 1 || *number > kMostSlots)
        throw InvalidArgument(
            fmt::format("{}: slots of {} are '{}', expected a number from 1 to {}", where, name,
                        *slots, kMostSlots));
      host.slots = static_cast<int>(*number);
    }
    if (!names_.insert(host.name).second)
      throw InvalidArgument(
          fmt::format("{}: {} is named twice; name it once, with all of its slots", where, name));
    if (hosts_.size() >= kMostHosts)
      throw InvalidArgument(fmt::format("{}: more than {} hosts", where, kMostHosts));
    hosts_.push_back(std::move(host));
  }
  std::vector<ListedHost> take(const std::string& where) {
    if (hosts_.empty()) throw InvalidArgument(where + ": there is no host in it");
    return std::move(hosts_);
  }

 private:
  std::vector<ListedHost> hosts_;
  std::set<std::string> names_;
};

/// Cuts the text before `separator` off `rest`.
std::string_view cut(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

}  // namespace

std::vector<ListedHost> parse_host_list(const std::string& typed, std::string_view text) {
  Hosts hosts;
  for (bool more = true; more;) {
    more = text.find(',') != std::string_view::npos;
    std::string_view word = cut(text, ',');
    const bool has_slots = word.find(':') != std::string_view::npos;
    const std::string_view name = cut(word, ':');
    hosts.add(typed, name, has_slots ? std::optional(word) : std::nullopt);
  }
  return hosts.take(typed);
}

std::vector<ListedHost> parse_hostfile(std::string_view text, const std::string& source) {
  constexpr std::string_view kSlots = "slots=", kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark))
    throw InvalidArgument(
        source +
        ", line 1: the file begins with a byte order mark, which is not part of a name; save it as "
        "UTF-8 without one (BOM)");
  Hosts hosts;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = cut(text, '\n');
    const std::vector<std::string_view> words = words_of(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    const std::string where = fmt::format("{}, line {}", source, number);
    for (const std::string_view word : words)
      if (word.starts_with("max_slots") || word.starts_with("max-slots"))
        throw InvalidArgument(fmt::format(
            "{}: {} is a limit that Open MPI knows; mlaunch starts as many ranks as slots=N says, "
            "so leave it out",
            where, word));
    if (words.size() > 2 || (words.size() == 2 && !words[1].starts_with(kSlots)))
      throw InvalidArgument(where + ": expected NAME slots=N");
    hosts.add(where, words[0],
              words.size() == 2 ? std::optional(words[1].substr(kSlots.size())) : std::nullopt);
  }
  return hosts.take(source);
}

std::vector<ListedHost> read_hostfile(const std::string& path) {
  std::string text;
  try {
    text = read_whole_file(path, kMostFileBytes);
  } catch (const Error& error) {
    throw InvalidArgument(std::string("--hostfile: ") + error.what());
  }
  return parse_hostfile(text, path);
}

bool is_this_host(const std::string& name) {
  return name == "localhost" || name == "127.0.0.1" || name == "::1" || name == "0.0.0.0" ||
         name == host_name();
}

}  // namespace strata::launcher
