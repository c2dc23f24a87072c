"""The types of what requests hold, with their bounds: an error names the field and the bound."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from lapis.domain import limits

Name = Annotated[str, Field(max_length=limits.NAME)]
DisplayName = Annotated[str, Field(max_length=limits.DISPLAY_NAME)]
Path = Annotated[str, Field(max_length=limits.PATH)]
Text = Annotated[str, Field(max_length=limits.DESCRIPTION)]
Settings = Annotated[dict[str, Any], Field(max_length=limits.ITEMS)]
Options = Annotated[dict[str, Annotated[str, Field(max_length=limits.WORD)]], Field(max_length=limits.ITEMS)]
Texts = Annotated[list[Text], Field(max_length=limits.ITEMS)]
Uses = Annotated[list[tuple[Name, Name, Name]], Field(max_length=limits.ITEMS)]
Pairs = Annotated[list[list[Name]], Field(max_length=limits.ITEMS)]
Files = Annotated[dict[str, str], Field(max_length=limits.FILES_AT_ONCE)]
FileList = Annotated[list[dict[str, Any]], Field(max_length=limits.FILES_OF_SNAPSHOT)]

# what stands in an address
Number = Annotated[int, Field(ge=-limits.STEP, le=limits.STEP)]  # a cursor, a revision
Version = Annotated[int, Field(ge=0, le=limits.WHOLE)]
Offset = Annotated[int, Field(ge=0, le=limits.WHOLE)]  # in bytes
Seconds = Annotated[float, Field(ge=-limits.SECONDS, le=limits.SECONDS, allow_inf_nan=False)]
Filters = Annotated[list[Annotated[str, Field(max_length=limits.DISPLAY_NAME)]], Field(max_length=limits.FILTERS)]
