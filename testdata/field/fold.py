"""Recorded counts of a model with 256 experts for one with 128: neighboring experts are added, dense layers (zeros) dropped.

    python3 fold.py RECORDED.json EXPERTS LAYERS >folded.json
"""
import json
import sys

path, experts, layers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path) as f:
    rows = [row for row in json.load(f)["logical_count"] if sum(row)]
times = len(rows[0]) // experts
print(json.dumps({"logical_count": [[sum(row[e * times:(e + 1) * times]) for e in range(experts)] for row in rows[:layers]]}))
