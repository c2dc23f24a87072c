"""What stands in for a name that is not there yet gets in nobody's way until it is used."""

import copy
import inspect
import pickle
import pydoc
import typing

import pytest

from azureml.core.compute import BatchCompute, DatabricksCompute
from azureml.tensorboard.export import export_to_tensorboard
from lapis.errors import NotThereYet, UserErrorException


def says_not_there_yet(path: str) -> typing.Any:
    return pytest.raises(NotThereYet, match=rf"{path} is not there yet in this release of Lapis\.")


def test_calling_a_class_says_its_full_name() -> None:
    with says_not_there_yet("azureml.core.compute.BatchCompute"):
        BatchCompute("workspace", name="gpu-cluster")


def test_calling_something_of_a_class_says_the_full_call() -> None:
    with says_not_there_yet("azureml.core.compute.BatchCompute.provisioning_configuration"):
        BatchCompute.provisioning_configuration(vm_size="STANDARD_NC6", max_nodes=4)


def test_calling_a_function_says_its_full_name() -> None:
    with says_not_there_yet("azureml.tensorboard.export.export_to_tensorboard"):
        export_to_tensorboard("a run", "logs")


def test_the_error_is_one_that_scripts_of_sdk_v1_catch() -> None:
    with pytest.raises(UserErrorException):
        BatchCompute()
    with pytest.raises(NotImplementedError):
        BatchCompute()


def test_isinstance_is_false_and_type_hints_hold() -> None:
    assert not isinstance("cpu", BatchCompute)
    assert not issubclass(str, BatchCompute)
    assert typing.get_args(typing.Optional[BatchCompute]) == (BatchCompute, type(None))  # noqa: UP045


def test_a_class_can_be_inherited_from_and_keeps_what_the_heir_adds() -> None:
    class Cluster(DatabricksCompute):
        own = "kept"

    assert Cluster.own == "kept"
    with says_not_there_yet("azureml.core.compute.DatabricksCompute.create"):
        Cluster.create()
    with says_not_there_yet("azureml.core.compute.DatabricksCompute"):
        Cluster()


@pytest.mark.parametrize(
    "name", ["__wrapped__", "__deepcopy__", "__signature__", "_repr_html_", "_ipython_display_", "_fields"]
)
def test_questions_of_tools_are_answered_as_by_any_class(name: str) -> None:
    assert not hasattr(BatchCompute, name)


@pytest.mark.parametrize("missing", [BatchCompute, export_to_tensorboard])
def test_it_can_be_shown_explained_copied_and_pickled(missing: typing.Any) -> None:
    assert missing.__name__ in repr(missing)
    assert "Not there yet" in (inspect.getdoc(missing) or "")
    assert "Not there yet" in pydoc.render_doc(missing)
    assert copy.copy(missing) is copy.deepcopy(missing) is missing
    assert pickle.loads(pickle.dumps(missing)) is missing


def test_a_package_that_is_not_there_at_all_imports_with_any_module_and_name_of_it() -> None:
    import azureml.dataprep as dprep
    from azureml.automl.core.shared import constants
    from azureml.contrib.pipeline.steps import ParallelRunStep
    from azureml.train.automl import AutoMLConfig
    from azureml.train.automl.run import AutoMLRun

    assert not isinstance("a run", (AutoMLRun, ParallelRunStep))
    with says_not_there_yet("azureml.train.automl.AutoMLConfig"):
        AutoMLConfig(task="classification")
    with says_not_there_yet("azureml.automl.core.shared.constants.Metric"):
        constants.Metric.SCALAR_REGRESSION_SET  # noqa: B018
    with says_not_there_yet("azureml.dataprep.read_csv"):
        dprep.read_csv("a.csv")
    assert not hasattr(dprep, "__wrapped__")


def test_an_exception_that_is_not_there_can_be_named_in_an_except_clause() -> None:
    from azureml.automl.core.shared.exceptions import ClientException

    with pytest.raises(ZeroDivisionError):
        try:
            1 / 0  # noqa: B018
        except ClientException:
            pass
