// A folder for one test's files. Test code only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "core/file.h"

namespace strata {

class TestDirectory {
 public:
  TestDirectory() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(info->test_suite_name()) + "_" + info->name();
    std::replace(name.begin(), name.end(), '/', '_');  // TEST_P separates test and parameter by '/'
    path_ = testing::TempDir() + "strata_" + name + "_" + std::to_string(::getpid());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestDirectory() { std::filesystem::remove_all(path_); }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and returns its path.
  std::string file(const std::string& name, const std::string& content) const {
    write_file_atomically(*this / name, content);
    return *this / name;
  }

 private:
  std::string path_;
};

/// Returns the message of the ErrorType that `action` throws; "no error" when it throws none.
template <typename ErrorType, typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const ErrorType& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace strata
