// Package kind makes clusters of kind (Kubernetes in Docker, https://kind.sigs.k8s.io)
// to run scenarios on, or uses one that there is.
//
//	c, err := kind.Create(ctx, kind.Options{NodeImage: "kindest/node:v1.36.3"})
//	if err != nil {
//		return err // errors.Is(err, kind.ErrNoRuntime) without Docker, Podman or nerdctl
//	}
//	defer c.Delete(context.WithoutCancel(ctx))
//	config, err := c.RESTConfig()
//
// # Promise
//
// The user's own kubeconfig is neither read nor written. A creation that fails, or
// whose context is cancelled, leaves no container. Whatever kind says while it works
// goes to Options.Progress, and what a command of its that fails printed last is in
// the error. Docker, nerdctl and Podman are looked for in this order, as kind does,
// and one that does not answer is passed over; KIND_EXPERIMENTAL_PROVIDER chooses.
//
// # Not promised
//
// kind's own steps heed no context: they are ended by deleting their containers,
// and while an image is pulled there is none. A creation cancelled then returns
// after half a minute at the latest, and what it still makes is deleted behind its
// back, for as long as this process lives. SIGKILL leaves the cluster, which
// [RunClusters] finds by its name.
package kind
