#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "core/error.h"
#include "core/rank_context.h"

namespace strata {
namespace {

using std::chrono::milliseconds;

TEST(LocalStore, GetWaitsForPut) {
  const auto store = make_local_store();
  std::thread putter([&] {
    std::this_thread::sleep_for(milliseconds(20));
    store->put("address", "here");
  });
  EXPECT_EQ(store->get("address", milliseconds(5000)), "here");
  putter.join();
}

TEST(LocalStore, NamesTheKeyThatNobodyPut) {
  try {
    make_local_store()->get("address", milliseconds(10));
    FAIL() << "did not throw";
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("'address'"), std::string::npos);
  }
}

TEST(LocalStore, HandsOutDescriptorsThatOutliveTheGiven) {
  const auto store = make_local_store();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  {
    const UniqueFd writer(ends[1]);
    store->put_fd("pipe", writer.get());
  }
  for (const char letter : {'a', 'b'}) {
    const UniqueFd writer = store->get_fd("pipe", milliseconds(10));
    ASSERT_EQ(::write(writer.get(), &letter, 1), 1);
    char read = 0;
    ASSERT_EQ(::read(reader.get(), &read, 1), 1);
    EXPECT_EQ(read, letter);
  }
}

}  // namespace
}  // namespace strata
