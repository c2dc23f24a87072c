"""What nearly all definitions of runs say alike, so that a run keeps only what its own says otherwise.

Azure's runDefinition is two kilobytes of defaults around a script's name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_GONE = ""  # the key under which the names stand that a definition lacks

# Never to be changed: what databases keep is a difference to this very text. A test holds it.
_USUAL: dict[str, Any] = json.loads(
    """
{"command":"","useAbsolutePath":false,"framework":"Python","communicator":"None","dataReferences":{},"data":{},
"outputData":{},"jobName":null,"maxRunDurationSeconds":2592000,"nodeCount":1,"priority":null,
"environment":{"environmentVariables":{"EXAMPLE_ENV_VAR":"EXAMPLE_VALUE"},
"python":{"userManagedDependencies":false,"interpreterPath":"python","condaDependenciesFile":null,
"baseCondaEnvironment":null,"condaDependencies":{"name":"project_environment","channels":["anaconda",
"conda-forge"],"dependencies":["python=3.11",{"pip":["azureml-defaults"]}]}},"docker":{"enabled":false,
"baseImage":"mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04","baseDockerfile":null,"buildContext":null,
"sharedVolumes":true,"shmSize":"2g","arguments":[],"baseImageRegistry":{"address":null,"username":null,
"password":null,"registryIdentity":null},"platform":{"os":"Linux","architecture":"amd64"}},
"spark":{"repositories":[],"packages":[],"precachePackages":true},"databricks":{"mavenLibraries":[],
"pypiLibraries":[],"rcranLibraries":[],"jarLibraries":[],"eggLibraries":[]},"r":null,
"inferencingStackVersion":null,"assetId":null},"history":{"outputCollection":true,"snapshotProject":true,
"directoriesToWatch":["logs"]},"spark":{"configuration":{"spark.app.name":"Azure ML Experiment",
"spark.yarn.maxAppAttempts":1}},"docker":{"useDocker":false,"sharedVolumes":true,"arguments":[],"shmSize":"2g"},
"hdi":{"yarnDeployMode":"cluster"},"tensorflow":{"workerCount":1,"parameterServerCount":1},
"mpi":{"processCountPerNode":1,"nodeCount":1},"pyTorch":{"communicationBackend":"Nccl","processCount":null,
"nodeCount":1},"parallelTask":{"maxRetriesPerWorker":0,"workerCountPerNode":1,"terminalExitCodes":null},
"amlCompute":{"vmSize":null,"vmPriority":null,"retainCluster":false,"name":null,"clusterMaxNodeCount":null},
"kubernetesCompute":{"instanceType":null},"services":{},"credentialPassthrough":false,
"autoClusterComputeSpecification":null,"sourceDirectoryDataStore":null,"datacaches":[],"aiSuperComputer":null,
"cmk8sCompute":null,"commandReturnCodeConfig":null,"containerInstance":null,"exposedPorts":null}
"""
)


def shortened(definition: Mapping[str, Any]) -> dict[str, Any] | None:
    """What it says otherwise than usual; None if it could not be made whole again: it may hold anything."""
    short = _unlike(definition, _USUAL)
    return short if whole(short) == definition else None


def whole(short: Mapping[str, Any]) -> dict[str, Any]:
    """The definition that was shortened."""
    return _like(short, _USUAL)


def _unlike(value: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    short: dict[str, Any] = {}
    for name, mine in value.items():
        others = usual.get(name)
        if isinstance(mine, dict) and isinstance(others, dict):
            differs = _unlike(mine, others)
            if differs:
                short[name] = differs
        elif name not in usual or mine != others or type(mine) is not type(others):
            short[name] = mine
    gone = [name for name in usual if name not in value]
    return {**short, _GONE: gone} if gone else short


def _like(short: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    gone = short.get(_GONE, ())
    found: dict[str, Any] = {}
    for name, others in usual.items():
        if name in gone:
            continue
        if name in short and isinstance(short[name], dict) and isinstance(others, dict):
            found[name] = _like(short[name], others)
        elif name in short:
            found[name] = short[name]
        else:
            found[name] = _copy(others)
    found.update({name: value for name, value in short.items() if name not in usual and name != _GONE})
    return found


def _copy(value: Any) -> Any:
    """Of its own for each run: nobody changes what all share."""
    if isinstance(value, dict):
        return {name: _copy(each) for name, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value
