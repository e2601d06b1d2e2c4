#include "comm/communicators.h"

#include <gtest/gtest.h>

#include "comm/host_stream.h"
#include "comm/single.h"
#include "core/error.h"

namespace strata::comm {
namespace {

std::string refusal(const Communicators& communicators, MeshAxis axis) {
  try {
    static_cast<void>(communicators.of(axis));
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Communicators, FindsTheOneOfAnAxis) {
  SingleCommunicator data;
  SingleCommunicator tensor;
  Communicators communicators;
  EXPECT_FALSE(communicators.has(MeshAxis::data));
  communicators.add(MeshAxis::data, data);
  communicators.add(MeshAxis::tensor, tensor);
  const Communicators copy = communicators;
  EXPECT_EQ(&copy.of(MeshAxis::data), &data);
  EXPECT_EQ(&copy.of(MeshAxis::tensor), &tensor);
  EXPECT_FALSE(copy.has(MeshAxis::expert));
}

TEST(Communicators, NamesAnAxisThatTheRunDoesNotHave) {
  SingleCommunicator data;
  Communicators communicators;
  EXPECT_EQ(refusal(communicators, MeshAxis::data),
            "a collective names mesh axis 'data', which this run does not have; it has none");
  communicators.add(MeshAxis::data, data);
  EXPECT_EQ(refusal(communicators, MeshAxis::pipeline),
            "a collective names mesh axis 'pipeline', which this run does not have; it has 'data'");
}

TEST(Communicators, AbortReachesEveryAxis) {
  SingleCommunicator data;
  SingleCommunicator expert;
  Communicators communicators;
  communicators.add(MeshAxis::data, data);
  communicators.add(MeshAxis::expert, expert);
  communicators.abort("stop", ExitCode::internal);
  HostStream stream;
  EXPECT_THROW(data.run(stream, {}, nullptr, nullptr, {}), PeerError);
  EXPECT_THROW(expert.run(stream, {}, nullptr, nullptr, {}), PeerError);
}

TEST(CommunicatorsDeathTest, EndOnASecondOneOfAnAxis) {
  SingleCommunicator data;
  Communicators communicators;
  communicators.add(MeshAxis::data, data);
  EXPECT_DEATH(communicators.add(MeshAxis::data, data), "second communicator for mesh axis data");
}

}  // namespace
}  // namespace strata::comm
