#!/bin/sh
ip netns exec endpoint sysctl -q -w net.ipv4.tcp_rmem='4096 1000000 33554432' net.ipv4.tcp_wmem='4096 1000000 33554432'
