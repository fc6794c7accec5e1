# The node image: a base disk, provisioned and tested in a VM, packed as a Vagrant box for libvirt.
# What differs per system stands in systems/<system>.pkrvars.hcl. Called by `./task image:build`.

variable "system" {
  type        = string
  description = "Name of the system, as in systems/<system>.pkrvars.hcl."
}

variable "release" {
  type        = string
  description = "Release of the distribution, as /etc/os-release says it (VERSION_ID)."
}

variable "base_image" {
  type        = string
  description = "Path or URL of the disk to start from; where systems/<system>.base.sh exists, the disk that it made."
}

variable "disk_size" {
  type        = string
  description = "Size of the base's disk, for the box's metadata, e.g. 8192M; the disk is not resized."
}

variable "base_checksum" {
  type        = string
  default     = "none"
  description = "Checksum of a downloaded base image, e.g. sha256:…; none for a disk made here."
}

variable "seed_files" {
  type        = list(string)
  default     = []
  description = "First-boot configuration (cloud-init, Ignition) for a base image that has no user lab yet."
}

variable "scripts" {
  type        = list(string)
  default     = ["scripts/packages.sh", "scripts/access.sh", "scripts/keys.sh", "scripts/network.sh", "scripts/services.sh"]
  description = "What makes a node of the base, in this order; running it again changes nothing."
}

variable "kernel_modules" {
  type        = list(string)
  description = "Modules that overlays and profiles need; each is loaded in the test."
}

variable "tools" {
  type        = map(string)
  description = "Tool to the command that prints its version; a command that fails or prints nothing fails the build."
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
  iso_checksum     = var.base_checksum
  cd_files         = var.seed_files
  cd_label         = "cidata"
  use_backing_file = false
  skip_compaction  = true
  skip_resize_disk = true
  disk_size        = var.disk_size
  format           = "qcow2"
  disk_interface   = "virtio"
  disk_cache       = "unsafe"
  disk_discard     = "unmap"
  net_device       = "virtio-net"
  cpus             = 2
  memory           = 1024
  headless         = true
  disable_vnc      = true
  qemuargs = [
    ["-cpu", local.cpu_model],
    ["-smbios", "type=11,value=io.systemd.credential:overlaylab.authorized-keys=${var.public_key}"],
  ]

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

  provisioner "file" {
    source      = "systems/${var.system}.packages"
    destination = "/tmp/packages"
  }

  provisioner "shell" {
    scripts         = var.scripts
    execute_command = "chmod +x {{ .Path }}; sudo env {{ .Vars }} {{ .Path }}"
  }

  provisioner "shell" {
    script          = "scripts/clean.sh"
    execute_command = "chmod +x {{ .Path }}; sudo env {{ .Vars }} {{ .Path }}"
  }

  provisioner "shell" {
    script          = "scripts/test.sh"
    execute_command = "chmod +x {{ .Path }}; sudo env {{ .Vars }} {{ .Path }}"
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

  post-processor "vagrant" {
    provider_override    = "libvirt"
    compression_level    = 1
    vagrantfile_template = "box.rb"
    output               = "${var.output_directory}/overlaylab.box"
  }
}
