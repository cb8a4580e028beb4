package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

// versionInfo is the output of version -o json.
type versionInfo struct {
	// Version is the module's version, v1.2.3, or (devel) if the build does not know it.
	Version string `json:"version"`
	// Commit is the commit of the build, with +dirty if the work tree had changes.
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
	// Kubernetes is the version that run starts by default.
	Kubernetes string `json:"kubernetes"`
}

// String returns the output of version, and of the flag --version.
func (i versionInfo) String() string {
	commit := ""
	if i.Commit != "" {
		commit = "commit " + i.Commit + ", "
	}
	return fmt.Sprintf("admissiontest %s (%s%s, %s); Kubernetes %s by default", i.Version, commit, i.GoVersion, i.Platform, i.Kubernetes)
}

func (a *app) versionCommand() *cobra.Command {
	var out outputFlag
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version of admissiontest",
		Args:  noArguments,
		RunE: a.action(noContext(func() error {
			asJSON, err := out.json()
			if err != nil {
				return err
			}
			info := thisVersion()
			if asJSON {
				return writeJSON(a.Stdout, info)
			}
			_, err = fmt.Fprintln(a.Stdout, info)
			return err
		})),
	}
	out.add(command)
	return command
}

// thisVersion reads the build information that the Go command embeds.
func thisVersion() versionInfo {
	info := versionInfo{
		Version: "(devel)", GoVersion: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kubernetes: binaries.DefaultVersion,
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if build.Main.Version != "" {
		info.Version = build.Main.Version
	}
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision":
			info.Commit = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			info.Commit += "+dirty"
		}
	}
	return info
}
