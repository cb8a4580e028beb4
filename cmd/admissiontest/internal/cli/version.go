package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/framework/cluster/assets"
)

// versionInfo is what version -o json prints.
type versionInfo struct {
	// Version is the module's: v1.2.3, or (devel) where the build does not know.
	Version string `json:"version"`
	// Commit is the one built from, with +dirty where files differed from it.
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
	// Kubernetes is the version that runs by default.
	Kubernetes string `json:"kubernetes"`
}

func (a *app) versionCommand() *cobra.Command {
	var out output
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
			commit := ""
			if info.Commit != "" {
				commit = "commit " + info.Commit + ", "
			}
			_, err = fmt.Fprintf(a.Stdout, "admissiontest %s (%s%s, %s); Kubernetes %s by default\n",
				info.Version, commit, info.GoVersion, info.Platform, info.Kubernetes)
			return err
		})),
	}
	out.flag(command)
	return command
}

// thisVersion reads what the Go command wrote into the program.
func thisVersion() versionInfo {
	info := versionInfo{
		Version: "(devel)", GoVersion: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kubernetes: assets.DefaultVersion,
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
