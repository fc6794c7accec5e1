# Debian 12, made from packages by debian.base.sh: needs no downloaded cloud image.
system    = "debian"
release   = "12"
disk_size = "8192M"
kernel_modules = [
  "act_mirred", "act_police", "bridge", "br_netfilter", "cls_flower", "cls_matchall", "cls_u32",
  "dummy", "esp4", "geneve", "ifb", "ip6_tables", "ip_gre", "ip_set", "ip_set_hash_net", "ip_tables",
  "ip_vs", "ipip", "ipvlan", "macvlan", "nf_conntrack_netlink", "nf_tables", "openvswitch", "overlay",
  "sch_cake", "sch_fq", "sch_htb", "sch_ingress", "sch_netem", "sch_prio", "sch_tbf", "tun", "veth",
  "vport_geneve", "vport_gre", "vport_vxlan", "vrf", "vxlan", "wireguard", "xfrm_user", "xt_set",
]
tools = {
  bird      = "bird --version"
  conntrack = "conntrack --version"
  curl      = "curl --version"
  dig       = "dig -v"
  dnsmasq   = "dnsmasq --version"
  docker    = "dockerd --version"
  etcd      = "etcd --version"
  ethtool   = "ethtool --version"
  ip        = "ip -V"
  ipset     = "ipset --version"
  iperf     = "iperf --version"
  iperf3    = "iperf3 --version"
  iptables  = "iptables --version"
  jq        = "jq --version"
  less      = "less --version"
  nano      = "nano --version"
  netperf   = "netperf -V"
  nft       = "nft --version"
  nginx     = "nginx -v"
  ping      = "ping -V"
  python    = "python3 --version"
  qperf     = "qperf --version"
  sockperf  = "sockperf --version"
  ssh       = "ssh -V"
  systemd   = "systemctl --version"
  tc        = "tc -V"
  tcpdump   = "tcpdump --version"
  tracepath = "tracepath -V"
  wg        = "wg --version"
}
