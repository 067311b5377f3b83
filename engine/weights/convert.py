"""A published model folder into our own: packed int8 weights, the same tokenizer, settings that stand alone."""

from __future__ import annotations

import shutil
from pathlib import Path

from engine.backbone import TRANSFORMER_CONFIGS
from engine.catalog import BUNDLED_MODELS, Catalog, CatalogModel
from engine.errors import ModelError
from engine.folder import ModelFolder
from engine.prompts import FILE as PROMPTS_FILE
from engine.prompts import Role
from engine.record import Record
from engine.reranker_folder import RerankerFolder, open_folder
from engine.weights import packed
from engine.weights.safetensors import SINGLE_FILE, Weights
from engine.weights.settings import write_settings
from engine.weights.staging import new_folder

# Copied byte by byte from where the tokenizer lies; a missing one of these is no fault.
COPIED = ("config.json", "tokenizer_config.json")
LICENCE_FILES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "NOTICE", "NOTICE.txt")

# Licences whose text is the same for every work under them, so that it can be supplied where a folder lacks it.
LICENCE_TEXTS = {"Apache-2.0": BUNDLED_MODELS / "licences" / "Apache-2.0.txt"}


def convert(
    source: Path, out: Path, progress: packed.Progress | None = None, *, record: Record | None = None
) -> None:
    """Pack the published model or reranker in `source` into the new folder `out`, with its note, or the one given.

    The same source gives the same bytes. Weights that claim to be a known model's must be that model's.
    `progress` is called with the bytes of weights done and in all. Raises ModelError where the source cannot be
    computed or is packed already, or `out` exists.
    """
    folder = open_folder(source)
    family = folder.backbone.family
    tokenizer = folder.tokenizer()
    with folder.weights() as weights:
        if packed.is_packed(weights):
            raise ModelError(f"{source} is packed already.")
        known = identify(folder, weights)
        parameters = folder.parameters()
        version = packed.version_of(parameters)
        tensors = packed.pack(parameters, weights, family.prefixes, progress)
        digest = weights.sha256
    prompts = _prompts(folder, known)
    metadata = {
        "format": packed.FORMAT,
        "version": version,
        "layout": packed.LAYOUTS[version],
        "source": known.hub_id if known else folder.name,
        "source_sha256": digest,
    }
    with new_folder(out) as staging:
        packed.write(staging / SINGLE_FILE, tensors, metadata)
        for name in COPIED:
            if (folder.transformer / name).is_file():
                shutil.copyfile(folder.transformer / name, staging / name)
        (staging / "tokenizer.json").write_bytes(tokenizer.published())
        if isinstance(folder, RerankerFolder):
            _copy_settings(staging, folder)
        else:
            write_settings(staging, folder, prompts)
        _write_licence(staging, folder, known)
        (staging / "README.md").write_text(_card(folder, known, prompts, digest), encoding="utf-8", newline="\n")
        note = record or Record.read(source)
        if note != Record():
            note.write(staging)


def identify(folder: ModelFolder | RerankerFolder, weights: Weights) -> CatalogModel | None:
    """Which catalog model these published weights are: by their hash, else by the folder's name.

    Raises ModelError where the name is a known model's but the weights are not.
    """
    catalog = Catalog.load()
    by_hash, by_name = catalog.find_sha256(weights.sha256), catalog.find(folder.name)
    if by_hash is not None:
        return by_hash
    if by_name is not None and by_name.sha256 is not None:
        raise ModelError(
            f"{weights.paths[0]} is not {by_name.name} as published: its SHA-256 is {weights.sha256}, "
            f"not {by_name.sha256}. The file is damaged, or a model of its own that needs a name of its own."
        )
    return by_name


def _prompts(folder: ModelFolder | RerankerFolder, known: CatalogModel | None) -> dict[Role, str]:
    """The folder's prefixes, or the catalog's where the hash told which model it is, whatever the folder is called."""
    found: dict[Role, str] = {} if isinstance(folder, RerankerFolder) else folder.prompts
    if known is not None and not any(found.values()):
        found = {"query": known.query_prefix, "document": known.document_prefix}
    return found


def _copy_settings(staging: Path, folder: RerankerFolder) -> None:
    """What a reranker's limits and its scale stand in; config.json, which names its classes, is there already."""
    files = [folder.transformer / name for name in TRANSFORMER_CONFIGS] + [folder.path / PROMPTS_FILE]
    for file in files:
        if file.is_file():
            shutil.copyfile(file, staging / file.name)


def _write_licence(staging: Path, folder: ModelFolder | RerankerFolder, known: CatalogModel | None) -> None:
    found = [name for name in LICENCE_FILES if (folder.path / name).is_file()]
    for name in found:
        shutil.copyfile(folder.path / name, staging / name)
    if not found and known is not None and known.licence in LICENCE_TEXTS:
        shutil.copyfile(LICENCE_TEXTS[known.licence], staging / "LICENSE")


def _card(
    folder: ModelFolder | RerankerFolder, known: CatalogModel | None, prompts: dict[Role, str], digest: str
) -> str:
    """The facts of the model and of what was done to it, in Markdown."""
    name = known.name if known else folder.name
    layers = folder.config.get("num_hidden_layers", "no")
    if isinstance(folder, RerankerFolder):
        result = ("Score", f"one for a query and a passage, {folder.classifier.pooling} pooling")
    else:
        result = ("Vector", f"{folder.dim} numbers, {folder.pooling} pooling" + ", unit length" * folder.normalize)
    facts = [
        ("Weights read", f"`{SINGLE_FILE}`, SHA-256 `{digest}`"),
        ("Family", f"{folder.model_type}, {layers} layers of width {folder.hidden}"),
        result,
        ("Longest input", f"{folder.max_tokens} tokens, special tokens included"),
        *((f"Prefix of a {role}", f"`{text}`") for role, text in prompts.items() if text),
    ]
    if known is not None:
        languages = ", ".join(known.languages)
        facts = [("Published as", f"https://huggingface.co/{known.hub_id}"), *facts, ("Languages", languages)]
    tables = "one scale a row" if packed.version_of(folder.parameters()) == "1" else "one for each 64 numbers of a row"
    facts.append(("Licence", known.licence if known else "as the source states it"))
    return (
        f"# {name}, packed in int8\n\n"
        + "".join(f"- {key}: {value}\n" for key, value in facts)
        + "\nThe weights were changed: rounded to 8 bits, with one fp16 scale for each output channel and group of\n"
        f"64 inputs, tables with {tables}, and laid out for Inkling's kernels; parts that make no sentence\n"
        "vector (the pooler) were left out. The metadata of model.safetensors names the format, its layout and the\n"
        "source. The same bytes come out of `inkling models convert SOURCE_DIR OUT_DIR`.\n"
    )
