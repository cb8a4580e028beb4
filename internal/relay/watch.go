package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	appsv1 "k8s.io/api/apps/v1"
)

// pollInterval is the time between two reads of the state of the cluster.
const pollInterval = 100 * time.Millisecond

// obstacle is the reason why the pod does not work. One that is not final can disappear.
type obstacle struct {
	reason string
	final  bool
	logs   bool // the log of the container has details
}

// watch waits until the pod is ready. It returns an error if there is a final obstacle, if
// obstacles last longer than the grace, or if ctx ends; the last obstacle is in the error.
func (s *Service) watch(ctx context.Context) error {
	var last obstacle
	var since time.Time
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		pod, err := s.pod(ctx)
		if err != nil {
			return false, err
		}
		if pod != nil && ready(pod) {
			return true, nil
		}
		found := obstacleOf(pod)
		if pod == nil {
			if found, err = s.notCreated(ctx); err != nil {
				return false, err
			}
		}
		switch {
		case found.reason == "":
			since = time.Time{}
			return false, nil
		case since.IsZero():
			since = time.Now()
			last = found
		case !pulling(last.reason) || !strings.Contains(found.reason, "ImagePullBackOff"): // which has fewer details
			last = found
		}
		if !last.final && time.Since(since) < s.grace {
			return false, nil
		}
		return false, s.errorOf(ctx, pod, last)
	})
	switch {
	case err == nil || ctx.Err() == nil:
		return err
	case last.reason != "":
		return fmt.Errorf("wait for the pod: %s", last.reason)
	default:
		return fmt.Errorf("wait for the pod to be ready: %w", context.Cause(ctx))
	}
}

func pulling(reason string) bool { return strings.Contains(reason, "ErrImagePull") }

// pod returns the pod, or nil. If there are several, it prefers one that is ready.
func (s *Service) pod(ctx context.Context) (*corev1.Pod, error) {
	list, err := s.core.Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(s.labels()).String()})
	if err != nil {
		return nil, fmt.Errorf("list pods of namespace %s: %w", s.namespace, err)
	}
	var found *corev1.Pod
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil && (found == nil || ready(pod)) {
			found = pod
		}
	}
	return found, nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// obstacleOf returns the obstacle in the status of a pod.
func obstacleOf(pod *corev1.Pod) obstacle {
	if pod == nil {
		return obstacle{}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return obstacle{reason: fmt.Sprintf("pod %s cannot be scheduled: %s", pod.Name, condition.Message)}
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return obstacle{reason: fmt.Sprintf("pod %s failed: %s %s", pod.Name, pod.Status.Reason, pod.Status.Message), final: true, logs: true}
	}
	for _, container := range pod.Status.ContainerStatuses {
		waiting := ptr.Deref(container.State.Waiting, corev1.ContainerStateWaiting{})
		text := waiting.Reason + ": " + waiting.Message
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff":
			return obstacle{reason: fmt.Sprintf("image %s cannot be pulled: %s", container.Image, text)}
		case "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "ErrImageNotFound":
			return obstacle{reason: fmt.Sprintf("image %s cannot be used: %s", container.Image, text), final: true}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return obstacle{reason: fmt.Sprintf("pod %s cannot start: %s", pod.Name, text)}
		case "CrashLoopBackOff":
			return obstacle{reason: fmt.Sprintf("pod %s crashes: %s", pod.Name, exited(container)), final: true, logs: true}
		}
		if container.RestartCount > 1 {
			return obstacle{reason: fmt.Sprintf("pod %s crashes: %s", pod.Name, exited(container)), final: true, logs: true}
		}
	}
	return obstacle{}
}

// exited describes the last end of a container.
func exited(container corev1.ContainerStatus) string {
	for _, ended := range []*corev1.ContainerStateTerminated{container.State.Terminated, container.LastTerminationState.Terminated} {
		if ended != nil {
			return strings.TrimSpace(fmt.Sprintf("restarted %d times, exit code %d %s %s", container.RestartCount, ended.ExitCode, ended.Reason, ended.Message))
		}
	}
	return fmt.Sprintf("restarted %d times", container.RestartCount)
}

// notCreated returns the reason why the Deployment has no pod: a quota, an admission webhook or
// a policy.
func (s *Service) notCreated(ctx context.Context) (obstacle, error) {
	deployment, err := s.apps.Deployments(s.namespace).Get(ctx, serviceName, metav1.GetOptions{})
	if err != nil {
		return obstacle{}, fmt.Errorf("get deployment: %w", err)
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return obstacle{reason: fmt.Sprintf("the pod cannot be created: %s: %s", condition.Reason, condition.Message)}, nil
		}
	}
	return obstacle{}, nil
}

// lastLines is the number of lines of a log in an error, and lastBytes their largest size.
const (
	lastLines = 5
	lastBytes = 8 << 10
)

// errorOf returns the error of an obstacle.
func (s *Service) errorOf(ctx context.Context, pod *corev1.Pod, found obstacle) error {
	if !found.logs || pod == nil {
		return errors.New(found.reason)
	}
	for _, previous := range []bool{true, false} {
		request := s.core.Pods(s.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: ptr.To[int64](lastLines), LimitBytes: ptr.To[int64](lastBytes), Previous: previous})
		raw, err := request.Do(ctx).Raw()
		raw = raw[:min(len(raw), lastBytes)]
		if text := strings.TrimSpace(string(raw)); err == nil && !strings.Contains(found.reason, text) {
			return fmt.Errorf("%s; the last lines of its log:\n%s", found.reason, text)
		}
	}
	return errors.New(found.reason)
}
