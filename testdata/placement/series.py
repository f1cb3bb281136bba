"""Predicts the gain of a placement on the built-in workload, then measures it, for each
SEED:SKEW given. Prints a CSV row for each, whatever comes out."""
import json
import pathlib
import subprocess
import sys
import tempfile


def moebalance(*args):
    run = subprocess.run(["moebalance", *args], check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return run.stdout


def gain(time_change):
    return 1 / (1 + time_change) - 1


print("seed,skew,predicted,predicted_low,predicted_high,measured,measured_low,measured_high,pairs")
for pair in sys.argv[1:]:
    seed, skew = pair.split(":")
    here = pathlib.Path(tempfile.mkdtemp())
    run = ["workload", "--seed", seed, "--skew", skew]
    (here / "workload.json").write_text(moebalance(*run, "--steps", "64", "--stats", f"{here}/stats"))
    planned = json.loads(moebalance("place", "--format", "json", "--trace", f"{here}/workload.json", "--write-sglang", f"{here}/eplb", f"{here}/stats"))
    time = planned["placements"][0]["predicted_time_change"]
    campaign = json.loads(moebalance("bench", "--format", "json", "--pairs", "10", "--campaign", f"{here}/c", "--arms", f"contiguous,{here}/eplb", "--",
                                     "moebalance", *run, "--placement", "{arm}"))
    measured = campaign["gain"]
    row = [gain(time["estimate"]), gain(time["high"]), gain(time["low"]), measured["estimate"], measured["low"], measured["high"]]
    print(f"{seed},{skew}," + ",".join(f"{x:.4f}" for x in row) + f",{measured['n']}", flush=True)
