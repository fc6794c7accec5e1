#!/bin/sh
systemctl restart overlaylab-weave
