// Package kind creates clusters with kind (Kubernetes in Docker, https://kind.sigs.k8s.io), or
// uses existing ones, as targets. It is public for programs that run scenarios on their own
// kind cluster.
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
// The user's kubeconfig is neither read nor written. If Create fails or its context is
// cancelled, it leaves no container. The messages of kind go to Options.Progress. If a command
// of kind fails, the error has the last lines of its output. Docker, nerdctl and Podman are
// tried in this order, as kind does, unless KIND_EXPERIMENTAL_PROVIDER names one.
//
// # Not promised
//
// kind has no context for its steps. Create cancels them by deleting their containers, which
// do not exist yet while an image is pulled. If Create is cancelled during that time, it
// returns within half a minute, and containers that kind creates later are deleted in the
// background while this process runs. SIGKILL leaves the cluster; [RunClusters] finds it by
// its name.
package kind
