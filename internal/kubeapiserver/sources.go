// Package kubeapiserver has the source of the kube-apiserver that package binaries builds: the main
// package, which makes kube-apiserver's command, and what it adds to Kubernetes' own. All of it
// is compiled in a temporary module, because this module does not require k8s.io/kubernetes.
//
//   - _main is the main package. It needs k8s.io/kubernetes, so nothing here compiles it.
//   - Record is the record of one call of an admission plugin. kube-apiserver writes records as audit annotations
//     of the request, and admissiontest reads them from the audit log.
//   - observe writes records: it decorates the plugins. It also adds the plugins of the user to the order of the
//     plugins.
//
// docs/adr/0008-plugins-in-kube-apiserver.md says why.
package kubeapiserver

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed _main/main.go _main/plugins.go record.go observe/changes.go observe/decorator.go observe/doc.go observe/order.go observe/panic.go
var sources embed.FS

// importPath is the import path of this package, in the sources.
const importPath = "github.com/admissiontest/admissiontest/internal/kubeapiserver"

// Sources returns the Go files of kube-apiserver, by their paths in a module of the given
// path. The main package is in the root of the module. Without plugins of the user, they are
// the whole program; otherwise, a file replaces plugins.go.
func Sources(module string) (map[string]string, error) {
	files := map[string]string{}
	for folder, to := range map[string]string{"_main": "", ".": "kubeapiserver", "observe": "kubeapiserver/observe"} {
		entries, err := sources.ReadDir(folder)
		if err != nil {
			return nil, fmt.Errorf("read the source of kube-apiserver: %w", err)
		}
		for _, entry := range entries {
			if entry.IsDir() {
				continue
			}
			text, err := sources.ReadFile(path.Join(folder, entry.Name()))
			if err != nil {
				return nil, fmt.Errorf("read the source of kube-apiserver: %w", err)
			}
			files[path.Join(to, entry.Name())] = strings.ReplaceAll(string(text), importPath, module+"/kubeapiserver")
		}
	}
	return files, nil
}
