#include "train/config/foreign_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/test_directory.h"
#include "train/config/template_token.h"
#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TemplateToken, IsWhatAScriptShouldHaveFilled) {
  for (const char* word :
       {"GBSIZE", "CONFIG_FP16_ENABLED", "$LR", "${LR}", "{{ lr }}", "<lr>", "%LR%", "@LR@"})
    EXPECT_TRUE(is_template_token(word)) << word;
  for (const char* word :
       {"", "auto", "fp16", "AdamW", "LR", "$", "<>", "5e8", "Adam", "a@b", "True"})
    EXPECT_FALSE(is_template_token(word)) << word;
}

TEST(TemplateToken, AllThatStandBareAreFound) {
  EXPECT_THAT(bare_template_tokens("{\n \"a\": GBSIZE, // X: NO\n \"b\": [\"YES:\", ${B}],\n"
                                   " \"c\": {{ c.d }}, /* : */ \"d\": true, \"e\": <e> }"),
              ElementsAre("2: GBSIZE", "3: ${B}", "4: {{ c.d }}", "4: <e>"));
  EXPECT_THAT(bare_template_tokens("{\"a\": 1, /* NO: CPU,\n or OOM, NO */ \"b\": GAS}"),
              ElementsAre("2: GAS"));
  EXPECT_THAT(bare_template_tokens("{\"a\": 1, /* NO, NO"), IsEmpty());
  EXPECT_THAT(bare_template_tokens(R"({"a": 1, "b": [1, 2.5e3], "c": Infinity, "d": nil})"),
              IsEmpty());
}

TEST(TemplateToken, IsNamedWhateverTheKeyExpects) {
  EXPECT_EQ(refusal("{\n\"train_batch_size\": GBSIZE,\n\"steps_per_print\": $STEPS\n}"),
            "ds.json:2: GBSIZE is an unfilled template token: put a value in its place\n"
            "ds.json:3: $STEPS is an unfilled template token: put a value in its place");
  EXPECT_THAT(refusal(R"({"train_batch_size": "GBSIZE"})"),
              HasSubstr("expected a number (an unfilled template token)"));
  EXPECT_THAT(refusal(with_batch(R"("zero_optimization": {"overlap_comm": "{{ overlap }}"})")),
              HasSubstr("(an unfilled template token)"));
  EXPECT_THAT(
      refusal(with_batch(R"("zero_optimization": {"offload_optimizer": {"device": "$DEVICE"}})")),
      HasSubstr("(an unfilled template token)"));
}

TEST(ForeignConfig, FilesThatOtherFlagsTakeAreNamedWithThese) {
  EXPECT_EQ(refusal(R"({"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096})"),
            "ds.json: this is the config.json of a model; give it as --model, not as --config");
  EXPECT_EQ(refusal(R"({"version": 1, "processor": {}, "memory": {}, "link": {}})"),
            "ds.json: this is a hardware file; give it as --hardware (of plan, or of train with "
            "--print-plan --steps 0), not as --config");
}

TEST(ForeignConfig, YamlOfAccelerateIsNamedWithTheFlagsItMeans) {
  const std::string yaml =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
      "  gradient_accumulation_steps: 8\n  gradient_clipping: 1.0\n  offload_optimizer_device: "
      "cpu\n"
      "  offload_param_device: none\n  zero3_init_flag: true\n  zero_stage: 3\n"
      "mixed_precision: bf16   # type\nnum_processes: 4\n";
  EXPECT_EQ(
      refusal(yaml),
      "ds.json is a configuration of accelerate (YAML), not a DeepSpeed JSON; give what it says "
      "as flags: mlaunch -np 4 train --zero 3 --dtype bf16 --accumulation 8 --offload-optimizer "
      "cpu");
  EXPECT_THAT(refusal("# of accelerate\ndistributed_type: DEEPSPEED\ndeepspeed_config:\n"
                      "  deepspeed_config_file: ds_z3.json\n"),
              HasSubstr("its line 4 names one: --config ds_z3.json"));
  EXPECT_THAT(refusal("base_model: x\ndeepspeed: deepspeed_configs/zero2.json\n"),
              HasSubstr("its line 2 names one: --config deepspeed_configs/zero2.json"));
  for (const std::string quote : {"'", "\""})
    EXPECT_EQ(
        yaml_advice("zero_stage: " + quote + "2" + quote + "\r\nnum_processes: \t4\n", "a.yaml"),
        "a.yaml is a configuration of accelerate (YAML), not a DeepSpeed JSON; give what it "
        "says as flags: mlaunch -np 4 train --zero 2");
  EXPECT_EQ(yaml_advice("// of mine: with: colons\n# a: b\n{\"a\": 1}", "ds.json"), std::nullopt);
  EXPECT_EQ(yaml_advice("\"a\": 1", "ds.json"), std::nullopt);
}

TEST(ForeignConfig, FilesWithoutTextAreNamedAsWhatTheyAre) {
  const TestDirectory folder;
  const auto refusal_of_file = [&](const std::string& name, const std::string& content) {
    const std::string path = folder.file(name, content);
    const std::string said =
        message_of<ConfigError>([&] { (void)read_deepspeed_json(path, false); });
    return said.starts_with(path) ? name + said.substr(path.size()) : said;
  };
  const std::string weights =
      std::string("\x40\0\0\0\0\0\0\0", 8) +
      R"({"__metadata__": {"format": "pt"},"a.b": {"dtype": "F32", "shape": [1],"data_offsets": [0, 4]}})" +
      std::string("\n: \0", 4);
  for (const char* name : {"model.safetensors", "model.bin"})
    EXPECT_EQ(refusal_of_file(name, weights),
              std::string(name) +
                  " is a file of weights (safetensors), not a DeepSpeed JSON; to train them give "
                  "the directory: --model " +
                  folder.path());
  EXPECT_EQ(refusal_of_file("a.pt", std::string("PK\3\4\0\0a: b\nc: d\n", 16)),
            "a.pt is a binary file, not a DeepSpeed JSON");
  EXPECT_THAT(refusal_of_file("ds.json", std::string("\xFF\xFE{\0}\0", 6)),
              HasSubstr("ds.json is UTF-16, and a DeepSpeed JSON is UTF-8: iconv -f UTF-16"));
  EXPECT_EQ(refusal_of_file("good.json", R"({"train_batch_size": 8})"), "no error");
}

TEST(ForeignConfig, NamesOfPresetsSayWhatToType) {
  EXPECT_EQ(preset_advice("zero3").value_or(""),
            "zero3: no such file; as the name of a preset it means: --zero 3");
  EXPECT_THAT(preset_advice("deepspeed_configs/zero3_bf16_cpuoffload_all.json").value_or(""),
              HasSubstr("--zero 3 --bf16 --offload-optimizer cpu --offload-param cpu"));
  EXPECT_THAT(preset_advice("examples/deepspeed/ds_z2_offload_config.json").value_or(""),
              HasSubstr("--zero 2 --offload-optimizer cpu"));
  EXPECT_THAT(preset_advice("zero-stage-2").value_or("none"), "none");
  EXPECT_THAT(preset_advice("ZeRO-2").value_or(""), HasSubstr("--zero 2"));
  EXPECT_EQ(preset_advice("nosuch.json"), std::nullopt);
}

}  // namespace
}  // namespace strata::train
