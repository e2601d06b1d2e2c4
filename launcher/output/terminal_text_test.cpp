#include "launcher/output/terminal_text.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

TEST(TerminalText, TheLastRewritingIsVisible) {
  EXPECT_EQ(visible_part("\r\x1b[Kstep 1\r\x1b[Kstep 2"), "step 2");
  EXPECT_EQ(visible_part("step 1\r\n"), "step 1");
  EXPECT_EQ(visible_part("\r 10%\r 20%"), " 20%");
  EXPECT_EQ(visible_part(""), "");
}

TEST(TerminalText, PlainTextIsCutAtCharacters) {
  EXPECT_EQ(cut_to_columns("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to_columns("abcdef", 4), "abcd");
  EXPECT_EQ(cut_to_columns("äöü", 2), "äö");
  EXPECT_EQ(cut_to_columns("abc", 0), "");
}

TEST(TerminalText, EscapeSequencesTakeNoRoomAndStayWhole) {
  EXPECT_EQ(cut_to_columns("\x1b[Kabcdef", 4), "\x1b[Kabcd");
  EXPECT_EQ(cut_to_columns("\x1b[31mabc\x1b[0mdef", 6), "\x1b[31mabc\x1b[0mdef");
  EXPECT_EQ(cut_to_columns("\x1b[1;31mabcdef", 4), "\x1b[1;31mabcd\x1b[0m");
  EXPECT_EQ(cut_to_columns("\x1b]0;a long title\aabc", 2), "\x1b]0;a long title\aab");
  EXPECT_EQ(cut_to_columns("\x1b]8;;link\x1b\\abc", 2), "\x1b]8;;link\x1b\\ab");
  EXPECT_EQ(cut_to_columns("ab\x1b[", 2), "ab\x1b[");
  EXPECT_EQ(cut_to_columns("ab\x1b", 2), "ab\x1b");
}

TEST(TerminalText, WideCharactersTakeTwoColumnsAndMarksNone) {
  EXPECT_EQ(cut_to_columns("日本語", 4), "日本");
  EXPECT_EQ(cut_to_columns("日本語", 5), "日本");
  EXPECT_EQ(cut_to_columns("e\u0301e\u0301e\u0301", 2), "e\u0301e\u0301");
  EXPECT_EQ(cut_to_columns("🎉🎉", 3), "🎉");
  EXPECT_EQ(cut_to_columns("██░", 2), "██");
}

}  // namespace
}  // namespace strata::launcher
