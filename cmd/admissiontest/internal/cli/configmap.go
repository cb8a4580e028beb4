package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/admissiontest/admissiontest/internal/report"
)

// reportLabel marks the ConfigMaps of reports. No other ConfigMap is overwritten.
const reportLabel = "admissiontest.dev/report"

// mostInConfigMap is how many bytes a ConfigMap can have.
const mostInConfigMap = corev1.MaxSecretSize

// configMapPrefix distinguishes a ConfigMap from a folder.
const configMapPrefix = "configmap/"

// reportFlag is the flag --report, which can name a folder and a ConfigMap.
type reportFlag struct{ dir, configMap string }

func (f *reportFlag) add(command *cobra.Command) {
	command.Flags().Func("report", "write report.json, junit.xml and report.html to a folder, or the report, compressed, to the key "+report.CompressedFile+" of a ConfigMap in the cluster, unless the run is interrupted or incomplete: `DIR|configmap/NAMESPACE/NAME` (can be given for both)", f.set)
}

// set sets the folder or the ConfigMap.
func (f *reportFlag) set(text string) error {
	of := &f.dir
	name, inCluster := strings.CutPrefix(text, configMapPrefix)
	if inCluster {
		of = &f.configMap
	}
	if *of != "" {
		return fmt.Errorf("given twice: %s and %s", *of, name)
	}
	*of = name
	return nil
}

// open returns what writes a report to the ConfigMap, or nil without one. It first finds out whether that is
// possible, so that an error does not waste a run.
func (f *reportFlag) open(ctx context.Context, cluster *clusterFlags) (func(context.Context, report.Report) error, error) {
	if f.configMap == "" {
		return nil, nil //nolint:nilnil // there is nothing to write
	}
	namespace, name, found := strings.Cut(f.configMap, "/")
	if problems := append(validation.IsDNS1123Label(namespace), validation.IsDNS1123Subdomain(name)...); !found || len(problems) > 0 {
		return nil, usagef("--report %s%s: want %sNAMESPACE/NAME", configMapPrefix, f.configMap, configMapPrefix)
	}
	config, err := cluster.provider(nil).Connect(ctx)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	in := client.CoreV1().ConfigMaps(namespace)
	put := func(ctx context.Context, r report.Report, dryRun ...string) error {
		err := putReport(ctx, in, name, r, dryRun)
		if err != nil {
			err = fmt.Errorf("write report to ConfigMap %s: %w", f.configMap, err)
		}
		return err
	}
	if err := put(ctx, report.Report{}, metav1.DryRunAll); err != nil {
		return nil, withCode(exitInfrastructure, err)
	}
	return func(ctx context.Context, r report.Report) error { return put(ctx, r) }, nil
}

// putReport creates or updates the ConfigMap.
func putReport(ctx context.Context, in typedcorev1.ConfigMapInterface, name string, r report.Report, dryRun []string) error {
	var content bytes.Buffer
	if err := report.WriteCompressed(&content, r); err != nil {
		return err
	}
	if content.Len() > mostInConfigMap {
		return fmt.Errorf("the compressed report has %d bytes; a ConfigMap can have %d: use more shards, or --report with a volume", content.Len(), mostInConfigMap)
	}
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{reportLabel: "true"}},
		BinaryData: map[string][]byte{report.CompressedFile: content.Bytes()},
	}
	stored, err := in.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = in.Create(ctx, wanted, metav1.CreateOptions{DryRun: dryRun})
	case err != nil:
	case stored.Labels[reportLabel] == "":
		err = errors.New("it exists without the label " + reportLabel + ", so it is not a report; choose another name, or delete it")
	default:
		wanted.ResourceVersion = stored.ResourceVersion
		_, err = in.Update(ctx, wanted, metav1.UpdateOptions{DryRun: dryRun})
	}
	return err
}
