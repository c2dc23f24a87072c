"""Routes of images, packages and profiles."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from lapis.server.api.system import TheActor, TheSystem, answer
from lapis.server.control.images import ImageChange, NewImage
from lapis.server.control.profiles import NewProfile
from lapis.server.store.assets import PACKAGE

router = APIRouter(prefix="/workspaces/{workspace_id}")
Asked = Annotated[Any, Body()]  # read by what it becomes


@router.get("/images")
def find(system: TheSystem, actor: TheActor, workspace_id: str) -> Response:
    found = system.images.find(actor, workspace_id)
    return answer({"images": [each for each in found if "gone" not in each]})


@router.post("/images")
def create(system: TheSystem, actor: TheActor, workspace_id: str, new: Asked) -> Response:
    return answer(system.images.create(actor, workspace_id, NewImage.checked(new, "image")), 201)


@router.get("/images/{name}")
def newest(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    return answer(system.images.get(actor, workspace_id, name, None))


@router.get("/images/{name}/{version}")
def version(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int) -> Response:
    return answer(system.images.get(actor, workspace_id, name, version))


@router.patch("/images/{name}/{version}")
def change(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int, change: Asked) -> Response:
    return answer(system.images.change(actor, workspace_id, name, version, ImageChange.checked(change, "change")))


@router.delete("/images/{name}/{version}")
def delete(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int) -> Response:
    system.images.delete(actor, workspace_id, name, version)
    return answer({})


@router.post("/packages")
def package(system: TheSystem, actor: TheActor, workspace_id: str, new: Asked) -> Response:
    return answer(system.images.create(actor, workspace_id, NewImage.checked(new, "image"), PACKAGE), 201)


@router.get("/packages/{name}/{version}")
def get_package(system: TheSystem, actor: TheActor, workspace_id: str, name: str, version: int) -> Response:
    return answer(system.images.get(actor, workspace_id, name, version, PACKAGE))


@router.post("/profiles")
def profile(system: TheSystem, actor: TheActor, workspace_id: str, new: Asked) -> Response:
    return answer(system.profiles.create(actor, workspace_id, NewProfile.checked(new, "profile")), 201)


@router.get("/profiles/{name}")
def get_profile(system: TheSystem, actor: TheActor, workspace_id: str, name: str) -> Response:
    return answer(system.profiles.get(actor, workspace_id, name))
