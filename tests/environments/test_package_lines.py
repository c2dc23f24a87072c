"""What the lines of a conda file and of its pip section mean."""

from __future__ import annotations

import pytest

from lapis.environments.package_lines import conda_package, pip_line
from lapis.environments.versions import span, version
from lapis.errors import UserErrorException


@pytest.mark.parametrize(
    ("line", "requirement"),
    [
        ("numpy", "numpy"),
        ("NumPy", "numpy"),
        ("numpy=1.18", "numpy==1.18.*"),
        ("numpy=1.18.*", "numpy==1.18.*"),
        ("numpy==1.18.1", "numpy==1.18.1"),
        ("numpy=1.18.1=py36h95a1406_0", "numpy==1.18.1.*"),
        ("pytorch=*=*cuda*", "pytorch"),
        ("numpy 1.18.1 py36_0", "numpy==1.18.1"),
        ("numpy >=1.16, <2", "numpy>=1.16,<2"),
        ("numpy<=1.16.2", "numpy<=1.16.2"),
        ("pandas~=1.3.0", "pandas~=1.3.0"),
        ("conda-forge::numpy=1.18", "numpy==1.18.*"),
        ("numpy[version='>=1.16,<2']", "numpy>=1.16,<2"),
        ("typing_extensions", "typing-extensions"),
    ],
)
def test_a_conda_line_is_the_requirement_that_pip_would_write(line: str, requirement: str) -> None:
    assert conda_package(line).requirement == requirement


@pytest.mark.parametrize("line", ["numpy=1.11.1|1.11.3", "numpy=abc", "", "=1.2"])
def test_a_conda_line_that_is_not_understood_is_an_error_with_the_line_in_it(line: str) -> None:
    with pytest.raises(UserErrorException, match="conda package"):
        conda_package(line)


@pytest.mark.parametrize(
    ("line", "requirement"),
    [
        ("numpy==1.18.1", "numpy==1.18.1"),
        ("numpy == 1.18.1 , != 1.18.0", "numpy==1.18.1,!=1.18.0"),
        ("Keras-Applications (>=1.0)", "keras-applications>=1.0"),
        ("dask[complete, array]>=2", "dask[complete,array]>=2"),
        ('numpy==1.18; python_version < "3.8"', 'numpy==1.18 ; python_version < "3.8"'),
        ("torch==1.6.0+cpu", "torch==1.6.0+cpu"),
        ("tool @ https://example.org/tool-1.0.whl", "tool @ https://example.org/tool-1.0.whl"),
        ("https://example.org/tool-1.0.whl", "https://example.org/tool-1.0.whl"),
        ("git+https://example.org/tool.git@v1#egg=Tool[fast]", "tool[fast] @ git+https://example.org/tool.git@v1"),
        ("-e git+https://example.org/tool.git#egg=tool", "tool @ git+https://example.org/tool.git"),
        ("/srv/wheels/tool-1.0.whl", "/srv/wheels/tool-1.0.whl"),
        ("numpy==1.18.1 --hash=sha256:abc --hash=sha256:def", "numpy==1.18.1"),
        ("numpy  # for the model", "numpy"),
    ],
)
def test_a_pip_line_keeps_its_meaning(line: str, requirement: str) -> None:
    package = pip_line(line).package
    assert package is not None and package.requirement == requirement


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("--extra-index-url https://example.org/simple", "--extra-index-url https://example.org/simple"),
        ("--extra-index-url=https://example.org/simple", "--extra-index-url https://example.org/simple"),
        ("-f https://example.org/stable.html", "--find-links https://example.org/stable.html"),
        ("-i https://example.org/simple", "--index-url https://example.org/simple"),
        ("--pre", "--pre"),
    ],
)
def test_options_of_pip_travel_on_under_their_long_names(line: str, option: str) -> None:
    assert pip_line(line).option == option


def test_options_that_change_nothing_are_told_and_dropped() -> None:
    found = pip_line("--no-cache-dir")
    assert (found.option, found.package) == ("", None)
    assert found.notice == "pip's option --no-cache-dir changes nothing here."


@pytest.mark.parametrize("line", ["", "   ", "# torch==1.4"])
def test_an_empty_line_is_nothing(line: str) -> None:
    found = pip_line(line)
    assert (found.package, found.option, found.notice) == (None, "", "")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("-r requirements.txt", "from_pip_requirements"),
        ("--constraint limits.txt", "Put its lines in its place"),
        ("numpy=1.18", "pip wants two '='"),
        ("./wheels/tool.whl", "names a file beside the notebook"),
        ("-e .", "names a file beside the notebook"),
        ("--config-settings x", "Known: --extra-index-url"),
        ("two words", "is not understood"),
    ],
)
def test_a_pip_line_that_cannot_be_followed_is_an_error_that_says_what_to_do(line: str, says: str) -> None:
    with pytest.raises(UserErrorException) as error:
        pip_line(line)
    assert says in error.value.message
    assert line.split()[0] in error.value.message or line.split()[-1] in error.value.message


@pytest.mark.parametrize(
    ("limits", "inside", "outside"),
    [
        ("==2.2.0", ["2.2", "2.2.0"], ["2.2.1", "2.1.4"]),
        ("==2.2.*", ["2.2", "2.2.3"], ["2.3", "2.1.4"]),
        ("~=2.2.1", ["2.2.1", "2.2.9"], ["2.2", "2.3"]),
        ("~=2.2", ["2.2", "2.9"], ["3", "2.1"]),
        (">=1.15,<2", ["1.15", "1.99"], ["2", "2.0.0", "1.14"]),
        ("<=2.3.1", ["2.3.1", "0.1"], ["2.3.2"]),
        (">2.3", ["2.3.1"], ["2.3", "2.3.0"]),
        ("!=1.5", ["1.4", "1.6"], []),
        ("", ["0", "99"], []),
    ],
)
def test_a_span_holds_what_the_limits_leave_open(limits: str, inside: list[str], outside: list[str]) -> None:
    for text in inside:
        assert span(limits).meets(span(f"=={text}")), text
    for text in outside:
        assert not span(limits).meets(span(f"=={text}")), text


def test_builds_and_trailing_zeros_do_not_make_another_version() -> None:
    assert version("2.15.0.post1") == version("2.15") == version("2.15.0+cpu")
    assert version("1.10") != version("1.1")
