#include "train/session/note_replaced.h"

#include <gtest/gtest.h>

#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

TEST(NoteReplaced, NamesAFileThatHasSomething) {
  const TestDirectory directory;
  const auto noted = [](const std::string& path) {
    std::string text;
    RunListeners listeners;
    listeners.add([&](const RunEvent& event) { text += std::get<Note>(event).text; });
    note_replaced("--trace", path, listeners);
    return text;
  };
  const std::string file = directory.file("a", "[]");
  EXPECT_EQ(noted(file), "--trace " + file +
                             ": is there from an earlier run, and is replaced when this one ends");
  EXPECT_EQ(noted(directory.file("b", "")), "");
  EXPECT_EQ(noted(directory / "c"), "");
  EXPECT_EQ(noted("/dev/null"), "");
}

}  // namespace
}  // namespace strata::train
