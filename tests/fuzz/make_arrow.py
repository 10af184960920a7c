"""Writes Arrow files by pyarrow and polars: python tests/fuzz/make_arrow.py tests/fuzz/corpus/arrow"""

import json
import pathlib
import struct
import sys

import polars as pl
import pyarrow as pa

FOLDER = pathlib.Path(sys.argv[1])
FOLDER.mkdir(parents=True, exist_ok=True)
LABEL = {"_type": "ClassLabel", "names": ["cat", "dog"]}
NAMES = {"info": {"features": {"image": {"_type": "Image"}, "label": LABEL}}}
IMAGES = [b"x" * (100 * i) for i in range(5)]


def write(name, table, rows=2, form=pa.ipc.new_stream, **options):
    with pa.OSFile(str(FOLDER / name), "wb") as file, form(file, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=rows)


def hugging_face(labels, images=IMAGES):
    rows = [{"bytes": image, "path": f"{i}.jpg"} for i, image in enumerate(images)]
    image = pa.array(rows, pa.struct({"bytes": pa.binary(), "path": pa.string()}))
    table = pa.table({"image": image, "label": pa.array(labels, pa.int64())})
    return table.replace_schema_metadata({"huggingface": json.dumps(NAMES)})


write("labelled", hugging_face([0, 1, 1, 0, 1]))
write("others", hugging_face([1, 1, 1, 0, 1]))
write("label_without_name", hugging_face([0, 1, 2, 0, 1]))
write("label_unknown", hugging_face([0, 1, -1, 0, 1]))
large = pa.array([0, 2**63 - 1, 1, 2**63, 2], pa.uint64())
write("label_large", pa.table({"image": IMAGES, "label": large}))
write("null_bytes", hugging_face([0, 1, 0, 0, 1], [*IMAGES[:3], None, b"x"]))
write("null_struct", pa.table({"image": pa.array([{"bytes": b"x"}, None])}))
write("empty", hugging_face([], []))

alone = pa.table({"image": pa.array(IMAGES, pa.large_binary())})
write("alone", alone, form=pa.ipc.new_file)
write("alone_stream", alone, rows=5)
write("several_batches", alone, rows=1)
compressed = pa.ipc.IpcWriteOptions(compression="zstd")
write("compressed", alone, form=pa.ipc.new_file, options=compressed)
old = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
write("version_4", alone, options=old)
legacy = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4, use_legacy_format=True)
write("legacy", alone, options=legacy)
write("legacy_file", alone, form=pa.ipc.new_file, options=legacy)
pl.DataFrame({"image": IMAGES, "text": ["", "ä", "x", "y", "z"]}).write_ipc(
    FOLDER / "polars",
    compression="uncompressed",
    compat_level=pl.CompatLevel.oldest(),
    record_batch_size=2,
)

vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(20), pa.float32()), 4)
write("named", pa.table({"img": IMAGES, "fine_label": [3, 1, 4, 1, 5], "box": vectors}))
columns = {
    "null": pa.nulls(5),
    "union": pa.UnionArray.from_sparse(pa.array([0] * 5, pa.int8()), [pa.array(range(5))]),
    "list": pa.array([[1], None, [2, 3], [], [4]]),
    "view": pa.array([b"x" * 20, b"", None, b"y" * 30, b"z"], pa.binary_view()),
    "words": pa.array(["a", "b", None, "a", "a"]).dictionary_encode(),
    "run": pa.RunEndEncodedArray.from_arrays(pa.array([5], pa.int32()), pa.array([7])),
    "text": pa.array(["", "ä", "x", "long" * 9, "y"]),
    "bytes": pa.array([b"", b"\xff", b"\0", b"x", b"y"], pa.large_binary()),
    "flag": pa.array([True, False, True, True, False]),
    "flags": pa.FixedSizeListArray.from_arrays(pa.array([True, False, True] * 5), 3),
    "vector": vectors,
    "matrix": pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(pa.array(range(20)), 2), 2),
    "half": pa.array(range(5)).cast(pa.float16()),
    "gap": pa.array([1, 2, 3, None, 5], pa.int16()),
}
write("columns", pa.table({**columns, "image": IMAGES, "label": ["b", "a", "c", "a", "b"]}), rows=3)
write("columns_file", pa.table({**columns, "image": IMAGES}), rows=3, form=pa.ipc.new_file)
for name, values in columns.items():
    write(f"column_{name}", pa.table({"image": IMAGES, name: values}), rows=5)
views = pa.array(["a", "b" * 20, "", "c", "d"], pa.string_view())
write("column_text_view", pa.table({"image": IMAGES, "text": views}), rows=5)
latin = pa.table({"image": IMAGES, "text": pa.array([b"", b"x", b"\xe4", b"y", b"z"]).view(pa.string())})
write("column_text_latin", latin)
pairs = pa.FixedSizeListArray.from_arrays(pa.array(range(60), pa.int16()), 2)
cube = pa.FixedSizeListArray.from_arrays(pa.FixedSizeListArray.from_arrays(pairs, 3), 2)
write("column_cube", pa.table({"image": IMAGES, "cube": cube}), rows=2)

rows = [[1, 0], [], None, [2, None, 3], [4]]  # the images of each
of_bytes = [row if row is None else [i if i is None else IMAGES[i] for i in row] for row in rows]
of_structs = [row if row is None else [i if i is None else {"bytes": i} for i in row] for row in of_bytes]
image = pa.struct({"bytes": pa.binary(), "path": pa.string()})
words = pa.array(["a", "b", "c", "d", "e"])
write("lists", pa.table({"image": pa.array(of_structs, pa.list_(image)), "label": range(5), "text": words}))
write(
    "lists_binary",
    pa.table({"image": pa.array(of_bytes, pa.list_(pa.binary()))}),
    rows=5,
    form=pa.ipc.new_file,
)
write("lists_large", pa.table({"image": pa.array(of_bytes, pa.large_list(pa.large_binary()))}), rows=1)
pairs = [None, *([image, image] for image in IMAGES)]
write("lists_fixed", pa.table({"image": pa.array(pairs, pa.list_(pa.binary(), 2))}))
offsets, nulls = pa.array([0, 2, 4, 5], pa.int32()), pa.array([False, True, False])
write("lists_null", pa.table({"image": pa.ListArray.from_arrays(offsets, pa.array(IMAGES), mask=nulls)}))
write("lists_empty", pa.table({"image": pa.array([[], None, []], pa.list_(pa.binary()))}))
write(
    "lists_path", pa.table({"image": pa.array([[], [{"bytes": b"x"}, {"path": "a.jpg"}]], pa.list_(image))})
)
write("lists_many", pa.table({"image": pa.array([[b""], [b""] * 1025], pa.list_(pa.binary()))}))
write("lists_numbers", pa.table({"image": pa.array([[1], [2, 3]])}))

stream, file = ((FOLDER / name).read_bytes() for name in ("labelled", "alone"))

BLOCK = "<qi4xq"  # of a record batch in the footer: offset, bytes of the message, bytes of its body
footer = len(file) - 10 - struct.unpack_from("<i", file, len(file) - 10)[0]
first = file.index(struct.pack("<q", file.index(b"\xff\xff\xff\xff", 16)), footer)
BLOCKS = [struct.unpack_from(BLOCK, file, first + 24 * i) for i in range(3)]


def with_blocks(*blocks):
    """The file, with other places of the first record batches in its footer."""
    changed = bytearray(file)
    for i, block in enumerate(blocks):
        struct.pack_into(BLOCK, changed, first + 24 * i, *block)
    return changed


changes = {
    "cut_in_schema": stream[:100],
    "cut_in_batch": stream[: len(stream) // 2],
    "cut_in_end": stream[:-8],
    "cut_file": file[:-9],
    "joined": stream + stream,
    "long_metadata": stream[:4] + b"\xff\xff\xff\x7f" + stream[8:],
    "footer_too_long": file[:-10] + b"\xff\xff\xff\x7fARROW1",
    "footer_empty": file[:-10] + b"\0\0\0\0ARROW1",
    "footer_outside": with_blocks((len(file), *BLOCKS[0][1:])),
    "footer_negative": with_blocks((-8, *BLOCKS[0][1:])),
    "footer_in_itself": with_blocks((BLOCKS[0][0], BLOCKS[0][1], 2**62)),
    "footer_off": with_blocks((BLOCKS[0][0] - 8, *BLOCKS[0][1:])),
    "footer_schema": with_blocks((8, BLOCKS[0][0] - 8, 0)),
    "footer_short": with_blocks((BLOCKS[0][0], 4, 0)),
    "footer_short_body": with_blocks(BLOCKS[0], (*BLOCKS[1][:2], BLOCKS[1][2] - 8)),
    "footer_short_message": with_blocks(BLOCKS[0], (BLOCKS[1][0], BLOCKS[1][1] - 8, BLOCKS[1][2] + 8)),
    "footer_twice": with_blocks(BLOCKS[0], BLOCKS[0]),
    "footer_overlap": with_blocks(BLOCKS[1], BLOCKS[1]),
    "parquet": b"PAR1 and so on",
    "one_byte": b"A",
}
for name, changed in changes.items():
    (FOLDER / name).write_bytes(changed)
