#include "train/run/corpus.h"

#include <gtest/gtest.h>

#include "comm/factory.h"
#include "core/error.h"
#include "core/testing/test_directory.h"
#include "train/data/token_digest.h"

namespace strata::train {
namespace {

using namespace std::string_literals;

class CorpusTest : public testing::Test {
 protected:
  Corpus open(const std::vector<std::string>& data) {
    options_.data = data;
    return open_corpus(options_, 256, *communicator_, {});
  }
  static std::vector<std::int32_t> all(const TokenSource& source) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(source.size()));
    source.read(0, ids);
    return ids;
  }

  TestDirectory directory_;
  TrainOptions options_;
  std::unique_ptr<comm::Communicator> communicator_ = comm::make_communicator({}, "single");
};

TEST_F(CorpusTest, OneFileIsItsBytes) {
  const Corpus corpus = open({directory_.file("a.txt", "ab")});
  EXPECT_EQ(all(*corpus.training), (std::vector<std::int32_t>{'a', 'b'}));
  EXPECT_EQ(corpus.held_out, nullptr);
  EXPECT_TRUE(corpus.notes.empty());
}

TEST_F(CorpusTest, ByteZeroStandsBetweenTexts) {
  const std::string a = directory_.file("a.txt", "ab"), c = directory_.file("c.txt", "c");
  const Corpus corpus = open({a, c, a});
  EXPECT_EQ(all(*corpus.training), (std::vector<std::int32_t>{'a', 'b', 0, 'c', 0, 'a', 'b'}));
  EXPECT_EQ(corpus.training->name(), a + " and 2 more");
  EXPECT_EQ(corpus.notes, std::vector<std::string>{"byte 0 stands between data files"});
}

TEST_F(CorpusTest, TokenFilesFollowOneAnotherAsTheyAre) {
  const std::string t = directory_.file("t.bin", "\5\0\6\0"s), a = directory_.file("a.txt", "a");
  EXPECT_EQ(all(*open({t, t}).training), (std::vector<std::int32_t>{5, 6, 5, 6}));
  EXPECT_EQ(all(*open({t, a, t}).training), (std::vector<std::int32_t>{5, 6, 0, 'a', 0, 5, 6}));
}

TEST_F(CorpusTest, ReadingAllOfItBeats) {
  const std::string tokens = directory_.file("t.bin", std::string(10'000, '\0'));
  const Corpus corpus = open({tokens});
  int beats = 0;
  const Beat beat([&beats] { ++beats; });
  check_tokens(corpus, options_, 0, 1, beat);
  EXPECT_EQ(beats, 1);
  (void)digest_tokens(*corpus.training, beat);
  EXPECT_EQ(beats, 3) << "5,000 tokens are two stretches";
}

TEST_F(CorpusTest, AnEvaluationAloneNeedsNoTrainingText) {
  options_.steps = 0;
  options_.eval_data = directory_.file("e.txt", "held out");
  const Corpus corpus = open({});
  EXPECT_EQ(corpus.held_out->size(), 8);
  EXPECT_EQ(corpus.training->size(), 8);
}

TEST_F(CorpusTest, HeldOutDataThatAreTrainedOnAreNoted) {
  const std::string a = directory_.file("a.txt", "some text"),
                    b = directory_.file("b.txt", "some text");
  options_.eval_data = a;
  EXPECT_TRUE(open({b}).notes.empty());
  EXPECT_EQ(open({directory_.path() + "/./a.txt"}).notes,
            std::vector<std::string>{"--eval-data " + a +
                                     " is trained on, too: its loss says nothing of other text"});
  options_.steps = 0;
  EXPECT_TRUE(open({a}).notes.empty());
}

TEST_F(CorpusTest, WithoutDataTheTextOfThisRepositoryIsSaidToBeRead) {
  const Corpus corpus = open({});
  EXPECT_GT(corpus.training->size(), 1000);
  ASSERT_FALSE(corpus.notes.empty());
  EXPECT_NE(corpus.notes.back().find("no --data"), std::string::npos);
}

}  // namespace
}  // namespace strata::train
