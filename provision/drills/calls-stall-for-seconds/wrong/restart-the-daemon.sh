#!/bin/sh
systemctl restart overlaylab-flannel
