package apiserver

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/target"
)

func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		lacks     target.Lacks
		effective time.Duration
		info      framework.TargetInfo
		want      []string
	}{
		"everything": {
			effective: 120 * time.Millisecond, info: framework.TargetInfo{FeatureGates: map[string]bool{}, Capabilities: framework.Capabilities()},
			want: []string{"the API server has dry run; a configuration is effective after 120ms"},
		},
		"little": {
			lacks: target.Lacks{target.Narrowing: "n", target.Warnings: "w", "admission of ConfigMap": "c"},
			want: []string{
				"the API server has dry run",
				"the API server lacks admission of ConfigMap (c): scenarios that need it are unsupported",
				"the API server lacks narrowing (n): scenarios run one at a time",
				"the API server lacks warnings (w): scenarios that need it are unsupported",
				"the API server shows no metrics: a failure that a disabled feature gate or plugin can explain is inconclusive",
				"this run lacks audit, webhook-credentials, hook-service, hooks-at-443, controllers: scenarios that need them are unsupported",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, describe(test.lacks, test.effective, test.info)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
