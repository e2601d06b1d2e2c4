#include "core/name_aside.h"

#include "core/file.h"
#include "core/link_target.h"

namespace strata {

std::string name_aside(const std::string& path) {
  const std::string first = link_target(path) + ".old";
  std::string name = first;
  for (int number = 2; is_name_taken(name); ++number) name = first + "." + std::to_string(number);
  return name;
}

}  // namespace strata
