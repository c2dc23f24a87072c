"""Brings in what an interactive run left on disk when its process ended without a word."""

from __future__ import annotations

import os
import shutil
import time

from lapis.agent.own_log import say
from lapis.client import unwritten
from lapis.client.http_client import Client, JobEndpoint
from lapis.client.shipping import Shipper
from lapis.domain.delivery import Losses, not_delivered
from lapis.domain.launch import Recovery
from lapis.errors import AzureMLException, NotFound, ServiceException, TokenEnded


def recover(recovery: Recovery) -> None:
    owner = recovery.owner
    client = Client(JobEndpoint(recovery.server, recovery.agent_token, recovery.address_file), timeout=30.0)
    shipper = Shipper(client, recovery.workspace_id, recovery.run_id, resumed=True)
    shipper.follow_journal(owner.stream, recovery.journal)
    why = f"Process {owner.pid} on {owner.host} ended without completing this run"
    verdict = {"state": "Failed", "reason": why, "error": {"code": "OwnerGone", "message": why + "."}}
    losses = Losses()
    while True:
        try:
            losses += shipper.send_spool(recovery.spool)
            ends, of_journal = shipper.settle(patience=30.0)
            told = not_delivered(verdict, losses.lost + of_journal.lost)
            told.update(at=time.time(), notices=losses.notices + of_journal.notices)
            shipper.deliver(ends, {"verdict": told}, patience=30.0)
            break
        except (NotFound, TokenEnded):  # the run was deleted meanwhile, or has ended
            break
        except (AzureMLException, ServiceException, OSError) as error:
            say(f"not delivered yet: {error}")
            time.sleep(2.0)
    shutil.rmtree(recovery.spool, ignore_errors=True)
    unwritten.remove_marks(recovery.journal)
    if os.path.exists(recovery.journal):
        os.remove(recovery.journal)
