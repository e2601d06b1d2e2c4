#include <cstdio>

#include "core/json.h"

int main(int argc, char** argv) {
  int unused = 0;  // a warning under the flags of the library's own build
  const strata::JsonValue json = strata::parse_json(R"({"layers": 2})", "a test", {});
  std::printf("layers %lld\n", static_cast<long long>(json.at("layers").as_integer()));
}
