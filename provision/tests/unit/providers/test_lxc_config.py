"""What a container is told: names that fit, ports that stay the same, and what control groups hold it to."""

import pytest

from overlaylab.providers import lxc_config
from overlaylab.providers.lxc_config import Limits

V1 = {"cpuset": 1, "cpu": 1, "memory": 1}
V2 = {"cpuset": 2, "cpu": 2, "memory": 2}

MIXED = """\
24 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 28 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
31 28 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 28 0:28 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
33 28 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""


def test_names_of_devices_fit_into_15_characters() -> None:
    assert lxc_config.underlay_bridge("pair") == "ovlab-u-pair"
    assert lxc_config.underlay_bridge("zones-a") == "ovlab-u-zones-a"
    long = [lxc_config.underlay_bridge(name) for name in ("three-zones", "three-zones-2")]
    assert long == ["ovlab-12105823", "ovlab-f98334fc"]
    pairs = dict(
        lxc_config.settings("overlaylab-three-zones-node1", "192.168.79.11", long[0], Limits(2, None, 1))
    )
    for name in (pairs["net.0.veth.pair"], pairs["net.1.veth.pair"], lxc_config.MANAGEMENT):
        assert name.startswith("ovlab") and len(name) <= 15


def test_ports_of_a_container() -> None:
    told = lxc_config.settings(
        "overlaylab-pair-node1", "192.168.79.11", "ovlab-u-pair", Limits(1, None, 1, (("cgroup.x", "1"),))
    )
    assert dict(told) == {
        "net.0.type": "veth",
        "net.0.link": "ovlab-mgmt",
        "net.0.flags": "up",
        "net.0.name": "eth0",
        "net.0.mtu": "1500",
        "net.0.hwaddr": "00:16:3e:39:7c:68",
        "net.0.veth.pair": "ovlabf2e091640",
        "net.0.ipv4.address": "192.168.79.11/24",
        "net.1.type": "veth",
        "net.1.link": "ovlab-u-pair",
        "net.1.flags": "up",
        "net.1.name": "eth1",
        "net.1.mtu": "9001",
        "net.1.hwaddr": "00:16:3e:e1:39:28",
        "net.1.veth.pair": "ovlabf2e091641",
        "cgroup.x": "1",
    }
    assert told[0] == ("net.0.type", "veth")  # LXC wants a port's type before the rest of it


def test_as_many_vcpus_as_cores_need_no_setting() -> None:
    assert lxc_config.limits(0, 2, 1024, controllers=V1, cores=[0, 1]) == Limits(
        2, None, 1024, (("cgroup.memory.limit_in_bytes", "1073741824"),)
    )


@pytest.mark.parametrize(
    ("index", "cores", "own"),
    [
        (0, range(8), "0,1"),
        (1, range(8), "2,3"),
        (4, range(8), "0,1"),
        (1, [1, 4, 6], "1,6"),  # only those that this process may use, shared where they run out
    ],
)
def test_nodes_take_cores_in_turn(index, cores, own) -> None:
    found = lxc_config.limits(index, 2, 512, controllers=V2, cores=list(cores))
    assert (found.cpus, found.quota, found.problems) == (2, None, ())
    assert found.settings == (("cgroup2.cpuset.cpus", own), ("cgroup2.memory.max", "536870912"))


def test_a_quota_is_a_share_of_all_vcpus() -> None:
    new = lxc_config.limits(0, 2, 512, 0.2, controllers=V2, cores=range(4))
    assert (new.cpus, new.quota) == (2, 0.4)
    assert ("cgroup2.cpu.max", "40000 100000") in new.settings
    old = lxc_config.limits(0, 2, 512, 0.2, controllers=V1, cores=range(4))
    assert old.settings[1:3] == (("cgroup.cpu.cfs_period_us", "100000"), ("cgroup.cpu.cfs_quota_us", "40000"))
    assert lxc_config.limits(0, 2, 512, 1.0, controllers=V2, cores=range(2)).quota is None


def test_what_the_machine_cannot_hold_a_node_to_is_said() -> None:
    few = lxc_config.limits(0, 4, 512, controllers=V2, cores=[0, 1])
    assert (few.cpus, few.problems) == (2, ("4 vCPUs are asked for and this machine has 2 cores",))
    nothing = lxc_config.limits(0, 1, 512, 0.5, controllers={}, cores=[0, 1])
    assert (nothing.cpus, nothing.quota, nothing.memory_mib, nothing.settings) == (2, None, None, ())
    assert nothing.problems == (
        "no cpuset controller: the node sees all cores and gets the time of its own",
        "no cpu controller: its CPU time is not limited",
        "no memory controller: its memory is not limited",
    )


def test_without_cpusets_a_quota_stands_for_the_count() -> None:
    found = lxc_config.limits(0, 1, 512, controllers={"cpu": 2, "memory": 2}, cores=range(4))
    assert (found.cpus, found.quota) == (4, 1.0)
    assert found.settings[0] == ("cgroup2.cpu.max", "100000 100000")


def test_each_controller_counts_where_it_is_bound() -> None:
    unified = {"/sys/fs/cgroup/unified": "cpuset io\n"}
    assert lxc_config.parse_controllers(MIXED, unified) == {
        "cpu": 1, "cpuacct": 1, "memory": 1, "cpuset": 2, "io": 2, "xattr": 1,
    }  # fmt: skip
    only = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
    assert lxc_config.parse_controllers(only, {"/sys/fs/cgroup": "cpuset cpu io memory pids"}) == {
        "cpuset": 2, "cpu": 2, "io": 2, "memory": 2, "pids": 2,
    }  # fmt: skip
