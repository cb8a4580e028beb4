package fakes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/admissiontest/admissiontest/fakes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// The chunks of a list show one moment, whatever changes between them.
func TestChunks(t *testing.T) {
	other := pod("a")
	other.Namespace = "other"
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), pod("b"), pod("c"), other))
	client, names := w.Client().CoreV1().Pods(""), []string{}
	options, version := metav1.ListOptions{Limit: 1}, ""
	for n := range 10 {
		list, err := client.List(t.Context(), options)
		must(t, list, err)
		for _, item := range list.Items {
			names = append(names, item.Namespace+"/"+item.Name+"="+item.Labels["app"])
		}
		if n == 0 {
			version = list.ResourceVersion
			changed := pod("b")
			changed.Labels["app"] = "changed"
			w.Put(changed, pod("aa"), namespace("other"))
			w.Delete(pod("c"))
		}
		if list.ResourceVersion != version {
			t.Errorf("chunk %d has version %s, want %s", n, list.ResourceVersion, version)
		}
		if left := 3 - n; left > 0 && (list.RemainingItemCount == nil || *list.RemainingItemCount != int64(left)) {
			t.Errorf("chunk %d says that %v items remain, want %d", n, list.RemainingItemCount, left)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	if got, want := strings.Join(names, " "), "default/a=a default/b=b default/c=c other/a=a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	now, err := client.List(t.Context(), metav1.ListOptions{Limit: 4})
	if must(t, now, err); len(now.Items) != 4 || now.Continue != "" || now.RemainingItemCount != nil {
		t.Errorf("got %d items, continue %q, want all 4 in one chunk", len(now.Items), now.Continue)
	}
}

// The pager of client-go gets all objects that a selector selects.
func TestChunksWithPager(t *testing.T) {
	w := fakes.NewWorld(t)
	for i := range 7 {
		w.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%d", i), Namespace: "default", Labels: map[string]string{"odd": fmt.Sprint(i % 2)}}})
	}
	paged := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := w.Client().CoreV1().ConfigMaps("default").List(ctx, options)
		if err == nil && list.RemainingItemCount != nil {
			t.Error("a list with a selector says how many items remain")
		}
		return list, err
	})
	paged.PageSize = 2
	all, _, err := paged.List(t.Context(), metav1.ListOptions{LabelSelector: "odd=0"})
	if must(t, all, err); meta.LenList(all) != 4 || len(w.Calls()) != 2 {
		t.Errorf("got %d objects in %d calls, want 4 in 2", meta.LenList(all), len(w.Calls()))
	}
}

func TestRefusedLists(t *testing.T) {
	w := fakes.NewWorld(t, fakes.WithObjects(pod("a"), pod("b")))
	client := w.Client().CoreV1().Pods("default")
	first, err := client.List(t.Context(), metav1.ListOptions{Limit: 1})
	must(t, first, err)
	for what, err := range map[string]error{
		"token that is none":  second(client.List(t.Context(), metav1.ListOptions{Continue: "%"})),
		"token of another":    second(client.List(t.Context(), metav1.ListOptions{Continue: "e30"})),
		"token and version":   second(client.List(t.Context(), metav1.ListOptions{Continue: first.Continue, ResourceVersion: "3"})),
		"limit that is none":  w.Client().CoreV1().RESTClient().Get().Resource("pods").Param("limit", "many").Do(t.Context()).Error(),
		"limit of collection": w.Client().CoreV1().RESTClient().Delete().Namespace("default").Resource("pods").Param("limit", "many").Do(t.Context()).Error(),
	} {
		if !apierrors.IsBadRequest(err) {
			t.Errorf("%s: got %v, want a bad request", what, err)
		}
	}
	if len(w.Objects()) != 2 {
		t.Error("a refused request deleted objects")
	}
}
