"""Plans of pipelines as blobs."""

from __future__ import annotations

import json
import re

from lapis.domain.pipeline import KeptPlan, PipelinePlan
from lapis.errors import AzureMLException
from lapis.server.control.stores import Stores

_HASH = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def keep(stores: Stores, plan: PipelinePlan) -> KeptPlan:
    """On the disk when this returns: the record that names it comes after."""
    text = json.dumps(plan.to_json(), separators=(",", ":"))
    digest, _ = stores.blobs.put_bytes(memoryview(text.encode()))
    stores.blobs.settle()
    return KeptPlan(digest, tuple(sorted(set(_HASH.findall(text)))))


def read(stores: Stores, kept: KeptPlan) -> PipelinePlan:
    """One that is lost or damaged says so in `wrong`."""
    try:
        return PipelinePlan.from_json(json.loads(stores.blobs.read_whole(kept.plan)))
    except (AzureMLException, OSError, ValueError) as error:
        return PipelinePlan(wrong=(f"has lost its plan: {getattr(error, 'message', error)}",))
