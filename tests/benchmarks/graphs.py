"""ONNX graphs of a model folder for the engines that read them: plain, fused, and dynamically quantised.

Made once for each folder, by torch and by ONNX Runtime's own optimizer and quantiser. For development only.
"""

from __future__ import annotations

import contextlib
import io
import logging
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from tests.benchmarks.shapes import SHAPES

OPSET = 17
FUSED_TYPES = {"bert": "bert"}  # families that ONNX Runtime's optimizer has fusions for


def make(name: str, folder: Path, kind: str) -> None:
    """The same in a process of its own, so that no engine is measured with the exporter's libraries loaded."""
    if not (folder / f"{kind}.onnx").exists():
        command = [sys.executable, "-m", "tests.benchmarks.graphs", name, str(folder), kind]
        subprocess.run(command, check=True, cwd=Path(__file__).parents[2], capture_output=True, text=True)


def graph(name: str, folder: Path, kind: str) -> Path:
    """`kind`: "plain" (as exported), "fused", "int8" (the fused one, where there is one, quantised)."""
    file = folder / f"{kind}.onnx"
    if not file.exists():
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            logging.disable(logging.WARNING)
            MAKERS[kind](name, folder, file)
            logging.disable(logging.NOTSET)
    return file


def _export(name: str, folder: Path, file: Path) -> None:
    """Token ids in, unit-length vectors (or one score a pair) out: pooling is part of the graph.

    With attention written out, which is the pattern that the optimizers know.
    """
    import torch

    module = torch_model(name, folder, attention="eager")
    ids = torch.randint(1000, 2000, (2, 16))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if SHAPES[name].family == "bert":
        inputs["token_type_ids"] = torch.zeros_like(ids)
    axes: dict[str, Any] = {key: {0: "texts", 1: "tokens"} for key in inputs}
    torch.onnx.export(
        module, tuple(inputs.values()), str(file), input_names=list(inputs), output_names=["out"],
        dynamic_axes={**axes, "out": {0: "texts"}}, opset_version=OPSET, dynamo=False,
    )  # fmt: skip


def torch_model(name: str, folder: Path, attention: str) -> Any:
    """The reference class with its pooling and unit length behind it, or with its score."""
    import torch
    from transformers import AutoModel, AutoModelForSequenceClassification
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    shape = SHAPES[name]
    kind = AutoModelForSequenceClassification if shape.is_reranker else AutoModel
    model = kind.from_pretrained(folder, attn_implementation=attention, dtype=torch.float32).eval()

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            named = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
            result = self.model(input_ids=input_ids, attention_mask=attention_mask, **named)
            if shape.is_reranker:
                return result.logits
            states = result.last_hidden_state
            if shape.pooling == "cls":
                return torch.nn.functional.normalize(states[:, 0], dim=-1)
            mask = attention_mask.unsqueeze(-1).to(states.dtype)
            return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)

    return Whole().eval()


def _fuse(name: str, folder: Path, file: Path) -> None:
    from onnxruntime.transformers import optimizer

    shape = SHAPES[name]
    config = shape.config or {"num_attention_heads": 12, "hidden_size": 384}
    plain = graph(name, folder, "plain")
    found = optimizer.optimize_model(
        str(plain), model_type=FUSED_TYPES.get(shape.family, "bert"), num_heads=config["num_attention_heads"],
        hidden_size=config["hidden_size"], opt_level=0,
    )  # fmt: skip
    found.save_model_to_file(str(file))


def _quantise(name: str, folder: Path, file: Path) -> None:
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic

    source = "fused" if SHAPES[name].family in FUSED_TYPES else "plain"
    # Shapes are not known behind the fused operations; every tensor here is float32.
    options = {"DefaultTensorType": TensorProto.FLOAT}
    quantize_dynamic(graph(name, folder, source), file, weight_type=QuantType.QInt8, extra_options=options)


MAKERS = {"plain": _export, "fused": _fuse, "int8": _quantise}


if __name__ == "__main__":
    graph(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
