#!/bin/sh
ip netns exec endpoint sysctl -q -w net.ipv4.tcp_syn_retries=12
