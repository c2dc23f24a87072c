"""Which Keras a distributed TensorFlow job gets: `fit` of Keras 3 does not work with the strategies it uses. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from lapis.domain.job import Job, TensorFlow

_SWITCH = "TF_USE_LEGACY_KERAS"
_STRATEGIES = "MultiWorkerMirroredStrategy and ParameterServerStrategy"


def choose(job: Job, packages: str) -> Job:
    """The job with a variable, and a sentence for its log. As it is if the user has chosen."""
    given = job.environment_variables
    if not isinstance(job.distribution, TensorFlow) or _SWITCH in given:
        return job
    if int((_version(packages, "keras") or "0").split(".")[0]) < 3:
        return job
    if _version(packages, "tf-keras"):
        said = f"tf.keras is Keras 2 (tf_keras) in this job: {_STRATEGIES} cannot train with Keras 3. {_SWITCH}=1"
        return replace(job, environment_variables={**given, _SWITCH: "1"}, notices=(*job.notices, said))
    tensorflow = _version(packages, "tensorflow") or _version(packages, "tensorflow-cpu") or ""
    wanted = "==".join(filter(None, ["tf_keras", ".".join([*tensorflow.split(".")[:2], "*"]) if tensorflow else ""]))
    said = (
        f"model.fit() of Keras 3 does not work with {_STRATEGIES}. Add {wanted} to the environment's pip packages, and "
        "Lapis switches tf.keras to it."
    )
    return replace(job, notices=(*job.notices, said))


def _version(packages: str, name: str) -> str | None:
    found = re.search(rf"(?mi)^{name.replace('-', '[-_.]')}==([^\s;]+)", packages)
    return found[1] if found else None
