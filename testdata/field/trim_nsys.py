"""An nsys export with what a reader of kernels needs, and nothing else: kernels, the calls that launched them, names and
GPUs, of the first MS milliseconds.

    nsys export -t sqlite -o BIG.sqlite REPORT; python3 trim_nsys.py BIG.sqlite SMALL.sqlite MS
"""
import sqlite3
import sys

KERNEL, CALL = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
TABLES = {  # in the order that conditions need them
    KERNEL: ("start, end, deviceId, streamId, correlationId, globalPid, demangledName, shortName, graphNodeId",
             f"end <= (SELECT min(start) FROM big.{KERNEL}) + 1e6 * ?"),
    CALL: ("start, end, globalTid, correlationId, nameId", f"correlationId IN (SELECT correlationId FROM {KERNEL})"),
    "StringIds": ("*", f"id IN (SELECT nameId FROM {CALL} UNION SELECT demangledName FROM {KERNEL} UNION SELECT shortName FROM {KERNEL})"),
    "TARGET_INFO_GPU": ("id, name, smCount, clockRate", "1"),
}
big, small, ms = sys.argv[1:]
db = sqlite3.connect(small)
db.execute("ATTACH ? AS big", (big,))
for table, (columns, condition) in TABLES.items():
    db.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM big.{table} WHERE {condition}", (float(ms),) * condition.count("?"))
db.commit()
