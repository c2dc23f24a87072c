"""Private to SDK v1, but scripts import its exceptions from here."""

from lapis.errors import ActivityFailedException as ActivityFailedException
from lapis.errors import AuthenticationException as AuthenticationException
from lapis.errors import AzureMLAggregatedException as AzureMLAggregatedException
from lapis.errors import AzureMLException as AzureMLException
from lapis.errors import ComputeTargetException as ComputeTargetException
from lapis.errors import DatasetTimestampMissingError as DatasetTimestampMissingError
from lapis.errors import DiscoveryUrlNotFoundException as DiscoveryUrlNotFoundException
from lapis.errors import ExperimentExecutionException as ExperimentExecutionException
from lapis.errors import ModelNotFoundException as ModelNotFoundException
from lapis.errors import ModelPathNotFoundException as ModelPathNotFoundException
from lapis.errors import ParallelRunException as ParallelRunException
from lapis.errors import ProjectSystemException as ProjectSystemException
from lapis.errors import RunConfigurationException as RunConfigurationException
from lapis.errors import RunEnvironmentException as RunEnvironmentException
from lapis.errors import ServiceException as ServiceException
from lapis.errors import SnapshotException as SnapshotException
from lapis.errors import TrainingException as TrainingException
from lapis.errors import UserErrorException as UserErrorException
from lapis.errors import WebserviceException as WebserviceException
from lapis.errors import WorkspaceException as WorkspaceException
from lapis.errors import WorkspacePrivateEndpointException as WorkspacePrivateEndpointException
