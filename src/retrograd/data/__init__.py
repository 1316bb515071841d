"""Data for training: datasets, samplers, `DataLoader`; text and its tokens."""

from typing import TYPE_CHECKING

from retrograd.data import transforms
from retrograd.data.bpe import BPETokenizer, tokenizer_from_state
from retrograd.data.collate import default_collate, default_convert, pad, ragged
from retrograd.data.dataset import (
    ArrayDataset,
    ConcatDataset,
    Dataset,
    MapDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from retrograd.data.digits import bundled_digits
from retrograd.data.images import ImageFolder, read_image
from retrograd.data.iterable import (
    ChainDataset,
    IterableDataset,
    MapIterableDataset,
    ShuffleBuffer,
)
from retrograd.data.loader import DataLoader
from retrograd.data.randomness import sample_generator
from retrograd.data.samplers import (
    BatchSampler,
    DistributedSampler,
    LengthGroupedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from retrograd.data.streams import JSONLinesStream, ParquetStream
from retrograd.data.tables import CSVDataset, NPZDataset, ParquetDataset, TableDataset
from retrograd.data.text import (
    CharTokenizer,
    bundled_names,
    parse_documents,
    read_documents,
    split_documents,
)
from retrograd.data.windows import PackedWindows, TextLines, encode_file, token_windows
from retrograd.data.workers import WorkerInfo, get_worker_info
from retrograd.lazy_import import attach as _attach

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "ArrayDataset",
    "BPETokenizer",
    "BatchSampler",
    "CSVDataset",
    "ChainDataset",
    "CharTokenizer",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "ImageFolder",
    "IterableDataset",
    "JSONLinesStream",
    "LengthGroupedSampler",
    "MapDataset",
    "MapIterableDataset",
    "NPZDataset",
    "PackedWindows",
    "ParquetDataset",
    "ParquetStream",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "ShuffleBuffer",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TableDataset",
    "TensorDataset",
    "TextLines",
    "WeightedRandomSampler",
    "WorkerInfo",
    "bundled_digits",
    "bundled_names",
    "default_collate",
    "default_convert",
    "encode_file",
    "get_worker_info",
    "pad",
    "parse_documents",
    "ragged",
    "random_split",
    "read_documents",
    "read_image",
    "sample_generator",
    "split_documents",
    "token_windows",
    "tokenizer_from_state",
    "transforms",
]
