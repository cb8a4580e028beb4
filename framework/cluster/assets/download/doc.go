// Package download downloads kube-apiserver and etcd into the cache of package assets: the
// archive that the controller-tools project publishes for setup-envtest. It is public for the
// same users as package assets.
//
//	got, err := download.Download(ctx, assets.Options{Version: "1.36.0"})
//
// # Promise
//
// [Download] gives the same guarantees as [assets.Build]: an entry of the cache is complete
// or does not exist, it has the same layout and a manifest, and several processes can work
// at the same time. The SHA-512 of the archive is compared with the one pinned in this package
// or, for a version that it does not know, with the published index, which Progress
// reports. An index or archive that is much larger than the published ones is refused. If the
// network does not respond, or a transfer stalls, Download returns an error within 15
// seconds, with the other ways to get the programs.
//
// # Not promised
//
// Not every version of Kubernetes has an archive, and pre-releases have none. The error lists
// near versions that have one. There is no limit for a slow transfer, as long as it does not
// stall.
package download
