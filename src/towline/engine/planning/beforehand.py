"""What is made on the cluster before a job's own allocation begins: files of images, copies of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from towline.models.image import Image
from towline.models.plan import Check, PlannedImage, PlannedInput
from towline.models.spec import JobSpec


@dataclass(frozen=True)
class Prepared:
    """A spec's images of registries, as far as files are made of them.

    Attributes:
        images: those.
        checks: one for each image, files too; empty when nothing is made.
        notes: what was decided for the user, in sentences.
    """

    images: tuple[PlannedImage, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    def started_from(self, reference: str) -> Image:
        """The image that a container starts from."""
        path = next((each.path for each in self.images if each.reference == reference), "")
        return Image(path=path) if path or not reference else Image.parse(reference)


@dataclass(frozen=True)
class Staged:
    """A spec's data from elsewhere, with the copies that it gets.

    Attributes:
        inputs: those.
        checks: about each of them.
        notes: what was decided for the user, in sentences.
        files: path below the job directory → content, for those that the job brings itself.
    """

    inputs: tuple[PlannedInput, ...] = ()
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)

    def with_checks(self, checks: Sequence[Check]) -> Staged:
        """The same with further checks."""
        return replace(self, checks=(*self.checks, *checks))

    def inputs_of(self, spec: JobSpec) -> dict[str, str]:
        """The spec's inputs, those from elsewhere by the path of their copy."""
        copies = {each.target: each.path for each in self.inputs}
        return {target: copies.get(target, uri) for target, uri in spec.inputs.items()}


AS_IT_IS = Staged()
"""There is no data from elsewhere."""
AS_THEY_ARE = Prepared()
"""Every image is started as it is named."""
