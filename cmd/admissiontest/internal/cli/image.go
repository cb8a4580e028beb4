package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admissiontest/admissiontest/internal/providers"
)

// imageFlags are the flags of the command image.
type imageFlags struct {
	push, tarball, tag, platform string
	// self is true for the image of admissiontest itself.
	self bool
}

func (a *app) imageCommand() *cobra.Command {
	var f imageFlags
	command := &cobra.Command{
		Use:   "image",
		Short: "Make the image of the pod for --transport service, or of admissiontest itself",
		Long: `Make the image of the pod through which an API server reaches the Hooks of a run.
Push it to a registry or write it to a file, and print its reference for --transport service=REFERENCE.
With --self, make the image of admissiontest itself, for a Job in a cluster: deploy/job.

This needs the Go toolchain, which compiles one static binary, but no Docker and no
base image. The credentials for the registry are taken from "docker login".`,
		Example: `  admissiontest image --push registry.example.com/hooks:v1
  admissiontest image --tarball hooks.tar && kind load image-archive hooks.tar
  admissiontest image --self --push registry.example.com/admissiontest:v1`,
		Args: noArguments,
	}
	command.RunE = a.action(func(ctx context.Context, _ []string) error {
		arch, err := f.check()
		if err != nil {
			return err
		}
		return a.image(ctx, f, arch)
	})
	set := command.Flags()
	set.StringVar(&f.push, "push", "", "push the image to this reference: REGISTRY/NAME:TAG")
	set.StringVar(&f.tarball, "tarball", "", "write the image to this file, in the format of docker save")
	set.StringVar(&f.tag, "tag", "", "image reference in the tarball (default: computed from the contents)")
	set.BoolVar(&f.self, "self", false, "make the image of admissiontest itself")
	set.StringVar(&f.platform, "platform", "", "platform of the image: "+strings.Join(platforms(), ", ")+" (default: linux with this machine's architecture)")
	return command
}

// platforms returns the platforms for which an image can be made.
func platforms() []string {
	return []string{"linux/amd64", "linux/arm64", "linux/ppc64le", "linux/riscv64", "linux/s390x"}
}

// check returns an error for bad or missing flags, and the architecture.
func (f *imageFlags) check() (string, error) {
	if f.push == "" && f.tarball == "" {
		return "", usagef("image: no destination; want --push REFERENCE, --tarball FILE, or both")
	}
	if f.tag != "" && f.tarball == "" {
		return "", usagef("--tag needs --tarball; with --push, put the tag into REFERENCE: REGISTRY/NAME:TAG")
	}
	if f.platform == "" {
		return "", nil
	}
	if !slices.Contains(platforms(), f.platform) {
		return "", usagef("--platform %q: want one of %s", f.platform, strings.Join(platforms(), ", "))
	}
	return strings.TrimPrefix(f.platform, "linux/"), nil
}

// image makes the image, writes and pushes it.
func (a *app) image(ctx context.Context, f imageFlags, arch string) error {
	built, err := providers.BuildImage(ctx, providers.ImageOptions{Self: f.self, Arch: arch, Progress: a.note})
	if err != nil {
		return err
	}
	if f.tarball != "" {
		tag := f.tag
		if tag == "" {
			if tag, err = providers.ImageTag(built); err != nil {
				return err
			}
		}
		if err := providers.WriteImage(built, tag, f.tarball); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.Stdout, tag); err != nil {
			return err
		}
	}
	if f.push != "" {
		pushed, err := providers.PushImage(ctx, built, f.push)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.Stdout, pushed); err != nil {
			return err
		}
	}
	return nil
}
