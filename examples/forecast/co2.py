"""Writes co2.csv: monthly means of the weekly record in Debian's package python3-statsmodels.

    apt-get install python3-statsmodels
    python3 examples/forecast/co2.py > examples/forecast/co2.csv

A month is the mean of its weeks that have a number. Five of 526 months have none and are interpolated linearly between
their neighbours.
"""

import csv

months = {}
with open("/usr/lib/python3/dist-packages/statsmodels/datasets/co2/co2.csv") as f:
    for row in csv.DictReader(f):
        weeks = months.setdefault(row["date"][:4] + "-" + row["date"][4:6], [])
        if row["co2"]:
            weeks.append(float(row["co2"]))

names = list(months)
known = {i: sum(months[name]) / len(months[name]) for i, name in enumerate(names) if months[name]}
print("month,co2")
for i, name in enumerate(names):
    before = max(j for j in known if j <= i)
    after = min(j for j in known if j >= i)
    share = (i - before) / max(after - before, 1)
    print(f"{name},{known[before] + share * (known[after] - known[before]):.2f}")
