package envtest_test

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/admissiontest/admissiontest/framework/envtest"
)

// A failed start returns the reason and leaves nothing.
func TestFailedStartLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	server, err := envtest.Start(t.Context(), envtest.Options{Profile: envtest.Profile{Flags: map[string]string{"no-such-flag": "1"}}})
	if err == nil {
		_ = server.Stop()
		t.Fatal("a server started with a flag that does not exist")
	}
	if !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got error %q, want one that names the flag", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("left in the folder of temporary files: %v, %v", left, err)
	}
}

// start starts a server, which ends with the test.
func start(t *testing.T, options envtest.Options) *envtest.Server {
	t.Helper()
	server, err := envtest.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// The administrator is the same user by token, and by certificate if the profile has its own tokens, which
// work. Other users are not authenticated. kube-apiserver looks for a file with a relative path in the folder of the
// files of the profile, and not in the working directory of the run, whose files can be anyone's.
func TestAdministrator(t *testing.T) {
	for name, profile := range map[string]envtest.Profile{
		"token": {},
		"tokens of the profile": {
			Flags: map[string]string{"token-auth-file": "$(files)/tokens.csv"},
			Files: map[string]string{"tokens.csv": "mine,somebody,,some-group\n"},
		},
		"relative path": {
			Flags: map[string]string{"token-auth-file": "tokens.csv"},
			Files: map[string]string{"tokens.csv": "mine,somebody,,some-group\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t, envtest.Options{Profile: profile})
			byFile, err := clientcmd.RESTConfigFromKubeConfig(server.KubeConfig)
			if err != nil {
				t.Fatal(err)
			}
			other := rest.AnonymousClientConfig(server.Config)
			other.BearerToken = "mine"
			want := "somebody some-group"
			if len(profile.Flags) == 0 {
				want = "Unauthorized"
			}
			for who, user := range map[string]struct {
				config *rest.Config
				want   string
			}{
				"Config": {server.Config, "admin system:masters"}, "KubeConfig": {byFile, "admin system:masters"}, "mine": {other, want},
			} {
				t.Run(who, func(t *testing.T) {
					if got := whoAmI(t, user.config); got != user.want {
						t.Errorf("%s is %q, want %q", who, got, user.want)
					}
				})
			}
		})
	}
}

// whoAmI returns the user of a client and the groups that it was given, or why the API server does not say.
func whoAmI(t *testing.T, config *rest.Config) string {
	t.Helper()
	client, err := authenticationv1client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return string(apierrors.ReasonForError(err))
	}
	groups := slices.DeleteFunc(review.Status.UserInfo.Groups, func(group string) bool { return group == "system:authenticated" })
	return review.Status.UserInfo.Username + " " + strings.Join(groups, " ")
}

// A server runs until Stop or the end of this process, also if nothing refers to its Server: the
// garbage collector would close the pipe whose end kills the servers.
func TestServerIsNotCollected(t *testing.T) {
	start := func() weak.Pointer[envtest.Server] {
		server, err := envtest.Start(t.Context(), envtest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return weak.Make(server)
	}
	started := start()
	for range 10 { // what has just ended may still refer to it
		runtime.GC()
	}
	server := started.Value()
	if server == nil {
		t.Fatal("the Server was collected while it ran")
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

// A server without an audit log has no receiver for it, and no flags; it cannot record the calls of plugins.
func TestNoAudit(t *testing.T) {
	server := start(t, envtest.Options{NoAudit: true})
	flags := strings.Join(server.Environment.ControlPlane.APIServer.Configure().AsStrings(nil), " ")
	if server.Audit != nil || server.Lost() != 0 || strings.Contains(flags, "audit") {
		t.Errorf("got the audit log %v, %d lost connections, flags %s", server.Audit, server.Lost(), flags)
	}
	if _, err := envtest.Start(t.Context(), envtest.Options{NoAudit: true, ObservePlugins: true}); err == nil || !strings.Contains(err.Error(), "only one of") {
		t.Errorf("got error %v, want that only one can be set", err)
	}
}
