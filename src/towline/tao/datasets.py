"""A dataset's root as the keys of a network's specification, for scripts that build specifications themselves."""

from towline.config.networks import Network as Network
from towline.config.networks import known_networks as known_networks
from towline.config.networks import read_network as read_network
from towline.engine.planning.datasets import MOUNT as MOUNT
from towline.engine.planning.datasets import Placed as Placed
from towline.engine.planning.datasets import place as place
