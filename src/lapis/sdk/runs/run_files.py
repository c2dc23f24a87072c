"""The files of a run: uploaded, listed, downloaded, and the snapshot of its code."""

from __future__ import annotations

import os

from lapis.client import fetching, http_client, shipping, snapshot
from lapis.domain import tree
from lapis.errors import SnapshotException, UserErrorException
from lapis.later import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import IO, Any, Callable, Iterable

    from lapis.client.http_client import Client
    from lapis.client.recording import Recorder
    from lapis.sdk.runs.experiment import Experiment


class RunFiles:
    _run_id: str

    @property
    def experiment(self) -> Experiment:
        raise NotImplementedError

    @property
    def _client(self) -> Client:
        raise NotImplementedError

    @property
    def _base(self) -> str:
        raise NotImplementedError

    def _call(self, method: str, suffix: str = "", body: Any = None, **more: Any) -> Any:
        raise NotImplementedError

    def upload_file(
        self, name: str, path_or_stream: str | os.PathLike[str] | IO[Any], datastore_name: str | None = None
    ) -> dict[str, Any]:
        """Store a file, or what a stream holds, under `name` in the run."""
        _no_datastore(datastore_name)
        name = artifact_name(name)
        if hasattr(path_or_stream, "read"):
            stream: Any = path_or_stream
            return self._upload_stream(name, stream)
        if not isinstance(path_or_stream, (str, os.PathLike)):
            raise UserErrorException(
                f"upload_file('{name}') takes a path or a stream, not {type(path_or_stream).__name__}."
            )
        return self._upload([(name, path_or_stream)])[name]

    def upload_files(
        self,
        names: Iterable[str],
        paths: Iterable[str | os.PathLike[str]],
        return_artifacts: bool = False,
        timeout_seconds: float | None = None,
        datastore_name: str | None = None,
    ) -> dict[str, Any] | None:
        """Store files under names, given in the same order. Nothing is sent if one of them is not there."""
        _no_datastore(datastore_name)
        if isinstance(names, str) or isinstance(paths, (str, os.PathLike)):
            raise UserErrorException("upload_files() takes a list of names and a list of paths.")
        checked, files = [artifact_name(name) for name in names], list(paths)
        if len(checked) != len(files):
            raise UserErrorException(f"upload_files() was given {len(checked)} names and {len(files)} paths.")
        twice = sorted(name for name in set(checked) if checked.count(name) > 1)
        if twice:
            raise UserErrorException(f"upload_files() was given the name '{twice[0]}' twice. Nothing was sent.")
        sent = self._upload(list(zip(checked, files)))
        return sent if return_artifacts else None

    def upload_folder(
        self, name: str, path: str | os.PathLike[str], datastore_name: str | None = None
    ) -> dict[str, Any]:
        """Store every file below `path` under `name`/..."""
        _no_datastore(datastore_name)
        name = artifact_name(name.rstrip("/") if isinstance(name, str) else name)
        if not isinstance(path, (str, os.PathLike)) or not os.path.isdir(path):
            raise UserErrorException(f"upload_folder('{name}'): there is no folder {path}.")
        files = [os.path.join(where, leaf) for where, _, leaves in os.walk(path) for leaf in sorted(leaves)]
        inside = [os.path.relpath(file, path).replace(os.sep, "/") for file in files]
        return self._upload([(artifact_name(f"{name}/{leaf}"), file) for leaf, file in zip(inside, files)])

    def get_file_names(self) -> list[str]:
        """The names of all files of the run."""
        return [file["name"] for file in self._files()]

    def download_file(
        self, name: str, output_file_path: str | os.PathLike[str] | None = None, _validate_checksum: bool = True
    ) -> None:
        """Write one file of the run to `output_file_path` (a file or a folder), or beside us under its own name."""
        name = artifact_name(name)
        base = os.path.basename(name)
        target = os.fspath(output_file_path) if output_file_path is not None else base
        if os.path.isdir(target) or target.endswith(("/", os.sep)):
            target = os.path.join(target, base)
        known = {file["name"]: file for file in self._files()}
        if name not in known:
            raise UserErrorException(
                f"Run {self._run_id} has no file named '{name}'. It has: {_shortened(sorted(known))}."
            )
        self._fetch(known[name], target)

    def download_files(
        self,
        prefix: str | None = None,
        output_directory: Any = None,
        output_paths: Any = None,
        batch_size: int = 100,
        append_prefix: bool = True,
        timeout_seconds: float | None = None,
    ) -> None:
        """Write the files whose names begin with `prefix` below `output_directory` (or to `output_paths`)."""
        prefix = tree.without_dot(prefix or "")
        chosen = [file for file in self._files() if file["name"].startswith(prefix)]
        if output_paths is not None:
            paths = [output_paths] if isinstance(output_paths, str) else [os.fspath(path) for path in output_paths]
            if len(paths) != len(chosen):
                raise UserErrorException(
                    f"{len(chosen)} files of run {self._run_id} begin with '{prefix}', but output_paths names "
                    f"{len(paths)}."
                )
            targets = [os.path.join(output_directory or ".", path) for path in paths]
        else:
            root = os.path.abspath(os.fspath(output_directory) if output_directory is not None else ".")
            inside = [_local_name(file["name"], prefix, append_prefix) for file in chosen]
            targets = [tree.resolve_under(root, name) for name in inside]
        for file, target in zip(chosen, targets):
            self._fetch(file, target)

    def _get_outputs_datapath(self) -> Any:
        """The run's outputs as data, for `resume_from` of a later run. Private in SDK v1, and used all the same."""
        from lapis.sdk.data.data_reference import RunOutputsPath
        from lapis.sdk.data.datastore import Datastore

        return RunOutputsPath(Datastore(self.experiment.workspace, "workspaceartifactstore"), self._run_id)

    def get_snapshot_id(self) -> str:
        raise NotImplementedError

    def restore_snapshot(self, snapshot_id: str | None = None, path: str | os.PathLike[str] | None = None) -> str:
        """Write the code of the run as a zip file to `path` (a folder or a .zip file); the zip's path."""
        import hashlib
        import zipfile

        from lapis.machine.whole_files import replacing

        chosen = snapshot_id or self.get_snapshot_id()
        address = self._base.rsplit("/runs/", 1)[0] + f"/snapshots/{chosen}"
        rows = self._client.call("GET", address)["files"]
        target = os.fspath(path) if path is not None else os.getcwd()
        if not target.endswith(".zip"):
            os.makedirs(target, exist_ok=True)
            target = os.path.join(target, f"{chosen}.zip")
        with replacing(target) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, digest, _, executable in rows:
                pieces: list[bytes] = []
                self._client.download(f"{address}/blobs/{digest}", pieces.append)
                if hashlib.sha256(b"".join(pieces)).hexdigest() != digest:
                    raise SnapshotException(f"'{name}' of snapshot {chosen} arrived damaged. Try again.")
                entry = zipfile.ZipInfo(tree.check_path(name), date_time=(1980, 1, 1, 0, 0, 0))
                entry.external_attr = (0o755 if executable else 0o644) << 16
                archive.writestr(entry, b"".join(pieces))
        return target

    def _bring_in(self, path: str) -> None:
        """Store what lies here under that name, if this process is the run's own: a script registers what it just
        wrote, before anybody has come to collect it."""
        if not isinstance(path, str) or not self._is_own() or not os.path.exists(path):
            return
        name = artifact_name(path.rstrip("/"))
        if os.path.isdir(path):
            here = {f"{name}/{os.path.relpath(os.path.join(f, n), path)}": os.path.join(f, n)
                    for f, _, names in os.walk(path) for n in names}  # fmt: skip
        else:
            here = {name: path}
        stored = {file["name"]: file["hash"] for file in self._files()}
        recorder: Recorder | None = getattr(self, "_recorder", None)
        ours = recorder.stored() if recorder is not None else {}
        for each, file in here.items():
            # what somebody uploaded under that name stays; what was brought in before may have changed since
            if each not in stored or (each in ours and stored[each] != snapshot.hash_file(file)[0]):
                sent = self._send_file(artifact_name(each), file)
                if recorder is not None:
                    recorder.note_stored(each, str(sent["hash"]))

    def _is_own(self) -> bool:
        return os.environ.get("AZUREML_RUN_ID") == self._run_id or getattr(self, "_recorder", None) is not None

    def _files(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._call("GET", "/files")["files"]
        return found

    def _upload(self, pairs: list[tuple[str, Any]]) -> dict[str, dict[str, Any]]:
        """All of them, or none if one is not there or would replace another."""
        for name, path in pairs:
            if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
                raise UserErrorException(f"'{name}' cannot be uploaded: there is no file {path}. Nothing was sent.")
        stored = {file["name"]: file["hash"] for file in self._files()}
        for name, path in pairs:
            # the same content is no conflict: what a script writes to outputs/ may have been taken up before
            if name in stored and stored[name] != snapshot.hash_file(path)[0]:
                raise UserErrorException(
                    f"Run {self._run_id} has a file named '{name}' already, and a stored file is not overwritten. "
                    "Choose another name."
                )
        return {name: self._send_file(name, os.fspath(path)) for name, path in pairs}

    def _send_file(self, name: str, path: str) -> dict[str, Any]:
        where = f"{self._base}/files/{http_client.quoted(name)}"
        stored: dict[str, Any] = shipping.send_path(self._client, where, path)
        return stored

    def _upload_stream(self, name: str, stream: IO[Any]) -> dict[str, Any]:
        import tempfile

        with tempfile.NamedTemporaryFile() as file:  # its size must be known before the first byte is sent
            chunk = stream.read(1 << 20)
            while chunk:
                file.write(chunk.encode() if isinstance(chunk, str) else chunk)
                chunk = stream.read(1 << 20)
            file.flush()
            return self._upload([(name, file.name)])[name]

    def _read_file(self, name: str, write: Callable[[bytes], Any], run_id: str | None = None) -> None:
        home = self._base.rsplit("/", 1)[0]
        self._client.download(f"{home}/{run_id or self._run_id}/files/{http_client.quoted(name)}", write)

    def _fetch(self, file: dict[str, Any], target: str, count: Callable[[int], Any] | None = None) -> None:
        name = file["name"]
        what = f"'{name}' of run {self._run_id}"
        where = f"{self._base}/files/{http_client.quoted(name)}"
        fetching.fetch_run_file(self._client, where, target, file, what, count)


def artifact_name(name: Any) -> str:
    """A file's name in a run, checked. `./outputs/x` is `outputs/x`, as SDK v1 takes it everywhere."""
    if not isinstance(name, str):
        raise UserErrorException(f"A file's name in a run must be text, not {type(name).__name__}.")
    return tree.check_path(tree.without_dot(name))


def _local_name(name: str, prefix: str | None, append_prefix: bool) -> str:
    if append_prefix or not prefix:
        return name
    left = name[len(prefix) :].lstrip("/")
    return left or name.rsplit("/", 1)[-1]


def _no_datastore(datastore_name: Any) -> None:
    if datastore_name is not None:
        from lapis.errors import NotThereYet

        raise NotThereYet("Run.upload_file(datastore_name=...)", "Leave datastore_name out to store it in the run.")


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") if names else "none"
