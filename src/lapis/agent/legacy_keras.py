"""Which Keras a distributed TensorFlow job gets: `fit` of Keras 3 does not work with the strategies it uses. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SWITCH = "TF_USE_LEGACY_KERAS"
_STRATEGIES = "MultiWorkerMirroredStrategy and ParameterServerStrategy"


def choose(job: Mapping[str, Any]) -> dict[str, Any]:
    """What changes in the job: a variable, and a sentence for its log. Nothing if the user has chosen."""
    packages = str((job.get("lock") or {}).get("packages") or "")
    given = job.get("environment_variables") or {}
    if (job.get("distribution") or {}).get("kind") != "tensorflow" or _SWITCH in given:
        return {}
    if int((_version(packages, "keras") or "0").split(".")[0]) < 3:
        return {}
    if _version(packages, "tf-keras"):
        said = f"tf.keras is Keras 2 (tf_keras) in this job: {_STRATEGIES} cannot train with Keras 3. {_SWITCH}=1"
        return {"environment_variables": {**given, _SWITCH: "1"}, "notices": [*(job.get("notices") or []), said]}
    tensorflow = _version(packages, "tensorflow") or _version(packages, "tensorflow-cpu") or ""
    wanted = "==".join(filter(None, ["tf_keras", ".".join([*tensorflow.split(".")[:2], "*"]) if tensorflow else ""]))
    said = (
        f"model.fit() of Keras 3 does not work with {_STRATEGIES}. Add {wanted} to the environment's pip packages, and "
        "Lapis switches tf.keras to it."
    )
    return {"notices": [*(job.get("notices") or []), said]}


def _version(packages: str, name: str) -> str | None:
    found = re.search(rf"(?mi)^{name.replace('-', '[-_.]')}==([^\s;]+)", packages)
    return found[1] if found else None
