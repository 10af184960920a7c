"""Folders of images for loaders with a processor."""

import pytest
from processor_rows import copied, make_folders


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return make_folders(tmp_path_factory.mktemp("folders"))


@pytest.fixture
def indexed(folders, tmp_path):
    return copied(folders, tmp_path)
