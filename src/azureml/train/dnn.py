"""Estimators for deep learning."""

from lapis.sdk.later import stand_in as _stand_in

Chainer = _stand_in("azureml.train.dnn.Chainer")
Gloo = _stand_in("azureml.train.dnn.Gloo")
Mpi = _stand_in("azureml.train.dnn.Mpi")
Nccl = _stand_in("azureml.train.dnn.Nccl")
ParameterServer = _stand_in("azureml.train.dnn.ParameterServer")
PyTorch = _stand_in("azureml.train.dnn.PyTorch")
TensorFlow = _stand_in("azureml.train.dnn.TensorFlow")
