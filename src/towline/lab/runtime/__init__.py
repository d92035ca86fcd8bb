"""The lab's container runtime: stand-ins for Pyxis, Enroot and nvidia-smi, the registries, and the images in them."""

from towline.lab.runtime.image_files import check_images, images
from towline.lab.runtime.plugin import build, check

__all__ = ["build", "check", "check_images", "images"]
