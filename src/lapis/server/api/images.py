"""Routes of images, packages and profiles."""

from __future__ import annotations

from lapis.server.api.long_work import DEPLOYING
from lapis.server.api.repeats import kept, whole
from lapis.server.api.request import Asked, Response, TheControl, answer
from lapis.server.api.routing import Routes
from lapis.server.control.bounds import Version
from lapis.server.control.images import ImageChange, NewImage
from lapis.server.control.profiles import NewProfile

router = Routes("/workspaces/{workspace_id}")


@router.get("/images")
def find(control: TheControl, workspace_id: str) -> Response:
    found = control.images.find(workspace_id)
    return answer({"images": [each for each in found if "gone" not in each]})


@router.post("/images")
@DEPLOYING.route
@kept
def create(control: TheControl, workspace_id: str, new: Asked) -> Response:
    return answer(control.images.create(workspace_id, NewImage.checked(new, "image")), 201)


@router.get("/images/{name}")
def newest(control: TheControl, workspace_id: str, name: str) -> Response:
    return answer(control.images.get(workspace_id, name, None))


@router.get("/images/{name}/{version}")
def version(control: TheControl, workspace_id: str, name: str, version: Version) -> Response:
    return answer(control.images.get(workspace_id, name, version))


@router.patch("/images/{name}/{version}")
@whole
def change(control: TheControl, workspace_id: str, name: str, version: Version, change: Asked) -> Response:
    return answer(control.images.change(workspace_id, name, version, ImageChange.checked(change, "change")))


@router.delete("/images/{name}/{version}")
@whole
def delete(control: TheControl, workspace_id: str, name: str, version: Version) -> Response:
    control.images.delete(workspace_id, name, version)
    return answer({})


@router.post("/packages")
@DEPLOYING.route
@kept
def package(control: TheControl, workspace_id: str, new: Asked) -> Response:
    return answer(control.images.create_package(workspace_id, NewImage.checked(new, "image")), 201)


@router.get("/packages/{name}/{version}")
def get_package(control: TheControl, workspace_id: str, name: str, version: Version) -> Response:
    return answer(control.images.get_package(workspace_id, name, version))


@router.post("/profiles")
@DEPLOYING.route
@kept
def profile(control: TheControl, workspace_id: str, new: Asked) -> Response:
    return answer(control.profiles.create(workspace_id, NewProfile.checked(new, "profile")), 201)


@router.get("/profiles/{name}")
def get_profile(control: TheControl, workspace_id: str, name: str) -> Response:
    return answer(control.profiles.get(workspace_id, name))
