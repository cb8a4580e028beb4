package seeds

import (
	"encoding/json"
	"os"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/suites/webhook"
)

func TestTwo(t *testing.T) {
	s := &Server{}
	webhook.Run(t, webhook.Subject{
		Handler:        s.Handler(),
		Configurations: webhook.Files("config/crd.yaml", "config/webhook.yaml"),
		Reject:         []webhook.Sample{{Manifest: dbgFile("more/two"), Message: "allowed registry"}},
	}, webhook.Only("WH-IDEM-4", "WH-VERDICT-1"))
}

func TestLimits(t *testing.T) {
	s := &Server{}
	b, _ := os.ReadFile("testdata/more/logger.yaml")
	raw, _ := yaml.YAMLToJSON(b)
	r := s.mutate(&admissionv1.AdmissionRequest{Namespace: "web", Operation: "CREATE", Resource: metav1.GroupVersionResource{Resource: "pods", Version: "v1"}, Object: runtime.RawExtension{Raw: raw}})
	x, _ := json.Marshal(string(r.Patch))
	t.Logf("%s", x)
	webhook.Run(t, webhook.Subject{
		Handler:        s.Handler(),
		Configurations: webhook.Files("config/crd.yaml", "config/webhook.yaml"),
		Allow:          []webhook.Sample{{Manifest: dbgFile("more/logger")}},
	})
}
