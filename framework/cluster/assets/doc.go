// Package assets gives the two programs a Kubernetes control plane needs for
// admission, kube-apiserver and etcd, of the version asked for: found on this
// machine, or else built from Go modules.
//
//	found, err := assets.Ensure(ctx, assets.Options{Version: "1.36.3"})
//	if err != nil { … }
//	start(found.KubeAPIServer(), found.Etcd())
//
// They are looked for in this order, and the first hit is used:
//
//  1. Options.Dir (the flag --assets-dir),
//  2. the directory that KUBEBUILDER_ASSETS names,
//  3. our cache: Options.CacheDir/k8s/VERSION-GOOS-GOARCH, the layout of
//     setup-envtest,
//  4. the store of setup-envtest, at its default place.
//
// [Find] stops there; [Ensure] goes on to [Build]. Downloading is in the
// subpackage download, so that who only imports this one does not inherit
// setup-envtest.
//
// # Promise
//
// What is returned has both programs, executable, of the version it says. The
// directories 1 and 2 are somebody's word: what is wrong there is an error, and
// never a reason to use another place in silence. What is damaged in our cache
// is noticed (a changed byte, a lost file, a lost mode bit) and made again; what
// does not run in the store of setup-envtest is passed over. Both are told
// through Options.Progress.
//
// An entry of the cache appears whole or not at all, however its maker ended.
// Any number of makers may run at once, in one process or several: one works,
// the others wait and take its result. When the context ends, every process
// that was started ends too and what they wrote is removed; what a killed maker
// left is removed by the next maker of the same version.
//
// # Not promised
//
// A cached file whose bytes rot on the disk without the file system knowing of
// a write is not noticed: bytes are compared with the manifest's digests when
// size, inode or a time stamp differ from it. Outside our cache there is no
// manifest, and a program that prints its version counts as whole. Windows is
// not supported. What Kubernetes' own release builds add besides the version
// numbers (commit, build date, FIPS variants) is not in the programs built here.
package assets
