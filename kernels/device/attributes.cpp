#include "kernels/device/attributes.h"

#include <fmt/core.h>
#include <algorithm>

#include "core/error.h"

namespace strata::kernels {
namespace {
auto lower(auto& items, std::string_view name) {
  return std::lower_bound(items.begin(), items.end(), name,
                          [](const auto& item, std::string_view key) { return item.first < key; });
}
}  // namespace

void Attributes::set(std::string_view name, double value) {
  auto at = lower(items_, name);
  if (at != items_.end() && at->first == name)
    at->second = value;
  else
    items_.insert(at, {std::string(name), value});
}

bool Attributes::has(std::string_view name) const {
  auto at = lower(items_, name);
  return at != items_.end() && at->first == name;
}

double Attributes::real(std::string_view name) const {
  auto at = lower(items_, name);
  if (at == items_.end() || at->first != name)
    throw InvalidArgument("attribute '" + std::string(name) + "' is missing");
  return at->second;
}

double Attributes::real(std::string_view name, double otherwise) const {
  return has(name) ? real(name) : otherwise;
}

std::int64_t Attributes::integer(std::string_view name) const {
  return static_cast<std::int64_t>(real(name));
}

std::int64_t Attributes::integer(std::string_view name, std::int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

std::string Attributes::to_string() const {
  std::string text;
  for (const auto& [name, value] : items_)
    text += fmt::format("{}{}={:.17g}", text.empty() ? "" : " ", name, value);
  return text;
}

}  // namespace strata::kernels
