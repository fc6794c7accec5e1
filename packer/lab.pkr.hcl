# The node image: a disk, tested in a VM, and made a node there first where somebody else made it. What differs per system
# stands in systems/<system>/system.yml, from which `./task image:build` makes the variables.

variable "release" {
  type        = string
  description = "Release of the distribution, as /etc/os-release says it (VERSION_ID); empty where any will do."
}

variable "base_image" {
  type        = string
  description = "Path of the disk to start from. The VM gets a copy."
}

variable "foreign" {
  type        = bool
  default     = false
  description = "Whether somebody else made the disk: then the kit is brought and the scripts run, on a disk of 8 GiB."
}

variable "kit" {
  type        = string
  default     = ""
  description = "Folder with kit.tar.gz and kit.digest, for a foreign disk."
}

variable "seed_files" {
  type        = list(string)
  default     = []
  description = "meta-data and user-data for cloud-init, on a volume cidata."
}

variable "firmware_files" {
  type        = map(string)
  default     = {}
  description = "Name in QEMU's fw_cfg to path: what Ignition reads."
}

variable "scripts" {
  type        = list(string)
  default     = ["scripts/kit.sh", "scripts/access.sh", "scripts/keys.sh", "scripts/network.sh", "scripts/services.sh"]
  description = "What makes a node of a foreign disk, in this order."
}

variable "kernel_modules" {
  type = list(string)
  default = [
    "act_mirred", "act_police", "bridge", "br_netfilter", "cls_flower", "cls_matchall", "cls_u32",
    "dummy", "esp4", "geneve", "ifb", "ip6_tables", "ip_gre", "ip_set", "ip_set_hash_net", "ip_tables",
    "ip_vs", "ipip", "ipvlan", "macvlan", "nf_conntrack_netlink", "nf_tables", "openvswitch", "overlay",
    "sch_cake", "sch_fq", "sch_htb", "sch_ingress", "sch_netem", "sch_prio", "sch_tbf", "tun", "veth",
    "vport_geneve", "vport_gre", "vport_vxlan", "vrf", "vxlan", "wireguard", "xfrm_user", "xt_set",
  ]
  description = "Modules that overlays and profiles need; each is loaded in the test, and a missing one is noted."
}

variable "tools" {
  type = map(string)
  default = {
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
  description = "Tool to the command that prints its version; one that fails or prints nothing fails the build."
}

variable "accelerator" {
  type        = string
  default     = "tcg"
  description = "kvm, or tcg for QEMU's software emulation."
  validation {
    condition     = contains(["kvm", "tcg"], var.accelerator)
    error_message = "The accelerator must be kvm or tcg."
  }
}

variable "private_key_file" {
  type        = string
  description = "Key that lets Packer in, made for this build alone; the image has neither half of it."
}

variable "public_key" {
  type        = string
  description = "Its public half, `ssh-ed25519 AAAA…`: it arrives in the VM as a user's does in a node (scripts/keys.sh)."
}

variable "output_directory" {
  type        = string
  description = "Where box and test report go; must not exist."
}

locals {
  # qemu64 is the cheapest model to emulate.
  cpu_model = var.accelerator == "kvm" ? "host" : "qemu64"
}

source "qemu" "node" {
  accelerator      = var.accelerator
  disk_image       = true
  iso_url          = var.base_image
  iso_checksum     = "none"
  cd_files         = var.seed_files
  cd_label         = "cidata"
  use_backing_file = false
  skip_compaction  = true
  skip_resize_disk = ! var.foreign
  disk_size        = "8192M"
  format           = "qcow2"
  disk_interface   = "virtio"
  disk_cache       = "unsafe"
  disk_discard     = "unmap"
  net_device       = "virtio-net"
  cpus             = 2
  memory           = 1024
  headless         = true
  disable_vnc      = true
  qemuargs = concat(
    [
      ["-cpu", local.cpu_model],
      ["-smbios", "type=11,value=io.systemd.credential:overlaylab.authorized-keys=${var.public_key}"],
    ],
    [for name, path in var.firmware_files : ["-fw_cfg", "name=${name},file=${path}"]],
  )

  boot_wait            = "1s"
  ssh_username         = "lab"
  ssh_private_key_file = var.private_key_file
  ssh_timeout          = "10m"
  shutdown_command     = "sudo systemctl poweroff"
  output_directory     = "${var.output_directory}/disk"
  vm_name              = "node.qcow2"
}

build {
  sources = ["source.qemu.node"]

  dynamic "provisioner" {
    labels   = ["file"]
    for_each = var.foreign ? ["kit.tar.gz", "kit.digest"] : []
    content {
      source      = "${var.kit}/${provisioner.value}"
      destination = "/tmp/${provisioner.value}"
    }
  }

  dynamic "provisioner" {
    labels   = ["shell"]
    for_each = var.foreign ? var.scripts : []
    content {
      script          = provisioner.value
      execute_command = "sudo env {{ .Vars }} sh {{ .Path }}"
    }
  }

  # What was set up counts from the next boot on, and that is what is tested.
  dynamic "provisioner" {
    labels   = ["shell"]
    for_each = var.foreign ? ["sudo systemctl reboot"] : []
    content {
      inline            = [provisioner.value]
      expect_disconnect = true
      pause_after       = "5s"
    }
  }

  provisioner "shell" {
    script          = "scripts/test.sh"
    execute_command = "sudo env {{ .Vars }} sh {{ .Path }}"
    environment_vars = [
      "RELEASE=${var.release}",
      "KERNEL_MODULES=${join(" ", var.kernel_modules)}",
      "TOOLS=${jsonencode(var.tools)}",
    ]
  }

  provisioner "file" {
    direction   = "download"
    source      = "/run/report.json"
    destination = "${var.output_directory}/report.json"
  }

  dynamic "provisioner" {
    labels   = ["shell"]
    for_each = var.foreign ? ["scripts/clean.sh"] : []
    content {
      script          = provisioner.value
      execute_command = "sudo env {{ .Vars }} sh {{ .Path }}"
    }
  }
}
