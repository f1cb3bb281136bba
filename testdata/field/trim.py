"""A PyTorch trace with what a reader of kernels needs, and nothing else: kernels, the calls and operators that launched them,
and ranges; no flows, copies, host or path. Times, names and links are untouched.

    python3 trim.py TRACE.json.gz SMALL.json.gz
"""
import gzip
import json
import sys

KEPT = {"kernel", "cuda_runtime", "cuda_driver", "cpu_op", "user_annotation", "gpu_user_annotation"}
ARGS = ("External id", "correlation", "stream", "device", "Collective name", "Group size", "dtype")

with gzip.open(sys.argv[1]) as f:
    trace = json.load(f)
events = [e for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") in KEPT]
kernels = [e for e in events if e["cat"] == "kernel"]
launched = {e["args"].get("correlation") for e in kernels}
operators = {e["args"].get("External id") for e in events if e["cat"] in ("kernel", "cuda_runtime", "cuda_driver")}
small = []
for e in events:
    args = e.get("args", {})
    if e["cat"].startswith("cuda_") and args.get("correlation") not in launched or e["cat"] == "cpu_op" and args.get("External id") not in operators:
        continue
    small.append({**{k: e[k] for k in ("ph", "cat", "name", "pid", "tid", "ts", "dur")}, "args": {k: args[k] for k in ARGS if k in args}})
info = trace.get("distributedInfo", {})
out = {"schemaVersion": trace["schemaVersion"], "distributedInfo": {k: info[k] for k in ("backend", "rank", "world_size") if k in info},
       "baseTimeNanoseconds": trace.get("baseTimeNanoseconds"), "traceEvents": small}
with open(sys.argv[2], "wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as f:
    f.write(json.dumps(out, separators=(",", ":")).encode())
