"""The lab's container runtime: stand-ins for Pyxis, Enroot and nvidia-smi, the registries, and the images in them."""

from towline.lab.runtime.choice import STAND_INS, RuntimeChoice
from towline.lab.runtime.choice import save as choose
from towline.lab.runtime.image_files import check_images, images
from towline.lab.runtime.plugin import build, check, in_use

__all__ = ["STAND_INS", "RuntimeChoice", "build", "check", "check_images", "choose", "images", "in_use"]
