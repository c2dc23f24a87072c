"""How secrets are kept and given back: sealed in the database, open for a launch, stars for those who only look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lapis.domain.job import Job, Search
from lapis.domain.pipeline import PipelinePlan, StepPlan
from lapis.domain.secrets import SEALED, each_text, masked, replaced
from lapis.server.control.access import Actor
from lapis.server.control.stores import Stores
from lapis.server.store.assets import SECRET
from lapis.server.store.sealed import Sealer

_SHORTEST = 6  # characters of a secret that is looked for in texts: shorter ones stand in every other word


class Sealing:
    def __init__(self, stores: Stores, home: str) -> None:
        self._stores = stores
        self._sealer = Sealer(home)
        self._known: dict[str, list[str]] = {}

    # -- any value as JSON knows it

    def sealed(self, workspace_id: str, value: Any) -> Any:
        """To be kept: every secret in it is a text that only `opened` understands. Twice is the same as once."""
        return replaced(value, lambda text: self._sealer.seal_text(text, workspace_id), self.known(workspace_id))

    def opened(self, workspace_id: str, value: Any) -> Any:
        """As it was given. For whoever may use the secrets in it."""

        def opened(text: str) -> str:
            return SEALED.sub(lambda found: self._sealer.open_text(found[0], workspace_id), text)

        return each_text(value, opened)

    def masked(self, workspace_id: str, value: Any) -> Any:
        """To be shown, and never to be had back."""
        return masked(value, self.known(workspace_id))

    def seen(self, workspace_id: str, value: Any, by: Actor) -> Any:
        """What is used where it is read: as it was given, but for those who only look."""
        return masked(value) if by.kind == "viewer" else self.opened(workspace_id, value)

    # -- runs

    def sealed_definition(self, workspace_id: str, definition: Mapping[str, Any]) -> dict[str, Any]:
        """Its environment may be submitted again, and is sealed; the rest is there to be seen, and has stars."""
        kept: dict[str, Any] = self.masked(workspace_id, {**definition, "environment": None})
        return {**kept, "environment": self.sealed(workspace_id, definition.get("environment"))}

    def sealed_job(self, workspace_id: str, job: Job) -> Job:
        given = job.to_json()
        kept = self.sealed(workspace_id, given)
        return job if kept == given else Job.from_json(kept)

    def opened_job(self, workspace_id: str, job: Job) -> Job:
        kept = job.to_json()
        given = self.opened(workspace_id, kept)
        return job if kept == given else Job.from_json(given)

    def sealed_search(self, workspace_id: str, search: Search) -> Search:
        trial = search.trial
        kept = replace(
            trial,
            job=self.sealed_job(workspace_id, trial.job),
            definition=self.sealed_definition(workspace_id, trial.definition),
            properties=masked(trial.properties),
        )
        return replace(search, trial=kept)

    def sealed_pipeline(self, workspace_id: str, plan: PipelinePlan) -> PipelinePlan:
        def kept(step: StepPlan) -> StepPlan:
            return replace(
                step,
                job=self.sealed_job(workspace_id, step.job),
                definition=self.sealed_definition(workspace_id, step.definition),
                properties=masked(step.properties),
            )

        return replace(plan, steps=tuple(map(kept, plan.steps)), parameters=masked(plan.parameters))

    # -- secrets of the key vault

    def known(self, workspace_id: str) -> list[str]:
        """Those of the key vault, which are secrets wherever they stand."""
        if workspace_id not in self._known:
            found = self._stores.assets.find(workspace_id, SECRET)
            values = [self.opened(workspace_id, each.body["sealed"]) for each in found]
            self._known[workspace_id] = [value for value in values if len(value) >= _SHORTEST]
        return self._known[workspace_id]

    def seal_whole(self, workspace_id: str, value: str) -> str:
        return self._sealer.seal_text(value, workspace_id)

    def forget_known(self, workspace_id: str) -> None:
        """The key vault has changed."""
        self._known.pop(workspace_id, None)
