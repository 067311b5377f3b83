"""Random weights, and their files. For development only: needs torch."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import save_file

from tests.goldens.small_tokenizers import write_json


def shake(model: torch.nn.Module, seed: int) -> None:
    """Random weights wider than a fresh model's, so that attention and the norms have something to do."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_scale = parameter.ndim == 1 and name.endswith("weight") and "Gemma" not in type(model).__name__
            spread = parameter.shape[1] ** -0.5 if parameter.ndim == 2 and "embed" not in name else 0.25
            parameter.normal_(1.0 if is_scale else 0.0, spread)


def write_weights(folder: Path, tensors: dict[str, torch.Tensor], shards: int) -> None:
    """model.safetensors, or shards with their index."""
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    placed, names = {}, sorted(tensors)
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[i::shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        placed |= dict.fromkeys(part, file)
    size = sum(value.numel() * value.element_size() for value in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": placed}
    write_json(folder / "model.safetensors.index.json", index)
