import subprocess, os, shlex, tempfile
from towline.tao.script_runner import build_entrypoint as b
root=tempfile.mkdtemp()
env={**os.environ,"TAO_RESULTS_ROOT":root,"TAO_JOB_ID":"j1"}
def go(**k):
    t=b(**k)["command"]
    for sh in ("sh","bash","busybox sh"):
        d=subprocess.run([*sh.split(),"-c",t],env=env,capture_output=True,text=True)
        print(sh,d.returncode,repr(d.stdout[-300:]),d.stderr)
go(command="""awk 'BEGIN { x["a b"]="{y}"; for (k in x) { printf "%s %s\\n", k, x[k] } }'; echo "$HOME ${HOME} $(basename "{config_path}") '{config_path}'"; cat {config_path}; exit 7""",specs={"train":{"results_dir":None,"lr":1e-5}},outputs=["train.results_dir"])
go(command="printf '<%s>\\n'",args={"x":"it's {a} $HOME","values":[2,4],"none":None,"b":True},flags=["--verbose"])
go(command="trap -p; sleep 0; false")
