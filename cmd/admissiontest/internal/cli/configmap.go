package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/admissiontest/admissiontest/internal/report"
)

// reportLabel marks the ConfigMaps of reports. No other ConfigMap is overwritten.
const reportLabel = "admissiontest.dev/report"

// mostInConfigMap is how many bytes a ConfigMap can have.
const mostInConfigMap = corev1.MaxSecretSize

// reportPause is how long "report get --wait" waits between two requests.
const reportPause = time.Second

// configMapFlag is the flag --report-configmap.
type configMapFlag struct{ value string }

func (f *configMapFlag) add(command *cobra.Command) {
	command.Flags().StringVar(&f.value, "report-configmap", "", "write the report, compressed, to the key "+report.CompressedFile+" of this ConfigMap in the cluster, unless the run is interrupted or incomplete: NAMESPACE/NAME")
}

// open returns what writes a report to the ConfigMap, or nil without the flag. It first finds out whether that is
// possible, so that an error does not waste a run.
func (f *configMapFlag) open(ctx context.Context, cluster *clusterFlags) (func(context.Context, report.Report) error, error) {
	if f.value == "" {
		return nil, nil //nolint:nilnil // there is nothing to write
	}
	in, name, err := openConfigMap(ctx, cluster, "--report-configmap", f.value)
	if err != nil {
		return nil, err
	}
	put := func(ctx context.Context, r report.Report, dryRun ...string) error {
		err := putReport(ctx, in, name, r, dryRun)
		if err != nil {
			err = fmt.Errorf("write report to ConfigMap %s: %w", f.value, err)
		}
		return err
	}
	if err := put(ctx, report.Report{}, metav1.DryRunAll); err != nil {
		return nil, withCode(exitInfrastructure, err)
	}
	return func(ctx context.Context, r report.Report) error { return put(ctx, r) }, nil
}

// openConfigMap connects to the cluster of a ConfigMap, NAMESPACE/NAME, and returns its name. What is the flag that has the value.
func openConfigMap(ctx context.Context, cluster *clusterFlags, what, value string) (in typedcorev1.ConfigMapInterface, name string, err error) {
	namespace, name, found := strings.Cut(value, "/")
	if problems := append(validation.IsDNS1123Label(namespace), validation.IsDNS1123Subdomain(name)...); !found || len(problems) > 0 {
		return nil, "", usagef("%s %q: want NAMESPACE/NAME", what, value)
	}
	config, err := cluster.provider(nil).Connect(ctx)
	if err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", err
	}
	return client.CoreV1().ConfigMaps(namespace), name, nil
}

func (a *app) reportGetCommand() *cobra.Command {
	var cluster clusterFlags
	dir, waits := "", false
	command := &cobra.Command{
		Use:   "get NAMESPACE/NAME ...",
		Short: "Get reports from ConfigMaps in a cluster",
		Long: `Get the reports that runs in a cluster wrote (run --report-configmap). Each is written to the
file NAME.json.gz, which all commands for reports read.`,
		Example: "  admissiontest report get admissiontest/report && admissiontest report html report.json.gz",
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes ConfigMaps, as NAMESPACE/NAME; got none", command.CommandPath())
			}
			of := map[string]string{}
			for _, arg := range args {
				name := path.Base(arg)
				if other, found := of[name]; found && other != arg {
					return usagef("%s and %s would be written to the same file %s.json.gz; get one of them into another folder with --report", other, arg, name)
				}
				of[name] = arg
			}
			return a.reading(func(ctx context.Context, args []string) error {
				if err := makeReportDir(dir); err != nil {
					return err
				}
				for _, arg := range args {
					if err := a.reportGet(ctx, &cluster, arg, dir, waits); err != nil {
						return err
					}
				}
				return nil
			})(command, args)
		},
	}
	cluster.add(command)
	command.Flags().StringVar(&dir, "report", ".", "write the files to this folder")
	command.Flags().BoolVar(&waits, "wait", false, "wait until the ConfigMaps are there")
	_ = command.MarkFlagDirname("report")
	return command
}

// reportGet implements the command report get for one ConfigMap.
func (a *app) reportGet(ctx context.Context, cluster *clusterFlags, reference, dir string, waits bool) error {
	in, name, err := openConfigMap(ctx, cluster, "ConfigMap", reference)
	if err != nil {
		return err
	}
	var stored *corev1.ConfigMap
	said := false
	err = wait.PollUntilContextCancel(ctx, reportPause, true, func(ctx context.Context) (bool, error) {
		stored, err = in.Get(ctx, name, metav1.GetOptions{})
		if waits && apierrors.IsNotFound(err) {
			if !said {
				a.note("waiting for ConfigMap " + reference)
			}
			said = true
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return withCode(exitInfrastructure, fmt.Errorf("read ConfigMap %s: %w", reference, err))
	}
	content := stored.BinaryData[report.CompressedFile]
	if len(content) == 0 {
		return usagef("ConfigMap %s has no key %s: it has no report", reference, report.CompressedFile)
	}
	file := filepath.Join(dir, name+".json.gz")
	err = report.ReplaceFile(file, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err != nil {
		return usagef("%w", err)
	}
	_, err = fmt.Fprintln(a.Stdout, file)
	return err
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
