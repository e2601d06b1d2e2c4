"""Finds the Hugging Face names of a module's parameters."""
from refused import Refused

# The prefix of a causal language model's names, and the embedding's name after it, by model_type.
ANCHORS = {"gpt2": ("transformer.", "wte.weight")}
USUAL_ANCHOR = ("model.", "embed_tokens.weight")
HEAD = "lm_head.weight"


def hugging_face_names(names, model_type):
    """Returns {name: its Hugging Face name}: removes prefixes of wrappers and adds the model's own prefix where it is missing."""
    prefix, anchor = ANCHORS.get(model_type, USUAL_ANCHOR)
    embedding = [name for name in names if name == anchor or name.endswith("." + anchor)]
    if len(embedding) != 1:
        raise Refused("no single parameter is called %s, as models of config.json's model_type '%s' have (found: %s); give "
                      "the folder of this model with --model" % (
                          anchor, model_type, ", ".join(embedding or sorted(names)[:3]) or "none"))
    front = embedding[0][:-len(anchor)]
    has_prefix = front == prefix or front.endswith("." + prefix)
    wrapper = front.removesuffix(prefix) if has_prefix else front
    found = {}
    for name in names:
        if not name.startswith(wrapper):
            raise Refused("parameter '%s' does not begin with '%s', as '%s' does" % (name, wrapper, embedding[0]))
        bare = name[len(wrapper):]
        found[name] = bare if has_prefix or bare == HEAD else prefix + bare
    return found


def check_head(names, config):
    """Refuses names that disagree with `config`, the content of config.json, about a tied head."""
    tied = config.get("tie_word_embeddings", config.get("model_type") == "gpt2")
    if tied == (HEAD in names):
        raise Refused("%s is %s, but config.json says \"tie_word_embeddings\": %s; give the folder of this model with "
                      "--model" % (HEAD, "a parameter of its own" if tied else "missing, or tied to the embedding",
                                   str(tied).lower()))
