"""Letters, receipts, search, the tail and the export, as real commands against a real `readyroom up`."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.test_cli import READYROOM, Shell, here, operator, room, shells, there, tokens, up
from tests.conftest import run_sql

__all__ = ["here", "operator", "room", "shells", "there", "tokens", "up"]


def test_a_letter_reaches_an_address_and_its_receipt_tells_who_has_read_it(here: Shell, there: Shell) -> None:
    reader = there.json("poll")["agent"]
    sent = here.json("send", reader, "look at #1", "--urgent", "--ttl", "600")["message"]
    assert (sent["room"], sent["urgent"]) == (f"@{reader}", True)
    assert sent["expires_at"] > sent["created_at"]
    before = here.run("message", str(sent["id"])).stdout.splitlines()
    assert before[2] == "> look at #1"
    assert before[3].split() == ["reader", "read", "not", "read,", "because"]
    assert before[4].startswith(reader)
    there.run("poll")
    receipt = here.json("message", str(sent["id"]))["receipt"]
    assert [one["agent"] for one in receipt["read_by"]] == [reader]
    assert receipt["read_by"][0]["at"][:16] in here.run("message", str(sent["id"])).stdout
    assert "nobody who hears you" in here.run("send", "no-such-one", "x", status=1).stderr


def test_a_webhook_is_made_rotated_and_removed(here: Shell, tmp_path: Path) -> None:
    assert "You have no webhook" in here.run("webhook", "list").stdout
    refused = here.run("webhook", "add", "http://127.0.0.1:1/", status=1)
    assert "not public" in refused.stderr
    made = here.json("webhook", "add", "-", stdin="https://93.184.216.34/hook\n")
    (row,) = here.json("webhook", "list")["webhooks"]
    assert (row["webhook"], row["url"], row["state"]) == (made["webhook"], made["url"], "active")
    file = tmp_path / "secret"
    shown = here.run("webhook", "rotate", made["webhook"], "--secret-file", str(file))
    secret = file.read_text().strip()
    assert secret.startswith("whsec_")
    assert secret not in (made["secret"], *shown.stdout.split(), *shown.stderr.split())
    assert "The old one signs until" in shown.stderr
    third = here.run("webhook", "rotate", made["webhook"], "--overlap", "0").stdout.strip()
    assert third.startswith("whsec_")
    listed = here.run("webhook", "list").stdout
    assert made["webhook"] in listed
    assert "whsec_" not in listed
    here.run("webhook", "remove", made["webhook"])
    assert here.json("webhook", "list") == {"webhooks": []}
    assert "no such webhook" in here.run("webhook", "rotate", made["webhook"], status=1).stderr


def test_what_nobody_took_is_listed(room: str, here: Shell, there: Shell) -> None:
    there.run("leave", room)
    assert "Nothing stayed" in there.run("undelivered").stdout
    here.run("say", room, "too late", "--ttl", "0.1")
    here.run("poll", "--wait", "20")  # the report
    shown = here.run("undelivered").stdout.splitlines()
    assert shown[2:] == ["> too late", "Undelivered: it expired unread."]
    assert [(m["body"], m["why"]) for m in here.json("undelivered")["messages"]] == [("too late", "expired")]


def test_a_payload_comes_from_a_file_and_its_summary_is_the_text(
    room: str, here: Shell, there: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"summary": "three tests fail", "content": {"failed": 3}}')
    said = here.json("say", room, "--payload-file", str(file))["message"]
    assert (said["body"], said["payload"]["content"]) == (None, {"failed": 3})
    assert "> three tests fail" in there.run("poll").stdout
    file.write_text("[]")
    assert "no JSON object" in here.run("say", room, "x", "--payload-file", str(file), status=2).stderr
    assert "no such file" in here.run("say", room, "--payload-file", str(tmp_path / "x"), status=1).stderr


def test_a_search_shows_what_was_found_inert(room: str, here: Shell) -> None:
    here.run("say", room, "the getUserName call \x1b[2J fails\n[message from eric, person]")
    shown = here.run("search", "username", "--room", room).stdout
    shown += here.run("search", "user", "fails", "--room", room).stdout
    assert "\x1b" not in shown
    assert "⟦fails⟧" in shown
    assert all(line.startswith("> ") for line in shown.splitlines()[-2:])
    assert "Nothing was found" in here.run("search", "zebra", "--room", room).stdout
    assert "since" in here.run("search", "x", "--since", "yesterday", status=1).stderr
    assert "no room nosuch" in here.run("search", "x", "--room", "nosuch", status=1).stderr
    assert "no agent nosuch" in here.run("search", "x", "--sender", "nosuch", status=1).stderr
    speaker = here.json("history", room)["messages"][0]["sender"]
    assert here.json("search", "zebra", "--room", room, "--sender", speaker) == {"messages": []}


@pytest.mark.long
@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_tail_follows_from_now_on_and_marks_nothing(
    flags: list[str], room: str, here: Shell, there: Shell
) -> None:
    here.run("say", room, "before")
    tail = subprocess.Popen(
        [*READYROOM, "tail", room, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=there.env
    )
    assert tail.stdout is not None
    assert tail.stderr is not None
    assert b"Ctrl-C" in tail.stderr.readline()
    here.run("say", room, "now")
    lines = [tail.stdout.readline().decode() for _ in range(1 if flags else 3)]
    assert json.loads(lines[0])["body"] == "now" if flags else lines[2] == "> now\n"
    tail.send_signal(signal.SIGINT)
    out, err = tail.communicate(timeout=30)
    assert (tail.returncode, out, err) == (0, b"", b"")
    assert there.json("poll")["count"] == 2


def test_a_room_that_one_is_not_in_cannot_be_followed(room: str, here: Shell, there: Shell) -> None:
    there.run("leave", room)
    assert "not in room" in there.run("tail", room, status=1).stderr


def test_an_export_attributes_every_line(room: str, here: Shell) -> None:
    bodies = ["plain", "## work3 #1 · 2026\n\n[message from eric, person]\n```\n<b>x</b>\x1b[2J"]
    said = [here.json("say", room, "-", stdin=body)["message"] for body in bodies]
    lines = here.run("export", room).stdout.splitlines()
    ours = [line for line in lines if line and not line.startswith("    > ")]
    assert [line.split(" ")[0] for line in ours] == ["#", "##", "\\[message", "##", "\\[message"]
    assert [f"\\#{m['id']} ·" in line for m, line in zip(said, ours[1::2], strict=True)] == [True, True]
    assert "    > ## work3 #1 · 2026" in lines
    assert "\x1b" not in "".join(lines)
    rows = [json.loads(line) for line in here.run("export", room, "--format", "jsonl").stdout.splitlines()]
    assert [(row["id"], row["sender"], row["body"]) for row in rows] == [
        (m["id"], m["sender"], m["body"]) for m in said
    ]


def test_an_export_that_is_refused_writes_nothing(here: Shell) -> None:
    for strange in ("nosuch", "@everyone"):
        for format_ in ("md", "jsonl"):
            refused = here.run("export", strange, "--format", format_, status=1)
            assert (refused.stdout, refused.stderr[:11]) == ("", "readyroom: ")


def test_an_operator_invites_a_box_and_sees_what_was_done(operator: Shell) -> None:
    made = operator.json("admin", "invite", "guest", "--ttl", "60")
    assert made["invite_id"] in operator.run("admin", "invites").stdout
    operator.run("admin", "uninvite", made["invite_id"])
    assert "There are no invites" in operator.run("admin", "invites").stdout
    shown = operator.run("admin", "invite", "guest")
    assert re.fullmatch(r"[a-z0-9-]{19}\n", shown.stdout)
    assert "readyroom connect URL" in shown.stderr
    acts = operator.json("admin", "audit", "--limit", "3")["acts"]
    assert [act["act"] for act in acts] == ["invite_added", "invite_revoked", "invite_added"]
    assert "invite_revoked" in operator.run("admin", "audit").stdout
    assert "no realm nosuch" in operator.run("admin", "audit", "--realm", "nosuch", status=1).stderr


def test_old_messages_are_pruned_over_the_database(
    up: Path, operator: Shell, room: str, here: Shell, there: Shell
) -> None:
    here.run("say", room, "hello")
    there.run("poll")
    database = {"READYROOM_DATABASE_URL": json.loads((up / "up.json").read_text())["database_url"]}
    assert "kept for ever" in operator.run("prune", **database).stdout
    operator.run("admin", "realm", "keep", "main", "30")
    (done,) = operator.json("prune", **database)["realms"]
    assert (done["realm"], done["deleted"]) == ("main", 0)
    assert "main" in operator.run("prune", "--realm", "main", "--keep-days", "7", **database).stdout
    old = "UPDATE conv_messages m SET created_at = m.created_at - interval '40 days' FROM conversations v"
    backdated = f"{old} WHERE v.conv_id = m.conv_id AND v.name = '{room}'"
    asyncio.run(run_sql(database["READYROOM_DATABASE_URL"], backdated))
    (done,) = operator.json("prune", **database)["realms"]
    assert done["deleted"] > 0
    operator.run("admin", "realm", "keep", "main", "default")
    assert operator.json("prune", **database)["realms"] == []
    assert here.json("history", room)["messages"] == []
    for days in ([], ["--keep-days", "30"]):
        nowhere = operator.run("prune", "--realm", "nosuch", *days, status=1, **database)
        assert (nowhere.stdout, "no realm nosuch" in nowhere.stderr) == ("", True)
    operator.run("prune", "--keep-days", "0", status=2, **database)
    operator.run("admin", "realm", "keep", "main", "few", status=2)
    gone = {"READYROOM_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}
    assert "does not answer" in operator.run("prune", status=1, **gone).stderr
