#!/usr/bin/env python3
"""Opens a report.html of `train --memory-report` in headless Chromium, light and dark, and fails where the page says an
error on its console, asks for anything on a network or draws nothing. Says which runs have curves.

    check_report_page.py REPORT.html [PICTURES]     pictures go to the folder; without Chromium it says so and exits with 77
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
PREFERS = {"dark": 0, "light": 1}  # as Blink numbers them
QUIET = ["--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps",
         "--virtual-time-budget=4000", "--enable-logging=stderr", "--window-size=1280,2300"]


def own_requests(net_log, page):
    """Addresses that the page itself asked for, but for itself and what it holds."""
    log = json.loads(net_log.read_text())
    asked = set()
    for event in log["events"]:
        parameters = event.get("params") or {}
        url, initiator = parameters.get("url", ""), str(parameters.get("initiator", ""))
        if url and not url.startswith((page, "data:", "blob:")) and initiator.startswith(("file:", "null")):
            asked.add(url)
    return asked


def runs_drawn(document):
    """Names of the runs in the legend of the curves, if each of the four charts has a curve for each of them."""
    legend = re.search(r'<span id="legend">(.*?)</span></p>', document, re.DOTALL)
    names = re.findall(r'class="key"[^>]*>(.*?)</span>', legend[1] + "</span>") if legend else []
    curves = len(re.findall(r'<path [^>]*stroke-linecap="round"', document))
    return [html.unescape(name) for name in names] if curves == 4 * len(names) else []


def open_page(browser, report, scheme, picture):
    """Returns the runs that are drawn, and what is wrong."""
    page = report.resolve().as_uri()
    with tempfile.TemporaryDirectory() as profile:
        net_log = pathlib.Path(profile, "net.json")
        command = [browser, *QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={profile}",
                   f"--blink-settings=preferredColorScheme={PREFERS[scheme]}", f"--log-net-log={net_log}"]
        drawn = subprocess.run([*command, f"--screenshot={picture}", page], capture_output=True, text=True, timeout=120)
        dumped = subprocess.run([*command, "--dump-dom", page], capture_output=True, text=True, timeout=120)
        wrong = [f"console: {line}" for line in re.findall(r"CONSOLE.*", drawn.stderr + dumped.stderr)]
        wrong += [f"asked for {url}" for url in own_requests(net_log, page)]
    if ('class="dark"' in dumped.stdout) != (scheme == "dark"):
        wrong.append(f"the page does not follow the {scheme} scheme")
    if "<td>total</td>" not in dumped.stdout:
        wrong.append("the table of layers is empty: the script did not reach its end")
    return runs_drawn(dumped.stdout), wrong


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("no Chromium here: apt-get install chromium")
        return SKIPPED
    report = pathlib.Path(sys.argv[1])
    pictures = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
    pictures.mkdir(parents=True, exist_ok=True)
    failed = False
    for scheme in PREFERS:
        picture = pictures / f"report-{scheme}.png"
        runs, wrong = open_page(browser, report, scheme, picture)
        failed = failed or bool(wrong)
        print(f"{scheme}: {picture}", f"curves of: {', '.join(runs) or 'none'}", *wrong, sep="\n  ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
