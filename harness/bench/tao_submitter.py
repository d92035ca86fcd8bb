"""Run by the interpreter that has nvidia-tao-sdk: submits a job for each line on stdin, and says when it is done."""

# pyright: basic
# ruff: noqa: D103

import sys


def main() -> None:
    from tao_sdk.platforms.slurm import SlurmSDK  # pyright: ignore[reportMissingImports]

    sdk = SlurmSDK()
    for _ in sys.stdin:
        sdk.create_job(image="/lustre/images/python.sqsh", command="true", gpu_count=1)
        print("done", flush=True)


main()
