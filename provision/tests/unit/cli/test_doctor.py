"""What the doctor prints: its checks, and what runs on which provider."""

import json
from dataclasses import asdict

import pytest
from lab_commands import lab

from overlaylab.cli.commands import doctor
from overlaylab.machine import checks as host_checks
from overlaylab.machine.checks import OK, PROBLEM, WARNING, Check
from overlaylab.providers.registry import names
from overlaylab.providers.requirements import Row, Verdict

RUNS = json.loads(json.dumps(asdict(Verdict(True))))
ROWS = [
    Row("host", "host", None, None, dict.fromkeys(names(), Verdict(True))),
    Row(
        "weave fastdp",
        "weave",
        "fastdp",
        None,
        {
            "libvirt": Verdict(True),
            "virtualbox": Verdict(False, "not installed"),
            "lxc": Verdict(False, "lacks dummy", lacks=("link:dummy",), installs=("lxc",)),
        },
    ),
    Row(
        "profile far",
        None,
        None,
        "far",
        {
            "libvirt": Verdict(True),
            "virtualbox": Verdict(True),
            "lxc": Verdict(
                True, soft=("latency",), soft_lacks=("qdisc:netem",), loads=("sch_htb", "cls_u32")
            ),
        },
    ),
]


@pytest.fixture
def checks(monkeypatch):
    """doctor with these checks and a fixed machine."""

    def use(*given):
        monkeypatch.setattr(host_checks, "all_checks", lambda: list(given))

    monkeypatch.setattr(doctor.image_checks, "all_checks", lambda: [])
    monkeypatch.setattr(doctor.viewer_checks, "all_checks", lambda: [])
    monkeypatch.setattr(doctor.requirements, "survey", lambda: ROWS)
    monkeypatch.setattr(doctor.choice, "loaded", lambda: [])
    monkeypatch.setattr(doctor.access, "enter_groups", lambda: None)
    monkeypatch.setattr(doctor.ready, "machine", lambda: "2 cores, AMD EPYC, 24 GB")
    monkeypatch.setattr(doctor.ready, "accelerator", lambda: "tcg")
    monkeypatch.setattr(doctor.ready, "accelerator_reason", lambda: "no device")
    monkeypatch.setenv("COLUMNS", "80")
    return use


@pytest.mark.parametrize(
    ("states", "code", "closing"),
    [
        ([OK, OK], 0, "The lab can run here."),
        ([OK, WARNING], 0, "The lab can run here, with the drawbacks above."),
        ([WARNING, PROBLEM], 1, "The lab cannot run yet: see the problems above."),
    ],
)
def test_doctor_ends_with_its_verdict(checks, states, code, closing):
    checks(*(Check(f"check {n}", state, "[found]", "do it") for n, state in enumerate(states)))
    result = lab("doctor")
    assert result.exit_code == code
    assert result.output.splitlines()[-1] == closing


def test_doctor_shows_each_check_with_its_advice(checks):
    checks(Check("disk", PROBLEM, "1.0 GB free below [x]", "free some"), Check("KVM", OK, "works"))
    lines = [" ".join(line.split()) for line in lab("doctor").output.splitlines()]
    assert lines[0] == "This machine: 2 cores, AMD EPYC, 24 GB"
    assert "disk problem 1.0 GB free below [x]" in lines
    assert "→ free some" in lines
    assert "KVM ok works" in lines


def test_doctor_as_json(checks):
    checks(Check("disk", PROBLEM, "1.0 GB free", "free some"))
    result = lab("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.output) == {
        "can_run": False,
        "machine": "2 cores, AMD EPYC, 24 GB",
        "accelerator": "tcg",
        "accelerator_reason": "no device",
        "checks": [{"name": "disk", "state": "problem", "found": "1.0 GB free", "advice": "free some"}],
        "runs_on": [
            {"overlay": "host", "mode": None, "profile": None, "providers": dict.fromkeys(names(), RUNS)},
            {
                "overlay": "weave",
                "mode": "fastdp",
                "profile": None,
                "providers": {
                    "libvirt": RUNS,
                    "virtualbox": RUNS | {"runs": False, "reason": "not installed"},
                    "lxc": RUNS
                    | {"runs": False, "reason": "lacks dummy", "lacks": ["link:dummy"], "installs": ["lxc"]},
                },
            },
            {
                "overlay": None,
                "mode": None,
                "profile": "far",
                "providers": {
                    "libvirt": RUNS,
                    "virtualbox": RUNS,
                    "lxc": RUNS
                    | {"soft": ["latency"], "soft_lacks": ["qdisc:netem"], "loads": ["sch_htb", "cls_u32"]},
                },
            },
        ],
        "loaded_modules": [],
    }


def test_doctor_shows_what_runs_where_and_why_not(checks):
    checks(Check("KVM", OK, "works"))
    lines = [line.rstrip() for line in lab("doctor").output.splitlines()]
    first = lines.index("What runs on which provider (PROVIDER=…)")
    assert lines[first:] == [
        "What runs on which provider (PROVIDER=…)",
        "",
        "                 libvirt (TCG)   virtualbox      lxc (this kernel)",
        " " + "─" * 78,
        "  host           ✓               ✓               ✓",
        "  weave fastdp   ✓               not installed   lacks dummy",
        "",
        "  profile far    ✓               ✓               ✓ but no latency: lacks",
        "                                                 netem, loads sch_htb, cls_u32",
        "",
        "The first task with PROVIDER=lxc installs lxc.",
        "The lab can run here.",
    ]


def test_doctor_names_the_modules_that_the_lab_has_loaded(checks, monkeypatch):
    checks(Check("KVM", OK, "works"))
    monkeypatch.setattr(doctor.choice, "loaded", lambda: ["dummy", "vxlan"])
    words = " ".join(lab("doctor").output.split())
    assert (
        "Kernel modules that the lab has loaded here: dummy, vxlan; ./task lab:destroy unloads them." in words
    )
