"""Models of NGC: `ngc://ORG/[TEAM/]MODEL:VERSION`, brought by the Python module `ngcsdk` or the program `ngc`.

Images of TAO have the module, other machines more often the program. Both check what they bring, begin anew after a
cut, and make a directory `MODEL_vVERSION` below the one that they are told.
"""

import importlib.util
import os
import shutil
import sys
from typing import Mapping, Optional

from towline.stager.others import brought, run
from towline.stager.problems import Problem
from towline.stager.source import Found, Source

KEYS = ("NGC_KEY", "NGC_API_KEY", "NGC_CLI_API_KEY")
"""Variables that hold the key, in the order in which they count."""
_KINDS = {3: "not-found", 4: "credentials", 5: "network"}
"""Exit codes of `_BRING`."""

# A program of its own: the module prints, starts threads and logs as it likes. A key that is not of the model's
# organisation is no good for it, and none is needed for what is public: that comes with a client that knows none.
# The module tells of a transfer that was cut off by a word in what it returns, and raises nothing.
_BRING = """\
import os, sys
from ngcsdk import Client
target, folder, keys = sys.argv[1], sys.argv[2], sys.argv[3:]
key = next(filter(None, (os.environ.get(name) for name in keys)), "")
org, team = (target.split("/")[:-1] + [None])[:2]
def client():
    made = Client()
    if key:
        try:
            made.configure(api_key=key, org_name=org, team_name=team)
        except Exception as error:
            if not any(words in str(error) for words in ("Invalid org", "Invalid team", "doesn't match")):
                raise
            for name in keys:
                os.environ.pop(name, None)
            return Client()
    return made
def code(error):
    names, text = " ".join(each.__name__ for each in type(error).__mro__), str(error).lower()
    if "NotFound" in names:
        return 3
    if any(word in names for word in ("Authentication", "AccessDenied", "TokenExpired")) or "apikey" in text:
        return 4
    slow = ("Connection", "Timeout", "Unavailable", "BadGateway", "TooMany", "InternalServer", "Retryable")
    return 5 if any(word in names for word in slow) else 1
try:
    done = client().registry.model.download_version(target, destination=folder)
except Exception as error:
    print("%s: %s" % (type(error).__name__, str(error).replace(key, "[key]") if key else error))
    sys.exit(code(error))
status = str(getattr(done, "status", "completed"))
if not status.lower().startswith("complete"):
    print("the transfer ended as %r" % status)
    sys.exit(5)
"""


def has_module() -> bool:
    """Whether this Python has the module."""
    return importlib.util.find_spec("ngcsdk") is not None


class Model(Source):
    """One model.

    Args:
        uri: its URI.
        env: the environment, with the key where one is needed.
        by_program: whether the site wants the program, also where the module is.

    Raises:
        Problem: neither is here, or the URI names no model.
    """

    def __init__(self, uri: str, env: Mapping[str, str], by_program: bool = False) -> None:
        self._uri = uri
        self._name = uri.partition("://")[2].strip("/")
        self._env = dict(env)
        if self._name.count("/") not in (1, 2) or self._name.startswith("-"):
            raise Problem(
                "names", "{}: write it as ngc://ORG/TEAM/MODEL:VERSION or ngc://ORG/MODEL:VERSION".format(uri)
            )
        self._with = "ngcsdk" if has_module() and not by_program else "ngc"
        if self._with == "ngc" and not shutil.which("ngc"):
            words = "{}: there is no program `ngc` on {}, and {} has no module `ngcsdk`"
            raise Problem("tool", words.format(uri, os.uname().nodename, sys.executable or "Python"))

    def find(self) -> Found:
        """Nothing can be told before it is brought."""
        raise Problem("other", "{}: `{}` tells what is there only by bringing it".format(self._uri, self._with))

    def take(self, target: str) -> Optional[Found]:
        """Have it brought below `target`."""
        shutil.rmtree(target, ignore_errors=True)  # of one that was cut off; neither goes on with it
        os.makedirs(target)  # both refuse to begin without it
        key = next((self._env[name] for name in KEYS if self._env.get(name)), "")
        if self._with == "ngc":
            own = {"NGC_CLI_API_KEY": key} if key and not self._env.get("NGC_CLI_API_KEY") else {}
            argv = ["ngc", "registry", "model", "download-version", self._name, "--dest", target]
            run("ngc", argv, dict(self._env, **own))
        else:
            run("ngcsdk", [sys.executable, "-I", "-c", _BRING, self._name, target, *KEYS], self._env, _KINDS)
        return brought(target, self._uri, self._with)
