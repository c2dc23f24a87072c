"""Which variables a tool may see that runs the code of strangers: what it needs to work, and none of our secrets."""

from __future__ import annotations

from typing import Mapping

# What finds programs, libraries and certificates. Everything that is not named here stays out: tokens, the credentials
# of clouds, and whatever else the server was started with.
_NAMES = {
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR"),
    *("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "NETRC", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("CC", "CXX", "FC", "F77", "CPP", "AR", "LD", "NVCC", "MPICC", "MPICXX", "MAKEFLAGS", "ARCHFLAGS"),
    *("CFLAGS", "CXXFLAGS", "CPPFLAGS", "FFLAGS", "LDFLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH"),
    *("LIBRARY_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "JAVA_HOME"),
}
_PREFIXES = ("LC_", "UV_", "PIP_", "CUDA", "CMAKE_", "HOROVOD_", "SETUPTOOLS_", "CONDA_", "MAMBA_")
_SECRETS = ("TOKEN", "SECRET", "UV_PUBLISH")
# Variables that say something about the interpreter that asks; what is built is another one.
_OF_THE_ASKER = ("CONDA_PREFIX", "CONDA_DEFAULT_ENV", "UV_PYTHON", "UV_PROJECT")


def harmless(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if _is_harmless(name)}


def _is_harmless(name: str) -> bool:
    if name in _OF_THE_ASKER or any(word in name for word in _SECRETS):
        return False
    return name in _NAMES or name.upper() in _NAMES or name.startswith(_PREFIXES)
