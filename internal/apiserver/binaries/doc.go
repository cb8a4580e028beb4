// Package binaries provides the two programs of a control plane, kube-apiserver and etcd, in
// a given version of Kubernetes. It finds them on this machine, downloads them, or builds them
// from Go modules.
//
//	found, err := binaries.Ensure(ctx, binaries.Options{Version: "1.36.3"})
//	if err != nil { … }
//	start(found.KubeAPIServer(), found.Etcd())
//
// It looks in these places and uses the first that has them:
//
//  1. Options.Dir (the flag --assets-dir),
//  2. the directory that KUBEBUILDER_ASSETS names,
//  3. the store of setup-envtest, at its default path,
//  4. the cache: in Options.CacheDir, k8s has what was built, and downloaded what was downloaded.
//
// [Find] only looks. If it finds nothing, [Ensure] downloads from an index of envtest releases, and if that fails, it builds
// with [Build]. Only what was built can record the calls of admission plugins (Options.ObservePlugins).
//
// With Options.Plugins, kube-apiserver is built with your admission plugins, and kept in the
// cache by the content of the plugins: CacheDir/plugins/VERSION-GOOS-GOARCH-CONTENT. [Plugin]
// says what such a package looks like. Start it with package envtest:
//
//	server, err := envtest.Start(ctx, envtest.Options{
//		Plugins:        []binaries.Plugin{{Package: "./pkg/owner"}},
//		ObservePlugins: true,
//	})
//
// Each kube-apiserver that this package builds can record the calls of its admission plugins.
//
// # Promise
//
// The returned directory has both programs, executable and of the returned version. Places
// 1 and 2 are explicit choices: if something is wrong there, it is an error, and no other
// place is used. A damaged entry of the cache (a missing file, a lost mode bit), or one of another version of
// admissiontest, is detected and replaced. An entry of the store of setup-envtest that does not run is
// skipped. Options.Progress reports both.
//
// Only https is used, and nothing is unpacked before its SHA-512 is that of the index. Of an archive, only the contents of the
// two programs are used. If nothing arrives for 5 (index) or 30 seconds (archive), or what arrives is wrong, it is built.
//
// An entry appears in the cache complete or not at all, even if its process is killed. Any
// number of processes and goroutines can download and build at the same time: one works, the others wait
// and use its result. When the context ends, all started processes are killed and their
// files removed, at the latest by the next process that makes the same version, which also removes
// the files of a killed process.
//
// In places 3 and 4, the package checks owner and mode of each program and of its directories, and does not execute what
// another user could have written. In the cache that is an error; an entry of the store is skipped.
//
// # Not promised
//
// Changed content of a program is not detected. Outside of the cache there is no manifest: a program
// that prints its version is accepted. Windows is not supported. The programs built here have the version numbers of Kubernetes' release
// builds, but not their other metadata (commit, build date) or variants (FIPS).
package binaries
