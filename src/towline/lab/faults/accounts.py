"""Faults of alice's account: what sshd asks PAM about beside the key."""

from __future__ import annotations

from towline.lab import overrides, process, users
from towline.lab.faults import logins
from towline.lab.faults.fault import Fault, Values
from towline.lab.layout import ALICE, LOGINS, Layout

CODE = "swordfish"
"""What a login with a second factor asks for. It is alice's password, for PAM is asked and knows nothing else."""
_PAM = "UsePAM yes\n"
_TWO = "KbdInteractiveAuthentication yes\nAuthenticationMethods publickey,keyboard-interactive\n"


def _expire_account(layout: Layout, _values: Values) -> None:
    _put(layout, "account-expired", _shadow("*", expires="1"), _PAM)


def _renew_account(layout: Layout, _values: Values) -> None:
    _take(layout, "account-expired")


def _expire_password(layout: Layout, _values: Values) -> None:
    _put(layout, "password-expired", _shadow(_hash(), changed="0"), _PAM)


def _renew_password(layout: Layout, _values: Values) -> None:
    _take(layout, "password-expired")


def _ask_for_code(layout: Layout, _values: Values) -> None:
    _put(layout, "second-factor", _shadow(_hash()), _PAM + _TWO)


def _ask_for_none(layout: Layout, _values: Values) -> None:
    _take(layout, "second-factor")


def _put(layout: Layout, fault: str, entry: str, settings: str) -> None:
    overrides.put(layout, "shadow", fault, entry)
    for host in LOGINS:
        overrides.put(layout, logins.config_of(host), fault, settings)
    users.write(layout)
    logins.reload(layout)


def _take(layout: Layout, fault: str) -> None:
    overrides.take(layout, "shadow", fault)
    for host in LOGINS:
        overrides.take(layout, logins.config_of(host), fault)
    users.write(layout)
    logins.reload(layout)


def _shadow(password: str, *, changed: str = "19000", expires: str = "") -> str:
    """Alice's line of shadow(5); days since 1970."""
    return f"{ALICE.name}:{password}:{changed}:0:99999:7::{expires}:\n"


def _hash() -> str:
    return process.run(["openssl", "passwd", "-6", "-stdin"], stdin=CODE).stdout.strip()


FAULTS = (
    Fault("second-factor", "after the key, logins ask for a code", _ask_for_code, _ask_for_none),
    Fault("account-expired", "alice's account has expired", _expire_account, _renew_account),
    Fault("password-expired", "alice has to change her password first", _expire_password, _renew_password),
)
