"""Compares a report with the program's markers: one line of the suite's table.

usage: judge.py PROGRAM MODE EXIT REPORT
"""
import json
import pathlib
import sys

program, mode, code, report = sys.argv[1:]
path = pathlib.Path(program)
faults = [number for number, line in enumerate(path.read_text().splitlines(), 1) if "fault" in line and "# @" in line]
try:
    verdicts = json.loads(pathlib.Path(report).read_text())["verdicts"]
except (OSError, ValueError):
    verdicts = []
if not verdicts:
    print(f"| {path.stem} | {mode} | {code} | no verdict | {'right' if not faults else 'WRONG'} | |")
    sys.exit()
verdict = verdicts[0]
place = verdict["place"] or {}
right = place.get("file", "").endswith(path.name) and place.get("line") in faults
where = f"{pathlib.Path(place.get('file', '-')).name}:{place.get('line', '-')}"
others = " ".join(f"{pathlib.Path(other['file']).name}:{other['line']}" for other in verdict["candidates"])
because = next((text for text in verdict["because"] if "journal" in text or "core dump" in text), "")
print(f"| {path.stem} | {mode} | {code} | {verdict['kind']} {verdict['certainty']} {where} | {'right' if right else 'WRONG'} "
      f"| {because[:120]}{' / ' + others if others else ''} {' '.join(verdict['missing'])[:80]} |")
