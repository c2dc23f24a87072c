"""Says that `azureml` is Microsoft's and no longer ours, when it is imported.

No file of ours in `azureml` can say so where Microsoft's package has written over it, or where removing that package
took ours along. So `lapis-azureml.pth`, which comes with the package, looks at three paths when Python starts, and
imports this module where one of them is not as it should be.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from lapis.machine import own_sources
from lapis.sdk.base.conflicting_packages import mending, microsoft_packages


class _Teller:
    """Stands first among the finders of modules, finds nothing, and leaves after it has spoken."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "azureml":
            sys.meta_path.remove(self)
            _warn()


def _warn() -> None:
    folder = os.path.join(own_sources.folder(), "azureml")
    found = microsoft_packages(folder, sys.path)
    if found:
        what = f"Microsoft's packages have written over Lapis: `import azureml` is theirs now, not ours ({folder})."
    else:
        what = f"Files of Lapis are gone from {folder}, with a package of Microsoft's that had written over them."
    warnings.warn(f"{what} {mending(found)}", RuntimeWarning, stacklevel=3)


sys.meta_path.insert(0, _Teller())
