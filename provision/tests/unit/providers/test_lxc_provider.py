"""Nodes as system containers: made, put into their clean state, entered and removed."""

import asyncio
import fcntl
import json
import os

import pytest
from lab_builders import inventory
from lab_fakes import FakeNodes, failed
from lab_lxc import HOST_KEYS, NAMES, Machine

from overlaylab.core.errors import NodeError, UserError
from overlaylab.core.model import Variant
from overlaylab.image import lxc_box, node_image, vagrant
from overlaylab.machine import ready, ssh_keys
from overlaylab.nodes import ansible
from overlaylab.providers import lxc_config, lxc_host, naming, registry
from overlaylab.providers.kinds import lxc
from overlaylab.providers.kinds.lxc import Lxc
from overlaylab.providers.lxc_host import Container
from overlaylab.shaping import scripts
from overlaylab.specs import cluster
from overlaylab.specs.inventory import write_inventory

HOST, FASTDP = Variant("host"), Variant("weave", "fastdp")


@pytest.fixture
def machine(monkeypatch, tmp_path) -> Machine:
    found = Machine()
    found.put_in_place(monkeypatch, tmp_path / "lxcpath")
    return found


@pytest.fixture
def vagrants(monkeypatch, machine) -> list:
    """The calls of Vagrant, each with the containers that the Vagrantfile is told."""
    calls: list = []

    async def call(self, *arguments: str) -> str:
        machine.log.append(("vagrant", *arguments))
        calls.append((arguments, json.loads(self.environment["OVERLAYLAB_LXC"]), self.environment))
        return ""

    monkeypatch.setattr(lxc.Vagrant, "__call__", call)
    monkeypatch.setattr(vagrant.boxes, "unpack", lambda box, target: machine.log.append(("box", box.name)))
    return calls


@pytest.fixture
def make(monkeypatch, own_cache, machine, vagrants):
    """make(…): the cluster pair; its nodes answer at once, in their clean state."""
    said: list[str] = []
    monkeypatch.setattr(node_image, "image_key", lambda system: "0123456789abcdef")
    monkeypatch.setattr(lxc_box, "build", lambda system: own_cache / "overlaylab-lxc.box")
    monkeypatch.setattr(ready, "preflight", lambda **_: None)
    monkeypatch.setattr(
        lxc_config, "controllers_of_this_machine", lambda: {"cpuset": 2, "cpu": 2, "memory": 2}
    )
    monkeypatch.setattr(lxc_config.os, "sched_getaffinity", lambda _: {0, 1, 2, 3})

    async def listens(address: str, port: int) -> bool:
        return True

    monkeypatch.setattr(lxc, "_listens", listens)
    answers = {
        lxc.REBOOT: "",
        lxc.FACTS: "2\n1073741824\n",
        "is-system-running": "",
        "ip link set dev $underlay mtu": "",
    }

    def build(**options) -> Lxc:
        provider = Lxc(cluster.load_cluster("pair"), said.append, **options)
        monkeypatch.setattr(
            "overlaylab.providers.made_nodes.Nodes", lambda found: FakeNodes(found, dict(answers))
        )
        provider.said = said  # type: ignore[attr-defined]
        return provider

    return build


@pytest.fixture
def playbooks(monkeypatch, machine) -> list:
    called: list = []

    def run(*arguments) -> None:
        machine.log.append(("playbook", *arguments[1:]))
        called.append(arguments)

    monkeypatch.setattr(ansible, "run_playbook", run)
    return called


def test_vcpus_and_quota_are_those_it_makes_its_nodes_with(make, machine) -> None:
    provider = made(make(vcpus=1, quota=0.5), machine)
    write_inventory(provider.folder / "inventory.yml", inventory("a", "a"))
    assert provider.cpu.made_with == (1, 0.5)
    assert provider.cpu.containers == dict(zip(("node1", "node2"), NAMES, strict=True))
    assert made(make(), machine).cpu.made_with == (None, None)


def made(provider: Lxc, machine: Machine, *running: str, **changed) -> Lxc:
    """The provider's nodes were made, of what it is now."""
    provider.folder.mkdir(parents=True, exist_ok=True)
    containers = {
        name: {"container": container, "address": f"192.168.79.{number}"}
        for number, (name, container) in enumerate(provider.containers.items(), 11)
    }
    facts = {name: {"cpus": 2, "memory_mib": 1024} for name in containers}
    state = {"key": provider.key, "containers": containers, "facts": facts, **changed}
    (provider.folder / "state.json").write_text(json.dumps(state))
    write_inventory(provider.folder / "inventory.yml", inventory("a", "a"))
    machine.running = set(running)
    return provider


# -- making ---------------------------------------------------------------------------------------------


async def test_two_clusters_are_not_made_at_once(make, machine, own_cache) -> None:
    """They would be given the same addresses."""
    provider = make()
    (own_cache / "clusters").mkdir(exist_ok=True)
    with (own_cache / "clusters" / "lxc.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        making = asyncio.create_task(provider.up())
        await asyncio.sleep(0.5)
        assert machine.verbs == []
        assert "another cluster of containers is being made; waiting for it" in provider.said
    await making
    assert machine.verbs[-1] == "freeze"


async def test_nodes_are_made_by_vagrant_and_then_frozen(make, machine, vagrants) -> None:
    provider = make()
    await provider.up()
    assert machine.verbs == [
        "check_routes", "load_modules", "make_bridges", "box", "vagrant", "freeze",
    ]  # fmt: skip
    assert [call[0][:2] for call in vagrants] == [("up", "--no-parallel")]
    told, environment = vagrants[0][1:]
    assert {name: (one["container"], one["address"]) for name, one in told.items()} == {
        "node1": ("overlaylab-pair-node1", "192.168.79.11"),
        "node2": ("overlaylab-pair-node2", "192.168.79.12"),
    }
    assert ["cgroup2.cpuset.cpus", "2,3"] in told["node2"]["settings"]
    assert told["node2"]["naming"] == naming.script(provider.spec.nodes[1])
    assert environment["VAGRANT_DOTFILE_PATH"] == f"{provider.folder}/vagrant"
    assert provider.folder.parts[-3:] == ("clusters", "pair", "lxc")
    assert environment["VAGRANT_DEFAULT_PROVIDER"] == "lxc"
    bridges = next(entry for entry in machine.log if entry[0] == "make_bridges")
    assert bridges[1:] == (
        "ovlab-u-pair",
        {
            "192.168.79.11": lxc_config.mac("overlaylab-pair-node1", "eth0"),
            "192.168.79.12": lxc_config.mac("overlaylab-pair-node2", "eth0"),
        },
    )
    assert machine.log[-1] == ("freeze", NAMES)
    node = provider.inventory.nodes[1]
    assert (provider.inventory.provider, node.ssh_host, str(node.underlay_address)) == (
        "lxc",
        "192.168.79.12",
        "192.168.77.12/24",
    )
    assert [node.host_key for node in provider.inventory.nodes] == list(HOST_KEYS.values())
    assert await provider.status() == {"node1": "running", "node2": "running"}


async def test_nodes_that_let_another_key_in_are_made_anew(make, machine) -> None:
    made(make(), machine, *NAMES)
    ssh_keys.make(ssh_keys.ensure())
    provider = make()
    await provider.up()
    assert "remove" in machine.verbs and machine.verbs[-1] == "freeze"
    assert "for another SSH key" in provider.said[0]


async def test_addresses_of_other_clusters_stay_theirs(make, machine, vagrants, tmp_path) -> None:
    machine.there = [Container("overlaylab-big-node1", "192.168.79.11", tmp_path / "elsewhere")]
    await make().up()
    assert [one["address"] for one in vagrants[0][1].values()] == ["192.168.79.12", "192.168.79.13"]
    assert "remove" not in machine.verbs


async def test_somebody_elses_containers_are_refused(make, machine, vagrants, tmp_path) -> None:
    machine.there = [Container("overlaylab-pair-node1", "192.168.79.11", tmp_path / "elsewhere")]
    provider = make()
    with pytest.raises(UserError, match="overlaylab-pair-node1: must be of this cache folder's lab"):
        await provider.up()
    assert (vagrants, machine.verbs) == ([], ["check_routes"])
    assert not (provider.folder / "state.json").exists()


async def test_own_containers_of_which_nothing_was_noted_are_removed_first(make, machine) -> None:
    machine.there = [Container("overlaylab-pair-node1", None, None)]
    await make().up()
    assert machine.verbs[1:4] == ["remove", "load_modules", "make_bridges"]


async def test_what_was_half_made_is_known_and_made_anew(make, machine, vagrants, monkeypatch) -> None:
    async def killed(self, *arguments: str) -> str:
        raise KeyboardInterrupt

    provider = make()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(lxc.Vagrant, "__call__", killed)
        await provider.up()
    assert (provider.folder / "vagrant").is_dir()
    assert await provider.status() == {"node1": "shut off", "node2": "shut off"}
    machine.log.clear()
    again = make()
    await again.up()
    assert machine.log[0] == ("remove", NAMES, "ovlab-u-pair")
    assert machine.verbs[-1] == "freeze"


@pytest.mark.parametrize(
    "options", [{"vcpus": 1}, {"quota": 0.5}, {"system": "ubuntu"}], ids=lambda options: next(iter(options))
)
async def test_nodes_of_other_inputs_are_made_anew(make, machine, options, monkeypatch) -> None:
    monkeypatch.setattr(node_image, "image_key", lambda system: f"{system}456789abcdef")
    made(make(), machine, *NAMES)
    await make(**options).up()
    assert "remove" in machine.verbs and machine.verbs[-1] == "freeze"


async def test_nodes_that_are_there_keep_their_system_where_none_is_asked_for(
    make, machine, monkeypatch
) -> None:
    monkeypatch.setattr(node_image, "image_key", lambda system: f"{system}456789abcdef")
    await make(system="ubuntu").up()
    assert make().system == "ubuntu"
    assert make(system="debian").system == "debian"


async def test_what_cannot_be_in_force_is_said(make, machine, monkeypatch) -> None:
    monkeypatch.setattr(lxc_config, "controllers_of_this_machine", dict)
    provider = make()
    machine.failing = {"sch_netem": "Exec format error"}
    await provider.up()
    assert "node1: no memory controller: its memory is not limited" in provider.said
    assert "kernel module sch_netem could not be loaded: Exec format error" in provider.said
    assert provider.describe()["node1"]["not_in_force"] == [
        "no cpuset controller: the node sees all cores and gets the time of its own",
        "no cpu controller: its CPU time is not limited",
        "no memory controller: its memory is not limited",
    ]


# -- what is recorded -----------------------------------------------------------------------------------


async def test_nodes_are_described_by_what_they_found_themselves(make, machine) -> None:
    provider = make(vcpus=1)
    planned = provider.describe()["node1"]
    assert (planned["cpus"], planned["memory_mib"], planned["quota"]) == (1, 1024, None)
    await provider.up()
    assert provider.describe()["node1"] == {
        "underlay_address": "192.168.77.11/24",
        "zone": "a",
        "memory_mib": 1024,
        "cpus": 2,  # what nproc said
        "quota": None,
        "not_in_force": [],
    }


@pytest.mark.parametrize(
    ("printed", "memory"),
    [("2\nmax\n", None), ("2\n9223372036854771712\n", None), ("2\n", None), ("2\n536870912\n", 512)],
)
async def test_memory_that_is_not_limited_is_no_number(make, machine, printed, memory) -> None:
    provider = made(make(), machine, *NAMES)
    provider.nodes.answers[lxc.FACTS] = printed
    assert (await provider._facts())["node1"] == {"cpus": 2, "memory_mib": memory}


# -- clean nodes ----------------------------------------------------------------------------------------


async def test_nodes_that_run_are_rebooted_from_within(make, machine) -> None:
    provider = made(make(), machine, *NAMES)
    await provider.up()
    assert machine.log == []  # nothing needs root
    for node in provider.nodes.values():
        assert node.log[0] == lxc.REBOOT
        assert f"[ ! -e {lxc.USED} ] || exit 3" in node.log[1] and "192.168.77.1" in node.log[1]


async def test_a_node_that_has_not_gone_down_yet_is_waited_for(make, machine) -> None:
    provider = made(make(), machine, *NAMES)
    replies = iter([failed(3), NodeError("the SSH connection broke"), ""])
    provider.nodes["node1"].answers["is-system-running"] = lambda script: next(replies)
    assert await provider.clean() < 5
    assert list(replies) == []
    assert machine.log == []


@pytest.mark.parametrize("trouble", ["silent", "hangs"])
async def test_a_node_that_does_not_come_back_is_started_from_outside(
    make, machine, monkeypatch, trouble
) -> None:
    monkeypatch.setattr(lxc, "PATIENCE", 0.05)
    provider = made(make(), machine, *NAMES)

    def settled(script: str):
        return "" if "start" in machine.verbs else failed(3)

    if trouble == "silent":
        answer = lambda script: "" if "start" in machine.verbs else NodeError("node1: no answer")  # noqa: E731
        provider.nodes["node1"].answers[lxc.REBOOT] = answer
    else:
        provider.nodes["node1"].answers["is-system-running"] = settled
    await provider.clean()
    assert machine.verbs == ["make_bridges", "start"]
    assert machine.log[1] == ("start", NAMES)
    assert "do not come back by themselves" in provider.said[-1]


async def test_nodes_that_are_off_are_started(make, machine) -> None:
    provider = made(make(), machine, NAMES[0])
    assert await provider.status() == {"node1": "running", "node2": "shut off"}
    await provider.up()
    assert machine.verbs == ["make_bridges", "start"]


async def test_nodes_that_never_answer_are_made_anew(make, machine, monkeypatch) -> None:
    monkeypatch.setattr(lxc, "PATIENCE", 0.02)
    provider = made(make(), machine)
    real = lxc._listens

    async def listens(address: str, port: int) -> bool:
        return "freeze" in machine.verbs and await real(address, port)

    monkeypatch.setattr(lxc, "_listens", listens)
    await provider.up()
    assert [verb for verb in machine.verbs if verb in ("start", "remove", "freeze")] == [
        "start",
        "remove",
        "freeze",
    ]
    assert "they are made anew" in provider.said[-1]


async def test_nodes_that_lxc_cannot_start_are_made_anew(make, machine, monkeypatch) -> None:
    def start(names) -> None:
        raise UserError("containers", "must succeed", fix="…")

    monkeypatch.setattr(lxc_host, "start", start)
    await made(make(), machine).up()
    assert machine.verbs[:2] == ["make_bridges", "remove"] and machine.verbs[-1] == "freeze"


# -- variants -------------------------------------------------------------------------------------------


async def test_entering_cleans_sets_the_mtu_and_converges(make, machine, playbooks) -> None:
    provider = made(
        make(underlay_mtu=1500, role_arguments={"weave": {"overlay_weave_mtu": 1400}}), machine, *NAMES
    )
    entered = await provider.enter(FASTDP)
    assert entered.revert >= 0 and entered.converge >= 0
    for node in provider.nodes.values():
        assert [lxc.REBOOT in node.log[0], node.log[2] == scripts.mtu_script("eth1", 1500)] == [
            True,
            True,
        ]
    assert len(playbooks) == 1
    path, overlay, verb, arguments = playbooks[0]
    assert (path, overlay, verb) == (provider.folder / "inventory.yml", "weave", "converge")
    assert arguments["overlay_weave_mtu"] == 1400 and arguments["overlay_weave_mode"] == "fastdp"


async def test_entering_the_same_variant_again_is_as_clean(make, machine, playbooks) -> None:
    provider = made(make(), machine, *NAMES)
    for _ in range(2):
        await provider.enter(HOST)
    assert [entry[0] for entry in machine.log] == ["playbook", "playbook"]
    assert [lxc.REBOOT in line for line in provider.nodes["node1"].log] == [True, False, True, False]


async def test_preparing_loads_the_roles_modules_and_leaves_running_nodes_alone(make, machine) -> None:
    provider = made(make(), machine, *NAMES)
    await provider.prepare([FASTDP, HOST], provider.said.append)
    assert machine.verbs == ["load_modules"]
    assert {"openvswitch", "vxlan", *lxc_host.MODULES} <= set(machine.log[0])


# -- putting away ---------------------------------------------------------------------------------------


async def test_down_stops_what_runs(make, machine) -> None:
    provider = made(make(), machine, *NAMES)
    await provider.down()
    assert machine.log == [("stop", NAMES)]
    await provider.down()
    assert len(machine.log) == 1


async def test_removing_forgets_all_and_unloads_where_no_container_is_left(make, machine, tmp_path) -> None:
    provider = made(make(), machine, *NAMES)
    (provider.folder / "vagrant" / "machines").mkdir(parents=True)
    await provider.remove_nodes()
    assert machine.log == [("remove", NAMES, "ovlab-u-pair"), ("unload_modules",)]
    assert sorted(path.name for path in provider.folder.iterdir()) == []
    assert await provider.status() == {"node1": "absent", "node2": "absent"}
    machine.log.clear()
    (tmp_path / "lxcpath" / "overlaylab-big-node1").mkdir(parents=True)
    await provider.remove_nodes()
    assert machine.verbs == ["remove"]


async def test_nodes_that_the_cluster_no_longer_has_are_removed_too(make, machine) -> None:
    provider = made(
        make(), machine, containers={"node3": {"container": "overlaylab-pair-node3", "address": "x"}}
    )
    await provider.remove_nodes()
    assert machine.log[0] == ("remove", [*NAMES, "overlaylab-pair-node3"], "ovlab-u-pair")


async def test_a_cluster_whose_file_is_gone_is_removed_by_what_was_noted(make, machine) -> None:
    provider = made(make(), machine, *NAMES)
    (provider.folder / "vagrant").mkdir()
    await lxc.remove_forgotten("pair")
    assert machine.log == [("remove", NAMES, "ovlab-u-pair")]
    assert "pair" not in registry.clusters_of("lxc")
    await lxc.remove_forgotten("pair")
    assert len(machine.log) == 1


async def test_whether_something_listens() -> None:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await lxc._listens("127.0.0.1", port)
    server.close()
    await server.wait_closed()
    assert not await lxc._listens("127.0.0.1", port)


def test_nodes_that_another_command_made_anew_are_reached_by_their_new_host_keys(make, machine) -> None:
    provider = made(make(), machine)
    noted = provider.folder / "inventory.yml"
    write_inventory(noted, inventory("a", "a"))
    before = provider.nodes
    assert provider.nodes is before
    write_inventory(noted, inventory("b", "b"))
    os.utime(noted, ns=(0, noted.stat().st_mtime_ns + 1))
    assert provider.nodes is not before
    assert [node.zone for node in provider.inventory.nodes] == ["b", "b"]
