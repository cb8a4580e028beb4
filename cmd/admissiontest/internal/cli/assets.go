package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/apiserver/binaries"
)

func (a *app) assetsCommand() *cobra.Command {
	return parent("assets", "Find or build kube-apiserver and etcd",
		a.assetsList(),
		a.oneAssets("path", "Print the folder of the control-plane binaries that run would use",
			"Print the folder of the control-plane binaries that run would use. Nothing is downloaded or built.", binaries.Find),
		a.oneAssets("build", "Build kube-apiserver and etcd from Go modules",
			"Build kube-apiserver and etcd from Go modules into the cache, unless the cache has them,\nand print the folder. The first build takes some minutes. With --plugin, your admission\nplugins are compiled into kube-apiserver; after a build without them, this takes about\nten seconds.", binaries.Build),
	)
}

// oneAssets makes a command that obtains the binaries of one version and prints their
// folder.
func (a *app) oneAssets(use, short, long string, get func(context.Context, binaries.Options) (binaries.Assets, error)) *cobra.Command {
	var f assetFlags
	command := &cobra.Command{
		Use: use, Short: short, Long: long, Args: noArguments,
		RunE: a.action(func(ctx context.Context, _ []string) error {
			found, err := get(ctx, f.options(a.note))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Stdout, found.Dir)
			return err
		}),
	}
	f.addVersion(command)
	if use == "build" { // into the cache
		f.plugins.add(command)
	} else {
		f.addDir(command)
	}
	return command
}

func (a *app) assetsList() *cobra.Command {
	var f assetFlags
	command := &cobra.Command{
		Use: "list", Short: "List the control-plane binaries on this machine", Args: noArguments,
		RunE: a.action(func(ctx context.Context, _ []string) error {
			found, err := binaries.List(ctx, f.options(a.note))
			return errors.Join(a.writeAssets(found), err)
		}),
	}
	f.addDir(command)
	return command
}

func (a *app) writeAssets(found []binaries.Assets) error {
	if len(found) == 0 {
		a.note("no control-plane binaries found; " + binaries.Advice(""))
		return nil
	}
	return writeTable(a.Stdout, func(row func(cells ...string)) {
		row("VERSION", "SOURCE", "FOLDER")
		for _, one := range found {
			row(one.Version, one.Source, one.Dir)
		}
	})
}

// note writes a line to standard error.
func (a *app) note(line string) { _, _ = fmt.Fprintln(a.Stderr, line) }
