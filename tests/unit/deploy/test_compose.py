"""What the schema of compose files does not check: names that refer to each other, and hardening."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_names_is_declared(name: str) -> None:
    service = SERVICES[name]
    volumes = [volume.partition(":")[0] for volume in service.get("volumes", [])]
    for kind, used in (
        ("secrets", service["secrets"]),
        ("networks", service["networks"]),
        ("volumes", volumes),
    ):
        assert set(used) <= set(COMPOSE[kind])
    assert set(service.get("depends_on", {})) <= set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_more_rights_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["user"].split(":")[0] not in ("0", "root")
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


@pytest.mark.parametrize("name", SERVICES)
def test_secrets_come_as_files(name: str) -> None:
    environment = SERVICES[name]["environment"]
    for variable, value in environment.items():
        if "/run/secrets/" in str(value):
            assert variable.endswith("_FILE")
            assert value.removeprefix("/run/secrets/") in SERVICES[name]["secrets"]
        else:
            assert not any(word in variable for word in ("TOKEN", "PASSWORD", "DATABASE"))


def test_what_keeps_running_is_watched() -> None:
    assert {name for name, service in SERVICES.items() if "healthcheck" not in service} == {"migrate"}
