#!/bin/sh
set -eu
ip -n endpoint neighbour flush all
