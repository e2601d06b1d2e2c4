// Checks offload in JSON and flags: what is obeyed, what is only a hint, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kClipping = "\"gradient_clipping\": 1, ";

/// A file with one micro-batch and these members of zero_optimization.
std::string zero(const std::string& members, const std::string& others = "") {
  return with_batch(kClipping + ("\"zero_optimization\": {" + members + "}") +
                    (others.empty() ? "" : ", " + others));
}

std::string offload(const std::string& section, const std::string& members, int stage = 3) {
  return zero("\"stage\": " + std::to_string(stage) + ", \"" + section + "\": {" + members + "}");
}

OffloadOptions of(const std::string& json, const std::vector<std::string>& words = {},
                  int world = 1) {
  return resolve_text(json, words, world).options.offload;
}

std::string notes(const std::string& json, const std::vector<std::string>& words = {},
                  int world = 1) {
  return lines(resolve_text(json, words, world).notes);
}

TEST(OffloadConfig, NothingIsOffloadedUnlessSaid) {
  const OffloadOptions o = of(with_batch(""));
  EXPECT_EQ(o.optimizer, plan::Home::device);
  EXPECT_EQ(o.parameters, plan::Home::device);
  EXPECT_EQ(o.activations, plan::Home::device);
  EXPECT_EQ(o.optimizer_ratio, 1);
  EXPECT_EQ(o.updates, UpdateTime::automatic);
  EXPECT_EQ(o.device_memory_bytes, kUnlimitedMemory);
  EXPECT_EQ(o.host_memory_bytes, kUnlimitedMemory);
  EXPECT_EQ(o.request_bytes, 0);
  EXPECT_EQ(o.queue_depth, 0);
  EXPECT_TRUE(o.checksums);
  EXPECT_THAT(describe(resolve_text(with_batch(""))), HasSubstr("unlimited"));
}

struct Obeyed {
  std::string json;
  std::string option;
  std::string value;
};

void PrintTo(const Obeyed& row, std::ostream* out) { *out << row.json; }

class ObeyedOffload : public ::testing::TestWithParam<Obeyed> {};

TEST_P(ObeyedOffload, SetsItsOption) {
  const ResolvedConfig resolved = resolve_text(GetParam().json);
  EXPECT_EQ(value_of(resolved, GetParam().option), GetParam().value);
  EXPECT_EQ(resolved.origin_of(GetParam().option), Origin::file);
}

const std::string kNvme = R"("device": "nvme", "nvme_path": "/drive")";
const std::string kStrata = R"("strata": )";

const Obeyed kObeyed[] = {
    {offload("offload_optimizer", R"("device": "none")"), "offload.optimizer", "none"},
    {offload("offload_optimizer", R"("device": "cpu")"), "offload.optimizer", "cpu"},
    {offload("offload_optimizer", R"("device": "CPU")", 1), "offload.optimizer", "cpu"},
    {offload("offload_optimizer", kNvme), "offload.optimizer", "nvme"},
    {offload("offload_optimizer", kNvme), "offload.nvme_paths", "/drive"},
    {offload("offload_optimizer", R"("device": "cpu", "ratio": 0.3)"), "offload.optimizer_ratio",
     "0.3"},
    {offload("offload_param", R"("device": "cpu")", 0), "offload.parameters", "cpu"},
    {offload("offload_param", kNvme), "offload.parameters", "nvme"},
    {offload("offload_param", kNvme), "offload.nvme_paths", "/drive"},
    {offload("offload_param", kNvme + R"(, "max_in_cpu": 1e6)"), "offload.parameter_host_elements",
     "1000000"},
    {zero(R"("stage": 2, "cpu_offload": true)"), "offload.optimizer", "cpu"},
    {zero(R"("stage": 2, "cpu_offload": false)"), "offload.optimizer", "none"},
    {zero(R"("stage": 3, "cpu_offload_param": true)"), "offload.parameters", "cpu"},
    {zero(R"("stage": 3, "cpu_offload_params": true)"), "offload.parameters", "cpu"},
    {with_batch(kStrata + R"({"offload_activations": "cpu"})"), "offload.activations", "cpu"},
    {with_batch(kStrata + R"({"nvme_paths": ["/a", "/b"]})"), "offload.nvme_paths", "/a /b"},
    {with_batch(kStrata + R"({"nvme_paths": "/a"})"), "offload.nvme_paths", "/a"},
    {with_batch(kStrata + R"({"device_memory": "24GB"})"), "offload.device_memory_bytes", "24GB"},
    {with_batch(kStrata + R"({"device_memory": 2.4e10})"), "offload.device_memory_bytes", "24GB"},
    {with_batch(kStrata + R"({"host_memory": "16GiB"})"), "offload.host_memory_bytes", "16GiB"},
    {with_batch(kStrata + R"({"host_memory": 1000001})"), "offload.host_memory_bytes", "1000001"},
    {with_batch(kStrata + R"({"update_time": "step_end"})"), "offload.updates", "step_end"},
    {with_batch(kStrata + R"({"checksum_swap": false})"), "offload.checksums", "false"},
    {with_batch(R"("aio": {"block_size": 2097152})"), "offload.request_bytes", "2MiB"},
    {with_batch(R"("aio": {"queue_depth": 32})"), "offload.queue_depth", "32"},
    {with_batch(R"("activation_checkpointing": {"cpu_checkpointing": true},
                   "strata": {"activation_checkpointing": true})"),
     "offload.activations", "cpu"},
};
INSTANTIATE_TEST_SUITE_P(Table, ObeyedOffload, ::testing::ValuesIn(kObeyed));

TEST(OffloadConfig, ActionsAreReadAsAPlanHasThem) {
  const std::string actions =
      R"([{"blocks": [1, 2], "actions": {"2.gelu": "recompute", "1.linear": "host"}}])";
  const std::string json = with_batch(kStrata + R"({"actions": )" + actions + "}");
  const ResolvedConfig resolved = resolve_text(json);
  using enum runtime::SavedAction;
  const std::vector<runtime::BlockActions> expected{
      {1, 2, {{"2.gelu", recompute}, {"1.linear", host}}}};
  EXPECT_EQ(resolved.options.actions, expected);
  EXPECT_EQ(value_of(resolved, "actions"), actions);
  EXPECT_EQ(resolve_text(with_batch(""), {"--actions", actions}).options.actions, expected);
  EXPECT_TRUE(resolve_text(json, {"--actions", "[]"}).options.actions.empty());
}

TEST(OffloadConfig, WrongActionsAreRefusedByKey) {
  const auto wrong = [](const std::string& actions, const std::vector<std::string>& flags = {}) {
    return refusal(with_batch(kStrata + R"({"actions": )" + actions + "}"), flags);
  };
  EXPECT_EQ(wrong(R"({"blocks": [1, 2]})"),
            "ds.json:2: strata.actions: found object of 1, expected an array of objects");
  EXPECT_EQ(wrong(R"([{"blocks": [1, 2], "actions": {"2.gelu": "cpu"}}])"),
            "ds.json:2: strata.actions: [0].actions[\"2.gelu\"]: expected one of keep, recompute, "
            "host, disk, found string \"cpu\"");
  EXPECT_THAT(wrong(R"([{"blocks": [1, 2], "actions": {}}, {"blocks": [2, 3], "actions": {}}])"),
              HasSubstr("ds.json:2: strata.actions: [1].blocks[0]: blocks from 2 on overlap with"));
  EXPECT_THAT(refusal(with_batch(""), {"--actions", "[{"}), HasSubstr("--actions: "));
  const std::string to_disk = R"([{"blocks": [1, 2], "actions": {"2.gelu": "disk"}}])";
  EXPECT_THAT(wrong(to_disk),
              HasSubstr("ds.json:2: strata.actions: found disk without a folder to use: give "
                        "--nvme-path DIR"));
  EXPECT_EQ(wrong(to_disk, {"--nvme-path", "/drive"}), "");
}

TEST(OffloadConfig, ActionsExcludeWhatSaysTheSameOtherwise) {
  const std::string again = R"([{"blocks": [1, 2], "actions": {"2.gelu": "recompute"}}])";
  EXPECT_EQ(refusal(with_batch(kStrata + R"({"recompute_norms": true})"),
                    {"--actions", again, "--activation-checkpointing", "--checkpoint-ratio", "0.5",
                     "--offload-activations", "cpu"}),
            "--actions: says alone what is recomputed and what leaves the device, and cannot be "
            "combined with --activation-checkpointing, ds.json:2: strata.recompute_norms, "
            "--checkpoint-ratio, --offload-activations; leave out one or the other");
}

TEST(OffloadConfig, AutoIsTheDefault) {
  const std::string json =
      zero(R"("stage": 3, "offload_optimizer": {"device": "auto", "nvme_path": "auto"},
              "offload_param": {"device": "cpu", "buffer_size": "auto", "max_in_cpu": "auto"})",
           R"("strata": {"update_time": "auto"}, "aio": {"block_size": "auto"})");
  EXPECT_EQ(of(json).optimizer, plan::Home::device);
  EXPECT_THAT(of(json).nvme_paths, IsEmpty());
  EXPECT_EQ(of(json).parameter_host_elements, 0);
  EXPECT_EQ(of(json).updates, UpdateTime::automatic);
  EXPECT_EQ(of(json).request_bytes, 0);
  EXPECT_EQ(of(json, {"--offload-optimizer", "cpu"}).optimizer, plan::Home::host);
}

TEST(OffloadConfig, FlagsWinOverTheFile) {
  const std::string json = offload("offload_optimizer", kNvme + R"(, "ratio": 0.5)");
  const ResolvedConfig resolved =
      resolve_text(json, {"--offload-optimizer", "cpu", "--offload-param", "nvme", "--nvme-path",
                          "/a,/b", "--device-memory", "1GiB", "--update-time", "next_step"});
  const OffloadOptions& o = resolved.options.offload;
  EXPECT_EQ(o.optimizer, plan::Home::host);
  EXPECT_EQ(o.parameters, plan::Home::disk);
  EXPECT_EQ(o.optimizer_ratio, 0.5);
  EXPECT_THAT(o.nvme_paths, ElementsAre("/a", "/b"));
  EXPECT_EQ(o.device_memory_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(o.updates, UpdateTime::next_step);
  EXPECT_THAT(lines(resolved.notes), HasSubstr("--offload-optimizer cpu wins over ds.json:2: "
                                               "zero_optimization.offload_optimizer.device: nvme"));
  // Settings of an offload that a flag turns off are no problem.
  EXPECT_EQ(refusal(json, {"--offload-optimizer", "none"}), "");
}

TEST(OffloadConfig, FoldersOfBothSectionsAreStriped) {
  const std::string both =
      zero(R"("stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/a"},
              "offload_param": {"device": "nvme", "nvme_path": "/b"})",
           R"("strata": {"nvme_paths": ["/c", "/a/"]})");
  EXPECT_THAT(of(both).nvme_paths, ElementsAre("/c", "/a/", "/b"));
  EXPECT_THAT(notes(both), HasSubstr("offload_param.nvme_path: found /b beside ds.json:2: "
                                     "zero_optimization.offload_optimizer.nvme_path: /a, the "
                                     "state of both is striped"));
  const std::string same =
      zero(R"("stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/a"},
              "offload_param": {"device": "nvme", "nvme_path": "/a"})");
  EXPECT_THAT(of(same).nvme_paths, ElementsAre("/a"));
  EXPECT_THAT(notes(same), IsEmpty());
  // A folder beside a device other than nvme does not count, unless a flag needs one.
  const std::string one =
      zero(R"("stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/a"},
              "offload_param": {"device": "cpu", "nvme_path": "/b"})");
  EXPECT_THAT(of(one).nvme_paths, ElementsAre("/a"));
  const std::string none = offload("offload_param", R"("device": "cpu", "nvme_path": "/b")");
  EXPECT_THAT(notes(none), IsEmpty());
  EXPECT_THAT(of(none, {"--offload-optimizer", "nvme"}).nvme_paths, ElementsAre("/b"));
}

TEST(OffloadConfig, HostCheckpointsNeedRecomputationAndYieldToFlags) {
  const std::string json = with_batch(R"("activation_checkpointing": {"cpu_checkpointing": true})");
  EXPECT_EQ(of(json).activations, plan::Home::device);
  EXPECT_EQ(of(json, {"--activation-checkpointing"}).activations, plan::Home::host);
  const std::vector<std::string> words = {"--activation-checkpointing", "--offload-activations",
                                          "none"};
  EXPECT_EQ(of(json, words).activations, plan::Home::device);
  EXPECT_THAT(notes(json, words), HasSubstr("--offload-activations none wins over ds.json:2: "
                                            "activation_checkpointing.cpu_checkpointing: true"));
}

TEST(OffloadConfig, HintsAreAcceptedWithANote) {
  const auto noted = [](const std::string& section, const std::string& member) {
    return notes(offload(section, R"("device": "cpu", )" + member));
  };
  for (const char* member :
       {R"("pin_memory": false)", R"("buffer_count": 9)", R"("pipeline": true)",
        R"("pipeline_read": true)", R"("pipeline_write": true)", R"("fast_init": true)",
        R"("cpuadam_cores_perc": 0.5)"}) {
    EXPECT_THAT(noted("offload_optimizer", member), HasSubstr(": accepted, unused: ")) << member;
  }
  for (const char* member :
       {R"("pin_memory": false)", R"("buffer_count": 9)", R"("buffer_size": 1e9)"}) {
    EXPECT_THAT(noted("offload_param", member), HasSubstr(": accepted, unused: ")) << member;
  }
  EXPECT_THAT(noted("offload_optimizer", R"("pin_memory": true, "buffer_count": 4, "ratio": 1,
                                            "pipeline_read": false, "super_offload": false)"),
              IsEmpty());
  EXPECT_THAT(
      notes(offload("offload_optimizer", kNvme + R"(}, "offload_param": {"device": "none")")),
      IsEmpty());
  const std::string nvme = zero(R"("stage": 3, "offload_optimizer": {)" + kNvme + "}",
                                R"("aio": {"block_size": 262144, "queue_depth": 16,
        "thread_count": 2, "single_submit": true, "overlap_events": false, "use_gds": true})");
  EXPECT_EQ(of(nvme).request_bytes, 1 << 20);
  for (const char* part :
       {"aio.block_size: found 262144, rounded up to 1048576", "aio.thread_count: accepted",
        "aio.single_submit: accepted", "aio.overlap_events: accepted", "aio.use_gds: accepted"}) {
    EXPECT_THAT(notes(nvme), HasSubstr(part));
  }
  EXPECT_THAT(notes(nvme), Not(HasSubstr("aio.queue_depth")));
}

TEST(OffloadConfig, WhatHasNothingToActOnIsNoted) {
  EXPECT_THAT(notes(with_batch(R"("aio": {"queue_depth": 16})")),
              HasSubstr("aio.queue_depth: accepted, unused: nothing is offloaded to nvme"));
  EXPECT_THAT(notes(with_batch(""), {"--nvme-path", "/a"}),
              HasSubstr("--nvme-path: accepted, unused: nothing is offloaded to nvme"));
  EXPECT_THAT(notes(with_batch(""), {"--update-time", "step_end"}),
              HasSubstr("--update-time: accepted, unused: no optimizer state leaves"));
  EXPECT_THAT(notes(with_batch(""), {"--offload-gradients"}),
              HasSubstr("--offload-gradients: accepted, unused: no optimizer state leaves"));
  EXPECT_THAT(notes(with_batch(""), {"--offload-gradients", "--offload-optimizer", "cpu"}),
              Not(HasSubstr("unused")));
  EXPECT_THAT(notes(with_batch(""), {"--offload-gradients", "--target-memory", "8GB"}),
              Not(HasSubstr("--offload-gradients: accepted, unused")));
}

TEST(OffloadConfig, FlagsThatAPlanOverridesAreNamed) {
  EXPECT_THAT(notes(with_batch(""), {"--plan", "p", "--zero", "0", "--tile-elements", "2048",
                                     "--nvme-path", "/a", "--seed", "3", "--state-recipe", "8bit"}),
              AllOf(HasSubstr("--plan p decides, whatever is said by --zero, --state-recipe, "
                              "--tile-elements"),
                    Not(HasSubstr("--nvme-path"))));
  EXPECT_THAT(notes(with_batch(""), {"--plan", "p", "--seed", "3"}), Not(HasSubstr("--plan")));
  EXPECT_THAT(notes(with_batch(""), {"--zero", "0"}), Not(HasSubstr("--plan")));
}

TEST(OffloadConfig, StagesThatDeepSpeedBendsAreObeyed) {
  EXPECT_THAT(notes(offload("offload_optimizer", kNvme, 2)),
              HasSubstr("offload_optimizer.device: obeyed at zero stage 2, where DeepSpeed uses "
                        "host memory"));
  EXPECT_THAT(notes(offload("offload_optimizer", R"("device": "cpu")", 0)),
              HasSubstr("obeyed at zero stage 0; DeepSpeed offloads from stage 1 on"));
  EXPECT_THAT(notes(offload("offload_param", R"("device": "cpu")", 1), {}, 2),
              HasSubstr("offload_param.device: obeyed at zero stage 1, where DeepSpeed leaves"));
  EXPECT_THAT(notes(with_batch(kClipping + std::string(R"("steps_per_print": 1)")),
                    {"--offload-optimizer", "cpu"}, 2),
              HasSubstr("--offload-optimizer: every rank keeps the whole optimizer state"));
  EXPECT_THAT(notes(zero(R"("stage": 1)"),
                    {"--offload-optimizer", "nvme", "--offload-param", "cpu", "--nvme-path", "/a"}),
              IsEmpty());
}

TEST(OffloadConfig, ParametersOnDrivesNeedStageThree) {
  for (const int stage : {1, 2}) {
    const std::string message = refusal(offload("offload_param", kNvme, stage), {}, 4);
    EXPECT_THAT(message, HasSubstr("ds.json:2: zero_optimization.offload_param.device: found nvme, "
                                   "where each of 4 ranks updates a part of what all keep whole"));
    EXPECT_THAT(message, HasSubstr("set stage 3"));
    EXPECT_EQ(refusal(offload("offload_param", kNvme, stage), {}, 1), "");
  }
  for (const int stage : {0, 3}) {
    EXPECT_EQ(refusal(offload("offload_param", kNvme, stage), {}, 4), "");
  }
  EXPECT_THAT(
      refusal(with_batch(""), {"--zero", "2", "--offload-param", "nvme", "--nvme-path", "/a"}, 2),
      HasSubstr("--offload-param: found nvme, where each of 2 ranks updates a part"));
}

TEST(OffloadConfig, NvmeNeedsAFolder) {
  const std::string message = refusal(zero(R"("stage": 3, "offload_optimizer": {"device": "nvme"},
              "offload_param": {"device": "nvme"})",
                                           kStrata + R"({"offload_activations": "nvme"})"));
  EXPECT_THAT(message, HasSubstr("offload_optimizer.device: found nvme without a folder to use: "
                                 "give --nvme-path DIR or \"nvme_path\""));
  EXPECT_THAT(message, HasSubstr("offload_param.device: found nvme without"));
  EXPECT_THAT(message, HasSubstr("strata.offload_activations: found nvme without"));
  EXPECT_THAT(message, HasSubstr("{\"nvme_paths\": ["));
  EXPECT_THAT(refusal(with_batch(""), {"--offload-activations", "nvme"}),
              HasSubstr("--offload-activations: found nvme without"));
  EXPECT_EQ(refusal(with_batch(""), {"--offload-activations", "nvme", "--nvme-path", "/a"}), "");
}

struct Refused {
  std::string json;
  std::vector<std::string> parts;
};

void PrintTo(const Refused& row, std::ostream* out) { *out << row.json; }

class RefusedOffload : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusedOffload, NamesKeyValueAndWhatToChange) {
  const std::string message = refusal(GetParam().json);
  ASSERT_THAT(message, Not(IsEmpty()));
  for (const std::string& part : GetParam().parts) EXPECT_THAT(message, HasSubstr(part));
}

const Refused kRefused[] = {
    {offload("offload_optimizer", R"("device": "cpu", "super_offload": true)"),
     {"ds.json:2: zero_optimization.offload_optimizer.super_offload: found true", "set false"}},
    {offload("offload_optimizer", R"("device": "disk")"),
     {"offload_optimizer.device: found 'disk'", "none, cpu, nvme"}},
    {offload("offload_optimizer", R"("device": 1)"), {"offload_optimizer.device: found integer 1"}},
    {offload("offload_optimizer", R"("device": "cpu", "ratio": 1.5)"),
     {"offload_optimizer.ratio: found '1.5'", "from 0 to 1"}},
    {offload("offload_optimizer", R"("device": "cpu", "nvme_path": 3)"),
     {"nvme_path: found integer 3", "a string"}},
    {offload("offload_optimizer", R"("device": "nvme", "nvme_path": "")"),
     {"offload_optimizer.nvme_path: found an empty path, expected a folder"}},
    {offload("offload_param", R"("device": "nvme", "nvme_path": "/a", "max_in_cpu": -1)"),
     {"max_in_cpu: found '-1'", "at least 0"}},
    {zero(R"("offload_optimizer": "cpu")"), {"offload_optimizer: found string", "an object"}},
    {zero(R"("stage": 2, "cpu_offload": true, "offload_optimizer": {"device": "nvme",
             "nvme_path": "/a"})"),
     {"cpu_offload: found true, which contradicts ds.json:2: "
      "zero_optimization.offload_optimizer.device: nvme",
      "remove"}},
    {zero(R"("stage": 2, "cpu_offload": false, "offload_optimizer": {"device": "cpu"})"),
     {"cpu_offload: found false, which contradicts"}},
    {zero(R"("stage": 3, "cpu_offload_params": true, "offload_param": {"device": "none"})"),
     {"contradicts", "offload_param.device: none"}},
    {with_batch(kStrata + R"({"device_memory": "24G"})"),
     {"strata.device_memory: found '24G', which has two readings; write 24GB (powers of 1000) or"}},
    {with_batch(kStrata + R"({"device_memory": true})"), {"strata.device_memory: found", "24GB"}},
    {with_batch(kStrata + R"({"host_memory": 0})"),
     {"strata.host_memory: found '0'", "at least 1"}},
    {with_batch(kStrata + R"({"nvme_paths": []})"), {"strata.nvme_paths: found 0 values"}},
    {with_batch(kStrata + R"({"nvme_paths": ["/a", 3]})"), {"nvme_paths[1]", "a string"}},
    {with_batch(kStrata + R"({"update_time": "later"})"),
     {"strata.update_time: found 'later'", "automatic, step_end, next_step, gradient"}},
    {with_batch(kStrata + R"({"offload_activation": "cpu"})"),
     {"did you mean 'offload_activations'?"}},
    {with_batch(R"("aio": {"block_size": -1})"), {"aio.block_size: found '-1'"}},
};
INSTANTIATE_TEST_SUITE_P(Table, RefusedOffload, ::testing::ValuesIn(kRefused));

TEST(OffloadConfig, UpdatesAfterGradientsNeedNothingOfTheWholeGradient) {
  const std::string gradient = R"("strata": {"update_time": "gradient"})";
  const std::string where = "ds.json:2: strata.update_time: found gradient with ";
  const auto refused = [&](const std::string& members, const std::vector<std::string>& words = {}) {
    return refusal(with_batch(members + gradient), words);
  };
  EXPECT_THAT(refused(""),
              HasSubstr(where + "gradient_clipping 1, which needs the whole gradient before the "
                                "first update; set gradient_clipping to 0, or choose step_end or "
                                "next_step (gradient_clipping: 1.0 by default)"));
  EXPECT_THAT(refused(R"("gradient_clipping": 0.5, )"),
              AllOf(HasSubstr(where + "gradient_clipping 0.5, which"),
                    HasSubstr("next_step (ds.json:2: gradient_clipping)")));
  const std::string off = R"("gradient_clipping": 0, )";
  EXPECT_THAT(refused(off + R"("fp16": {"enabled": true}, )"),
              HasSubstr(where + "fp16, whose loss scale skips steps"));
  EXPECT_THAT(refused(off + R"("bf16": {"enabled": true}, )"),
              HasSubstr(where + "bf16.check_grad_overflow, which skips steps"));
  EXPECT_THAT(refused(R"("bf16": {"enabled": true}, )"), HasSubstr("gradient_clipping"));
  EXPECT_THAT(refused(R"("bf16": {"enabled": true}, )"), HasSubstr("check_grad_overflow"));
  EXPECT_EQ(refused(off), "");
  EXPECT_EQ(refused(off + R"("bf16": {"enabled": true, "check_grad_overflow": false}, )"), "");
  EXPECT_EQ(refused("", {"--gradient-clipping", "0"}), "");
  EXPECT_EQ(refused("", {"--update-time", "next_step"}), "");  // the flag wins
  EXPECT_THAT(refusal(with_batch(""), {"--update-time", "gradient"}),
              HasSubstr("--update-time: found gradient with gradient_clipping"));
  // Accepted with offload and without.
  EXPECT_EQ(of(with_batch(off + gradient)).updates, UpdateTime::gradient);
  EXPECT_THAT(notes(with_batch(off + gradient)), Not(HasSubstr("unused")));
}

TEST(OffloadConfig, RatioNeedsOffload) {
  EXPECT_THAT(refusal(with_batch(""), {"--offload-ratio", "0.5"}),
              HasSubstr("--offload-ratio: found 0.5 and no optimizer state that leaves the device: "
                        "give --offload-optimizer"));
  EXPECT_EQ(
      of(with_batch(""), {"--offload-ratio", "0.5", "--offload-optimizer", "cpu"}).optimizer_ratio,
      0.5);
}

TEST(OffloadConfig, SaysWhatTheRatioDoesNotRule) {
  const std::vector<std::string> flags{"--offload-ratio", "0.5", "--offload-optimizer", "nvme",
                                       "--nvme-path",     "/a",  "--offload-param"};
  const auto said_with = [&](const char* parameters) {
    std::vector<std::string> all = flags;
    all.emplace_back(parameters);
    return lines(resolve_text(with_batch(""), all).notes);
  };
  EXPECT_THAT(said_with("nvme"), HasSubstr("--offload-ratio: of parameters that live on nvme all "
                                           "optimizer state leaves the device"));
  EXPECT_THAT(said_with("cpu"), Not(HasSubstr("--offload-ratio")));
}

TEST(OffloadConfig, UnknownKeysOfItsSectionsAreHinted) {
  const ResolvedConfig resolved =
      resolve_text(offload("offload_optimizer", R"("device": "cpu", "bufer_count": 4)"));
  EXPECT_THAT(
      lines(resolved.warnings),
      HasSubstr("offload_optimizer.bufer_count: unknown key, did you mean 'buffer_count'?"));
}

}  // namespace
}  // namespace strata::train
