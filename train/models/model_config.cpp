#include "train/models/model_config.h"

namespace strata::train {

std::string_view model_type_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::gpt2:
      return "gpt2";
    case ModelFamily::llama:
      return "llama";
    case ModelFamily::qwen2:
      return "qwen2";
    case ModelFamily::qwen3:
      return "qwen3";
    case ModelFamily::mistral:
      return "mistral";
  }
  return "unknown";
}

}  // namespace strata::train
