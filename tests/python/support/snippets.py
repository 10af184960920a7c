"""Prepares the Python of pages and docstrings to be run: with less to do, and where its packages are."""

import ast
import importlib.util
import json
import shutil

from pages import ROOT

ARROW = ROOT / "tests" / "fuzz" / "corpus" / "arrow"  # Arrow files


class Smaller(ast.NodeTransformer):
    """Returns the same program with less to do: batches of 4, one epoch of `fit`, two turns of a loop."""

    def visit_keyword(self, node):
        self.generic_visit(node)
        most = {"batch_size": 4, "epochs": 1}.get(node.arg)
        if most and isinstance(node.value, ast.Constant):
            node.value.value = min(node.value.value, most)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "range":
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    argument.value = min(argument.value, 2)
        return node


def parsed(block):
    """Returns the block's syntax tree; its lines are those of the page."""
    tree = ast.parse("\n" * (block.line - 1) + block.text, str(ROOT / block.page))
    return ast.fix_missing_locations(Smaller().visit(tree))


def imports_of(tree):
    """Returns (the name that is bound, the module), of each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((n.asname or n.name.partition(".")[0], n.name) for n in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((n.asname or n.name, node.module) for n in node.names)


def names_in(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def installed(module):
    """Returns whether it is a package, and not a mere folder, as tests/python/tensorflow is."""
    found = importlib.util.find_spec(module)
    return found is not None and found.origin is not None


def lacks(module):
    """Returns whether an import is of an optional package."""
    optional = ("cupy", "datasets", "jax", "pyarrow", "tensorflow", "torch", "torchvision", "xxhash")
    return any(part in optional and not installed(part) for part in module.split("."))


NEEDED_BY = {  # names and attributes that an optional package stands behind
    "as_tf_dataset": "tensorflow",
    "datasets": "datasets",
    "follow_epochs": "tensorflow",
    "parquet": "pyarrow",
    "torch": "torch",
}


def words_in(tree):
    """Returns the names and the attributes in a tree."""
    return names_in(tree) | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def lacking(tree):
    """Returns the modules that a tree imports, or has a word of NEEDED_BY for, and that are not installed."""
    needed = {module for word, module in NEEDED_BY.items() if word in words_in(tree)}
    return [module for module in needed | {module for _, module in imports_of(tree)} if lacks(module)]


def write_saved_dataset(folder):
    """Writes a folder as Hugging Face's save_to_disk() does."""
    folder.mkdir(parents=True)
    shutil.copy(ARROW / "labelled", folder / "data-00000-of-00001.arrow")
    names = ("_fingerprint", "_format_columns", "_format_type", "_output_all_columns", "_split")
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_format_kwargs": {}}
    (folder / "state.json").write_text(json.dumps({**dict.fromkeys(names), **state}))
    (folder / "dataset_info.json").write_text("{}")
