# ruff: noqa: RUF001 - the prompts of real programs look like other characters
"""What is read off a screen as a draft, and what is not."""

from __future__ import annotations

import pytest

from notifier.terminals.composer import Screen, composed, same_text

RULE = "\x1b[38;5;244m" + "─" * 60 + "\x1b[39m"
RULES = {
    "empty": ("❯\xa0\x1b[7m \x1b[0m", ""),
    "a draft": ("❯\xa0half a line\x1b[7m \x1b[0m", "half a line"),
    "a draft on two lines": ("❯ two\n  lines", "two\n  lines"),
    "a dim suggestion": ('❯ \x1b[2mTry "fix the bug"\x1b[22m', ""),
    "a dim suggestion under the cursor": ('❯ \x1b[7mT\x1b[27m\x1b[2mry "fix the bug"\x1b[0m', ""),
    "one letter under the cursor": ("❯ \x1b[7mx\x1b[27m", "x"),
    "a letter with a dim completion": ("❯ x\x1b[7my\x1b[27m\x1b[2mz\x1b[0m", "x"),
    "a shell command": ("!\xa0", None),
    "a dialog": ("Do you want to proceed?", None),
}


@pytest.mark.parametrize(("shown", "draft"), RULES.values(), ids=RULES)
def test_claude_code(shown: str, draft: str | None) -> None:
    said = f"❯ an earlier prompt\n● done\n{RULE}\nsomething\n"
    screen = Screen.read(f"{said}{RULE}\n{shown}\n{RULE}\n  ? for shortcuts", column=0, row=0)
    assert composed(screen, "claude-code") == draft


def test_claude_code_without_its_two_rules_is_not_known() -> None:
    for text in ("", "❯ ", f"{RULE}\n❯ ", "some other program\n> "):
        assert composed(Screen.read(text, column=2, row=0), "claude-code") is None


@pytest.mark.parametrize(
    ("text", "column", "row", "draft"),
    {
        "empty": ("› \n\n  gpt", 2, 0, ""),
        "a dim suggestion": ("› \x1b[2mExplain this codebase\x1b[0m\n\n  gpt", 2, 0, ""),
        "a draft": ("› half\n\n  gpt", 6, 0, "half"),
        "a second line": ("› \n  second\n  gpt", 8, 1, "second"),
        "an answer above": ("› earlier\n• done\n› \n  gpt", 2, 2, ""),
        "no prompt": ("Allow this?\n  1. Yes", 0, 1, None),
        "the cursor is elsewhere": ("menu\n› one", 0, 0, None),
    }.values(),
)
def test_codex(text: str, column: int, row: int, draft: str | None) -> None:
    assert composed(Screen.read(text, column=column, row=row), "codex") == draft


WORDS = "Type your message or @path/to/file"
BLOCK = "\x1b[7m \x1b[27m"
FOOT = "\n▀▀▀▀▀▀▀▀\n ~/project"
HEAD = "──────────\n Shift+Tab\n▄▄▄▄▄▄▄▄\n"
ASKING = "\n╭────────╮\n│ Allow? │\n╰────────╯\n"


@pytest.mark.parametrize(
    ("text", "column", "row", "draft"),
    {
        "empty": (f" > {BLOCK} {WORDS}{FOOT}", 3, 0, ""),
        "empty, without colours": (f"────────\n > {BLOCK} {WORDS}\n────────\n", 3, 1, ""),
        "empty, in few colours": (f" > {BLOCK} {WORDS}\n\n ~/project", 3, 0, ""),
        "empty, in a narrow window": (
            f" > {BLOCK} Type your\n   message or\n   @path/to/file{FOOT}",
            3,
            0,
            "",
        ),
        "asking for nothing": (f" * {BLOCK} {WORDS}{FOOT}", 3, 0, ""),
        "empty, in vi's insert mode": (f" > {BLOCK} Press 'Esc' for NORMAL mode.{FOOT}", 3, 0, ""),
        "empty, in vi's normal mode": (f" > {BLOCK} Press 'i' for INSERT mode.{FOOT}", 3, 0, None),
        "a draft": (f" > half{BLOCK}{FOOT}", 7, 0, "half"),
        "a draft of two rows": (f" > half\n   a line{BLOCK}{FOOT}", 9, 1, "half\n   a line"),
        "a draft in the placeholder's words": (f" > {WORDS}{BLOCK}{FOOT}", 38, 0, WORDS),
        "another placeholder": (f" > {BLOCK} Say something{FOOT}", 3, 0, "Say something"),
        "blanks": (f" >   {BLOCK}{FOOT}", 5, 0, None),
        "an empty row above a draft": (f" > {BLOCK}\n\n   half{FOOT}", 3, 0, None),
        "an answer above": (f" > earlier{FOOT}\n > {BLOCK} {WORDS}{FOOT}", 3, 3, ""),
        "a shell's line": (f" > earlier{FOOT}\n ! {BLOCK} {WORDS}{FOOT}", 3, 3, None),
        "a search": (f" > earlier{FOOT}\n (r:) {BLOCK} {WORDS}{FOOT}", 6, 3, None),
        "a prompt that was sent": (f" > earlier{FOOT}\nAllow this?\n", 3, 0, None),
        "the cursor is elsewhere": (f" > {BLOCK} {WORDS}{FOOT}", 0, 2, None),
        "a window behind another": (f"{HEAD} >   {WORDS}{FOOT}", 0, 5, ""),
        "there, a draft": (f"{HEAD} > half{FOOT}", 0, 5, "half"),
        "there, a draft in the placeholder's words": (f"{HEAD} > {WORDS}{FOOT}", 0, 5, WORDS),
        "there, blanks": (f"{HEAD} >    \n▀▀▀▀▀▀▀▀\n ~/project", 0, 5, None),
        "there, no rule": (f" >   {WORDS}{FOOT}", 0, 2, None),
        "there, without colours": (f"──────────\n Shift+Tab\n──────────\n >   {WORDS}{FOOT}", 0, 5, None),
        "there, no lower edge": (f"{HEAD} >   {WORDS}", 0, 5, None),
        "there, a dialog after a line that was sent": (f"{HEAD} > earlier\n▀▀▀▀▀▀▀▀{ASKING}", 0, 7, None),
        "there, an answer after a line that was sent": (
            f"{HEAD} > earlier{FOOT}\nAt\nonce\n",
            0,
            7,
            "earlier",
        ),
        "there, a long answer": (f"{HEAD} > earlier{FOOT}\n1\n2\n3\n", 0, 7, None),
        "a shell in front": (f"sleep (Shift+Tab to unfocus)\n{HEAD} >   {WORDS}{FOOT}", 0, 6, None),
        "a shell in the background in front": (f"(PID: 7) (Focused)\n{HEAD} >   {WORDS}{FOOT}", 0, 6, None),
        "another block": (f"sh {BLOCK}\n{HEAD} >   {WORDS}{FOOT}", 0, 6, None),
        "no block where the cursor is": (f" >   {WORDS}{FOOT}", 3, 0, None),
        "two blocks": (f" > {BLOCK} {BLOCK}{WORDS}{FOOT}", 3, 0, None),
        "no lower edge": (f" > {BLOCK} {WORDS}", 3, 0, None),
        "no prompt": ("Allow this?\n  1. Yes", 0, 1, None),
    }.values(),
)
def test_gemini(text: str, column: int, row: int, draft: str | None) -> None:
    assert composed(Screen.read(text, column=column, row=row), "gemini") == draft


@pytest.mark.parametrize(
    ("text", "column", "row", "draft"),
    {
        "empty": ("hello\n>", 2, 1, ""),
        "empty without a blank": ("$", 1, 0, ""),
        "a named prompt": ("work3-agent#1>", 15, 0, ""),
        "a draft": ("> half a line", 13, 0, "half a line"),
        "a draft that ends like a prompt": ("> a >", 5, 0, "a >"),
        "blanks": (">", 5, 0, None),
        "a cursor in front of the prompt": (">", 0, 0, None),
        "no prompt": ("Working", 7, 0, None),
        "an empty line": ("", 0, 0, None),
        "a question": ("Really delete it? [y/N]", 24, 0, None),
        "a prompt far above": ("> done\n" + "output\n" * 9, 0, 9, None),
        "a wrapped draft": ("> this line is\nlonger", 6, 1, "this line is\nlonger"),
    }.values(),
)
def test_any_other_program(text: str, column: int, row: int, draft: str | None) -> None:
    assert composed(Screen.read(text, column=column, row=row), "plain") == draft


def test_a_program_whose_form_is_not_known_is_never_read() -> None:
    assert composed(Screen.read("> ", column=2, row=0), "opencode") is None


def test_a_line_is_the_same_wherever_it_was_wrapped() -> None:
    assert same_text("read what\n  is new", "read what is new")
    assert not same_text("read what is new now", "read what is new")
    assert not same_text("/catchup/catchup", "/catchup")
    assert not same_text(None, "/catchup")
