import os, re, sys
out = os.environ.get("OUT", "out")
found = total = 0
print("| bug | found | rules | first failure |\n|---|---|---|---|")
for name in sys.argv[1:]:
    try: text = open(f"{out}/{name}.txt").read()
    except FileNotFoundError: continue
    rules = re.findall(r"--- FAIL: TestContract/([A-Z]\d+)_", text)
    inconclusive = re.findall(r"([A-Z]\d+) [a-z0-9-]+: inconclusive", text)
    first = re.search(r"^\s+(?:fail|error): (.*)$", text, re.M)
    done = re.search(r"seeds_test.go:\d+: (.* pass.*)", text)
    how = " ".join(rules)
    if not done: how += " PROCESS DIED"
    if "inconclusive" in text: how += f" (inconclusive: {' '.join(inconclusive)})"
    hit = bool(rules) or not done
    if name != "sound":
        total += 1; found += hit
    print(f"| {name} | {'yes' if hit else 'NO'} | {how.strip()} | {(first.group(1)[:300] if first else '').replace('|','/')} |")
print(f"\n{found} of {total} found ({100*found//max(total,1)} %)")
