"""Words in the records: `python -m tests.remarks` writes them anew, as they are declared now.

These are remarks, and the kind, the text and the places of claims. Every record is judged again
from its runs. Where a verdict differs in more than words nothing is written, and it is said.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from petridish.chapters import EXPERIMENTS
from petridish.publish.records import read_record
from tests.agreement import differences

RECORDS = Path(__file__).parent.parent / "records"
WORDS = ("remark", "kind", "text", "paper", "source")


def kinds(written: list[dict[str, str]]) -> str:
    """Return the line of a record's README that has the kinds of its claims."""
    names = {"paper": "the paper's", "ours": "ours", "check": "checks"}
    said = []
    for kind, name in names.items():
        if of := [each["claim"] for each in written if each["kind"] == kind]:
            said.append(f"{', '.join(of)}: {name}")
    return f"Kinds of the claims: {'; '.join(said)}."


def rewrite(folder: Path) -> list[str]:
    """Write the words of a record anew; return which claims changed, or differ otherwise."""
    file = folder / "verdicts.json"
    written = json.loads(file.read_text(encoding="utf-8"))
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    found = EXPERIMENTS[spec["id"]].judge(read_record(folder), spec["scale"])
    judged = {v.claim.name: v.as_json() for v in found}
    said = []
    for verdict in written:
        again = judged.get(verdict["claim"], verdict)
        words = {name: again[name] for name in WORDS if again[name] != verdict[name]}
        if not words or again["remark"] == "these runs kept no curves":
            continue
        other = differences(again, {**verdict, **words})
        said.append(f"{folder.name} ({verdict['claim']}): {other or words}")
        if not other:
            verdict.update(words)
    readme = folder / "README.md"
    if readme.is_file():
        page = readme.read_text(encoding="utf-8")
        line = re.compile(r"^Kinds of the claims: .*$", re.MULTILINE)
        readme.write_text(line.sub(kinds(written), page), encoding="utf-8")
    text = json.dumps(written, indent=2, ensure_ascii=False, allow_nan=False)
    file.write_text(text + "\n", encoding="utf-8")
    return said


if __name__ == "__main__":
    for each in sorted(file.parent for file in RECORDS.glob("*/verdicts.json")):
        for line in rewrite(each):
            print(line)
