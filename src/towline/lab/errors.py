"""The one error the lab raises."""

from __future__ import annotations

from towline.models.errors import TowlineError


class LabError(TowlineError):
    """The lab could not be brought up, used or taken down."""

    code = "lab"
    exit_status = 71
