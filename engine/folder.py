"""A model folder as published: which family, how tokens become a vector, how long an input may be, which prefixes.

Reads what sentence-transformers writes beside the weights (https://sbert.net/docs/package_reference/base/module.html).
Whatever would change the vectors and is not computed here is refused, naming the file and the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from engine.catalog import Catalog, CatalogModel
from engine.errors import ModelError
from engine.layers.activation import ACTIVATIONS
from engine.layers.pooling import POOLING_MODES
from engine.models import FAMILIES

# The keys of a Pooling module's config.json, and the mode that each switches on.
POOLING_KEYS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}

# Sequences of modules that are computed, by the last part of the type in modules.json.
MODULE_SEQUENCES = (("Transformer", "Pooling"), ("Transformer", "Pooling", "Normalize"))

# The Transformer module's own file has had a name for each family.
TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
    "sentence_camembert_config.json", "sentence_albert_config.json", "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)  # fmt: skip

# Prompt names in config_sentence_transformers.json, in the order in which sentence-transformers looks for them.
PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}

MAX_HEAD_WIDTH = 512  # what the kernels hold of one head

# Sizes in config.json that every family counts on.
SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")

MAX_LAYERS = 1000


@dataclass(frozen=True)
class ModelFolder:
    """One model folder, read and checked.

    path: the folder; transformer: where config.json, the tokenizer and the weights lie (mostly the same folder).
    pooling: a member of POOLING_MODES. normalize: whether the model's vectors are cut to unit length.
    max_tokens: longest input in tokens, special tokens included. prompts: "query" and "document" prefixes, maybe "".
    """

    path: Path
    transformer: Path
    name: str
    config: dict[str, Any]
    model_type: str
    hidden: int
    pooling: str
    normalize: bool
    max_tokens: int
    prompts: dict[str, str]
    matryoshka: tuple[int, ...] = ()

    @classmethod
    def open(cls, path: Path) -> ModelFolder:
        """Read and check a folder; ModelError names the file and the key of whatever cannot be computed."""
        name = folder_name(path)
        known = Catalog.load().find(name)
        modules = _modules(path)
        transformer = path if modules is None else _inside(path, modules[0], path / "modules.json")
        config_file = transformer / "config.json"
        model_type, config = _family_config(config_file)
        config["max_tokens"] = _max_tokens(transformer, config)
        _refuse_lowercasing(transformer)
        pooling, normalize = _pooling(path, modules, known, config["hidden_size"])
        return cls(
            path=path,
            transformer=transformer,
            name=known.name if known else name,
            config=config,
            model_type=model_type,
            hidden=config["hidden_size"],
            pooling=pooling,
            normalize=normalize,
            max_tokens=config["max_tokens"],
            prompts=_prompts(path, known),
            matryoshka=known.matryoshka if known else (),
        )


def folder_name(path: Path) -> str:
    """The name that a folder gives its model; in a hub cache it stands in models--owner--name/snapshots/revision."""
    resolved = path.absolute()
    if resolved.parent.name == "snapshots" and resolved.parent.parent.name.startswith("models--"):
        return resolved.parent.parent.name.rpartition("--")[2]
    return resolved.name


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from a file of a model folder; ModelError where it is missing or something else."""
    value = _json(file)
    if not isinstance(value, dict):
        raise ModelError(f"{file} is not a JSON object.")
    return value


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{file} is missing; a model folder needs it.") from error
    except OSError as error:
        raise ModelError(f"{file} cannot be read ({error.strerror or error}).") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is not valid JSON ({error}).") from error


def _modules(path: Path) -> list[str] | None:
    """The module paths of modules.json in order, checked to be a sequence that is computed; None without the file."""
    file = path / "modules.json"
    if not file.is_file():
        return None
    listing = _json(file)
    if not isinstance(listing, list) or not all(isinstance(entry, dict) for entry in listing):
        raise ModelError(f"{file} is not a list of modules.")
    types = []
    for entry in listing:
        kind = entry.get("type")
        if not isinstance(kind, str) or not isinstance(entry.get("path"), str):
            raise ModelError(f"{file}: a module lacks the key 'type' or 'path'.")
        if not kind.startswith("sentence_transformers."):
            raise ModelError(f"{file}: key 'type' is {kind!r}, code of the model's own, which is never run here.")
        types.append(kind.rpartition(".")[2])
    if tuple(types) not in MODULE_SEQUENCES:
        wanted = " or ".join("+".join(sequence) for sequence in MODULE_SEQUENCES)
        raise ModelError(f"{file}: key 'type' lists the modules {'+'.join(types)}; this program computes {wanted}.")
    return [entry["path"] for entry in listing]


def _inside(path: Path, part: str, file: Path) -> Path:
    """A sub-folder named by modules.json; one that leads out of the model folder is refused."""
    pure = PurePosixPath(part)
    if pure.is_absolute() or ".." in pure.parts or "\\" in part or ":" in part:
        raise ModelError(f"{file}: key 'path' is {part!r}, which leads out of the model folder.")
    return path / part


def _family_config(file: Path) -> tuple[str, dict[str, Any]]:
    """The family's name and its canonical config, checked."""
    published = read_json(file)
    model_type = published.get("model_type")
    family = FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None or not isinstance(model_type, str):
        raise ModelError(
            f"{file}: key 'model_type' is {model_type!r}; this program computes {', '.join(sorted(FAMILIES))}."
        )
    if "quantization_config" in published:
        raise ModelError(
            f"{file}: key 'quantization_config' asks for a foreign quantised format, which is not read here."
        )
    for key, allowed in family.unsupported.items():
        if key in published and published[key] not in allowed:
            raise ModelError(
                f"{file}: key {key!r} is {published[key]!r}; this program computes {_either(allowed)} only."
            )
    try:
        config = family.canonical(published)
    except KeyError as error:
        raise ModelError(f"{file}: key {error.args[0]!r} is missing; {model_type} models need it.") from error
    except (TypeError, ValueError, ZeroDivisionError) as error:
        raise ModelError(f"{file} has a size that is not a positive whole number ({error}).") from error
    _check_sizes(file, config)
    try:
        family.parameters(config)
    except KeyError as error:
        raise ModelError(f"{file}: key {error.args[0]!r} is missing; {model_type} models need it.") from error
    return model_type, config


def _check_sizes(file: Path, config: Mapping[str, Any]) -> None:
    """Refuse sizes that no forward pass can have, and activations that are not computed."""
    for key in SIZES:
        if type(config.get(key)) is not int or config[key] <= 0:
            raise ModelError(f"{file}: key {key!r} is {config.get(key)!r}, not a positive whole number.")
    if config["num_hidden_layers"] > MAX_LAYERS:
        raise ModelError(f"{file}: key 'num_hidden_layers' is {config['num_hidden_layers']}; no model has so many.")
    if not config.get("head_dim") and config["hidden_size"] % config["num_attention_heads"]:
        raise ModelError(
            f"{file}: key 'hidden_size' ({config['hidden_size']}) is no multiple of "
            f"'num_attention_heads' ({config['num_attention_heads']})."
        )
    epsilon = config.get("layer_norm_eps")
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise ModelError(f"{file}: key 'layer_norm_eps' is {epsilon!r}, not a small positive number.")
    activation = config.get("hidden_act")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ModelError(f"{file}: key 'hidden_act' is {activation!r}; this program computes {_either(ACTIVATIONS)}.")
    heads, shared = config["num_attention_heads"], config.get("num_key_value_heads") or config["num_attention_heads"]
    if type(shared) is not int or shared <= 0 or heads % shared:
        raise ModelError(f"{file}: key 'num_key_value_heads' is {shared!r}, which does not divide {heads} heads.")
    width = config.get("head_dim") or config["hidden_size"] // heads
    if type(width) is not int or not 0 < width <= MAX_HEAD_WIDTH:
        raise ModelError(f"{file}: key 'head_dim' is {width!r}, not a width from 1 to {MAX_HEAD_WIDTH}.")


def _refuse_lowercasing(transformer: Path) -> None:
    """Refuse a Transformer module that lowers the text itself, unless the tokenizer does the same anyway."""
    file = next((transformer / name for name in TRANSFORMER_CONFIGS if (transformer / name).is_file()), None)
    if file is None or not read_json(file).get("do_lower_case"):
        return
    normalizer = json.dumps(read_json(transformer / "tokenizer.json").get("normalizer"))
    if '"lowercase": true' not in normalizer and '"Lowercase"' not in normalizer:
        raise ModelError(f"{file}: key 'do_lower_case' is true but tokenizer.json keeps case: not computed here.")


def _either(values: Any) -> str:
    return " or ".join(repr(value) for value in values)


def _pooling(path: Path, modules: list[str] | None, known: CatalogModel | None, hidden: int) -> tuple[str, bool]:
    """The pooling mode and whether to normalise; a plain folder gets both from the catalog or is refused."""
    if modules is None:
        if known is None:
            raise ModelError(
                f"{path / 'modules.json'} is missing and the folder's name is in no catalog, so nothing says how "
                f"tokens become one vector. Use the whole folder as published, or name it so."
            )
        if known.pooling not in POOLING_MODES:
            raise ModelError(f"{path}: {known.name} pools by {known.pooling!r}, which this program does not compute.")
        return known.pooling, known.normalize
    file = _inside(path, modules[1], path / "modules.json") / "config.json"
    config = read_json(file)
    width = config.get("word_embedding_dimension", config.get("embedding_dimension", hidden))
    if width != hidden:
        raise ModelError(
            f"{file}: key 'word_embedding_dimension' is {width!r}, but config.json's 'hidden_size' is {hidden}."
        )
    if config.get("include_prompt", True) is not True:
        raise ModelError(f"{file}: key 'include_prompt' is false: pooling without the prefix is not computed here.")
    return _pooling_mode(file, config), len(modules) == 3


def _pooling_mode(file: Path, config: Mapping[str, Any]) -> str:
    """The one mode that a Pooling config switches on; without any key it is the mean, as the reference defaults."""
    for key in config:
        if key.startswith("pooling_mode_") and key not in POOLING_KEYS:
            raise ModelError(f"{file}: key {key!r} is a way of pooling that this program does not know.")
    named = config.get("pooling_mode")
    if named is not None:  # the newer spelling: one name instead of six switches
        modes = [named] if isinstance(named, str) else named
    else:
        on = [key for key in POOLING_KEYS if config.get(key, key == "pooling_mode_mean_tokens")]
        modes = [POOLING_KEYS[key] for key in on]
    if not isinstance(modes, list) or len(modes) != 1:
        raise ModelError(
            f"{file}: key 'pooling_mode' switches on {modes!r}; this program computes exactly one of them."
        )
    if modes[0] not in POOLING_MODES:
        key = next((key for key, mode in POOLING_KEYS.items() if mode == modes[0]), "pooling_mode")
        raise ModelError(
            f"{file}: key {key!r} asks for pooling {modes[0]!r}; this program computes {_either(POOLING_MODES)}."
        )
    return str(modes[0])


def _max_tokens(transformer: Path, config: Mapping[str, Any]) -> int:
    """The model's own max_seq_length, else its tokenizer's model_max_length, never more than it has positions."""
    positions, offset = config.get("max_position_embeddings"), config.get("position_offset", 0)
    if type(positions) is not int or positions <= offset:
        raise ModelError(f"{transformer / 'config.json'}: key 'max_position_embeddings' is {positions!r}, not a size.")
    room = positions - int(offset)
    limit: Any = None
    for name in TRANSFORMER_CONFIGS:
        if (transformer / name).is_file():
            file, key = transformer / name, "max_seq_length"
            limit = read_json(file).get(key)
            break
    if limit is None and (transformer / "tokenizer_config.json").is_file():
        file, key = transformer / "tokenizer_config.json", "model_max_length"
        limit = read_json(file).get(key)
    if limit is None:
        return room
    # Some tokenizers publish 1e30 for "no limit", as a number with an exponent.
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 3:
        raise ModelError(f"{file}: key {key!r} is {limit!r}, not a number of tokens.")
    return int(min(limit, room))


def _prompts(path: Path, known: CatalogModel | None) -> dict[str, str]:
    """The prefixes by role: the folder's own prompts, else the catalog's, else none."""
    file = path / "config_sentence_transformers.json"
    own: Any = read_json(file).get("prompts") if file.is_file() else None
    if own is not None and (not isinstance(own, dict) or not all(isinstance(text, str) for text in own.values())):
        raise ModelError(f"{file}: key 'prompts' is not an object of strings.")
    prompts = (
        {"query": known.query_prefix, "document": known.document_prefix} if known else {"query": "", "document": ""}
    )
    for role, names in PROMPT_NAMES.items():
        given = [own[name] for name in names if own and name in own]
        # Newer versions write empty prompts into every folder, also for models that do want a prefix.
        if given and given[0]:
            prompts[role] = given[0]
    return prompts
