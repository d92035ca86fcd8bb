"""A script for `tao_sdk`: does what each line on stdin says, and answers with a line.

Run by the interpreter that has nvidia-tao-sdk, and as it is by `towline tao run`.
"""

# pyright: basic
# ruff: noqa: D103

import sys


def main() -> None:
    from tao_sdk.platforms.slurm import SlurmSDK  # pyright: ignore[reportMissingImports]

    sdk = SlurmSDK()
    calls = {
        "status": lambda job: sdk.get_job_status(job).status,
        "logs": lambda job: repr(sdk.get_job_logs(job, tail=20)),
        "cancel": sdk.cancel_job,
    }
    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "submit":
            print(sdk.create_job(image="/lustre/images/python.sqsh", command=rest, gpu_count=1).id, flush=True)
        else:
            print(calls[word](rest), flush=True)


main()
