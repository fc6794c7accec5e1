module overlaylab/daemons/romana

go 1.26.0

require github.com/romana/core v2.0.2+incompatible

require (
	github.com/K-Phoen/negotiation v0.0.0-20160529191006-5f2c7e65d11c
	github.com/codegangsta/negroni v1.0.0
	github.com/coreos/etcd v3.3.27+incompatible
	github.com/dgrijalva/jwt-go v3.2.0+incompatible
	github.com/docker/libkv v0.2.2-0.20180912205406-458977154600
	github.com/gorilla/context v1.1.2
	github.com/gorilla/mux v1.8.1
	github.com/mohae/deepcopy v0.0.0-20170929034955-c48cc78d4826
	github.com/pborman/uuid v1.2.1
	github.com/pkg/errors v0.9.1
	github.com/prometheus/client_golang v1.11.1
	github.com/romana/ipset v1.0.0
	github.com/romana/rlog v0.0.0-20171115192701-f018bc92e7d7
	github.com/vishvananda/netlink v1.1.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/coreos/go-semver v0.3.1 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/viper v1.21.0 // indirect
)

replace (
	github.com/romana/core => ./core
	github.com/docker/libkv => ./libkv
	github.com/romana/ipset => ./ipset
)
