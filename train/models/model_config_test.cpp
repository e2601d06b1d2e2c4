#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "core/json_writer.h"
#include "core/testing/test_directory.h"
#include "train/models/hf_config.h"
#include "train/models/hf_rope.h"
#include "train/models/presets.h"
#include "train/models/transformer.h"

namespace strata::train {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

ModelConfig parse(const std::string& text) { return parse_model_config(text, "config.json"); }

/// The message of the refusal; "" if the text is accepted.
std::string refusal(const std::string& text) {
  try {
    parse(text);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

/// A small valid configuration with `more` members added (beginning with a comma).
std::string llama(const std::string& more = "", const std::string& type = "llama") {
  return R"({"model_type": ")" + type +
         R"(", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
 "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2)" +
         more + "}";
}

std::string gpt2(const std::string& more = "") {
  return R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 64, "n_layer": 2, "n_head": 4)" +
         more + "}";
}

TEST(ModelConfig, EveryPresetParsesAndReadsBackFromWhatIsWritten) {
  const std::vector<std::string> names = model_preset_names();
  for (const char* name :
       {"gpt2-tiny", "gpt2-bytes-10m", "gpt2-124m", "llama-tiny", "llama-bytes-1m"}) {
    EXPECT_THAT(names, Contains(name));
  }
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const ModelConfig config = read_model_config(name);
    const ModelConfig again = parse(to_hf_config_json(config, ""));
    EXPECT_EQ(to_hf_config_json(again, ""), to_hf_config_json(config, ""));
    EXPECT_EQ(again.head_size, config.head_size);
    EXPECT_EQ(again.kv_heads, config.kv_heads);
    EXPECT_EQ(again.attention_bias, config.attention_bias);
    EXPECT_TRUE(same_rope(again, config));
  }
}

/// The number of parameters as files of the model store them.
std::int64_t stored_parameters(const ModelConfig& config) {
  const BuiltModel built = build_model(config, {.sequence = 8}, ModelUse::train);
  std::int64_t count = 0;
  for (const runtime::ParameterUnit& unit : built.graph.units)
    for (const runtime::Segment& segment : unit.segments) count += segment.elements;
  return count;
}

// The figures are the totals in the published files' headers.
TEST(ModelConfig, PresetsHaveAsManyParametersAsThePublishedModels) {
  const std::map<std::string, std::int64_t> published = {
      {"gpt2-124m", 124'439'808},          {"llama-2-7b", 6'738'415'616},
      {"llama-2-13b", 13'015'864'320},     {"llama-2-70b", 68'976'648'192},
      {"llama-3.1-8b", 8'030'261'248},     {"llama-3.1-70b", 70'553'706'496},
      {"llama-3.1-405b", 405'853'388'800}, {"llama-3.2-1b", 1'235'814'400},
      {"mistral-7b", 7'241'732'096},       {"qwen2.5-0.5b", 494'032'768},
      {"qwen2.5-1.5b", 1'543'714'304},     {"qwen2.5-3b", 3'085'938'688},
      {"qwen2.5-7b", 7'615'616'512},       {"qwen2.5-14b", 14'770'033'664},
      {"qwen2.5-32b", 32'763'876'352},     {"qwen3-0.6b", 596'049'920},
      {"qwen3-8b", 8'190'735'360}};
  for (const auto& [name, count] : published) {
    SCOPED_TRACE(name);
    EXPECT_EQ(stored_parameters(read_model_config(name)), count);
  }
}

TEST(ModelConfig, Gpt2PresetIsThePeersShapeWithoutDropout) {
  const ModelConfig config = read_model_config("gpt2-124m");
  EXPECT_EQ(config.vocabulary, 50257);
  EXPECT_EQ(config.padded_vocabulary(), 50304);
  EXPECT_EQ(config.layers, 12);
  EXPECT_EQ(config.hidden, 768);
  EXPECT_EQ(config.heads, 12);
  EXPECT_EQ(config.head_size, 64);
  EXPECT_EQ(config.intermediate, 3072);
  EXPECT_EQ(config.context, 1024);
  EXPECT_EQ(config.residual_dropout + config.embedding_dropout + config.attention_dropout, 0);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_TRUE(config.mlp_bias);
  EXPECT_EQ(config.family->prefix, "transformer.");
  EXPECT_EQ(read_model_config("gpt2-tiny").vocabulary, 256);
}

TEST(ModelConfig, Gpt2TakesTheDefaultsOfTransformers) {
  const ModelConfig config = parse(gpt2(R"(, "activation_function": "gelu", "n_inner": null)"));
  EXPECT_EQ(config.intermediate, 256);
  EXPECT_FALSE(config.gelu_tanh);
  EXPECT_EQ(config.context, 1024);
  EXPECT_EQ(config.attention_dropout, 0.1);
}

/// A family of a program outside this repository, with a number that no other model has.
constexpr ModelFamily kExperts{
    .model_type = "mixture",
    .architecture = "MixtureForCausalLM",
    .read =
        [](const HfReader& reader, ModelConfig& config) {
          config.vocabulary = reader.size("vocab_size", kLargestVocabulary);
          config.more["experts"] = reader.number("experts", 1, 1, 64);
        },
    .write =
        [](const ModelConfig& config, JsonWriter& out) {
          out.member("vocab_size", config.vocabulary).member("experts", config.more.at("experts"));
        }};

TEST(ModelConfig, FamiliesOfTheCallerAreReadAndWritten) {
  const std::span<const ModelFamily> own(&kExperts, 1);
  const std::string text = R"({"model_type": "mixture", "vocab_size": 9, "experts": 8, "x": 1})";
  const ModelConfig config = parse_model_config(text, "config.json", own);
  EXPECT_EQ(config.family, &kExperts);
  EXPECT_EQ(config.more.at("experts"), 8);
  const JsonValue same = parse_json(to_hf_config_json(config, text), "same", {});
  EXPECT_EQ(same.at("x").as_integer(), 1);
  const std::string fresh = to_hf_config_json(config, "");
  EXPECT_THAT(fresh, HasSubstr("MixtureForCausalLM"));
  EXPECT_EQ(parse_model_config(fresh, "fresh", own).more, config.more);
  EXPECT_THAT(refusal(text), HasSubstr("unknown model type 'mixture'"));
  try {
    parse_model_config(R"({"model_type": "mixtur"})", "config.json", own);
    FAIL() << "an unknown type was taken";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'mixture'?; known: gpt2 llama qwen2 qwen3 "
                                        "mistral mixture"));
  }
}

TEST(ModelConfig, FamiliesOfTheCallerComeFirst) {
  static constexpr ModelFamily kOwn[] = {{.model_type = "gpt2"}};
  EXPECT_EQ(find_family("gpt2", kOwn), &kOwn[0]);
  EXPECT_NE(find_family("gpt2"), &kOwn[0]);
  EXPECT_EQ(find_family("mixture"), nullptr);
}

TEST(ModelConfig, LlamaFamiliesDifferInTheirBiasesAndHeads) {
  EXPECT_FALSE(parse(llama()).attention_bias);
  EXPECT_TRUE(parse(llama(R"(, "attention_bias": true)")).attention_output_bias);
  EXPECT_TRUE(parse(llama("", "qwen2")).attention_bias);
  EXPECT_FALSE(parse(llama("", "qwen2")).attention_output_bias);
  EXPECT_EQ(parse(llama("", "qwen3")).head_size, 128);
  EXPECT_EQ(parse(llama(R"(, "head_dim": 32)")).head_size, 32);
  EXPECT_EQ(parse(llama("", "mistral")).sliding_window, 4096);
  EXPECT_EQ(parse(llama(R"(, "sliding_window": null)", "mistral")).sliding_window, 0);
}

TEST(ModelConfig, WhatOnlySomeFamiliesKnowIsReadBackAndWrittenByNoOther) {
  const auto again = [](const std::string& text) {
    return parse(to_hf_config_json(parse(text), ""));
  };
  for (const std::string family : {"llama", "qwen3"})
    EXPECT_TRUE(again(llama(R"(, "attention_bias": true)", family)).attention_bias) << family;
  EXPECT_TRUE(again(llama(R"(, "mlp_bias": true)")).mlp_bias);
  EXPECT_EQ(again(llama(R"(, "head_dim": 32)")).head_size, 32);
  EXPECT_EQ(again(llama(R"(, "sliding_window": 64)", "mistral")).sliding_window, 64);
  EXPECT_EQ(again(llama(R"(, "sliding_window": null)", "mistral")).sliding_window, 0);
  for (const std::string family : {"qwen2", "mistral"})
    for (const std::string key : {"attention_bias", "mlp_bias"})
      EXPECT_THAT(to_hf_config_json(parse(llama("", family)), ""), Not(HasSubstr(key))) << family;
}

TEST(ModelConfig, RopeIsReadFromBothGenerationsOfTransformers) {
  const std::string inside = R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192, "rope_type": "llama3")";
  const ModelConfig old =
      parse(llama(R"(, "rope_theta": 500000.0, "rope_scaling": {)" + inside + "}"));
  const ModelConfig recent =
      parse(llama(R"(, "rope_parameters": {"rope_theta": 500000.0, )" + inside + "}"));
  EXPECT_TRUE(same_rope(old, recent));
  EXPECT_EQ(old.rope_theta, 500000);
  EXPECT_EQ(old.rope_scaling.type, RopeScaling::Type::llama3);
  EXPECT_EQ(old.rope_scaling.original_context, 8192);
  const ModelConfig linear = parse(llama(R"(, "rope_scaling": {"type": "linear", "factor": 2})"));
  EXPECT_EQ(linear.rope_scaling.type, RopeScaling::Type::linear);
  EXPECT_EQ(linear.rope_scaling.factor, 2);
  // The original length is the model's own if none is given, as in transformers.
  const ModelConfig yarn = parse(llama(R"(, "max_position_embeddings": 512,
    "rope_scaling": {"rope_type": "yarn", "factor": 4})"));
  EXPECT_EQ(yarn.rope_scaling.original_context, 512);
  EXPECT_EQ(yarn.rope_scaling.attention_factor, 0);
  const ModelConfig scaled = parse(llama(R"(, "rope_scaling": {"rope_type": "yarn",
    "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0})"));
  EXPECT_DOUBLE_EQ(scaled.rope_scaling.attention_factor, 1.0);
}

TEST(ModelConfig, EveryNumberOfTheRopeIsWritten) {
  for (const char* rope :
       {R"("rope_type": "linear", "factor": 3)",
        R"("rope_type": "llama3", "factor": 8, "low_freq_factor": 2, "high_freq_factor": 6,
           "original_max_position_embeddings": 256)",
        R"("rope_type": "yarn", "factor": 4, "beta_fast": 16, "beta_slow": 2,
           "attention_factor": 1.25, "original_max_position_embeddings": 256)"}) {
    SCOPED_TRACE(rope);
    const ModelConfig config =
        parse(llama(R"(, "rope_theta": 500, "rope_scaling": {)" + std::string(rope) + "}"));
    EXPECT_TRUE(same_rope(parse(to_hf_config_json(config, "")), config));
  }
}

struct Refused {
  std::string text;
  std::vector<std::string> parts;  ///< file:line, key, found, expected
};

TEST(ModelConfig, ImpossibleConfigurationsAreRefusedByKeyFoundAndExpected) {
  const std::vector<Refused> cases = {
      {R"({"vocab_size": 3})", {"config.json:1", "model_type", "missing", "gpt2"}},
      {R"({"model_type": "lama"})", {"unknown model type 'lama'", "did you mean 'llama'", "qwen3"}},
      {R"({"model_type": 3})", {"model_type", "integer 3", "string"}},
      {"[]", {"config.json:1", "array", "object"}},
      {R"({"model_type": "gpt2", "vocab_size": 5, "n_layer": 1, "n_head": 1})",
       {"n_embd", "missing"}},
      {gpt2(R"(, "n_positions": 0)"), {"n_positions", "integer 0", "from 1"}},
      {llama(R"(, "rope_parameters": {"full_attention": {"rope_theta": 1e6}})"),
       {"full_attention", "one kind of layers", "the same for all"}},
      {R"({"model_type": "gpt2", "vocab_size": 5, "n_embd": 63, "n_layer": 1, "n_head": 4})",
       {"n_head", "found 4 heads", "divisor of the hidden size 63"}},
      {gpt2(R"(, "activation_function": "relu")"), {"activation_function", "'relu'", "gelu_new"}},
      {gpt2(R"(, "scale_attn_by_inverse_layer_idx": true)"),
       {"scale_attn_by_inverse_layer_idx", "found true", "expected false"}},
      {gpt2(R"(, "scale_attn_weights": false)"), {"scale_attn_weights", "expected true"}},
      {gpt2(R"(, "resid_pdrop": 1.5)"), {"resid_pdrop", "1.5", "0.999"}},
      {llama(R"(, "head_dim": 15)"), {"head_dim", "15", "even"}},
      {llama(R"(, "hidden_act": "gelu")"), {"config.json:2", "hidden_act", "'gelu'", "silu"}},
      {llama(R"(, "partial_rotary_factor": 0.5)"), {"partial_rotary_factor"}},
      {llama(R"(, "use_sliding_window": true)", "qwen2"), {"use_sliding_window", "found true"}},
      {llama(R"(, "layer_types": ["full_attention", "sliding_attention"])", "qwen3"),
       {"layer_types[1]", "'sliding_attention'", "full_attention"}},
      {llama(R"(, "rope_scaling": {"rope_type": "dynamic", "factor": 2})"),
       {"rope_scaling.rope_type", "'dynamic'", "yarn"}},
      {llama(R"(, "rope_scaling": {"type": "linear"})"), {"rope_scaling", "factor", "missing"}},
      {llama(R"(, "rope_scaling": {"type": "llama3", "factor": 2, "low_freq_factor": 4})"),
       {"high_freq_factor", "low_freq_factor"}},
      {llama(R"(, "rope_scaling": {"rope_type": "yarn", "factor": 2, "attention_factor": 1001})"),
       {"attention_factor", "1001", "expected a number"}},
      {llama(R"(, "rope_scaling": {"rope_type": "yarn", "factor": 2, "mscale": 1001})"),
       {"mscale", "1001", "expected a number"}},
      {llama(R"(, "rope_scaling": {"rope_type": "yarn", "factor": 2, "mscale_all_dim": 1001})"),
       {"mscale_all_dim", "1001", "expected a number"}},
      {llama(R"(, "quantization_config": {"bits": 4})"), {"quantization_config"}},
      {R"({"model_type": "llama", "vocab_size": 9, "hidden_size": 64, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 3})",
       {"config.json:2", "num_key_value_heads", "found 3", "divisor of the 4"}},
      {R"({"model_type": "llama", "vocab_size": 9, "hidden_size": 60, "num_hidden_layers": 1,
          "num_attention_heads": 8})",
       {"num_attention_heads", "found 8", "hidden size 60"}},
  };
  for (const Refused& refused : cases) {
    const std::string message = refusal(refused.text);
    SCOPED_TRACE(refused.text);
    for (const std::string& part : refused.parts) EXPECT_THAT(message, HasSubstr(part));
    EXPECT_FALSE(message.empty());
  }
}

TEST(ModelConfig, WritingKeepsWhatItDoesNotKnow) {
  const std::string original = llama(R"(, "torch_dtype": "bfloat16", "pretraining_tp": 1,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "eos_token_id": [1, 2])");
  ModelConfig config = parse(original);
  config.vocabulary = 200;
  const std::string text = to_hf_config_json(config, original, DType::f32);
  const JsonValue written = parse_json(text, "out", {});
  EXPECT_EQ(written.at("vocab_size").as_integer(), 200);
  EXPECT_EQ(written.at("torch_dtype").as_string(), "float32");
  EXPECT_FALSE(written.find("dtype").has_value());
  EXPECT_EQ(written.at("pretraining_tp").as_integer(), 1);
  EXPECT_EQ(written.at("eos_token_id").size(), 2);
  EXPECT_TRUE(written.find("rope_parameters").has_value());
  EXPECT_FALSE(written.find("rope_scaling").has_value());
  const JsonValue fresh = parse_json(to_hf_config_json(config, "", DType::bf16), "out", {});
  EXPECT_EQ(fresh.at("dtype").as_string(), "bfloat16");
  EXPECT_FALSE(fresh.find("torch_dtype").has_value());
  config.rope_theta = 500;
  const JsonValue turned = parse_json(to_hf_config_json(config, original), "out", {});
  EXPECT_EQ(turned.at("rope_theta").as_number(), 500);
  EXPECT_FALSE(turned.find("rope_parameters").has_value());
  EXPECT_EQ(turned.at("torch_dtype").as_string(), "bfloat16");
}

TEST(ModelConfig, EveryGoldenDirectoryIsReadAndWrittenBack) {
  int directories = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STRATA_GOLDEN)) {
    if (!std::filesystem::exists(entry.path() / "config.json")) continue;
    SCOPED_TRACE(entry.path().string());
    ++directories;
    const std::string original = read_whole_file((entry.path() / "config.json").string(), 1 << 20);
    const ModelConfig config = read_model_config(entry.path().string());
    const ModelConfig again = parse(to_hf_config_json(config, original, DType::f32));
    EXPECT_EQ(to_hf_config_json(again, ""), to_hf_config_json(config, ""));
    EXPECT_GT(config.head_size, 0);
  }
  EXPECT_GE(directories, 8);
}

TEST(ModelConfig, FindsDirectoriesFilesAndPresets) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "strata_model_config_test";
  std::filesystem::create_directories(folder);
  EXPECT_THROW(find_model_config(folder.string()), ConfigError);
  std::ofstream(folder / "config.json") << llama();
  EXPECT_EQ(read_model_config(folder.string()).hidden, 64);
  EXPECT_EQ(read_model_config((folder / "config.json").string()).hidden, 64);
  std::filesystem::remove_all(folder);
  try {
    find_model_config("gpt2-tny");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("'gpt2-tny'"), HasSubstr("'gpt2-tiny'?"),
                                    HasSubstr("qwen2.5-0.5b")));
  }
}

/// The message for a --model that is no model directory.
std::string refusal_of_model(const std::string& model) {
  try {
    return "found " + find_model_config(model);
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST(ModelConfig, HubNamesGetTheDownloadLineAndNeverAPreset) {
  for (const auto& [name, line] : std::map<std::string, std::string>{
           {"Qwen/Qwen2.5-0.5B", "hf download Qwen/Qwen2.5-0.5B --local-dir Qwen2.5-0.5B"},
           {"gpt2", "hf download openai-community/gpt2 --local-dir gpt2"},
           {"meta-llama/Llama-3.2-1B", "hf download meta-llama/Llama-3.2-1B --local-dir"}})
    EXPECT_THAT(refusal_of_model(name), AllOf(HasSubstr(line), Not(HasSubstr("did you mean"))));
  EXPECT_THAT(refusal_of_model("./no/such/folder"), HasSubstr("no such directory, file or preset"));
}

TEST(ModelConfig, NamesOfPublishedModelsGetTheirOwner) {
  for (const auto& [name, owner] :
       std::map<std::string, std::string>{{"Mistral-7B-v0.1", "mistralai"},
                                          {"mistral-7b-v0.1", "mistralai"},
                                          {"Mixtral-8x7B-v0.1", "mistralai"},
                                          {"Qwen2.5-0.5B", "Qwen"},
                                          {"Qwen2.5-0.5B-Instruct", "Qwen"},
                                          {"qwen2.5-0.5b-instruct", "Qwen"},
                                          {"Qwen3-0.6B", "Qwen"},
                                          {"Llama-3.2-1B", "meta-llama"},
                                          {"Llama-2-7b-chat-hf", "meta-llama"},
                                          {"Meta-Llama-3-8B", "meta-llama"},
                                          {"CodeLlama-7b-hf", "codellama"},
                                          {"TinyLlama_v1.1", "TinyLlama"},
                                          {"SmolLM2-135M", "HuggingFaceTB"},
                                          {"gpt2-xl", "openai-community"},
                                          {"distilgpt2", "distilbert"},
                                          {"llama-tiny-chat", "meta-llama"},
                                          {"vicuna-7b-v1.5", "OWNER"},
                                          {"gpt2-tiny-base", "OWNER"}})
    EXPECT_THAT(refusal_of_model(name),
                AllOf(HasSubstr("hf download " + owner + "/" + name + " --local-dir " + name + " "),
                      HasSubstr("Hugging Face hub"), Not(HasSubstr("did you mean"))));
}

TEST(ModelConfig, APresetInOtherLettersIsToldBesideTheHubsName) {
  EXPECT_THAT(refusal_of_model("llama-2-7B"),
              AllOf(HasSubstr("hf download meta-llama/llama-2-7B"),
                    HasSubstr("; its shape alone, with new, random weights, is --model "
                              "llama-2-7b")));
  EXPECT_THAT(refusal_of_model("Llama-2-7b-chat-hf"), Not(HasSubstr("its shape alone")));
}

TEST(ModelConfig, PresetsAndTheirMisspellingsAreNoPublishedModels) {
  for (const std::string& name : model_preset_names())
    EXPECT_THAT(refusal_of_model(name), HasSubstr("found "));
  for (const auto& [typo, preset] :
       std::map<std::string, std::string>{{"mistral-7", "mistral-7b"},
                                          {"llama-3.2-1", "llama-3.2-1b"},
                                          {"qwen3-06b", "qwen3-0.6b"},
                                          {"GPT2-tiny", "gpt2-tiny"}})
    EXPECT_THAT(refusal_of_model(typo), HasSubstr("did you mean '" + preset + "'?"));
  EXPECT_THAT(refusal_of_model("./Qwen2.5-0.5B"), Not(HasSubstr("did you mean")));
}

TEST(ModelConfig, FilesAndDirectoriesOfOtherProgramsAreNamed) {
  const TestDirectory directory;
  const auto file = [&](const std::string& name, const std::string& folder) {
    std::filesystem::create_directories(directory / folder);
    return directory.file(folder + "/" + name, "x");
  };
  EXPECT_THAT(
      refusal_of_model(file("model.safetensors", "a")),
      HasSubstr("expected the directory with config.json beside it: --model " + (directory / "a")));
  EXPECT_THAT(refusal_of_model(file("m.gguf", "b")), HasSubstr("llama.cpp's format is not read"));
  EXPECT_THAT(refusal_of_model(directory / "b"), HasSubstr("llama.cpp's format is not read"));
  EXPECT_THAT(refusal_of_model(file("pytorch_model.bin", "c")), HasSubstr("from-torch"));
  file("adapter_config.json", "d");
  EXPECT_THAT(refusal_of_model(directory / "d"), HasSubstr("an adapter (LoRA)"));
  file("config.json", "models--x/snapshots/1");
  EXPECT_THAT(refusal_of_model(directory / "models--x"), HasSubstr("Hugging Face cache"));
  file("zero_to_fp32.py", "e");
  EXPECT_THAT(refusal_of_model(directory / "e"), HasSubstr("from-deepspeed"));
}

TEST(ModelConfig, WeightsAreKnownByEndingsOfAnyCaseAndByContent) {
  using namespace std::string_literals;
  const TestDirectory directory;
  const auto refused = [&](const std::string& name, const std::string& content) {
    return refusal_of_model(directory.file(name, content));
  };
  EXPECT_THAT(refused("M.SAFETENSORS", "x"), HasSubstr("beside it: --model " + directory.path()));
  EXPECT_THAT(refused("M.BIN", "x"), HasSubstr("from-torch"));
  EXPECT_THAT(refused("weights", "\x10\x27\0\0\0\0\0\0{\"a\""s), HasSubstr("a file of weights"));
  EXPECT_THAT(refused("model", "GGUF\3\0\0\0"s), HasSubstr("llama.cpp's format is not read"));
  EXPECT_THAT(refused("X.GGUF", "x"), HasSubstr("llama.cpp's format is not read"));
  EXPECT_THAT(refusal_of_model(directory.path()), HasSubstr("llama.cpp's format is not read"));
  EXPECT_THAT(refused("config", "{\"a\": 1}"), HasSubstr("found "));
  EXPECT_THAT(refused("empty", ""), HasSubstr("found "));
}

}  // namespace
}  // namespace strata::train
