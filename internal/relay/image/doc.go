// Package image makes the image of the pod that package internal/relay
// starts: one static binary, from scratch.
//
//	built, err := image.Build(ctx, image.Options{})
//	tag, err := image.Tag(built)
//	err = image.WriteTarball(built, tag, "hooks.tar") // kind load image-archive hooks.tar
//
// # Promise
//
// Neither Docker nor a base image nor root is needed: the Go toolchain compiles the
// binary and this package writes the layers. The same source and toolchain give the
// same image, byte by byte, and so the same digest and Tag. Nothing of it runs as
// root. What was compiled once is kept in the user's cache and found again by the
// contents of its source.
//
// # Not promised
//
// Without a Go toolchain there is no image: the error is [ErrNoToolchain], and the
// way out is an image that somebody else pushed (--hook-image). One image is for
// one architecture.
package image
