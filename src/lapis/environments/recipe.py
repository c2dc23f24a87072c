"""From a definition of SDK v1 to a recipe that can be installed today. Pure: the facts are in `world`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from lapis.domain.environment import called_first
from lapis.environments import package_facts
from lapis.environments.package_lines import Package, conda_package, pip_line
from lapis.environments.values import NOBODY, Recipe, Submitter, Substitution
from lapis.environments.versions import Span, Version, span, version
from lapis.errors import UserErrorException


def recipe(
    definition: Mapping[str, Any],
    *,
    pythons: Sequence[str],
    gpu: bool,
    strict: bool,
    mpi: bool = False,
    horovod_in: str = "",
    submitter: Submitter = NOBODY,
) -> Recipe:
    """Return what to install for `definition` on a machine with these Pythons; `mpi`: for a job that MPI starts.

    `horovod_in`: the script of that job, if it imports Horovod. `submitter`: whose Python counts where the definition
    names none, and whose versions of packages where it names none.

    Whatever is not as asked for is among the recipe's substitutions. With `strict` it is an error instead.
    """
    name = definition.get("name")
    try:
        draft = _read(((definition.get("python") or {}).get("condaDependencies")) or {})
        _take_out_what_lapis_is(draft)
        if mpi and horovod_in and not strict:
            _add_horovod(draft, horovod_in)
        _let_tensorflow_fit_horovod(draft)
        if mpi:
            _set_horovod_apart(draft)
        _take_out_what_cannot_be_installed(draft)
        python = _choose_python(draft, pythons, submitter)
        minor = version(python)[:2]
        _move_to_versions_that_exist(draft, minor, pythons)
        _help_old_scripts(draft, minor)
        _choose_tensorflow_build(draft, minor, gpu, strict)
        _add_what_was_always_there(draft)
    except UserErrorException as error:
        raise UserErrorException(f"{called_first(name)} cannot be built. {error.message}") from None
    if strict and draft.substitutions:
        raise UserErrorException(_not_exactly(name, draft.substitutions))
    return Recipe(
        python=python,
        requirements=tuple(dict.fromkeys(package.requirement for package in draft.packages)),
        constraints=_constraints(draft.packages, minor, _limits_of_horovod(draft)),
        optional=tuple(package.requirement for package in draft.packages if package.name in draft.added),
        if_possible=_limits_of_azure(draft, minor),
        as_submitter=() if strict else _as_submitter(draft, minor, submitter),
        without=_without(draft.packages),
        pip_options=tuple(dict.fromkeys(draft.options)),
        compiled=tuple(draft.compiled),
        shims=tuple(sorted(draft.shims)),
        variables=draft.variables,
        substitutions=tuple(draft.substitutions),
        notices=tuple(dict.fromkeys(draft.notices)),
    )


@dataclass
class _Draft:
    """An environment while it is worked out."""

    packages: list[Package] = field(default_factory=list)
    python: Package | None = None
    options: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    substitutions: list[Substitution] = field(default_factory=list)
    compiled: list[str] = field(default_factory=list)
    shims: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)  # for Azure's packages: what the user can do without
    brought: set[str] = field(default_factory=set)  # by Azure's packages, whether or not the user names it too
    moved: dict[str, Span] = field(default_factory=dict)  # what was asked for of those that get another version
    no_python_packages: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return any(package.name == name for package in self.packages)

    def add(self, *names: str) -> None:
        """Ask for packages by name, unless the user has."""
        self.packages += [Package(name, written=name) for name in names if not self.has(name)]

    def substitute(self, package: Package, given: Package | None, reason: str) -> None:
        at = self.packages.index(package)
        self.packages[at : at + 1] = [given] if given else []
        before = [each for each in self.substitutions if each.asked == package.written]  # one line for each package
        self.substitutions = [each for each in self.substitutions if each not in before]
        reasons = "; ".join([each.reason for each in before] + [reason])
        self.substitutions.append(Substitution(package.written, given.requirement if given else "", reasons))


# What the definition says


def _read(conda: Mapping[str, Any]) -> _Draft:
    draft = _Draft()
    lines: list[str] = []
    for dependency in conda.get("dependencies") or []:
        if isinstance(dependency, Mapping):
            lines += dependency.get("pip") or []
        else:
            _read_conda_line(draft, str(dependency))
    from_conda, draft.packages = draft.packages, []
    for line in lines:
        found = pip_line(line)
        draft.options += [found.option] if found.option else []
        if found.package:
            draft.packages.append(_renamed(draft, found.package, package_facts.PIP_NAMES))
    # pip runs after conda and has the last word.
    draft.packages = [package for package in from_conda if not draft.has(package.name)] + draft.packages
    _ask_once_for_tensorflow(draft)
    if draft.no_python_packages:
        raise UserErrorException(
            "These conda packages are not Python packages, and Lapis installs from PyPI: "
            f"{', '.join(draft.no_python_packages)}. Install them on the machines and take them out of the environment."
        )
    return draft


def _read_conda_line(draft: _Draft, line: str) -> None:
    package = conda_package(line)
    if package.name == "python":
        draft.python = package
    elif package.name in package_facts.NOT_ON_PYPI or package.name.startswith(package_facts.NOT_ON_PYPI_PREFIXES):
        draft.no_python_packages.append(package.written)
    elif package.name in package_facts.COMES_WITH_THE_MACHINE:
        draft.notices.append(
            f"{package.written} is not installed. {package_facts.COMES_WITH_THE_MACHINE[package.name]}"
        )
    elif package.name in package_facts.LIBRARIES_THAT_WHEELS_BRING:
        if package.name != "pip":
            draft.notices.append(
                f"{package.written} is not installed: Python packages bring such libraries themselves."
            )
    else:
        draft.packages.append(_renamed(draft, package, package_facts.CONDA_NAMES))
        draft.add(*package_facts.CONDA_BRINGS.get(package.name, ()))


def _ask_once_for_tensorflow(draft: _Draft) -> None:
    """Conda's Keras brings some TensorFlow, an estimator another: the one with a version is meant."""
    found = _tensorflows(draft)
    pinned = [package for package in found if package.limits]
    draft.packages = [each for each in draft.packages if each not in found or each in (pinned or found[:1])]


def _renamed(draft: _Draft, package: Package, names: Mapping[str, str]) -> Package:
    name = names.get(package.name, package.name)
    limits = package.limits
    if (
        name in package_facts.FOUR_PART_VERSIONS
        and limits.startswith("==")
        and limits.count(".") == 2
        and "*" not in limits
    ):
        limits += ".*"
    if name != package.name:
        draft.notices.append(f"{package.name} is called {name} on PyPI.")
    return replace(package, name=name, limits=limits)


def _take_out_what_lapis_is(draft: _Draft) -> None:
    azures = [package for package in draft.packages if package.name.split("-")[0] == "azureml"]
    for package in azures:
        if package.name not in package_facts.PROVIDED_BY_LAPIS:
            draft.substitute(package, None, "Lapis does not have it; a script that imports it fails")
            continue
        draft.packages.remove(package)
        for key in (package.name, *(f"{package.name}[{extra}]" for extra in package.extras)):
            if not (key == "azureml-mlflow" and draft.has("mlflow")):
                _bring(draft, package_facts.STANDS_FOR.get(key, ()))
    if azures and draft.has("pandas"):
        _bring(draft, [package_facts.TABLES_NEED])


def _bring(draft: _Draft, names: Iterable[str]) -> None:
    """As Azure's packages did."""
    draft.brought.update(names)
    draft.added.update(name for name in names if not draft.has(name))
    draft.add(*names)


def _add_horovod(draft: _Draft, script: str) -> None:
    """The images that such scripts were written for had it, so their environments often do not name it."""
    if not draft.has("horovod") and any(draft.has(each) for each in (*package_facts.HOROVOD_ENDS, "tensorflow-gpu")):
        draft.add("horovod")
        draft.notices.append(f"horovod is added: {script} imports it.")


def _let_tensorflow_fit_horovod(draft: _Draft) -> None:
    """Estimators list Horovod beside TensorFlow 1.13, whether or not MPI starts the job: both get the same packages."""
    if not draft.has("horovod"):
        return
    oldest = f"=={package_facts.HOROVOD_BEGINS}"
    for package in [each for each in draft.packages if each.name in ("tensorflow", "tensorflow-gpu")]:
        given = replace(package, limits=oldest)
        if package.span.ends_by(version("1.15")):
            draft.substitute(package, given, "the oldest that Horovod can still be compiled for, and the last of 1.x")


def _set_horovod_apart(draft: _Draft) -> None:
    """MPI jobs get it compiled, in the one version that still can be."""
    for package in [each for each in draft.packages if each.name == "horovod" and not each.address]:
        given = replace(package, limits=f"=={package_facts.HOROVOD}", extras=(), marker="")
        if not package.span.meets(given.span):
            draft.substitute(package, given, "its last release: earlier ones cannot be compiled any more")
        draft.packages.remove(package if package in draft.packages else given)
        draft.compiled = [given.requirement]
        draft.add(*package_facts.HOROVOD_NEEDS)


def _limits_of_horovod(draft: _Draft) -> dict[str, str]:
    return {name: limit for name, limit in package_facts.HOROVOD_LIMITS.items() if draft.compiled and draft.has(name)}


def _take_out_what_cannot_be_installed(draft: _Draft) -> None:
    for package in list(draft.packages):
        if package.name in package_facts.NOT_INSTALLED and not package.address:
            draft.substitute(package, None, package_facts.NOT_INSTALLED[package.name])


# Python


def _choose_python(draft: _Draft, pythons: Sequence[str], submitter: Submitter) -> str:
    """The Python that most packages are made for; of those the nearest to the one asked for, or to the submitter's."""
    usable = [python for python in pythons if version(python) >= version(package_facts.OLDEST_PYTHON)]
    if not usable:
        has = ", ".join(pythons) or "none"
        raise UserErrorException(
            f"It needs Python {package_facts.OLDEST_PYTHON} or later; this machine has: {has}. "
            f"Install one: `uv python install {package_facts.DEFAULT_PYTHON}`."
        )
    asked = span(draft.python.limits) if draft.python else Span()
    otherwise = version(submitter.python or package_facts.DEFAULT_PYTHON)[1]

    def order(python: str) -> tuple[Any, ...]:
        whole = version(python)
        minor = whole[:2]
        exactly = asked.meets(Span(whole, (*whole, 0)))
        return (
            len(_misfits(draft.packages, minor)),
            *_distance(asked, minor),
            abs(minor[1] - otherwise),
            not exactly,
            tuple(-part for part in whole),
        )

    chosen = min(usable, key=order)
    if draft.python and _distance(asked, version(chosen)[:2])[0]:
        reason = _why_another_python(draft, asked, usable, chosen)
        draft.substitutions.append(Substitution(draft.python.written, f"python={chosen}", reason))
    return chosen


def _distance(asked: Span, minor: Version) -> tuple[int, bool]:
    """How many minor versions `minor` is away from what was asked for, and whether it is the older side."""
    wanted = _minors(asked) or [0]  # Python 2
    nearest = min(wanted, key=lambda each: abs(each - minor[1]))
    return abs(nearest - minor[1]), minor[1] < nearest


def _minors(asked: Span) -> list[int]:
    return [minor for minor in range(0, 30) if asked.meets(Span((3, minor) if minor else (3,), (3, minor + 1)))]


def _why_another_python(draft: _Draft, asked: Span, usable: Sequence[str], chosen: str) -> str:
    wanted = _minors(asked)
    if not wanted or wanted[-1] < version(package_facts.OLDEST_PYTHON)[1]:
        has = "" if chosen.startswith(package_facts.OLDEST_PYTHON) else f", and this machine has {_list(usable)}"
        return f"Lapis runs on Python {package_facts.OLDEST_PYTHON} and later{has}"
    if not any(version(python)[1] in wanted for python in usable):
        return f"this machine has Python {_list(usable)}; `uv python install 3.{wanted[-1]}` adds the one asked for"
    present = next(minor for minor in wanted if any(version(python)[1] == minor for python in usable))
    misfits = _misfits(draft.packages, (3, present))
    return "; ".join(f"{package.written} is for Python {_made_for(package)}" for package in misfits)


# Versions


@dataclass(frozen=True)
class _Release:
    """Versions of one package that are made for the same Pythons."""

    versions: Span
    oldest: Version
    newest: Version  # empty: not known

    def fits(self, minor: Version) -> bool:
        return self.oldest <= minor and (not self.newest or minor <= self.newest)


def _releases(package: Package) -> tuple[_Release, ...]:
    return _releases_of(_family(package.name))


@cache
def _releases_of(family: str) -> tuple[_Release, ...]:
    rows = package_facts.RELEASES.get(family, ())
    starts = [version(start) for start, _, _ in rows]
    ends: list[Version | None] = [*starts[1:], None]
    return tuple(
        _Release(Span(start, end), version(oldest), version(newest))
        for start, end, (_, oldest, newest) in zip(starts, ends, rows, strict=False)
    )


def _family(name: str) -> str:
    return package_facts.SAME_RELEASES_AS.get(name, name)


def _misfits(packages: Iterable[Package], minor: Version) -> list[Package]:
    """The packages that have no version among those asked for that is made for this Python."""
    return [package for package in packages if _releases(package) and not _possible(package, minor)]


def _possible(package: Package, minor: Version) -> list[_Release]:
    return [each for each in _releases(package) if each.fits(minor) and each.versions.meets(package.span)]


def _reach(package: Package, minor: Version) -> Span:
    """The versions that it may be on this Python, as far as the table knows."""
    possible = _possible(package, minor)
    if not possible:
        return package.span
    ends = [end for end in (package.span.high, possible[-1].versions.high) if end is not None]
    return Span(package.span.low, min(ends, default=None))


def _made_for(package: Package) -> str:
    fitting = [each for each in _releases(package) if each.versions.meets(package.span)]
    newest = fitting[-1].newest
    return f"{_text(fitting[0].oldest)} {'to ' + _text(newest) if newest else 'and later'}"


def _move_to_versions_that_exist(draft: _Draft, minor: Version, pythons: Sequence[str]) -> None:
    hint = _python_to_install(draft)
    for package in sorted(
        _misfits(draft.packages, minor), key=lambda each: _family(each.name) not in package_facts.FOLLOWERS
    ):
        if package not in draft.packages:
            continue  # it follows one that was moved
        given = replace(package, limits=_nearest(package, minor))
        reason = f"it is for Python {_made_for(package)}, and this machine has {_list(pythons)}{hint}"
        draft.moved[_family(package.name)] = package.span
        draft.substitute(package, given, reason)
        _let_followers_follow(draft, given)


def _nearest(package: Package, minor: Version) -> str:
    """The limits of the next newer version for this Python, or of the last older one."""
    releases = [each for each in _releases(package) if each.fits(minor)]
    newer = [each for each in releases if package.span.ends_by(each.versions.low)]
    if newer:
        return f"=={_text(_two(newer[0].versions.low))}.*"
    last = releases[-1].versions
    return f">={_text(_two(last.low))}" + (f",<{_text(last.high)}" if last.high else "")


def _python_to_install(draft: _Draft) -> str:
    asked = span(draft.python.limits) if draft.python else Span()
    oldest = version(package_facts.OLDEST_PYTHON)[1]
    fitting = [minor for minor in range(oldest, 20) if not _misfits(draft.packages, (3, minor))]
    if not fitting:
        return ""
    best = min(fitting, key=lambda minor: _distance(asked, (3, minor)))
    return f"; `uv python install 3.{best}` spares you this"


def _let_followers_follow(draft: _Draft, moved: Package) -> None:
    for follower in list(draft.packages):
        if follower.name in package_facts.FOLLOWERS.get(_family(moved.name), ()) and follower.limits:
            draft.substitute(follower, replace(follower, limits=""), f"it follows {moved.name}")


# TensorFlow, and scripts that were written for another one


def _tensorflows(draft: _Draft) -> list[Package]:
    return [package for package in draft.packages if _family(package.name) == "tensorflow" and not package.address]


def _help_old_scripts(draft: _Draft, minor: Version) -> None:
    changed = any(substitution.given for substitution in draft.substitutions)
    if (changed or ("numpy" in draft.brought and not _is_pinned(draft, "numpy"))) and not _numpy_is_old(draft, minor):
        draft.shims.add("numpy_aliases")
    if draft.has("scikit-learn") and (changed or not _is_pinned(draft, "scikit-learn")):
        draft.shims.add("sklearn_externals")
    deciding = _tensorflows(draft) or [package for package in draft.packages if package.name == "keras"]
    if any(not _reach(package, minor).ends_by(version(package_facts.LR_IS_GONE)) for package in deciding):
        draft.shims.add("learning_rate")
    for package in [each for each in draft.packages if _family(each.name) in draft.moved]:
        asked = draft.moved[_family(package.name)]
        if package.name == "keras" and package.span.low >= version(package_facts.KERAS_3):
            _keep_keras_2(draft, "")
        if _family(package.name) != "tensorflow":
            continue
        if asked.ends_by(version(package_facts.TENSORFLOW_2)) and package.span.low >= version(
            package_facts.TENSORFLOW_2
        ):
            draft.shims.add("tensorflow_1")
        if package.span.low >= version(package_facts.KERAS_3_COMES):
            _keep_keras_2(draft, package.limits)
        lacks, has_again = map(version, package_facts.KERAS_LACKS_OPTIMIZERS)
        if draft.has("keras") and lacks <= package.span.low < has_again:
            draft.shims.add("keras_optimizers")


def _is_pinned(draft: _Draft, name: str) -> bool:
    return any(package.name == name and (package.limits or package.address) for package in draft.packages)


def _numpy_is_old(draft: _Draft, minor: Version) -> bool:
    """Whether the NumPy that is installed is sure to have the names that old scripts use."""
    gone = version(package_facts.NUMPY_ALIASES_ARE_GONE)
    numpy = next((package for package in draft.packages if package.name == "numpy"), Package("numpy"))
    limits = dict(constraint.split("<") for constraint in _constraints(draft.packages, minor))
    return _reach(numpy, minor).ends_by(gone) or version(limits.get("numpy", "999")) <= gone


def _keep_keras_2(draft: _Draft, limits: str) -> None:
    draft.add("tensorflow")
    for keras in [package for package in draft.packages if package.name == "keras"]:
        draft.substitute(keras, replace(keras, name="tf-keras", limits=limits), "so Keras 2 is called by now")
    if not draft.has("tf-keras"):
        draft.packages.append(Package("tf-keras", limits, written="tf-keras"))
    draft.shims.add("legacy_keras")
    draft.variables["TF_USE_LEGACY_KERAS"] = "1"


def _choose_tensorflow_build(draft: _Draft, minor: Version, gpu: bool, strict: bool) -> None:
    tensorboard_went = version(package_facts.TENSORBOARD_WENT)
    for package in _tensorflows(draft):
        reach = _reach(package, minor)
        if reach.low < tensorboard_went and not reach.ends_by(tensorboard_went):
            draft.add("tensorboard")
        gone = package.name == "tensorflow-gpu" and not reach.ends_by(version(package_facts.TENSORFLOW_GPU_ENDS))
        if package.name == "tensorflow-cpu" or (strict and not gone):
            continue
        builds = [row for row in package_facts.TENSORFLOW_BUILDS if not reach.ends_by(version(row[0]))]
        _, without_gpu, with_gpu, cuda = builds[-1]
        name, _, extra = (with_gpu if gpu else without_gpu).partition("[")
        given = replace(package, name=name, extras=(extra.rstrip("]"),) if extra else ())
        if gpu and cuda:
            draft.notices.append(
                f"{given.requirement} looks for CUDA {cuda} on the node; where it finds none it uses the CPU."
            )
        if given.name != package.name:
            draft.substitute(package, given, f"the build for a node {'with a' if gpu else 'without'} GPU")
        else:
            draft.packages[draft.packages.index(package)] = given


# The rest


def _limits_of_azure(draft: _Draft, minor: Version) -> tuple[str, ...]:
    """On what Azure's packages brought, as far as the user says nothing else and this Python has such versions."""
    limits = {name: limit for name, limit in package_facts.STANDS_FOR_LIMITS.items() if name in draft.brought}
    return tuple(
        f"{name}<{limit}"
        for name, limit in limits.items()
        if not _is_pinned(draft, name) and _is_for(minor, name, Span(high=version(limit)))
    )


def _as_submitter(draft: _Draft, minor: Version, submitter: Submitter) -> tuple[str, ...]:
    """What the user has pickled with his own Python can be read with the same versions."""
    if not submitter.python:
        return ()
    same_python = version(submitter.python)[:2] == minor
    limits = dict(constraint.split("<") for constraint in _constraints(draft.packages, minor))
    pinned = any(package.name in package_facts.PICKLED_WITH and package.limits for package in draft.packages)
    found = []
    for name, number in sorted(submitter.packages.items()):
        exactly = span(f"=={number}")
        if name not in package_facts.PICKLED_WITH or not exactly.meets(Span(high=version(limits.get(name, "999")))):
            continue
        if _is_pinned(draft, name) or (pinned and not draft.has(name)):
            continue  # beside what he pinned, packages that he does not name come as those want them
        if same_python or (_releases_of(name) and _is_for(minor, name, exactly)):
            found.append(f"{name}=={number}")
    return tuple(found)


def _is_for(minor: Version, name: str, versions: Span) -> bool:
    """Whether some of these versions are made for this Python, as far as the table knows."""
    releases = _releases_of(name)
    return not releases or any(each.fits(minor) and each.versions.meets(versions) for each in releases)


def _add_what_was_always_there(draft: _Draft) -> None:
    """Unless the user named the only places to install from: they may not have them."""
    if "--no-index" not in draft.options:
        draft.add(*package_facts.ALWAYS_THERE)


def _constraints(packages: Sequence[Package], minor: Version, more: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The limits that the packages put on others, but for those that contradict the user."""
    limits: dict[str, Version] = {name: version(limit) for name, limit in (more or {}).items()}
    for package in packages:
        reach = _reach(package, minor)
        for below, others in package_facts.COMPANIONS.get(_family(package.name), ()):
            if not below or reach.ends_by(version(below)):
                for other in others:
                    name, _, limit = other.partition("<")
                    limits[name] = min(version(limit), limits.get(name, version(limit)))
    if packages:
        for name, limit in package_facts.ALWAYS_LIMITED.items():
            limits.setdefault(name, version(limit.lstrip("<")))
    asked = {package.name: package.span for package in packages}
    kept = {name: limit for name, limit in limits.items() if asked.get(name, Span()).meets(Span(high=limit))}
    return tuple(f"{name}<{_text(limit)}" for name, limit in sorted(kept.items()))


def _without(packages: Sequence[Package]) -> tuple[str, ...]:
    if not packages:
        return ()
    names = {package.name for package in packages}
    others = {"tensorflow"} if "tensorflow-cpu" in names and "tensorflow" not in names else set()
    return tuple(sorted(package_facts.PROVIDED_BY_LAPIS | others))


def _not_exactly(name: str | None, substitutions: Sequence[Substitution]) -> str:
    lines = "\n".join(f"  {substitution}" for substitution in substitutions)
    return (
        f"{called_first(name)} cannot be installed exactly as it is defined, and substitutions are not allowed:\n"
        f"{lines}\n"
        "Change the definition, install what is missing, or allow substitutions."
    )


def _two(numbers: Version) -> Version:
    return (*numbers, 0)[:2]


def _text(numbers: Version) -> str:
    return ".".join(str(part) for part in numbers)


def _list(pythons: Iterable[str]) -> str:
    return ", ".join(sorted(set(pythons), key=version))
