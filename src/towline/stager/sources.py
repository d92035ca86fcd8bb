"""Which source brings which URI's data, and asking it with patience."""

import sys
import time
from typing import Mapping, Sequence

from towline.stager import ngc, others
from towline.stager.hub import Hub
from towline.stager.problems import Problem
from towline.stager.s3 import S3
from towline.stager.source import Found, Source
from towline.stager.web import Web


def source_of(uri: str, tools: Sequence[str], env: Mapping[str, str]) -> Source:
    """Who brings that URI's data.

    Raises:
        Problem: nobody can here.
    """
    scheme = uri.partition("://")[0]
    tool = others.tool_for(scheme, tools)
    if tool:
        return others.Tool(uri, tool, env)
    if scheme == "ngc":
        return ngc.Model(uri, env, by_program="ngc" in tools)
    if "fsspec" in tools and scheme in ("s3", "gs", "hf"):
        if not others.has_fsspec():
            raise Problem("tool", "{}: there is no fsspec for {} (`staging_python`)".format(uri, sys.executable))
        return others.FileSystem(uri, env)
    if scheme in ("s3", "gs"):
        return S3(uri, env)
    if scheme in ("hf", "hf_model", "hf_dataset"):
        return Hub(uri, env)
    if scheme in ("https", "http"):
        return Web(uri)
    raise Problem("tool", "{}: no way is known to bring it".format(uri))


def find(source: Source) -> Found:
    """What a source has; one that does not answer is asked again for about a minute.

    Raises:
        Problem: it cannot be had.
    """
    for pause in (1, 4, 15, 40):
        try:
            return source.find()
        except Problem as problem:
            if problem.kind != "network":
                raise
            print("[INFO] {}; asking again in {} s".format(problem.text, pause), flush=True)
            time.sleep(pause)
    return source.find()
