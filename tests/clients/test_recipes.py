"""The recipes of `examples/php` and `examples/ruby`: every shared case that is about them, and an event of a running
service.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.clients.cases import NEVER
from tests.clients.vectors import cases, reference
from tests.support.live import ORIGIN, live_service

pytestmark = pytest.mark.slow(5)
EXAMPLES = Path(__file__).parents[2] / "examples"

PHP = """
require $argv[1];
$input = json_decode(stream_get_contents(STDIN), true);
$told = [];
foreach ($input['cases'] as ['kind' => $kind, 'given' => $given]) {
    if ($kind === 'webhook') {
        $headers = array_change_key_case($given['headers']);
        [$time, $signature] = [$headers['x-svc-timestamp'] ?? '', $headers['x-svc-signature'] ?? ''];
        $event = svc_webhook(base64_decode($given['body']), $time, $signature, $given['secrets'], $given['now_s']);
        $told[] = $event['data']['message'] ?? null;
        continue;
    }
    $text = base64_decode($given['body'] ?? '');
    $is_first_use = fn (string $id): bool => $given['is_first'] ?? true;
    try {
        if ($kind === 'verdict' || $kind === 'keys') {
            $sent = [$given['token'], $given['keys'] ?? svc_keys_of(200, $text), $given['expected'], $is_first_use];
            $found = svc_check_verdict(...[...$sent, $given['now_ms'] / 1000]);
        } elseif ($kind === 'refusal') {
            $found = svc_event_of('', $given['status'], $text);
        } else {
            $event = $given['event'] ?? svc_event_of($input['id'], 200, $text);
            $found = svc_check($event, $given['action'], $is_first_use, $given['now_ms'] / 1000);
        }
    } catch (RuntimeException $refused) {
        $found = ['error' => preg_replace('/^svc: (status [0-9]+ )?/', '', $refused->getMessage())];
    } catch (InvalidArgumentException $wrong) {
        $found = ['error' => 'argument'];
    }
    unset($found['verdict']);
    $told[] = $found;
}
if (isset($input['url'])) {
    foreach ($input['ids'] as $id) {
        $event = svc_event($input['url'], $input['key'], $id);
        $action = ['origin' => $input['origin'], 'tag' => 't'];
        $found = svc_check($event, $action, fn (string $id): bool => $id === $input['ids'][0]);
        $told[] = [$event['request_id'] ?? null, $found['decision'], $found['reasons']];
    }
    $told[] = array_column(svc_verdict_keys($input['url'], $input['organization']), 'crv');
    try {
        svc_event($input['url'], 'svc_sk_wrong', $input['ids'][0]);
    } catch (RuntimeException $refused) {
        $told[] = $refused->getMessage();
    }
}
echo json_encode($told);
"""

RUBY = """
require ARGV[0]
input = JSON.parse($stdin.read)
named = ->(fields) { fields.transform_keys(&:to_sym) }
at = ->(ms) { Time.at(ms / 1000, ms % 1000, :millisecond) }
told = input["cases"].map do |one|
  kind, given = one.values_at("kind", "given")
  if kind == "webhook"
    headers = given["headers"].transform_keys(&:downcase)
    sent = [Base64.decode64(given["body"]), *headers.values_at("x-svc-timestamp", "x-svc-signature"), given["secrets"]]
    next Svc.webhook(*sent, now: Time.at(given["now_s"]))&.dig("data", "message")
  end
  text = Base64.decode64(given.fetch("body", ""))
  begin
    case kind
    when "verdict", "keys"
      given["expected"].merge!("now" => at[given["now_ms"]])
      keys = given["keys"] || Svc.keys_of(200, text)
      Svc.check_verdict(given["token"], keys, **named[given["expected"]]) { true }.except(:verdict)
    when "refusal"
      Svc.event_of("", given["status"], text)
    else
      event = given["event"] || Svc.event_of(input["id"], 200, text)
      Svc.check(event, now: at[given["now_ms"]], **named[given["action"]]) { given.fetch("is_first", true) }
    end
  rescue Svc::Refused => refused
    { error: refused.message.sub(/^status [0-9]+ /, "") }
  rescue ArgumentError
    { error: "argument" }
  end
end
if input["url"]
  input["ids"].each do |id|
    event = Svc.event(input["url"], input["key"], id)
    found = Svc.check(event, origin: input["origin"], tag: "t") { |one| one == input["ids"][0] }
    told << [event && event["request_id"], found[:decision], found[:reasons]]
  end
  told << Svc.verdict_keys(input["url"], input["organization"]).map { |key| key["crv"] }
  begin
    Svc.event(input["url"], "svc_sk_wrong", input["ids"][0])
  rescue Svc::Refused => refused
    told << "svc: #{refused.message}"
  end
end
puts JSON.generate(told)
"""


def command(language: str) -> list[str]:
    """What runs a text and loads the recipe of a language."""
    program = shutil.which(language)
    if program is None:
        pytest.skip(f"there is no {language}")
    if language == "php":
        found = subprocess.run([program, "-m"], capture_output=True, text=True, check=True).stdout.split()
        if not {"curl", "json", "sodium"} <= set(found):
            pytest.skip("there is no php with curl, json and sodium")
        return [program, "-d", "display_errors=stderr", "-r", PHP, "--", str(EXAMPLES / "php" / "svc.php")]
    return [program, "-e", RUBY, str(EXAMPLES / "ruby" / "svc.rb")]


async def told(language: str, **given: Any) -> Any:
    done = await trio.run_process(
        command(language), stdin=json.dumps(given).encode(), capture_stdout=True, capture_stderr=True, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("language", ["php", "ruby"])
async def test_a_recipe_passes_every_case(language: str):
    kinds = ("webhook", "verdict", "check", "event", "keys", "refusal")
    every = [case for name in ("webhook", "verdict", "check", "responses") for case in cases(name)]
    every = [case for case in every if case["kind"] in kinds]
    found = await told(language, cases=every, id=reference("cases_for_servers").REQUEST_ID)
    wanted = [{"error": case["expect"]["code"]} if case["kind"] == "refusal" else case["expect"] for case in every]
    pairs = zip(every, found, wanted, strict=True)
    wrong = {case["name"]: (said, right) for case, said, right in pairs if said != right}
    assert wrong == {}


@pytest.mark.parametrize("language", ["php", "ruby"])
async def test_a_recipe_reads_events_of_a_service(language: str, tmp_path: Path):
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        request_id = (await live.identify(live.issue()[1], tag="t")).json()["request_id"]
        found = await told(
            language, cases=[], url=live.url, key=live.issue("secret")[1] + "\n", origin=ORIGIN,
            organization=live.organization.id, ids=[request_id, NEVER, "../../healthz", None, ["a"]],
        )  # fmt: skip
    assert found == [
        [request_id, "verify", ["not_known"]], *[[None, "refuse", ["not_found"]]] * 4, ["Ed25519", "Ed25519"],
        "svc: status 401 unauthorized",
    ]  # fmt: skip
