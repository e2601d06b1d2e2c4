// Rewrites the tables at the end of docs/configuration.md: config_reference DOC.
#include <cstdio>
#include <exception>
#include <string>

#include "core/error.h"
#include "core/file.h"
#include "train/config/reference_page.h"

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw strata::InvalidArgument("usage: config_reference docs/configuration.md");
    std::string page = strata::read_whole_file(argv[1], 1 << 20);
    const std::size_t tables = page.find("## JSON keys");
    if (tables == std::string::npos) {
      throw strata::DataError(std::string(argv[1]) + ": no line '## JSON keys' to begin at");
    }
    page.resize(tables);
    strata::write_file_atomically(argv[1], page + strata::train::configuration_reference());
    return static_cast<int>(strata::ExitCode::done);
  } catch (const strata::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(strata::ExitCode::internal);
  }
}
