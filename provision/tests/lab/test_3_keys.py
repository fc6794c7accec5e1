"""What tells nodes of one image apart: names, host keys; and whose public key lets in."""

from __future__ import annotations

from typing import Any

import pytest

from overlaylab.core.model import Variant
from overlaylab.machine import ssh_keys

HOST_KEY = "cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub"


@pytest.fixture(params=["containers", "nodes"])
def cluster(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.mark.turn("nodes")
def test_each_node_keeps_a_host_key_of_its_own_through_clean_states_and_boots(cluster) -> None:
    cluster.clean()
    noted = {node.name: f"{node.host_key}\n" for node in cluster.provider.inventory.nodes}
    assert len(set(noted.values())) == len(noted) == 2
    assert cluster.sh(HOST_KEY) == noted

    async def boot(provider: Any) -> None:
        await provider.enter(Variant("host"), fresh=True)

    cluster.do(boot)
    assert cluster.sh(HOST_KEY) == noted
    assert cluster.sh("hostname; cat /etc/hostname") == {name: f"{name}\n" * 2 for name in noted}


@pytest.mark.turn("nodes")
def test_the_users_public_key_is_in_memory_alone(cluster) -> None:
    cluster.clean()
    public = ssh_keys.public(ssh_keys.ensure())
    assert set(cluster.sh("cat /run/overlaylab-authorized-keys").values()) == {f"{public}\n"}
    words = public.split()[1]
    looked = f"grep -rlF {words} /etc /home /root /opt /srv /etc/overlaylab /usr/local /var || :"
    assert set(cluster.sh(looked).values()) == {""}
