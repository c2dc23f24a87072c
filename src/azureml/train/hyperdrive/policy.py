"""When a run of the search is ended early."""

from lapis.sdk.training.stopping_policies import BanditPolicy as BanditPolicy
from lapis.sdk.training.stopping_policies import EarlyTerminationPolicy as EarlyTerminationPolicy
from lapis.sdk.training.stopping_policies import MedianStoppingPolicy as MedianStoppingPolicy
from lapis.sdk.training.stopping_policies import NoTerminationPolicy as NoTerminationPolicy
from lapis.sdk.training.stopping_policies import TruncationSelectionPolicy as TruncationSelectionPolicy
