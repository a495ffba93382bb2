"""The lines of `readyroom up` by which another machine joins, as a shell takes them."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import platformdirs

from deploy.box import NoBox
from deploy.embedded import Running
from deploy.folder import DataFolder
from readyroom.up import joining


def line(name: str, folder: Path, *, loopback: bool = True) -> str:
    url = "http://127.0.0.1:7666"
    running = Running(
        url=url, nerve_url=url, loopback=loopback, first_start=True, postgres=None, box=NoBox("")
    )
    lines = joining(running, DataFolder(folder)).splitlines()
    return next(each.partition(name)[2].strip() for each in lines if name in each)


def test_the_usual_data_folder_needs_no_word() -> None:
    assert line("here:", platformdirs.user_data_path("readyroom")).startswith("readyroom admin invite NAME")


def test_another_data_folder_is_named_for_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "it's here; $HOME"
    assert shlex.split(line("here:", folder))[0] == f"READYROOM_DATA_DIR={folder}"


def test_without_its_tunnel_nothing_is_connected(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = tmp_path / "readyroom"
    program.write_text(f"#!/bin/sh\n: > {started}\n")
    program.chmod(0o700)
    for loopback in (False, True):  # there is no ssh on this PATH
        started.unlink(missing_ok=True)
        there = line("there:", tmp_path, loopback=loopback).partition("   (")[0]
        subprocess.run(["/bin/sh", "-c", there], env={"PATH": str(tmp_path)}, capture_output=True)
        assert started.exists() is not loopback
