#include "kernels/device/attributes.h"

#include <algorithm>
#include <cstdio>

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
  char number[40];
  for (const auto& [name, value] : items_) {
    std::snprintf(number, sizeof number, "%.17g", value);
    text += (text.empty() ? "" : " ") + name + "=" + number;
  }
  return text;
}

}  // namespace strata::kernels
