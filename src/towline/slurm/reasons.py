"""Why a job waits, in plain words.

The words are those of `job_reason_string` (20.11 to 25.11); some reasons are free text that the controller writes
instead of a word, such as `launch failed requeued held` or `ReqNodeNotAvail, UnavailableNodes:…`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Reason:
    """A pending reason, explained.

    Attributes:
        word: Slurm's word or text.
        sentence: what it means, for people.
        blocked: whether the job can never start unless somebody acts.
        way_out: what to do; empty when waiting is all there is to do.
    """

    word: str
    sentence: str
    blocked: bool = False
    way_out: str = ""


HELD_HERE = "held by Towline"
"""Stands in place of `JobHeldUser` where this program holds a job and not its user."""
_CANCEL_SMALLER = "Cancel it and submit it again with less, or to another partition."
_RELEASE = "Let it go on with `towline resume`, or cancel it."
_ASK_SITE = "Ask the site's support."

# The first pattern that matches the whole reason decides.
_TABLE: tuple[tuple[str, str, bool, str], ...] = (
    (r"None", "It was not looked at by the scheduler yet.", False, ""),
    (r"Resources", "It is next in line and waits for nodes, GPUs or memory to become free.", False, ""),
    (r"Priority", "Jobs with a higher priority are in front of it.", False, ""),
    (r"Dependency", "It waits for another job.", False, ""),
    (
        r"DependencyNeverSatisfied",
        "The job it depends on ended in a way that this one must not start after.",
        True,
        "Cancel it and submit it again without the dependency.",
    ),
    (r"JobHeldUser", "It is held by its user.", True, _RELEASE),
    (HELD_HERE, "Its nodes did not start, and Slurm put it back again and again, so Towline holds it.", True, _RELEASE),
    (r"JobHeldAdmin", "It is held by the site.", True, "Ask the site's support, or cancel it."),
    (
        r"launch failed requeued held|user env retrieval failed requeued held",
        "A node could not start it; Slurm put it back into the queue and holds it.",
        True,
        "Cancel it and submit it again, leaving out that node; the site should look at the node.",
    ),
    (r"job requeued in held state", "It was put back into the queue and is held.", True, _RELEASE),
    (
        r"JobHoldMaxRequeue",
        "It was requeued as often as the site allows and is held now.",
        True,
        _RELEASE,
    ),
    (r"BeginTime", "Its begin time is not reached; after a requeue Slurm sets one about two minutes ahead.", False, ""),
    (
        r"PartitionNodeLimit",
        "It asks for more nodes than the partition has or allows.",
        True,
        _CANCEL_SMALLER,
    ),
    (r"PartitionTimeLimit", "It asks for more time than the partition allows.", True, _CANCEL_SMALLER),
    (
        r"PartitionConfig",
        "It asks for more time, nodes or memory than the partition allows.",
        True,
        _CANCEL_SMALLER,
    ),
    (
        r"PartitionDown|PartitionInactive",
        "The partition starts no jobs at the moment.",
        False,
        "Wait until the site opens it again, or choose another partition.",
    ),
    (
        r"ReqNodeNotAvail,? ?Reserved for maintenance.*",
        "It would run into a maintenance of nodes that it needs.",
        False,
        "Ask for less time to start before the maintenance.",
    ),
    (
        r"ReqNodeNotAvail.*",
        "A node that it needs is down, drained or reserved.",
        False,
        "Wait for the node, or leave out the node names in the request.",
    ),
    (
        r"Nodes required for job are DOWN.*",
        "The nodes it could use are down, drained or kept for partitions with a higher priority.",
        False,
        "",
    ),
    (r"NodeDown", "A node that it needs is down.", False, ""),
    (r"FrontEndDown", "No front end node is available.", False, _ASK_SITE),
    (r"Reservation", "It waits for its reservation to begin or to have room.", False, ""),
    (
        r"ReservationDeleted|Reservation .* (has ended|was deleted)",
        "Its reservation is gone.",
        True,
        "Cancel it and submit it again without the reservation.",
    ),
    (r"Licenses", "It waits for a licence to become free.", False, ""),
    (
        r"BadConstraints",
        "No set of nodes can satisfy its constraints.",
        True,
        "Cancel it and submit it again with another constraint.",
    ),
    (
        r"InvalidAccount|AccountNotAllowed",
        "Its account may not be used, or not in this partition.",
        True,
        "Cancel it and submit it again with another account.",
    ),
    (
        r"InvalidQOS|QOSNotAllowed",
        "Its QOS may not be used, or not in this partition.",
        True,
        "Cancel it and submit it again with another QOS.",
    ),
    (
        (
            r"(QOS|Assoc)Grp\w*(Minutes|Mins|Wall)\w*|QOSUsageThreshold|AssociationTimeLimit|QOSTimeLimit"
            r"|Job is at or exceeds .* group .*"
        ),
        "Its account, group or QOS has used up its budget of computing time.",
        False,
        "Use another account or QOS, or wait until the budget is renewed.",
    ),
    (
        r"(QOS|Assoc)Grp\w*|AssociationResourceLimit|QOSResourceLimit",
        "Its account, group or QOS uses as much as it may at one time.",
        False,
        "",
    ),
    (
        r"(QOS|Assoc)MaxWall\w*|(QOS|Assoc)Max\w*Per(Job|Node)(Limit)?|MaxMemPerLimit|Job is at or exceeds .* max .*",
        "It asks for more than its account or QOS allows for one job.",
        True,
        "Cancel it and submit it again with less, or with another account or QOS.",
    ),
    (
        r"QOSMin\w*",
        "It asks for less than its QOS demands.",
        True,
        "Cancel it and submit it again with another QOS, or with more.",
    ),
    (
        r"(QOS|Assoc)Max\w*|Max\w+PerAccount|AssociationJobLimit|QOSJobLimit|AccountingPolicy",
        "You, your account or your QOS have as many jobs or resources as allowed at one time.",
        False,
        "",
    ),
    (r"JobArrayTaskLimit", "Other tasks of its array have to end first.", False, ""),
    (r"Prolog", "The nodes are being prepared for it.", False, ""),
    (r"Cleaning", "Its earlier run is still being cleaned up.", False, ""),
    (r"BurstBuffer(Resources|StageIn)", "It waits for its burst buffer.", False, ""),
    (r"BurstBufferOperation|Burst buffer .*", "An operation on its burst buffer failed.", True, _ASK_SITE),
    (r"Power(NotAvail|Reserved)", "The cluster's power budget leaves no room for it now.", False, ""),
    (r"SchedDefer", "The scheduler put it off for a moment.", False, ""),
    (r"NvidiaImexChannels", "It waits for a channel of the GPU fabric.", False, ""),
    (r"FedJobLock|Block(MaxError|FreeAction)", "The scheduler works on it.", False, ""),
    (r"JobLaunchFailure", "It could not be started on its node.", True, "Cancel it and submit it again."),
    (r"SystemFailure", "Slurm itself had a failure with it.", True, _ASK_SITE),
    (r"DeadLine", "It cannot end before its deadline any more.", True, "Cancel it."),
)
_COMPILED = tuple(
    (re.compile(pattern, re.IGNORECASE), sentence, blocked, way_out) for pattern, sentence, blocked, way_out in _TABLE
)


@lru_cache(maxsize=256)
def explain_reason(reason: str) -> Reason:
    """Explain what `squeue` gives as a pending job's reason; an unknown word is passed on as it is."""
    word = reason.strip() or "None"
    for pattern, sentence, blocked, way_out in _COMPILED:
        if pattern.fullmatch(word):
            return Reason(word, sentence, blocked, way_out)
    return Reason(word, f"Slurm says: {word}")
