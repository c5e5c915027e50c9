"""The check in Go of docs/webhooks.md, run from the very text of the page."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.test_receivers_guide import Delivery, as_json, block, gives_the_expected_verdicts, program
from tools.go_library import environment


def in_go(cases: list[Delivery], directory: Path) -> list[bool]:
    go = program("go")
    (directory / "receiver").mkdir()
    (directory / "receiver" / "receiver.go").write_text(block("go", "func IsAuthentic"))
    (directory / "go.mod").write_text("module guide\n\ngo 1.18\n")
    (directory / "cases.json").write_text(as_json(cases))
    (directory / "main.go").write_text("""
        package main
        import ("encoding/json"; "fmt"; "os"; "guide/receiver")
        func main() {
            var cases []struct { Secrets []string; Signature, Timestamp string; Body []byte; Now int64 }
            text, err := os.ReadFile("cases.json")
            if err == nil { err = json.Unmarshal(text, &cases) }
            if err != nil { panic(err) }
            said := []bool{}
            for _, one := range cases {
                said = append(said, receiver.IsAuthentic(one.Secrets, one.Signature, one.Timestamp, one.Body, one.Now))
            }
            out, _ := json.Marshal(said)
            fmt.Println(string(out))
        }
    """)
    return json.loads(subprocess.check_output([go, "run", "."], cwd=directory, timeout=300, env=environment()))


def test_the_check_in_go_gives_the_expected_verdict_for_each_delivery(tmp_path: Path):
    gives_the_expected_verdicts(in_go, tmp_path)
