"""Scripts for `tao_sdk` as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import helper
import tao_sdk
from tao_sdk.models import Job
from tao_sdk.platforms.slurm import SlurmSDK
import towline.tao.models as ours

assert Job is ours.Job and tao_sdk.CredentialError is ours.CredentialError
assert ours.__spec__.name == "towline.tao.models"
try:
    import tao_sdk.platforms.lepton
except ImportError as error:
    assert "docs/tao.md" in str(error)
else:
    raise SystemExit("a module that is not there was found")
print(__name__, helper.WORD, sys.argv[1:])
sys.exit(7)
"""


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, env={**os.environ})


def test_a_script_runs_as_if_python_ran_it(tmp_path: Path) -> None:
    place = tmp_path / "scripts"
    place.mkdir()
    (place / "train.py").write_text(SCRIPT)
    (place / "helper.py").write_text('WORD = "beside it"')
    done = run(tmp_path, "-m", "towline", "tao", "run", "scripts/train.py", "--epochs", "3", "-h")
    assert (done.returncode, done.stderr) == (7, "")
    assert done.stdout == "__main__ beside it ['--epochs', '3', '-h']\n"


def test_an_installed_sdk_is_hidden_in_such_scripts_only(tmp_path: Path) -> None:
    (tmp_path / "tao_sdk").mkdir()
    (tmp_path / "tao_sdk" / "__init__.py").write_text("OTHER = True")
    (tmp_path / "which.py").write_text("import tao_sdk; print(hasattr(tao_sdk, 'OTHER'))")
    assert run(tmp_path, "which.py").stdout == "True\n"
    assert run(tmp_path, "-m", "towline", "tao", "run", "which.py").stdout == "False\n"


def test_a_script_that_is_not_there_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, "-m", "towline", "tao", "run", "none.py")
    assert done.returncode == 66
    assert "none.py" in done.stderr
