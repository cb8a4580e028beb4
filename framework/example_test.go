package framework_test

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admissiontest/admissiontest/framework"
)

// noSecrets is a Target with one rule.
type noSecrets struct{}

func (noSecrets) Info() framework.TargetInfo { return framework.TargetInfo{Kind: "example"} }

func (noSecrets) Do(_ context.Context, request framework.Request) (framework.Result, error) {
	if _, secret := request.Object.(*corev1.Secret); secret {
		return framework.Result{Status: metav1.Status{Code: http.StatusForbidden, Message: "no Secrets here"}}, nil
	}
	return framework.Result{Status: metav1.Status{Code: http.StatusCreated}, Object: request.Object}, nil
}

// A Request is a value: its methods return changed copies. A refused Request is a Result and
// not an error.
func Example() {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "a"}
	configMap := framework.Create(&corev1.ConfigMap{ObjectMeta: meta})
	secret := framework.Create(&corev1.Secret{ObjectMeta: meta}).As("alice", "developers").WithDryRun()

	var target framework.Target = noSecrets{}
	for _, request := range []framework.Request{configMap, secret} {
		result, err := target.Do(context.Background(), request)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %s/%s, dry run %t: allowed %t, %q\n", request.Verb, request.Namespace, request.Name, request.DryRun, result.Allowed(), result.Status.Message)
	}
	// Output:
	// create shop/a, dry run false: allowed true, ""
	// create shop/a, dry run true: allowed false, "no Secrets here"
}
