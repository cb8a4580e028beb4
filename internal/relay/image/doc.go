// Package image makes the image of the pod that package relay starts: one static binary,
// without a base image.
//
//	built, err := image.Build(ctx, image.Options{})
//	tag, err := image.Tag(built)
//	err = image.WriteTarball(built, tag, "hooks.tar") // kind load image-archive hooks.tar
//
// # Promise
//
// No Docker and no root are needed: the Go toolchain compiles the binary and this package
// writes the layers. The same source and toolchain give the same image, byte for byte, and so
// the same digest and Tag. The image does not run as root.
//
// # Not promised
//
// Without a Go toolchain, the error is [ErrNoToolchain]; use an existing image (--hook-image).
// An image is for one architecture.
package image
