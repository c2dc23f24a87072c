"""How much a model needs to serve its requests."""

from lapis.sdk.models.model_profile import ModelProfile as ModelProfile
