#include "train/run/plan_memory.h"

#include <gtest/gtest.h>

#include "core/status_page.h"
#include "train/config/testing/settled_options.h"
#include "train/models/hf_config.h"
#include "train/run/run_parts.h"
#include "train/run/training_run.h"

namespace strata::train {
namespace {

// Fault 8.
TEST(PlanMemory, BeatsWhileItSearches) {
  StatusPage page = StatusPage::create(0);
  RunRequest request;
  request.context.page = &page;
  request.model = read_model_config("gpt2-tiny");
  request.config = resolve(flags({"--model", "gpt2-tiny", "--device", "cpu", "--threads", "1",
                                  "--sequence-length", "64", "--target-memory", "1MB"}),
                           1, request.model);
  const RunListeners nobody;
  RunParts run(request, nobody);
  EXPECT_THROW((void)open_training(run), OutOfMemory) << "nothing fits, so all is tried";
  EXPECT_GT(page.data().beats.load(), 50U);
}

}  // namespace
}  // namespace strata::train
