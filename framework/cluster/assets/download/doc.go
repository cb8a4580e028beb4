// Package download puts a control plane's programs into the cache of package
// assets by downloading the archive that Kubernetes' controller-tools project
// publishes for setup-envtest.
//
//	got, err := download.Download(ctx, assets.Options{Version: "1.36.0"})
//
// # Promise
//
// What [Download] leaves in the cache is what [assets.Build] would: whole or not
// there at all, in the same layout, with a manifest, safe beside other makers.
// The archive's SHA-512 is compared with the published index. Where the network
// does not answer, Download says so within 15 seconds, together with the other
// ways to get the programs; a transfer that stands still as long ends too.
//
// # Not promised
//
// Not every version of Kubernetes has an archive, and none is kept for
// pre-releases; the error lists the nearest that have one. A transfer that is
// slow but moves is never given up.
package download
