"""The running server as a whole, for those who start it, stop it and stand at its gate. Routes never see it."""

from __future__ import annotations

from dataclasses import dataclass

from lapis.server.control.access import Access
from lapis.server.control.control import Control
from lapis.server.control.reconciler import Reconciler
from lapis.server.control.run_tokens import RunTokens
from lapis.server.control.sealing import Sealing
from lapis.server.control.stores import Stores
from lapis.server.handed_files import HandedFiles


@dataclass(frozen=True)
class System:
    home: str
    stores: Stores
    access: Access
    tokens: RunTokens
    sealing: Sealing
    control: Control
    reconciler: Reconciler
    handed: HandedFiles

    def start(self) -> None:
        """Begin to do what is to be done."""
        self.handed.start()
        self.control.profiles.start()
        self.reconciler.start()
        self.control.sweeps.start()
        self.control.pipelines.start()
        self.control.upkeep.start()

    def stop(self) -> None:
        self.control.upkeep.stop()
        self.control.pipelines.stop()
        self.control.sweeps.stop()
        self.reconciler.stop()
        self.handed.stop()
        self.stores.database.close()
