package providers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"

	"github.com/admissiontest/admissiontest/internal/relay"
)

// channel is stdin and stdout of a program in a pod.
type channel struct {
	*io.PipeReader
	*io.PipeWriter
	end context.CancelFunc
}

// Close ends the program.
func (c channel) Close() error {
	c.end()
	return nil
}

// dial starts the relay in the pod and opens the channel to it, by a websocket.
func (s *inCluster) dial(ctx context.Context) (io.ReadWriteCloser, error) {
	options := &corev1.PodExecOptions{Command: []string{entrypointOfRelay}, Stdin: true, Stdout: true, Stderr: true}
	for _, port := range s.ports() {
		if port.Listens {
			options.Command = append(options.Command, fmt.Sprintf(":%d", port.Pod))
		}
	}
	address := s.core.RESTClient().Post().Resource("pods").Namespace(s.namespace).Name("hooks").SubResource("exec").VersionedParams(options, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutor(s.config, http.MethodGet, address.String())
	if err != nil {
		return nil, err
	}
	stdin, toPod := io.Pipe()
	fromPod, stdout := io.Pipe()
	// Without a logger: the end of a channel is no error.
	running, end := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	opened := channel{fromPod, toPod, end}
	go func() {
		defer end()
		var said bytes.Buffer
		err := executor.StreamWithContext(running, remotecommand.StreamOptions{Stdin: stdin, Stdout: stdout, Stderr: &said})
		if err == nil {
			err = io.ErrUnexpectedEOF
		} else if running.Err() == nil { // else stderr may still be copied
			err = fmt.Errorf("%w %s", err, strings.TrimSpace(said.String()))
		}
		_ = stdin.CloseWithError(err)
		_ = stdout.CloseWithError(err)
	}()
	if err := relay.Greet(ctx, opened); err != nil {
		return nil, err
	}
	return opened, nil
}
