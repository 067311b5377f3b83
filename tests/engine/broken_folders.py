"""Broken and unsupported model folders: each a golden checkpoint with one thing wrong, and what its refusal names.

The words are what the sentence must say: the file, and the key, the tensor or the value.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys

import numpy as np

from tests.engine.breaking import (
    INDEX,
    NORM,
    POOLING,
    QUERY,
    SHARDS,
    ST,
    TRANSFORMER,
    WEIGHTS,
    WORDS,
    Broken,
    change,
    charsmap,
    claimed_length,
    config,
    cut,
    dangling,
    dense,
    entry,
    folder_at,
    header,
    in_order,
    large,
    linked_out,
    modules,
    one_number,
    only,
    pickled,
    placed,
    replaced,
    set_in,
    shift,
    sparse,
    special_id,
    swap_tables,
    tensors,
    tokenizer,
    without,
    words_become,
    written,
    zipped,
)

BROKEN: dict[str, Broken] = {
    # What is missing.
    "no config": Broken(without("config.json"), ("config.json", "missing")),
    "no config and no modules": Broken(without("config.json", "modules.json"), ("config.json", "modules.json")),
    "no tokenizer": Broken(without("tokenizer.json", "vocab.txt"), ("tokenizer.json", "vocab.txt", "missing")),
    "no weights": Broken(without(WEIGHTS), (WEIGHTS,)),
    "no pooling settings": Broken(without("1_Pooling/config.json"), ("1_Pooling", "config.json", "missing")),
    "no dense settings": Broken(without("2_Dense/config.json"), ("2_Dense", "missing"), "distilbert"),
    "no dense weights": Broken(without(f"2_Dense/{WEIGHTS}"), ("2_Dense", WEIGHTS), "distilbert"),
    "no merges": Broken(without("tokenizer.json", "merges.txt"), ("merges.txt", "missing"), "roberta"),
    "an empty folder": Broken(only(), ("broken", "config.json")),
    "a file in place of the folder": Broken(
        in_order(shutil.rmtree, lambda folder: folder.write_text("{}") and None), ("broken",)
    ),
    "ONNX alone": Broken(only("config.json", "model.onnx"), ("config.json",)),
    "ONNX for weights": Broken(replaced(WEIGHTS, written("model.onnx", b"\x08\x07")), ("model.onnx", "ONNX")),
    "GGUF alone": Broken(only("model-Q4_K_M.gguf"), ("model-Q4_K_M.gguf", "GGUF")),
    "GGUF for weights": Broken(replaced(WEIGHTS, written("model-f16.gguf", b"GGUF")), ("model-f16.gguf", "GGUF")),
    # Weights cut off, or of another kind.
    "weights of no bytes": Broken(written(WEIGHTS, b""), (WEIGHTS, "empty")),
    "weights cut off in the header": Broken(cut(WEIGHTS, 500), (WEIGHTS, "cut off")),
    "weights cut off in the data": Broken(cut(WEIGHTS, -1000), (WEIGHTS, "cut off")),
    "bytes behind the weights": Broken(
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes() + bytes(8)) and None,
        (WEIGHTS, "belong to no tensor"),
    ),
    "a pickle for weights": Broken(
        replaced(WEIGHTS, pickled("pytorch_model.bin")), ("pytorch_model.bin", "pickle", WEIGHTS)
    ),
    "a pickle named safetensors": Broken(pickled(WEIGHTS), (WEIGHTS, "pickle")),
    "a zip named safetensors": Broken(zipped(WEIGHTS), (WEIGHTS, "zip", "pickle")),
    "GGUF named safetensors": Broken(written(WEIGHTS, b"GGUF\x03\0\0\0" + bytes(64)), (WEIGHTS, "GGUF")),
    "a web page named safetensors": Broken(
        written(WEIGHTS, "<!DOCTYPE html><html><body>404</body></html>"), (WEIGHTS, "no safetensors")
    ),
    "a pointer of Git LFS": Broken(
        written(WEIGHTS, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 91\n"), (WEIGHTS, "Git LFS")
    ),
    # A header that lies.
    "a header of 2^63 bytes": Broken(claimed_length(1 << 63), (WEIGHTS, "header claims")),
    "a header of all the file": Broken(
        lambda folder: claimed_length((folder / WEIGHTS).stat().st_size - 8)(folder), (WEIGHTS, "header")
    ),
    "a header of lists": Broken(
        written(WEIGHTS, struct.pack("<Q", 200_000) + b"[" * 200_000), (WEIGHTS, "header", "JSON")
    ),
    "offsets behind the end": Broken(shift(NORM, 10**9, 10**9), (WEIGHTS, NORM, "'data_offsets'")),
    "offsets below zero": Broken(shift(NORM, -(10**9), -(10**9)), (WEIGHTS, NORM, "'data_offsets'")),
    "offsets that overlap": Broken(shift(NORM, -256, -256), (WEIGHTS, "overlaps", "'data_offsets'")),
    "offsets with a gap": Broken(
        header(lambda content: content.pop("encoder.layer.0.output.dense.bias")), (WEIGHTS, "gap", "'data_offsets'")
    ),
    "two tensors on the same bytes": Broken(header(swap_tables), (WEIGHTS, "'data_offsets'")),
    "offsets of more digits than a number has": Broken(
        entry(NORM, data_offsets=[10**30, 10**30 + 256]), (WEIGHTS, NORM, "'data_offsets'")
    ),
    "an unknown dtype": Broken(entry(NORM, dtype="F8_E5M2"), (WEIGHTS, NORM, "'F8_E5M2'")),
    "a shape below zero": Broken(entry(NORM, shape=[-64]), (WEIGHTS, NORM, "shape")),
    "a shape whose product overflows": Broken(entry(NORM, shape=[2**33, 2**33]), (WEIGHTS, NORM, "shape")),
    # Tensors that do not fit.
    "a tensor of another shape": Broken(
        tensors(**{QUERY.replace(".", "__"): lambda x: np.ascontiguousarray(x[:, :60])}), (WEIGHTS, QUERY, "[64, 60]")
    ),
    "a transposed table": Broken(
        tensors(**{WORDS.replace(".", "__"): lambda x: np.ascontiguousarray(x.T)}), (WEIGHTS, WORDS, "shape")
    ),
    "a tensor of integers": Broken(
        tensors(**{QUERY.replace(".", "__"): lambda x: x.astype(np.int32)}), (WEIGHTS, QUERY, "I32")
    ),
    "a tensor of bytes": Broken(tensors(**{NORM.replace(".", "__"): lambda x: x.astype(np.uint8)}), (NORM, "U8")),
    "a missing tensor": Broken(tensors(**{QUERY.replace(".", "__"): None}), (WEIGHTS, QUERY, "config.json")),
    "a missing table": Broken(tensors(**{WORDS.replace(".", "__"): None}), (WEIGHTS, WORDS)),
    "one NaN in a linear layer": Broken(one_number(QUERY, np.nan), (WEIGHTS, QUERY, "not finite")),
    "one infinity in a linear layer": Broken(one_number(QUERY, np.inf), (WEIGHTS, QUERY, "not finite")),
    "one NaN in a norm": Broken(one_number(NORM, np.nan), (WEIGHTS, NORM, "not finite")),
    "one infinity in a table": Broken(one_number(WORDS, -np.inf), (WEIGHTS, WORDS, "not finite")),
    "one NaN in a small table": Broken(
        one_number("embeddings.token_type_embeddings.weight", np.nan), (WEIGHTS, "token_type", "not finite")
    ),
    "a number that is no float32": Broken(
        tensors(**{NORM.replace(".", "__"): lambda x: np.full(64, 1e300)}), (WEIGHTS, NORM, "not finite")
    ),
    "one NaN in a dense module": Broken(
        in_order(
            lambda folder: (folder / WEIGHTS).rename(folder / "kept") and None,
            lambda folder: (folder / "2_Dense" / WEIGHTS).rename(folder / WEIGHTS) and None,
            one_number("linear.bias", np.nan),
            lambda folder: (folder / WEIGHTS).rename(folder / "2_Dense" / WEIGHTS) and None,
            lambda folder: (folder / "kept").rename(folder / WEIGHTS) and None,
        ),
        ("2_Dense", "linear.bias", "not finite"),
        "distilbert",
    ),
    "one NaN in a static table": Broken(
        one_number("embeddings", np.nan), (WEIGHTS, "'embeddings'", "not finite"), "static"
    ),
    # Shards.
    "a shard that leads out": Broken(
        placed("embeddings.LayerNorm.bias", "../outside.safetensors"),
        (INDEX, "'weight_map'", "../outside"),
        "xlm_roberta",
    ),
    "an absolute shard": Broken(
        placed("embeddings.LayerNorm.bias", "/etc/passwd"), (INDEX, "'weight_map'", "/etc/passwd"), "xlm_roberta"
    ),
    "a shard that is missing": Broken(without(SHARDS[1]), (INDEX, SHARDS[1]), "xlm_roberta"),
    "a tensor in the wrong shard": Broken(
        lambda folder: placed(
            "embeddings.LayerNorm.bias",
            next(s for s in SHARDS if s != json.loads((folder / INDEX).read_text())["weight_map"][
                "embeddings.LayerNorm.bias"]),
        )(folder),
        (INDEX, "embeddings.LayerNorm.bias"),
        "xlm_roberta",
    ),
    "a shard index of nothing": Broken(written(INDEX, "{}"), (INDEX, "'weight_map'"), "xlm_roberta"),
    "a shard index of lists": Broken(written(INDEX, "[" * 100_000), (INDEX, "JSON"), "xlm_roberta"),
    # A config that is not computed.
    "an unknown family": Broken(config(model_type="t5"), ("config.json", "'model_type'", "'t5'")),
    "a family with a name of a million letters": Broken(
        config(model_type="t5" * 500_000), ("config.json", "'model_type'", " ... ", "computes")
    ),
    "an unknown activation": Broken(config(hidden_act="mish"), ("config.json", "'hidden_act'", "'mish'")),
    "foreign quantised weights": Broken(
        config(quantization_config={"quant_method": "gptq", "bits": 4}), ("config.json", "'quantization_config'")
    ),
    "scaled rotary positions": Broken(
        config(rope_scaling={"type": "yarn", "factor": 4.0}), ("config.json", "'rope_type'", "'yarn'"), "qwen3"
    ),
    "rotary positions in the newer spelling": Broken(
        config(rope_parameters={"rope_type": "longrope", "rope_theta": 1e6}),
        ("config.json", "'rope_type'", "'longrope'"), "qwen3",
    ),
    "a rotary base in words": Broken(
        config(rope_parameters={"rope_type": "default", "rope_theta": "ten thousand"}),
        ("config.json", "'rope_theta'", "'ten thousand'"), "qwen3",
    ),
    "heads that do not divide the width": Broken(
        config(num_attention_heads=5), ("config.json", "'num_attention_heads'", "5")
    ),
    "key heads that do not divide the heads": Broken(
        config(num_key_value_heads=3), ("config.json", "'num_key_value_heads'", "3"), "qwen3"
    ),
    "layers that are of no kind": Broken(
        config(layer_types=["full_attention", "linear_attention"] * 2), ("config.json", "'layer_types'"), "modernbert"
    ),
    "fewer kinds than layers": Broken(
        config(layer_types=["full_attention"]), ("config.json", "'layer_types'"), "gemma3"
    ),
    "a window in words": Broken(
        config(local_attention="128"), ("config.json", "'local_attention'", "'128'"), "modernbert"
    ),
    "a scalar of zero": Broken(
        config(query_pre_attn_scalar=0), ("config.json", "'query_pre_attn_scalar'", "0"), "gemma3"
    ),
    "a padding id below zero": Broken(config(pad_token_id=-5), ("config.json", "'pad_token_id'", "-5"), "roberta"),
    "buckets without end": Broken(
        config(relative_attention_num_buckets=10**9),
        ("config.json", "'relative_attention_num_buckets'", "1000000000"), "mpnet",
    ),
    "a width of a billion": Broken(config(hidden_size=10**9, num_attention_heads=10**9), ("hidden_size", "10000")),
    "a billion layers": Broken(config(num_hidden_layers=10**9), ("config.json", "'num_hidden_layers'")),
    "a thousand layers that are not there": Broken(config(num_hidden_layers=1000), (WEIGHTS, "encoder.layer.2.")),
    "a billion words": Broken(config(vocab_size=10**9), (WEIGHTS, WORDS, "1000000000")),
    "a trillion positions": Broken(
        in_order(
            config(max_position_embeddings=10**12), change("sentence_bert_config.json", max_seq_length=10**12)
        ),
        ("sentence_bert_config.json", "'max_seq_length'", "1000000000000"), "qwen3",
    ),
    "a head of a million columns": Broken(config(head_dim=10**6), ("config.json", "'head_dim'", "1000000"), "qwen3"),
    "a size of more digits than a number has": Broken(
        written("config.json", '{"model_type": "bert", "hidden_size": ' + "9" * 5000 + "}"), ("config.json",)
    ),
    "a config nested beyond measure": Broken(
        written("config.json", '{"a":' * 200_000 + "1" + "}" * 200_000), ("config.json", "JSON")
    ),
    "a config of 100 MB": Broken(large("config.json", 100_000_000), ("config.json", "bytes")),
    "a config in another encoding": Broken(
        written("config.json", '{"model_type": "bért"}'.encode("latin-1")), ("config.json", "UTF-8")
    ),
    "a config that is a list": Broken(written("config.json", "[1, 2]"), ("config.json", "JSON object")),
    "a config that says two things": Broken(
        written("config.json", '{"model_type": "bert", "hidden_size": 64, "hidden_size": 32}'),
        ("config.json", "'hidden_size'", "twice"),
    ),
    "half a character in a module's path": Broken(
        modules(TRANSFORMER, (f"{ST}.Pooling", "\ud800")), ("modules.json", "JSON", "surrogates")
    ),
    "a config that is cut off": Broken(cut("config.json", 200), ("config.json", "JSON")),
    # Modules and code.
    "an unknown module": Broken(
        modules(TRANSFORMER, POOLING, (f"{ST}.WeightedLayerPooling", "2_X")), ("modules.json", "WeightedLayerPooling")
    ),
    "a module of the folder's own": Broken(
        modules(("custom_st.Transformer", ""), POOLING), ("modules.json", "'custom_st.Transformer'", "never run")
    ),
    "a config that needs code of the folder": Broken(
        config(auto_map={"AutoConfig": "configuration_own.C", "AutoModel": "modeling_own.M"}),
        ("config.json", "'auto_map'", "modeling_own.M", "never run"),
    ),
    "a module path that leads up": Broken(
        modules(TRANSFORMER, (f"{ST}.Pooling", "../outside")), ("modules.json", "'path'", "../outside")
    ),
    "an absolute module path": Broken(
        modules(TRANSFORMER, (f"{ST}.Pooling", "/etc")), ("modules.json", "'path'", "'/etc'")
    ),
    "two poolings in a row": Broken(modules(TRANSFORMER, POOLING, POOLING), ("modules.json", "Pooling+Pooling")),
    "two poolings joined": Broken(
        change("1_Pooling/config.json", pooling_mode_cls_token=True), ("1_Pooling", "'pooling_mode'", "exactly one")
    ),
    "an unknown pooling": Broken(
        change("1_Pooling/config.json", pooling_mode="attention"), ("1_Pooling", "'pooling_mode'", "'attention'")
    ),
    "a pooling that is a list of lists": Broken(
        change("1_Pooling/config.json", pooling_mode=[["mean"]]), ("1_Pooling", "'pooling_mode'")
    ),
    "a dense module of another width": Broken(dense(40), ("2_Dense", "'in_features'", "40", "48"), "distilbert"),
    "dense weights of another width": Broken(
        dense(48), ("2_Dense", "linear.weight", "[48, 48]"), "distilbert"
    ),
    "modules nested beyond measure": Broken(written("modules.json", "[" * 300_000), ("modules.json", "JSON")),
    "no modules at all": Broken(written("modules.json", "[]"), ("modules.json",)),
    # Tokenizers.
    "a tokenizer that is no JSON": Broken(written("tokenizer.json", b"\x00\xff\x17garbage"), ("tokenizer.json",)),
    "a tokenizer of nothing": Broken(written("tokenizer.json", "{}"), ("tokenizer.json",)),
    "a tokenizer nested beyond measure": Broken(written("tokenizer.json", "[" * 300_000), ("tokenizer.json",)),
    "a tokenizer of an unknown kind": Broken(
        set_in("model", "type", value="Neural"), ("tokenizer.json",)
    ),
    "a tokenizer of 200 MB": Broken(sparse("tokenizer.json", 200_000_000), ("tokenizer.json", "bytes")),
    "a tokenizer with more words than the table": Broken(
        words_become(5000), ("tokenizer.json", "config.json", "'vocab_size'")
    ),
    "a table smaller than the tokenizer": Broken(
        in_order(config(vocab_size=100), tensors(**{WORDS.replace(".", "__"): lambda x: x[:100].copy()})),
        ("tokenizer.json", "'vocab_size' is 100"),
    ),
    "no special tokens": Broken(set_in("post_processor", value=None), ("tokenizer.json", "'post_processor'")),
    "a special token past the table": Broken(
        tokenizer(special_id(2**31 - 1)), ("tokenizer.json", "'vocab_size'", "2147483647")
    ),
    "a special token of more bits than an id": Broken(tokenizer(special_id(2**32 + 5)), ("tokenizer.json",)),
    "a word of an absurd id": Broken(
        set_in("model", "vocab", "the", value=2**32 - 1), ("tokenizer.json", "4294967295")
    ),
    "a word of an id below zero": Broken(set_in("model", "vocab", "the", value=-1), ("tokenizer.json",)),
    "a normaliser of garbage": Broken(tokenizer(charsmap), ("tokenizer.json",)),
    "no token for unknown words": Broken(set_in("model", "unk_token", value="[NONE]"), ("tokenizer.json",)),
    "pairs left out at random": Broken(
        set_in("model", "dropout", value=0.5), ("tokenizer.json", "'dropout'", "0.5"), "roberta"
    ),
    "more special tokens than the model takes": Broken(
        change("sentence_bert_config.json", max_seq_length=2), ("sentence_bert_config.json", "'max_seq_length'", "2")
    ),
    "a tokenizer's settings that are a list": Broken(
        written("tokenizer_config.json", "[]"), ("tokenizer_config.json", "JSON object")
    ),
    # Files that cannot be read.
    "a folder for weights": Broken(folder_at(WEIGHTS), (WEIGHTS, "no file")),
    "a folder for a config": Broken(folder_at("config.json"), ("config.json", "no file")),
    "a folder for modules": Broken(folder_at("modules.json"), ("modules.json", "no file")),
}  # fmt: skip

# Links and pipes, which Windows has none of, or only for administrators.
POSIX: dict[str, Broken] = {
    "a module folder that is a link out": Broken(
        linked_out("1_Pooling"), ("modules.json", "'path'", "'1_Pooling'", "leads out")
    ),
    "weights that are a dangling link": Broken(dangling(WEIGHTS), (WEIGHTS, "link")),
    "modules that are a dangling link": Broken(dangling("modules.json"), ("modules.json", "link")),
    "a tokenizer that is a dangling link": Broken(dangling("tokenizer.json"), ("tokenizer.json", "link")),
    "prompts that are a dangling link": Broken(
        dangling("config_sentence_transformers.json"), ("config_sentence_transformers.json", "link")
    ),
    "a pipe for weights": Broken(
        replaced(WEIGHTS, lambda folder: os.mkfifo(folder / WEIGHTS)), (WEIGHTS, "no file")
    ),
    "a pipe for a config": Broken(
        replaced("config.json", lambda folder: os.mkfifo(folder / "config.json")), ("config.json", "no file")
    ),
    "a device for weights": Broken(
        replaced(WEIGHTS, lambda folder: (folder / WEIGHTS).symlink_to("/dev/zero")), (WEIGHTS, "no file")
    ),
    "a device for a tokenizer": Broken(
        replaced("tokenizer.json", lambda folder: (folder / "tokenizer.json").symlink_to("/dev/zero")),
        ("tokenizer.json", "no file"),
    ),
}  # fmt: skip

ALL = BROKEN if sys.platform == "win32" else {**BROKEN, **POSIX}
