package install

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/admissiontest/admissiontest/framework"
	"github.com/admissiontest/admissiontest/internal/object"
)

const (
	claimManifest     = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}, status: {phase: Bound, capacity: {storage: 1Gi}}}`
	podManifest       = `{apiVersion: v1, kind: Pod, metadata: {name: %s, finalizers: [example.com/wait], deletionTimestamp: "2024-05-05T10:00:00Z"}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: i, resources: {limits: {cpu: 1000m}}, securityContext: {}}]}, status: {phase: Running, podIP: 10.0.0.1}}`
	nodeManifest      = `{apiVersion: v1, kind: Node, metadata: {name: %s}, spec: {taints: [{key: a, effect: NoSchedule}]}, status: {capacity: {cpu: "4"}, nodeInfo: {kubeletVersion: v1.36.0, operatingSystem: linux}}}`
	deployManifest    = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, generation: 1, creationTimestamp: null}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}, status: {replicas: 3, observedGeneration: 1}}`
	namespaceManifest = `{apiVersion: v1, kind: Namespace, metadata: {name: %s, deletionTimestamp: "2024-05-05T10:00:00Z"}, status: {phase: Terminating}}`
	volumeManifest    = `{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/x}}, status: {phase: Released}}`
	secretManifest    = `{apiVersion: v1, kind: Secret, metadata: {name: %s}, stringData: {a: b}}`
	statusCRD         = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]ss.complete.example.com}, spec: {group: complete.example.com, scope: Cluster, names: {plural: %[1]ss, kind: %[2]s}, versions: [{name: v1, served: true, storage: true, %[3]s schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
)

// csr is a request for a certificate.
const csr = `LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQ1VUQ0NBVGtDQVFBd0RERUtNQWdHQTFVRUF3d0JZVENDQVNJd0RRWUpLb1pJaHZjTkFRRUJCUUFEZ2dFUApBRENDQVFvQ2dnRUJBTUpMZjhwMG1yb1hPTG5OK0gwS25YRXo3U0laNlEyVEVGVVRTRkdUd1lZR3RpN3ZtczVmCkV6Nm5jMnc2bEdXemk5UkwybER4Ky9Pa3RwdXhoYS9SUVVMZjhtaW81ems4S1k4c0hDcnZWaGkwZGNOd1hYRmUKMXE3UFYvMXduZkd0UG1EZ2wzajg3K2p5OEZoNDJxZ0RUYm84R0dBR0ZTZVVzWXphdWRMK0NMMHdiMzdic1pDSQpHd1NnV1ByOExCK3VpVWE0eHV5LzRZOXRSa1ViamYxcmorQ3ltK2w3dnRDY0h1alV0aytUdFcvNHZIeGhoVVdmCm9HMDl6VzU0TFozNVQyUFAzYzNUT0NLODBtc2R1SDJTYmtBR2VGbUpFU3hEVGxtZE1JYUZKbW1va2hzc29ZT08KVmtGbzNGL3pvbVJTMUZqZDRUdXZiVlpXUWVYWkFORWNLSTBDQXdFQUFhQUFNQTBHQ1NxR1NJYjNEUUVCQ3dVQQpBNElCQVFBblFQY3kvRkZwVUQwejBCN2ZDTGMyTGx5WTB6T0ZTVTh4KzRlMTdSOTJHRWlQU05kZzVnK2FmeDJvClJpaUNuZmpJZ2ZqK3lQeEpaNDQ0L2VVd01MT2tJZ3FOd1pJWTJubjZnOTJRMk15c2ZkVTliTllLUU9hb0J6dTEKc243ME9ZbWNaNW9yOXR4S3YrVi8yTVo2K21ZNzc3d2VQcXUrYWdmMWw5ZlkvRk8zZFF5RGtlTGh3aGNka1pPRAptL3dxVk4yMm1Cd1NteWdJQVhqS1g4QkJtTTdZNnM1V0VpbFVERngveUNuWk9HWnBhY3l4eHpIdUhmNFBwM2VXCnZYUmh5MHlWOG4zaHdCOGoyQ3kwT0dCQVJBL0l1U0srcXNQZ0xkQXNoYlRBK0lDZWtWSTkxVXQvaHpsVVhUa0sKV28wOVJ1ZXB5b0FUckdFckYvSThwR2ZQVnJyNAotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K`

func fromYAML(t *testing.T, format string, arguments ...any) map[string]any {
	t.Helper()
	var manifest map[string]any
	if err := yaml.Unmarshal(fmt.Appendf(nil, format, arguments...), &manifest); err != nil {
		t.Fatal(err)
	}
	return manifest
}

// What is stored is what the manifest says, although an API server ignores a status and a
// deletionTimestamp in a create.
func TestComplete(t *testing.T) {
	i := installer(t, "complete")
	s := scope(t, i, "at-complete-001")
	i.DefaultAccounts = true
	if err := i.DefaultAccount(t.Context(), s, s.ID); err != nil {
		t.Fatal(err)
	}
	for name, subresources := range map[string]string{"full": "subresources: {status: {}},", "plain": ""} {
		if err := i.Install(t.Context(), s, fromYAML(t, statusCRD, name, map[string]string{"full": "Full", "plain": "Plain"}[name], subresources), nil); err != nil {
			t.Fatal(err)
		}
	}
	for n, format := range []string{
		claimManifest, podManifest, nodeManifest, deployManifest, namespaceManifest, volumeManifest, secretManifest,
		`{apiVersion: complete.example.com/v1, kind: Full, metadata: {name: %s}, spec: {a: 1}, status: {ready: true, at: "1m"}}`,
		`{apiVersion: complete.example.com/v1, kind: Plain, metadata: {name: %s}, spec: {a: 1}, status: {ready: true}}`,
	} {
		name := fmt.Sprintf("at-complete-001-%d", n)
		manifest := fromYAML(t, format, name)
		t.Run(fmt.Sprint(manifest["kind"]), func(t *testing.T) {
			if err := i.Install(t.Context(), s, manifest, nil); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			kind, _ := object.Kind(manifest)
			res, _ := i.Client.Resources.Of(kind)
			namespace := ""
			if res.Namespaced {
				namespace = s.ID
			}
			stored, err := get(t, i.Client, kind, namespace, name)
			if err != nil {
				t.Fatal(err)
			}
			if lost := lostFields(manifest, stored.Object); lost != nil {
				t.Errorf("%s: %s is %v", format, lost.path, lost.stored)
			}
			deleted := slices.Contains([]string{podManifest, namespaceManifest}, format)
			if (stored.GetDeletionTimestamp() != nil) != deleted {
				t.Errorf("%s: deletionTimestamp is %v, want one: %t", format, stored.GetDeletionTimestamp(), deleted)
			}
			if stored.GetLabels() != nil && kind.Kind != "Namespace" {
				t.Errorf("%s: got labels %v, want none", format, stored.GetLabels())
			}
		})
	}
}

// A field that an API server does not keep is an error that names it.
func TestLostField(t *testing.T) {
	i := installer(t, "lost")
	s := scope(t, i, "at-lost-001")
	for field, format := range map[string]string{
		"metadata.deletionTimestamp":        `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, deletionTimestamp: "2024-05-05T10:00:00Z"}}`,
		"metadata.uid":                      `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, uid: 11111111-2222-3333-4444-555555555555}}`,
		"metadata.creationTimestamp":        `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, creationTimestamp: "2024-05-05T10:00:00Z"}}`,
		"metadata.generation":               `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, generation: 7}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
		"metadata.managedFields[0].manager": `{apiVersion: v1, kind: ConfigMap, metadata: {name: e, managedFields: [{manager: kubectl, operation: Update, apiVersion: v1, time: "2024-05-05T10:00:00Z", fieldsType: FieldsV1, fieldsV1: {}}]}, data: {a: b}}`,
		"spec.username":                     `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: at-lost-001-f}, spec: {username: jane, signerName: example.com/a, usages: [client auth], request: ` + csr + `}}`,
	} {
		t.Run(field, func(t *testing.T) {
			err := i.Install(t.Context(), s, fromYAML(t, "%s", format), nil)
			lost := (*framework.ManifestError)(nil)
			if !errors.As(err, &lost) || lost.Field != field {
				t.Errorf("got %v, want an error about the field", err)
			}
		})
	}
}

func TestSameValue(t *testing.T) {
	for _, same := range [][2]any{{"1000m", "1"}, {int64(1), float64(1)}, {true, true}, {"80", int64(80)}} {
		if !sameValue(same[0], same[1]) {
			t.Errorf("%v and %v differ, want the same", same[0], same[1])
		}
	}
	for _, other := range [][2]any{{"1", "2"}, {"a", "b"}, {"60s", "1m0s"}, {"1", "a"}, {true, false}, {"a", nil}} {
		if sameValue(other[0], other[1]) {
			t.Errorf("%v and %v are the same, want different", other[0], other[1])
		}
	}
}
