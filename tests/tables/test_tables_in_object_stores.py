"""Tables whose files lie in an object store, on a real S3 server."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from azureml.core import Dataset, Datastore, Workspace
from tests.object_stores import servers

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("object-stores")]


def test_a_table_in_an_object_store_is_written_registered_and_read(
    workspace: Workspace, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    pytest.importorskip("s3fs")
    assert request.config.cache is not None
    (tmp_path / "served" / "bucket").mkdir(parents=True)
    frame = pd.DataFrame({"n": range(1000), "town": ["Oslo", "Rome"] * 500})
    cache = Path(request.config.cache.mkdir("object-stores"))
    with servers.rclone(cache, tmp_path / "served", "key", "secret-of-eight") as address:
        store = Datastore.register_s3_bucket(
            workspace, "objects", "bucket", endpoint=address, access_key="key", secret_key="secret-of-eight"
        )
        table = Dataset.Tabular.register_pandas_dataframe(frame, (store, "frames"), "numbers", show_progress=False)
        few = table[table["town"] == "Oslo"].take(3)
        assert few.to_pandas_dataframe()["n"].tolist() == [0, 2, 4]
        parted = Dataset.get_by_name(workspace, "numbers").partition_by("town", (store, "parted"), show_progress=False)
        assert len(parted[parted["town"] == "Rome"].to_pandas_dataframe()) == 500
        frame.to_csv(tmp_path / "n.csv", index=False)
        store.upload_files([str(tmp_path / "n.csv")], show_progress=False)
        assert Dataset.Tabular.from_delimited_files((store, "*.csv")).to_pandas_dataframe()["n"].sum() == 499500
