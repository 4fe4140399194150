#!/usr/bin/env python3
"""The reports as their readers see them: the page in a real browser, the JUnit file in a strict XML parser. The run they show has a peer
that tries to get out of its text.

  html_report_test.py RENDERER [test...]

RENDERER is windlass-conformance, which makes the other reports from a JSON report.
"""
import html.parser
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree

HOSTILE = ("</script><script>document.documentElement.dataset.ran='1'</script>"
           "<img src=x onerror=\"document.documentElement.dataset.ran='2'\">"
           "</pre></details></table><svg onload=\"document.documentElement.dataset.ran='3'\"></svg>"
           "--><!-- ]]> \" ' & \u0000\u001b[2J\u202e\ufffe &#60;b&#62;")


def case(name, behaviour, revision=2, **more):
    frame = {"type": "control.reset", "id": "f-1", "payload": {"code": "E.AUTH.HANDSHAKE_REQUIRED", "reason": "the handshake comes first"}}
    return {"id": name, "clause": name.split("/")[0], "area": "handshake", "says": "A register before the handshake is refused.",
            "level": "MUST", "role": "scheduler", "revision": revision, "negative": True, "behaviour": behaviour, "close": None,
            "outcome": "done", "close_outcome": "", "expected": "", "came": "", "milliseconds": 12.5, "steps": ['{"connect": {}}'],
            "wire": [{"kind": "step", "milliseconds": 0, "connection": "", "text": '1 {"connect": {}}'},
                     {"kind": "note", "milliseconds": 0.3, "connection": "main", "text": "connected"},
                     {"kind": "sent", "milliseconds": 1.25, "connection": "main", "text": '{"type":"control.register","payload":{}}'},
                     {"kind": "received", "milliseconds": 2.5, "connection": "main", "text": json.dumps(frame)}], **more}


def hostile_case():
    it = case("HSK-9/hostile", "FAILED", says=HOSTILE, outcome=HOSTILE, close="UNCLEAN", close_outcome=HOSTILE, expected=HOSTILE,
              came=HOSTILE, clause=HOSTILE, steps=[HOSTILE], area="zoo" + HOSTILE)
    for kind in ("sent", "received", "note", "step"):
        it["wire"].append({"kind": kind, "milliseconds": 3, "connection": HOSTILE, "text": HOSTILE})
        it["wire"].append({"kind": kind, "milliseconds": 4, "connection": "main", "text": json.dumps({"type": HOSTILE, "id": HOSTILE})})
    return it


def results():
    return {"format": "windlass-conformance-report/1", "title": "Run " + HOSTILE, "subject": "wss://peer.example:7443 " + HOSTILE,
            "tool_version": "0.1.0", "started_at": "2026-01-31T12:00:00Z", "milliseconds": 65000, "strict": False, "revisions": [1, 2],
            "expected_failures": ["HSK-4/known@2"], "stale": ["known.txt, line 3: HSK-8/gone names no case " + HOSTILE],
            "cases": [case("HSK-1/register-first", "OK", close="OK", close_outcome="1011"), case("HSK-1/register-first", "NON-STRICT", 1),
                      case("HSK-2/token", "FAILED", came="silence", expected="control.reset"),
                      case("HSK-3/should", "WRONG-CODE", level="SHOULD"), case("HSK-4/known", "UNIMPLEMENTED"), hostile_case()]}


class Page(html.parser.HTMLParser):
    """What the browser made of the page: every element with its attributes, and the text inside each."""

    VOID = {"meta", "br", "input", "img", "link", "hr"}

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "attributes": dict(attributes), "text": "", "parents": list(self.open)}
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        while self.open and self.open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def find(self, tag, **attributes):
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [each for each in self.elements
                if each["tag"] == tag and all(each["attributes"].get(name) == value for name, value in wanted.items())]


class Reports(unittest.TestCase):
    renderer = browser = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "results.json").write_text(json.dumps(results()), encoding="utf-8")
        subprocess.run([cls.renderer, "--render", cls.folder / "results.json", "--html", cls.folder / "page.html",
                        "--junit", cls.folder / "results.xml"], check=True, timeout=60)

    def look(self, address="", page="page.html"):
        """The page as it is after its script ran."""
        run = subprocess.run(
            [self.browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             f"--user-data-dir={self.folder}/profile", "--virtual-time-budget=2000", "--dump-dom",
             (self.folder / page).as_uri() + address], capture_output=True, timeout=90)
        self.assertEqual(run.returncode, 0, run.stderr.decode(errors="replace"))
        return Page(run.stdout.decode("utf-8"))

    def without_policy(self):
        text = (self.folder / "page.html").read_text(encoding="utf-8")
        before, found, after = text.partition('<meta http-equiv="Content-Security-Policy"')
        self.assertTrue(found)
        return before + after.partition(">")[2]

    def rows(self, page):
        matrix = page.find("table", id="matrix")
        self.assertEqual(len(matrix), 1)
        return [each for each in page.elements if each["tag"] == "tr" and "data-case" in each["attributes"] and matrix[0] in each["parents"]]

    def test_the_matrix_has_a_row_for_each_result(self):
        rows = self.rows(self.look())
        self.assertEqual([(row["attributes"]["data-case"], row["attributes"]["data-revision"], row["attributes"]["data-verdict"])
                          for row in rows],
                         [("HSK-1/register-first", "1", "NON-STRICT"), ("HSK-1/register-first", "2", "OK"), ("HSK-2/token", "2", "FAILED"),
                          ("HSK-3/should", "2", "WRONG-CODE"), ("HSK-4/known", "2", "UNIMPLEMENTED"), ("HSK-9/hostile", "2", "FAILED")])
        for row in rows:  # as text too, not by colour alone
            verdict = row["attributes"]["data-verdict"]
            self.assertIn(verdict, row["text"])
        self.assertFalse([row for row in rows if "hidden" in row["attributes"]])

    def test_a_wire_log_can_be_read(self):
        page = self.look()
        logs = page.find("ol", class_="wire")
        self.assertEqual(len(logs), 6)
        lines = [each for each in page.elements if each["tag"] == "li" and logs[1] in each["parents"]]
        self.assertEqual([line["attributes"]["class"] for line in lines], ["step", "note", "sent", "received"])
        sent, received = (line["text"] for line in lines[2:])
        for part in ("1.25 ms", "→ sent · main", "control.register"):
            self.assertIn(part, sent)
        for part in ("2.5 ms", "← received · main", '{\n  "type": "control.reset",\n', '"code": "E.AUTH.HANDSHAKE_REQUIRED"'):
            self.assertIn(part, received)

    def test_nothing_from_the_wire_becomes_markup_or_runs(self):
        for policy in (True, False):
            with self.subTest(policy=policy):
                name = "page.html"
                if not policy:  # The escaping must hold by itself, without the policy that would stop a script.
                    name = "open.html"
                    (self.folder / name).write_text(self.without_policy(), encoding="utf-8")
                page = self.look(page=name)
                self.assertNotIn("data-ran", page.find("html")[0]["attributes"])
                self.assertEqual(len(page.find("script")), 1)
                for tag in ("img", "svg", "iframe", "b", "object"):
                    self.assertFalse([each for each in page.find(tag) if each["attributes"].get("aria-hidden") != "true"], tag)
                self.assertFalse([each for each in page.elements for attribute in each["attributes"] if attribute.startswith("on")])
                hostile = [row for row in self.rows(page) if row["attributes"]["data-case"] == "HSK-9/hostile"]
                self.assertEqual(len(hostile), 1)
                self.assertIn("<script>document", page.find("h1")[0]["text"])

    def test_the_policy_stops_a_script_that_slipped_through(self):
        def ran(text):
            hostile = HOSTILE.partition("-->")[0]  # what follows would comment out the page's own script
            (self.folder / "slipped.html").write_text(text.replace("</main>", hostile + "</main>"), encoding="utf-8")
            page = self.look(page="slipped.html")
            self.assertIn("6 of 6 shown", page.find("span", id="shown")[0]["text"])  # the page's own script did
            return "data-ran" in page.find("html")[0]["attributes"]
        self.assertFalse(ran((self.folder / "page.html").read_text(encoding="utf-8")))
        self.assertTrue(ran(self.without_policy()))  # or these tests would see nothing

    def test_the_filter_hides_what_does_not_fit(self):
        def shown(words):
            page = self.look("?filter=" + urllib.parse.quote(words))
            return [f"{row['attributes']['data-case']}@{row['attributes']['data-revision']}" for row in self.rows(page)
                    if "hidden" not in row["attributes"]]
        self.assertEqual(shown("hsk-1/"), ["HSK-1/register-first@1", "HSK-1/register-first@2"])
        self.assertEqual(shown("verdict:FAILED"), ["HSK-2/token@2", "HSK-9/hostile@2"])
        self.assertEqual(shown("handshake failed"), ["HSK-2/token@2"])
        self.assertEqual(shown("-verdict:OK handshake revision:2"), ["HSK-2/token@2", "HSK-3/should@2", "HSK-4/known@2"])
        self.assertEqual(shown("nothing-like-it"), [])

    def test_an_address_opens_its_case(self):
        page = self.look("#HSK-2/token@2")
        opened = [each for each in page.find("details") if "open" in each["attributes"]]
        self.assertEqual(len(opened), 1)
        self.assertIn("silence", opened[0]["text"])

    def test_junit_is_well_formed(self):
        root = xml.etree.ElementTree.parse(self.folder / "results.xml").getroot()
        self.assertEqual((root.tag, root.get("tests"), root.get("failures"), root.get("skipped")), ("testsuites", "7", "3", "2"))
        cases = {each.get("name"): each for each in root.iter("testcase")}
        self.assertIn("came: silence", cases["HSK-2/token revision 2"].find("failure").text)
        self.assertIn("</script>", cases["HSK-9/hostile revision 2"].find("failure").text)
        self.assertIsNone(cases["HSK-1/register-first revision 1"].find("failure"))


if __name__ == "__main__":
    Reports.renderer = sys.argv[1]
    names = ("chromium", "chromium-browser", "google-chrome")
    Reports.browser = next((name for name in names if shutil.which(name)), "chromium")  # the test says that it is not there
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
